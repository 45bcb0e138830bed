"""How far from the best possible the default fits are, on every data set.

    python benchmarks/bound.py run                        all data sets, one after another
    python benchmarks/bound.py run --only karate orl      some of them
    python benchmarks/bound.py starts --only karate orl   is any of 50 starts below the bound?
    python benchmarks/bound.py random --count 10000       is any factor, on random problems?
    python benchmarks/bound.py million                    a planted graph of a million nodes
    python benchmarks/bound.py gpu                        from X on a GPU, and in memory
    python benchmarks/bound.py table                      what docs/concepts/certificate.md shows

X is the graph's adjacency matrix over the roots of the degrees, or the self-tuning graph of images
and tf-idf texts. The fit is the best of the default search over starts (``--starts``). The bound is
computed twice: from the eigenvalues of X alone, and with a search for N of at most ``--seconds``.
Times are CPU seconds of the process. What was found is kept under --work.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf import datasets, graphs
from symnmf.bounds import Bound, best_bound, frobenius
from symnmf.storage import as_symmetric

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "concepts" / "certificate.md"

#: Name of the loader, title, and the rank where it is not the number of classes.
DATA: dict[str, tuple[str, int | None]] = {
    "karate": ("karate", None),
    "dolphins": ("dolphins", None),
    "polbooks": ("polbooks", None),
    "football": ("football", None),
    "email_eu_core": ("email-Eu-core", None),
    "planetoid_cora": ("cora", None),
    "planetoid_citeseer": ("citeseer", None),
    "ego_facebook": ("ego-Facebook", 10),
    "orl": ("ORL", None),
    "coil20": ("COIL-20", None),
    "mnist_train3147": ("MNIST train", None),
    "mnist_test_sorted3147": ("MNIST test, 0 to 2", None),
    "digits": ("digits", None),
    "TDT2_first3147": ("TDT2", None),
    "newsgroups": ("20newsgroups", None),
    "com_dblp": ("com-DBLP", 50),
}


def problem(name: str) -> tuple[Any, int]:
    """Return X and the rank of a data set."""
    data = datasets.load(name)
    rank = DATA[name][1] or data.n_clusters
    if data.kind == "graph":
        degrees = np.asarray(data.data.sum(axis=1), dtype=np.float64).ravel()
        scale = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
        return sp.csr_array(sp.diags_array(scale) @ data.data @ sp.diags_array(scale)), rank
    return graphs.build(data.data, "cosine" if data.kind == "text" else "self-tuning"), rank


def fitted(X: Any, rank: int, starts: int) -> symnmf.Result:
    """Return the best of a spectral start and of random ones."""
    tried = [symnmf.factorize(X, rank, init="spectral", random_state=0)]
    tried += [symnmf.factorize(X, rank, random_state=seed) for seed in range(starts - 1)]
    return min(tried, key=lambda result: result.error)


def measured(name: str, starts: int, seconds: float) -> dict[str, Any]:
    """Return the error of the fit and both bounds, each with its CPU seconds."""
    X, rank = problem(name)
    matrix = as_symmetric(X)
    began = time.process_time()
    result = fitted(matrix, rank, starts)
    row: dict[str, Any] = {"n": X.shape[0], "rank": rank, "error": result.error}
    row["fit_seconds"] = (time.process_time() - began) / starts
    for title, limit in (("eigenvalues", 0.0), ("searched", seconds)):
        began = time.process_time()
        bound = result.bound(max_time=limit)
        row[title] = {
            "error": bound.error,
            "gap": bound.gap,
            "how": bound.how,
            "failure": bound.failure,
            "steps": bound.steps,
            "cpu": time.process_time() - began,
        }
    return row


def violations(X: Any, rank: int, bound: Bound, starts: int) -> tuple[float, int]:
    """Return the least error of so many starts, and how many came below the bound."""
    errors = [
        symnmf.factorize(X, rank, random_state=1000 + seed, tol=1e-6, max_iter=3000).error
        for seed in range(starts)
    ]
    return min(errors), sum(error < bound.error for error in errors)


def random_problems(count: int) -> None:
    """Print how many of so many random problems have a factor below their bound."""
    broken = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 30))
        rank = int(rng.integers(1, min(n, 6) + 1))
        X = rng.standard_normal((n, n)) if seed % 3 == 0 else rng.random((n, n))
        if seed % 3 == 2:
            X *= rng.random((n, n)) < 0.3
        X = (X + X.T) * 10.0 ** rng.uniform(-15, 15)
        if not X.any():
            continue
        U = symnmf.factorize(
            X, rank, allow_negative=True, random_state=seed, n_jobs=1, max_iter=200, tol=1e-7
        ).U
        value = 0.5 * float(((X - U @ U.T) ** 2).sum())
        target = frobenius(as_symmetric(X, allow_negative=True, n_jobs=1))
        bound = best_bound(target, U, value, max_time=0.01)
        broken += bound.value > value * (1 + 1e-12) + 1e-13 * target.unit
    print(broken, "of", count, "below their bound")


def planted(n: int, edges: int, groups: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return a normalized graph with four of five edges inside groups, and U of these groups."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, groups, n)
    members, first = (
        np.argsort(group, kind="stable"),
        np.searchsorted(np.sort(group), range(groups + 1)),
    )
    i = rng.integers(0, n, edges)
    own = group[i]
    inside = members[first[own] + (rng.random(edges) * np.diff(first)[own]).astype(np.int64)]
    j = np.where(rng.random(edges) < 0.8, inside, rng.integers(0, n, edges))
    ends = np.stack([i[i != j], j[i != j]])
    A = sp.coo_array((np.ones(2 * ends.shape[1]), np.hstack([ends, ends[::-1]])), (n, n)).tocsr()
    A.data[:] = 1.0
    degrees = np.asarray(A.sum(axis=1)).ravel()
    scale = sp.diags_array(1.0 / np.sqrt(np.maximum(degrees, 1.0)))
    U = np.zeros((n, groups))
    U[np.arange(n), group] = np.sqrt(groups * degrees / degrees.sum())
    return sp.csr_array(scale @ A @ scale), U


def million() -> None:
    """Print the bound of a million nodes, with its CPU seconds and those of ten iterations."""
    X, U = planted(1_000_000, 5_000_000, 50)
    began = time.process_time()
    result = symnmf.factorize(X, 50, init=U, max_iter=10)
    print("ten iterations:", time.process_time() - began, "CPU s", flush=True)
    began = time.process_time()
    print(result.bound(max_time=0.0), "\n", time.process_time() - began, "CPU s")


def on_gpu(n: int = 10_000, rank: int = 50) -> None:
    """Print the bound from X on a GPU and the one from the same X in memory."""
    import torch

    X = symnmf.datasets.synthetic(n, rank, 0.1, random_state=0)[0].astype(np.float32)
    for where in (torch.asarray(X).cuda(), X):
        result = symnmf.factorize(where, rank, random_state=0, max_iter=100)
        began = time.perf_counter()
        bound = result.bound(max_time=0.0)
        print(type(where).__name__, bound, time.perf_counter() - began, "s", flush=True)


def table(kept: dict[str, dict[str, Any]]) -> str:
    """Return the table of the page."""
    lines = [
        "| data | n | columns | error | eigenvalues alone | CPU s | with N | CPU s | holds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in kept.items():
        alone, searched = row["eigenvalues"], row["searched"]
        sure = "proved" if searched["failure"] == 0 else f"1 - {searched['failure']:.0e}"
        found = f"{shown(searched['gap'])} | {searched['cpu']:.2g}" if searched["steps"] else " | "
        lines.append(
            f"| {DATA[name][0]} | {row['n']} | {row['rank']} | {row['error']:.6f} | "
            f"{shown(alone['gap'])} | {alone['cpu']:.2g} | {found} | {sure} |"
        )
    return "\n".join(lines)


def shown(gap: float) -> str:
    """Return a gap in percent; what is a global minimum is said so."""
    if gap <= 1e-6:
        return f"**global** ({100 * gap:.0e}%)"
    return f"{100 * gap:.2g}%"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "starts", "random", "million", "gpu", "table"])
    parser.add_argument("--only", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "bound")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen.work.mkdir(parents=True, exist_ok=True)
    stored = {name: chosen.work / f"{name}.json" for name in DATA}
    apart: dict[str, Callable[[], None]] = {
        "million": million,
        "gpu": on_gpu,
        "random": lambda: random_problems(chosen.count),
    }
    if chosen.what in apart:
        apart[chosen.what]()
        return
    for name in chosen.only if chosen.what != "table" else ():
        if chosen.what == "run":
            row = measured(name, chosen.starts, chosen.seconds)
            stored[name].write_text(json.dumps(row, indent=1))
            print(name, json.dumps(row), flush=True)
        else:
            X, rank = problem(name)
            result = fitted(X, rank, 1)
            least, below = violations(X, rank, result.bound(max_time=chosen.seconds), 50)
            print(name, least, below, "of 50 below", flush=True)
    if chosen.what == "table":
        known = {n: json.loads(p.read_text()) for n, p in stored.items() if p.is_file()}
        text = PAGE.read_text()
        before, _, rest = text.partition("<!-- table -->\n")
        _, _, after = rest.partition("<!-- end -->")
        PAGE.write_text(f"{before}<!-- table -->\n{table(known)}\n<!-- end -->{after}")


if __name__ == "__main__":
    main()
