"""Clusters of the default settings beside spectral clustering, Louvain and Leiden, 20 seeds each.

    python benchmarks/quality.py prepare                     build every graph once
    python benchmarks/quality.py run --seeds 20              all methods on all data
    python benchmarks/quality.py run --method symnmf --label before
    python benchmarks/quality.py table                       write docs/clustering-quality.md

Every method gets the same graph: adjacency matrices as they come, and the kNN graphs that SymNMF
builds of points. Each finished seed is kept under --work, so a run that was interrupted goes on.
``--label`` names a version of this library; the table shows all labels side by side. Leiden needs
``pip install leidenalg``.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[1]

#: Title, loader, its options, and the kind of graph (None: a graph as it comes).
DATA: dict[str, tuple[str, str, dict[str, Any], str | None]] = {
    "karate": ("karate", "karate", {}, None),
    "dolphins": ("dolphins", "dolphins", {}, None),
    "football": ("football", "football", {}, None),
    "polbooks": ("polbooks", "polbooks", {}, None),
    "email": ("email-Eu-core", "email_eu_core", {}, None),
    "cora": ("cora", "cora", {}, None),
    "citeseer": ("citeseer", "citeseer", {}, None),
    "facebook": ("ego-Facebook", "ego_facebook", {}, None),
    "orl": ("ORL", "orl", {}, "self-tuning"),
    "coil20": ("COIL-20", "coil20", {}, "self-tuning"),
    "mnist": ("MNIST train", "mnist_train3147", {}, "self-tuning"),
    "tdt2": ("TDT2", "tdt2", {}, "self-tuning"),
    "news-tfidf": ("20newsgroups, tf-idf", "newsgroups", {}, "cosine"),
    "news-counts": ("20newsgroups, counts", "newsgroups", {"weighting": "counts"}, "cosine"),
    "digits": ("digits", "digits", {}, "self-tuning"),
}
#: Graphs for wall times only.
LARGE = {
    "blocks50k": "block model, 50 000 nodes",
    "mnist-test": "MNIST, 10 000 test images",
    "mnist-full": "MNIST, 70 000 images",
}
MEASURES = ("accuracy", "nmi", "ari")


@dataclass(frozen=True)
class Problem:
    """A graph (weights as they come, or a normalised kNN graph), and the classes of its nodes."""

    A: sp.csr_array
    target: np.ndarray
    k: int
    given: bool


def block_model(n: int = 50_000, k: int = 20, degree: float = 16.0) -> tuple[Any, np.ndarray]:
    """Return a planted partition: three quarters of a node's edges stay in its block."""
    rng = np.random.default_rng(0)
    labels = rng.integers(k, size=n)
    members = [np.flatnonzero(labels == block) for block in range(k)]
    count = int(n * degree / 2)
    one = rng.integers(n, size=count)
    other = rng.integers(n, size=count)
    inside = np.flatnonzero(rng.random(count) < 0.75)
    for block in range(k):
        mine = inside[labels[one[inside]] == block]
        other[mine] = rng.choice(members[block], size=mine.size)
    kept = one != other
    ends = (np.r_[one[kept], other[kept]], np.r_[other[kept], one[kept]])
    A = sp.csr_array(sp.coo_array((np.ones(ends[0].size), ends), shape=(n, n)))
    A.data[:] = 1
    return A, labels


def prepare(name: str, work: Path) -> Path:
    """Build the graph of a data set and keep it."""
    path = work / "graphs" / f"{name}.npz"
    if path.is_file():
        return path
    from symnmf import datasets, graphs

    target: np.ndarray | None
    if name == "blocks50k":
        A, target = block_model()
        k, given = 20, True
    elif name in ("mnist-full", "mnist-test"):
        data = datasets.load("mnist_full")
        assert data.target is not None
        rows = slice(None) if name == "mnist-full" else slice(60_000, None)  # training images first
        A, target, k, given = graphs.self_tuning(data.data[rows]), data.target[rows], 10, False
    else:
        _, loader, options, kind = DATA[name]
        data = datasets.load(loader, **options)
        given = kind is None
        A = data.data if kind is None else graphs.build(data.data, kind)
        if name == "facebook":
            target, k = owners(), 10
        else:
            target, k = data.target, data.n_clusters
    assert target is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    A = sp.csr_array(A)
    np.savez_compressed(
        path, data=A.data, indices=A.indices, indptr=A.indptr, target=target, k=k, given=given
    )
    return path


def owners() -> np.ndarray:
    """Return whose network each node of ego-Facebook is in, -1 where no circle tells."""
    from symnmf.datasets.sources import read

    stored = read("ego_facebook", None)
    owner = np.full(int(stored["n"]), -1)
    for group, nodes in enumerate(np.split(stored["comm_members"], stored["comm_indptr"][1:-1])):
        owner[nodes] = stored["comm_ego"][group]
    return owner


@functools.cache
def problem(name: str, work: Path) -> Problem:
    """Read a graph that :func:`prepare` has kept."""
    with np.load(prepare(name, work)) as stored:
        n = stored["indptr"].size - 1
        parts = (stored["data"], stored["indices"], stored["indptr"])
        A = sp.csr_array(parts, shape=(n, n))
        return Problem(A, stored["target"], int(stored["k"]), bool(stored["given"]))


# Methods: a problem and a seed in, a label per node out ---------------------------------------


def symnmf(given: Problem, seed: int) -> np.ndarray:
    import symnmf as library

    if not given.given:
        model = library.SymNMF(given.k, affinity="precomputed", random_state=seed)
        return model.fit_predict(given.A)
    return partition(library.communities(given.A, given.k, random_state=seed), given)


