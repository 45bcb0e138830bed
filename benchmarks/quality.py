"""Clusters of the default settings beside spectral clustering, Louvain and Leiden, 20 seeds each.

    python benchmarks/quality.py prepare                     build every graph once
    python benchmarks/quality.py run --seeds 20              all methods on all data
    python benchmarks/quality.py time --only cora            seconds, the best of three runs
    python benchmarks/quality.py table                       write docs/clustering-quality.md

Every method gets the same graph: adjacency matrices as they come, and the kNN graphs that SymNMF
builds of points. Each finished seed is kept under --work, so a run that was interrupted goes on.
``time`` wants a machine with nothing else to do. Leiden needs ``pip install leidenalg``, and the
third table of that page comes from benchmarks/near_global.py.
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
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "clustering-quality.md"  # the tables in it are replaced

#: Title, loader, its options, and the kind of graph (None: a graph as it comes).
DATA: dict[str, tuple[str, str, dict[str, Any], str | None]] = {
    "karate": ("karate", "karate", {}, None),
    "dolphins": ("dolphins", "dolphins", {}, None),
    "football": ("football", "football", {}, None),
    "polbooks": ("polbooks", "polbooks", {}, None),
    "email": ("email-Eu-core", "email_eu_core", {}, None),
    "cora": ("cora", "planetoid_cora", {}, None),
    "citeseer": ("citeseer", "planetoid_citeseer", {}, None),
    "facebook": ("ego-Facebook", "ego_facebook", {}, None),
    "orl": ("ORL", "orl", {}, "self-tuning"),
    "coil20": ("COIL-20", "coil20", {}, "self-tuning"),
    "mnist": ("MNIST train", "mnist_train3147", {}, "self-tuning"),
    "tdt2": ("TDT2", "TDT2_first3147", {}, "self-tuning"),
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
TIMES = "times.json"
TITLES = {
    "symnmf": "symnmf",
    "symnmf-random": "random starts",
    "spectral-kmeans": "spectral, kmeans",
    "spectral-cluster_qr": "spectral, cluster_qr",
    "eigsh-cluster_qr": "eigsh, cluster_qr",
    "louvain": "Louvain",
    "leiden": "Leiden",
}


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
    stored = np.load(Path("../shared/data/ego_facebook.npz"))
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


def symnmf_random(given: Problem, seed: int) -> np.ndarray:
    """Return the labels of five random starts without degree_offset, the default of old."""
    import symnmf as library

    random: dict[str, Any] = {"init": "scaled-random", "random_state": seed}
    if not given.given:
        model = library.SymNMF(given.k, affinity="precomputed", **random)
        return model.fit_predict(given.A)
    return partition(library.communities(given.A, given.k, degree_offset=0.0, **random), given)


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
    "symnmf-random": symnmf_random,
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
        "nmi": normalized_mutual_info_score(true, found),
        "ari": adjusted_rand_score(true, found),
        "clusters": int(np.unique(labels[labels >= 0]).size),
        "largest": float(np.bincount(labels[labels >= 0]).max() / labels.size),
        "seconds": seconds,
        "cpu": cpu,
    }


def run(names: list[str], methods: list[str], seeds: int, work: Path) -> None:
    for name in names:
        for method in methods:
            path = work / name / f"{method}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = json.loads(path.read_text()) if path.is_file() else {}
            for seed in range(seeds):
                if str(seed) in kept:
                    continue
                kept[str(seed)] = measure(name, method, seed, work)
                path.write_text(json.dumps(kept, indent=1))
            middle = {key: round(median(kept, key), 3) for key in (*MEASURES, "largest", "cpu")}
            print(name, method, len(kept), middle, flush=True)


def time_all(names: list[str], methods: list[str], repeats: int, work: Path) -> None:
    """Keep the best seconds of a few runs, after one that may load compiled code."""
    for name in names:
        path = work / name / TIMES
        path.parent.mkdir(parents=True, exist_ok=True)
        for method in methods:
            runs = [measure(name, method, 0, work)["seconds"] for _ in range(1 + repeats)]
            kept = json.loads(path.read_text()) if path.is_file() else {}
            kept[method] = min(runs)
            path.write_text(json.dumps(kept, indent=1))
            print(name, method, f"{kept[method]:.3g}", flush=True)


def median(kept: dict[str, Any], key: str) -> float:
    return float(np.median([one[key] for one in kept.values()]))


def results(name: str, work: Path) -> dict[str, dict[str, Any]]:
    """Return what is kept of a data set, in the order of the methods."""
    paths = {method: work / name / f"{method}.json" for method in METHODS}
    return {method: json.loads(p.read_text()) for method, p in paths.items() if p.is_file()}


def markdown(lines: list[list[str]]) -> str:
    head, *rows = lines
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


def summary(names: list[str], work: Path) -> str:
    """Return the median accuracies, a line per data set and a column per method."""
    lines = [["", *TITLES.values()]]
    for name in names:
        found = results(name, work)
        values = {m: median(kept, "accuracy") for m, kept in found.items()}
        best = max(values.values())
        cells = [f"{values[m]:.3f}" if m in values else "" for m in METHODS]
        bold = [f"**{c}**" if c and float(c) >= round(best, 3) else c for c in cells]
        lines.append([DATA[name][0], *bold])
    return markdown(lines)


def seconds_table(names: list[str], work: Path) -> str:
    """Return the wall times of :func:`time_all`."""
    lines = [["", *TITLES.values()]]
    for name in names:
        path = work / name / TIMES
        kept = json.loads(path.read_text()) if path.is_file() else {}
        title = DATA[name][0] if name in DATA else LARGE[name]
        lines.append([title, *(f"{kept[m]:.2g}" if m in kept else "" for m in METHODS)])
    return markdown(lines)


def details(names: list[str], work: Path) -> str:
    """Return all medians, a line per data set and method."""
    lines = [["data", "method", "accuracy", "NMI", "ARI", "clusters", "largest", "seeds"]]
    for name in names:
        for method, kept in results(name, work).items():
            cells = [f"{median(kept, key):.3f}" for key in MEASURES]
            cells += [f"{median(kept, 'clusters'):g}", f"{median(kept, 'largest'):.2f}"]
            lines.append([DATA[name][0], TITLES[method], *cells, str(len(kept))])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["prepare", "run", "time", "table"])
    parser.add_argument("--only", nargs="+", default=list(DATA), choices=[*DATA, *LARGE])
    parser.add_argument("--method", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "quality")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # graphs in pieces and unconverged starts are measured too
    if chosen.what == "prepare":
        for name in chosen.only:
            print(prepare(name, chosen.work), flush=True)
    elif chosen.what == "run":
        run(chosen.only, chosen.method, chosen.seeds, chosen.work)
    elif chosen.what == "time":
        time_all(chosen.only, chosen.method, chosen.repeats, chosen.work)
    else:
        page = PAGE.read_text()
        timed = [*chosen.only, *(name for name in LARGE if (chosen.work / name / TIMES).is_file())]
        for place, made in (
            ("accuracy", summary(chosen.only, chosen.work)),
            ("seconds", seconds_table(timed, chosen.work)),
            ("all measures", details(chosen.only, chosen.work)),
        ):
            begin, end = f"<!-- {place} -->", f"<!-- end of {place} -->"
            before, after = page.split(begin)[0], page.split(end)[1]
            page = f"{before}{begin}\n\n{made}\n\n{end}{after}"
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
