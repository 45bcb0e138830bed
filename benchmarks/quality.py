"""Labels of the default settings, with the number of clusters given, beside other methods.

    python benchmarks/quality.py prepare                     write every data set once
    python benchmarks/quality.py run --seeds 10              all methods on all data
    python benchmarks/quality.py table                       write docs/evidence.md

symnmf gets the data as a user has them: networks and correlations as they come, points and texts
as tables. Other methods get the same networks, and of points the graph that symnmf builds. Each
finished seed is kept under --work, so a run that was interrupted goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence.md"  # the table in it is replaced

#: Title, and the affinity of points; None for a graph.
DATA: dict[str, tuple[str, str | None]] = {
    "karate": ("karate", None),
    "dolphins": ("dolphins", None),
    "football": ("football", None),
    "polbooks": ("polbooks", None),
    "email_eu_core": ("email-Eu-core", None),
    "planetoid_cora": ("cora", None),
    "planetoid_citeseer": ("citeseer", None),
    "ego_facebook": ("ego-Facebook", None),
    "orl": ("ORL", "self-tuning"),
    "coil20": ("COIL-20", "self-tuning"),
    "mnist_train3147": ("MNIST train", "self-tuning"),
    "digits": ("digits", "self-tuning"),
    "TDT2_first3147": ("TDT2", "self-tuning"),
    "newsgroups": ("20newsgroups, tf-idf", "cosine"),
    "newsgroups-counts": ("20newsgroups, counts", "cosine"),
    "attributed_cora": ("words of cora", "cosine"),
    "signed_stocks_2000": ("stocks of 2000", None),
    "signed_stocks_2008": ("stocks of 2008", None),
}
TITLES = {
    "symnmf": "symnmf",
    "spectral": "SpectralClustering",
    "regularised": "regularised spectral, mixture",
    "leiden": "Leiden",
}
#: Rows above which the eigensolver of SpectralClustering does not end in minutes.
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Problem:
    """Points or a graph, and the classes of the rows, -1 where they are not known."""

    X: Any
    target: np.ndarray
    affinity: str | None

    @property
    def k(self) -> int:
        return len(np.unique(self.target[self.target >= 0]))

    @property
    def graph(self) -> sp.csr_array:
        """The graph that other methods get, without negative weights."""
        from symnmf import graphs

        if self.affinity is None:
            return sp.csr_array(sp.csr_array(self.X).maximum(0))
        return graphs.build(self.X, self.affinity)


def read(name: str) -> tuple[Any, np.ndarray]:
    from symnmf import datasets

    folder = datasets.loading.folders(None)[0]
    if name.startswith("signed"):
        stored = np.load(folder / f"{name}.npz")
        X = stored["X"].astype(float)
        np.fill_diagonal(X, 0.0)
        return X, stored["y"]
    if name == "attributed_cora":
        stored = np.load(folder / f"{name}.npz")
        indices, indptr = stored["words_indices"], stored["words_indptr"]
        words = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=stored["words_shape"])
        return words, stored["y"]
    weighting: Any = "counts" if name.endswith("counts") else "tfidf"
    data = datasets.load(name.removesuffix("-counts"), weighting=weighting)
    if name == "ego_facebook":  # whose network each node is in, where a circle tells
        stored = np.load(folder / f"{name}.npz")
        owner = np.full(int(stored["n"]), -1)
        circles = np.split(stored["comm_members"], stored["comm_indptr"][1:-1])
        for group, nodes in enumerate(circles):
            owner[nodes] = stored["comm_ego"][group]
        return data.data, owner
    assert data.target is not None
    return data.data, data.target


def problem(name: str, work: Path) -> Problem:
    """Read a data set, from the file that keeps it for other checkouts."""
    path, affinity = work / "data" / f"{name}.npz", DATA[name][1]
    if not path.is_file():
        X, target = read(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr} if sp.issparse(X) else {}
        kept: dict[str, Any] = parts or {"X": X}
        np.savez_compressed(path, target=target, shape=X.shape, **kept)
    with np.load(path) as stored:
        if "X" in stored:
            return Problem(stored["X"], stored["target"], affinity)
        entries = (stored["data"], stored["indices"], stored["indptr"])
        return Problem(sp.csr_array(entries, shape=stored["shape"]), stored["target"], affinity)


# Methods: a problem and a seed in, a label per row out ----------------------------------------


def symnmf(given: Problem, seed: int) -> np.ndarray:
    import symnmf as library

    if given.affinity is not None:
        return (
            library.SymNMF(given.k, affinity=given.affinity, random_state=seed).fit(given.X).labels_
        )
    signed = given.X.min() < 0
    return library.communities(given.X, given.k, allow_negative=signed, random_state=seed).labels


def spectral(given: Problem, seed: int) -> np.ndarray | None:
    from sklearn.cluster import SpectralClustering

    if given.X.shape[0] > MOST_ROWS:
        return None
    options: dict[str, Any] = {"assign_labels": "cluster_qr", "random_state": seed}
    return SpectralClustering(given.k, affinity="precomputed", **options).fit_predict(given.graph)


def regularised(given: Problem, seed: int) -> np.ndarray:
    """Return a Gaussian mixture of rows of eigenvectors, with the mean degree added to degrees."""
    from scipy.sparse.linalg import eigsh
    from sklearn.mixture import GaussianMixture

    A = given.graph
    degrees = np.asarray(A.sum(axis=1)).ravel()
    scale = sp.diags_array(1 / np.sqrt(degrees + degrees.mean()))
    start = np.random.default_rng(seed).random(A.shape[0])
    _, vectors = eigsh(sp.csr_array(scale @ A @ scale), k=given.k, which="LA", v0=start)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = vectors / np.where(lengths > 0, lengths, 1.0)
    return GaussianMixture(given.k, random_state=seed).fit_predict(rows)


def leiden(given: Problem, seed: int) -> np.ndarray:
    import igraph

    upper = sp.coo_array(sp.triu(given.graph, 1))
    graph = igraph.Graph(n=upper.shape[0], edges=np.column_stack(upper.coords).tolist())
    random.seed(seed)  # which igraph draws from
    found = graph.community_leiden("modularity", weights=upper.data.tolist(), n_iterations=-1)
    return np.array(found.membership)


METHODS: dict[str, Callable[[Problem, int], np.ndarray | None]] = {
    "symnmf": symnmf,
    "spectral": spectral,
    "regularised": regularised,
    "leiden": leiden,
}


def measure(given: Problem, method: str, seed: int) -> dict[str, float] | None:
    """Run one method once; rows whose class is not known are left out of the scores."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    clock = time.perf_counter()
    labels = METHODS[method](given, seed)
    seconds = time.perf_counter() - clock
    if labels is None:
        return None
    known = given.target >= 0
    true, found = given.target[known], labels[known]
    return {
        "nmi": float(normalized_mutual_info_score(true, found)),
        "ari": float(adjusted_rand_score(true, found)),
        "largest": float(np.bincount(labels[labels >= 0]).max() / labels.size),
        "seconds": seconds,
    }