def partition(sets: Any, given: Problem) -> np.ndarray:
    labels = np.full(given.A.shape[0], -1)
    for number, nodes in enumerate(sets):
        labels[list(nodes)] = number
    return labels


def spectral(given: Problem, seed: int, *, assign_labels: str) -> np.ndarray:
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(
        given.k, affinity="precomputed", assign_labels=assign_labels, random_state=seed
    ).fit_predict(given.A)


def eigsh_cluster_qr(given: Problem, seed: int) -> np.ndarray:
    """Return scikit-learn's cluster_qr of the leading eigenvectors by plain eigsh."""
    from scipy.sparse.linalg import eigsh
    from sklearn.cluster._spectral import cluster_qr

    degrees = np.asarray(given.A.sum(axis=1)).ravel()
    scale = sp.diags_array(1 / np.sqrt(np.maximum(degrees, 1e-300)))
    start = np.random.default_rng(seed).random(given.A.shape[0])
    _, vectors = eigsh(sp.csr_array(scale @ given.A @ scale), k=given.k, which="LA", v0=start)
    return cluster_qr(vectors)


def louvain(given: Problem, seed: int) -> np.ndarray:
    import networkx as nx

    graph = nx.from_scipy_sparse_array(given.A)
    return partition(nx.community.louvain_communities(graph, seed=seed), given)


def leiden(given: Problem, seed: int) -> np.ndarray:
    import igraph
    import leidenalg

    upper = sp.coo_array(sp.triu(given.A, 1))
    edges = np.column_stack(upper.coords).tolist()
    graph = igraph.Graph(n=given.A.shape[0], edges=edges)
    kind = leidenalg.ModularityVertexPartition
    found = leidenalg.find_partition(graph, kind, weights=upper.data.tolist(), seed=seed)
    return np.array(found.membership)


METHODS: dict[str, Callable[[Problem, int], np.ndarray]] = {
    "symnmf": symnmf,
    "spectral-kmeans": functools.partial(spectral, assign_labels="kmeans"),
    "spectral-cluster_qr": functools.partial(spectral, assign_labels="cluster_qr"),
    "eigsh-cluster_qr": eigsh_cluster_qr,
    "louvain": louvain,
    "leiden": leiden,
}


def measure(name: str, method: str, seed: int, work: Path) -> dict[str, float]:
    """Run one method once; nodes whose class is not known are left out of the scores."""
    from symnmf import metrics

    given = problem(name, work)
    cpu, clock = time.process_time(), time.perf_counter()
    labels = METHODS[method](given, seed)
    seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
    known = given.target >= 0
    true, found = given.target[known], labels[known]
    return {
        "accuracy": metrics.clustering_accuracy(true, found),
        "nmi": metrics.normalized_mutual_info(true, found),
        "ari": metrics.adjusted_rand(true, found),
        "clusters": int(np.unique(labels[labels >= 0]).size),
        "largest": float(np.bincount(labels[labels >= 0]).max() / labels.size),
        "seconds": seconds,
        "cpu": cpu,
    }


def run(names: list[str], methods: list[str], seeds: int, label: str, work: Path) -> None:
    for name in names:
        for method in methods:
            stem = f"{method}-{label}" if method == "symnmf" and label else method
            path = work / name / f"{stem}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = json.loads(path.read_text()) if path.is_file() else {}
            for seed in range(seeds):
                if str(seed) in kept:
                    continue
                kept[str(seed)] = measure(name, method, seed, work)
                path.write_text(json.dumps(kept, indent=1))
            middle = {
                key: float(np.median([one[key] for one in kept.values()]))
                for key in (*MEASURES, "largest", "seconds", "cpu")
            }
            print(name, stem, len(kept), {k: round(v, 3) for k, v in middle.items()}, flush=True)


def table(names: list[str], work: Path) -> str:
    """Return the medians as Markdown, a line per data set and method."""
    head = ["data", "method", "accuracy", "NMI", "ARI", "clusters", "largest", "seconds"]
    lines = [head, ["---"] * len(head)]
    for name in names:
        title = DATA[name][0] if name in DATA else LARGE[name]
        for path in sorted((work / name).glob("*.json"), key=_place):
            kept = list(json.loads(path.read_text()).values())
            numbers = [np.median([one[key] for one in kept]) for key in MEASURES]
            clusters, largest, seconds = (
                np.median([one[key] for one in kept]) for key in ("clusters", "largest", "seconds")
            )
            cells = [f"{value:.3f}" for value in numbers]
            cells += [f"{clusters:g}", f"{largest:.2f}", f"{seconds:.3g}"]
            lines.append([title, path.stem, *cells])
    rows = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"# Fifteen data sets, beside spectral clustering, Louvain and Leiden\n\n{rows}\n"


def _place(path: Path) -> tuple[int, str]:
    order = list(METHODS)
    found = [i for i, method in enumerate(order) if path.stem.startswith(method)]
    return (found[0] if found else len(order), path.stem)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["prepare", "run", "table"])
    parser.add_argument("--only", nargs="+", default=list(DATA), choices=[*DATA, *LARGE])
    parser.add_argument("--method", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--label", default="", help="which version of this library ran")
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "quality")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "clustering-quality.md")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # graphs in pieces and unconverged starts are measured too
    if chosen.what == "prepare":
        for name in chosen.only:
            print(prepare(name, chosen.work), flush=True)
    elif chosen.what == "run":
        run(chosen.only, chosen.method, chosen.seeds, chosen.label, chosen.work)
    else:
        text = table(chosen.only, chosen.work)
        chosen.out.write_text(text)
        print(text)


if __name__ == "__main__":
    main()
