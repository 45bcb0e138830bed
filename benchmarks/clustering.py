"""Clustering quality on real data: the tables of docs/clustering.md.

    python benchmarks/clustering.py                         all three tables, 20 starts
    python benchmarks/clustering.py --only orl football --starts 2
    python benchmarks/clustering.py --only com_dblp

Every finished start is kept under --work, so a run that was interrupted and is called again goes
on. The tables hold the data sets of this call: finish with one call for all of them.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from symnmf import datasets, factorize, graphs, metrics
from symnmf.cluster import DEFAULT_THRESHOLD
from symnmf.outputs import write_atomically
from symnmf.parallel import one_blas_thread

ROOT = Path(__file__).resolve().parents[1]

#: Title, and what the paper's table gives for SymANLS, SymHALS and A-SymHALS.
IMAGES_AND_TEXT = {
    "orl": ("ORL", (0.800, 0.755, 0.8025)),
    "coil20": ("COIL-20", (0.819, 0.720, 0.704)),
    "mnist_train3147": ("MNIST train", (0.622, 0.639, 0.704)),
    "tdt2": ("TDT2", (0.979, 0.980, 0.980)),
    "mnist_test_sorted3147": ("MNIST test", (0.859, 0.859, 0.859)),
}
GRAPHS = {"email_eu_core": "email-Eu-core", "football": "football", "polbooks": "polbooks"}
DBLP = "com_dblp"
TITLES = {
    "accuracy": "Accuracy on the paper's five data sets",
    "graphs": "Three graphs with known classes",
    "dblp": "com-DBLP at rank 100",
}

SOLVERS = {"symanls": "SymANLS", "symhals": "SymHALS", "a-symhals": "A-SymHALS"}
DEFAULT = "auto-default"
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"coupling": "adaptive", "init": "random"},
}
ASSIGNMENTS = ("kmeans", "discretize", "cluster_qr")

Score = dict[str, float]


@dataclass(frozen=True)
class Problem:
    """A graph, the classes of its nodes, and their number."""

    A: Any
    target: np.ndarray
    k: int


@functools.cache
def problem(name: str) -> Problem:
    """Load a data set and build the graph that every method gets."""
    data = datasets.load(name)
    assert data.target is not None
    if data.kind == "graph":
        A = graphs.normalize(data.data)
    else:
        A = graphs.build(data.data, "self-tuning")
    return Problem(sp.csr_array(A), data.target, int(np.unique(data.target).size))


def matrix_and_rank(name: str) -> tuple[Any, int]:
    """Return a data set's X and its number of classes; or the paper's synthetic data, r = 20."""
    if name == "synthetic":
        return datasets.synthetic(300, 20, 0.1, random_state=0)[0], 20
    given = problem(name)
    return given.A, given.k


def score(target: np.ndarray, labels: np.ndarray, **more: float) -> Score:
    return {
        "accuracy": metrics.clustering_accuracy(target, labels),
        "nmi": metrics.normalized_mutual_info(target, labels),
        "clusters": float(np.unique(labels).size),
        **more,
    }


def factorization(name: str, start: int, *, solver: str, setting: str) -> Score:
    given = problem(name)
    clock = time.perf_counter()
    result = factorize(
        given.A, given.k, solver=solver, tol=1e-4, random_state=start, n_jobs=1, **SETTINGS[setting]
    )
    seconds = time.perf_counter() - clock
    return score(given.target, result.labels, error=result.error, seconds=seconds)


def spectral(name: str, start: int, *, assign_labels: str) -> Score:
    from sklearn.cluster import SpectralClustering

    given = problem(name)
    clusterer = SpectralClustering(
        given.k, affinity="precomputed", assign_labels=assign_labels, random_state=start
    )
    clock = time.perf_counter()
    labels = clusterer.fit_predict(given.A)
    return score(given.target, labels, seconds=time.perf_counter() - clock)


def louvain(name: str, start: int) -> Score:
    import networkx as nx

    graph = nx.from_scipy_sparse_array(datasets.load(name).data)
    clock = time.perf_counter()
    found = nx.community.louvain_communities(graph, seed=start)
    seconds = time.perf_counter() - clock
    labels = np.empty(len(graph), dtype=int)
    for number, nodes in enumerate(found):
        labels[list(nodes)] = number
    return score(problem(name).target, labels, seconds=seconds)


Method = Callable[[str, int], Score]


def methods() -> dict[str, Method]:
    """Every method by the name its partial results are kept under."""
    found: dict[str, Method] = {
        f"{solver}-{setting}": functools.partial(factorization, solver=solver, setting=setting)
        for solver in SOLVERS
        for setting in SETTINGS
    }
    found[DEFAULT] = functools.partial(factorization, solver="auto", setting="default")
    found |= {
        f"spectral-{rule}": functools.partial(spectral, assign_labels=rule) for rule in ASSIGNMENTS
    }
    return found | {"louvain": louvain}


def _dump(content: Any, stream: IO[bytes]) -> None:
    stream.write(json.dumps(content, indent=1).encode())


def collect(name: str, method: str, starts: int, jobs: int, work: Path) -> list[Score]:
    """Return the scores of the first ``starts`` starts, computing those not yet on disk."""
    path = work / name / f"{method}.json"
    kept: dict[str, Score] = json.loads(path.read_text()) if path.is_file() else {}
    missing = [start for start in range(starts) if str(start) not in kept]
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        problem(name)  # once, not in every thread
        run = functools.partial(methods()[method], name)
        with one_blas_thread(), ThreadPoolExecutor(jobs) as pool:
            for start, found in zip(missing, pool.map(run, missing), strict=True):
                kept[str(start)] = found
                write_atomically(path, functools.partial(_dump, kept))
        print(f"{name} {method}: {len(missing)} starts done", flush=True)
    return [kept[str(start)] for start in range(starts)]


def spread(scores: list[Score], key: str = "accuracy") -> str:
    values = [found[key] for found in scores]
    return f"{np.median(values):.3f} / {max(values):.3f}"


def least_error(scores: list[Score], key: str) -> float:
    return min(scores, key=lambda found: found["error"])[key]


def table(header: list[str], rows: list[list[str]], note: str) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + ["", note, ""])


def accuracy_table(names: list[str], starts: int, jobs: int, work: Path) -> str:
    get = functools.partial(collect, starts=starts, jobs=jobs, work=work)
    rows = []
    for name in names:
        title, paper = IMAGES_AND_TEXT[name]
        for (solver, label), published in zip(SOLVERS.items(), paper, strict=True):
            default, as_paper = (get(name, f"{solver}-{setting}") for setting in SETTINGS)
            chosen = least_error(default, "accuracy")
            rows.append(
                [title, label, spread(default), f"{chosen:.3f}", spread(as_paper), f"{published:g}"]
            )
        default = get(name, DEFAULT)
        chosen = least_error(default, "accuracy")
        rows.append([title, "auto (the default)", spread(default), f"{chosen:.3f}", "", ""])
        for rule in ASSIGNMENTS:
            found = get(name, f"spectral-{rule}")
            rows.append([title, f"spectral, {rule}", spread(found), "", "", ""])
    header = ["data", "method", "median / best", "least error", "the paper's settings", "paper"]
    note = (
        f"Accuracy over {starts} starts (median / best). *Least error* is the start with the "
        f"smallest fitting error, which is what `SymNMF` keeps; *the paper's settings* are "
        f'coupling="adaptive" and init="random"; *paper* is the published figure. '
        f"`SpectralClustering` gets the same graph."
    )
    return table(header, rows, note)


def graph_table(names: list[str], starts: int, jobs: int, work: Path) -> str:
    get = functools.partial(collect, starts=starts, jobs=jobs, work=work)
    labels = {DEFAULT: "SymNMF (auto)", "a-symhals-default": "SymNMF (A-SymHALS)"}
    labels |= {f"spectral-{rule}": f"spectral, {rule}" for rule in ASSIGNMENTS}
    labels |= {"louvain": "Louvain (networkx)"}
    rows = []
    for name in names:
        for method, label in labels.items():
            found = get(name, method)
            clusters = np.median([one["clusters"] for one in found])
            seconds = np.median([one["seconds"] for one in found])
            rows.append(
                [
                    GRAPHS[name],
                    label,
                    spread(found),
                    spread(found, "nmi"),
                    f"{clusters:g}",
                    f"{seconds:.3f}",
                ]
            )
    header = ["graph", "method", "accuracy", "NMI", "clusters", "seconds per start"]
    note = (
        f"Median / best over {starts} starts. Louvain chooses the number of clusters itself; the "
        f"others get the number of classes."
    )
    return table(header, rows, note)


def measure_dblp(target: Path) -> None:
    """Factorize com-DBLP in this process and write what it took."""
    data = datasets.load(DBLP)
    assert data.communities is not None
    A = graphs.normalize(data.data).astype(np.float32)
    result = factorize(A, 100, max_iter=50, tol=0, random_state=0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kB on Linux
    belongs = result.membership > DEFAULT_THRESHOLD
    belongs[np.arange(len(belongs)), result.labels] = True
    scores = {}
    for name, column in (("overlapping", belongs), ("partition", None)):
        found = [
            np.flatnonzero(result.labels == j if column is None else column[:, j])
            for j in range(result.U.shape[1])
        ]
        kept = [nodes for nodes in found if nodes.size]
        scores[name] = metrics.overlapping_f1(data.communities, kept)
    measured = {
        "iterations": result.n_iter,
        "seconds": float(result.history["seconds"][-1]),
        "peak_gib": peak,
        "error": result.error,
        **scores,
    }
    target.write_text(json.dumps(measured, indent=1))


def dblp_table(work: Path) -> str:
    path = work / f"{DBLP}.json"
    if not path.is_file():
        work.mkdir(parents=True, exist_ok=True)
        # a process of its own, so that the peak is that of this problem alone
        command = [sys.executable, str(Path(__file__)), "--measure-dblp", str(path)]
        subprocess.run(command, check=True)
    got = json.loads(path.read_text())
    rows = [
        ["iterations", f"{got['iterations']}"],
        ["seconds per iteration", f"{got['seconds'] / got['iterations']:.3f}"],
        ["peak resident memory", f"{got['peak_gib']:.2f} GiB"],
        ["fitting error E", f"{got['error']:.4f}"],
        [f"overlapping F1, threshold {DEFAULT_THRESHOLD:g}", f"{got['overlapping']:.4f}"],
        ["F1 of the partition", f"{got['partition']:.4f}"],
    ]
    note = "com-DBLP: 317 080 authors, r = 100, float32, against 13 477 known communities."
    return table(["measure", "value"], rows, note)


def main() -> None:
    known = [*IMAGES_AND_TEXT, *GRAPHS, DBLP]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=known, default=known, metavar="DATA")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2, help="starts at the same time")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the tables")
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "clustering")
    parser.add_argument("--measure-dblp", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    # unconverged starts and graphs in pieces are part of what is measured
    warnings.simplefilter("ignore", UserWarning)
    if chosen.measure_dblp:
        measure_dblp(chosen.measure_dblp)
        return
    points = [name for name in IMAGES_AND_TEXT if name in chosen.only]
    networks = [name for name in GRAPHS if name in chosen.only]
    settings = (chosen.starts, chosen.jobs, chosen.work)
    tables: dict[str, Callable[[], str]] = {}
    if points:
        tables["accuracy"] = lambda: accuracy_table(points, *settings)
    if networks:
        tables["graphs"] = lambda: graph_table(networks, *settings)
    if DBLP in chosen.only:
        tables["dblp"] = lambda: dblp_table(chosen.work)
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name, make in tables.items():
        text = f"# {TITLES[name]}\n\n{make()}"
        (chosen.out / f"clustering-{name}.md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