def run(names: list[str], methods: list[str], seeds: int, save_as: str | None, work: Path) -> None:
    for name in names:
        given = problem(name, work)
        for method in methods:
            path = work / name / f"{save_as or method}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = json.loads(path.read_text()) if path.is_file() else {}
            for seed in range(seeds):
                if str(seed) not in kept and (found := measure(given, method, seed)):
                    kept[str(seed)] = found
                    path.write_text(json.dumps(kept, indent=1))
            if kept:
                middle = {key: round(median(kept, key), 3) for key in ("nmi", "ari", "largest")}
                print(name, save_as or method, len(kept), middle, flush=True)


def median(kept: dict[str, Any], key: str) -> float:
    return float(np.median([one[key] for one in kept.values()]))


def table(names: list[str], work: Path) -> str:
    """Return the median NMI and ARI, a line per data set and a column per method."""
    lines = [["data", "k", *TITLES.values()], ["---"] * (2 + len(TITLES))]
    for name in names:
        cells, scores = [], []
        for method in TITLES:
            path = work / name / f"{method}.json"
            kept = json.loads(path.read_text()) if path.is_file() else {}
            scores.append(round(median(kept, "nmi"), 3) if kept else -1.0)
            cells.append(f"{median(kept, 'nmi'):.3f} / {median(kept, 'ari'):.3f}" if kept else "")
        best = max(scores)
        bold = [f"**{c}**" if s == best else c for c, s in zip(cells, scores, strict=True)]
        lines.append([DATA[name][0], str(problem(name, work).k), *bold])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["prepare", "run", "table"])
    parser.add_argument("--only", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--method", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--save-as", help="what the results are called instead of the method")
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "quality")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # graphs in pieces and unconverged starts are measured too
    if chosen.what == "prepare":
        for name in chosen.only:
            problem(name, chosen.work)
    elif chosen.what == "run":
        run(chosen.only, chosen.method, chosen.seeds, chosen.save_as, chosen.work)
    else:
        page, made = PAGE.read_text(), table(chosen.only, chosen.work)
        begin, end = "<!-- table -->", "<!-- end of table -->"
        before, after = page.split(begin)[0], page.split(end)[1]
        PAGE.write_text(f"{before}{begin}\n\n{made}\n\n{end}{after}")


if __name__ == "__main__":
    main()
