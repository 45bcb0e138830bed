"""Thin products X @ V: the library's kernels against SciPy and BLAS.

    python benchmarks/products.py [--json FILE] [--rounds K] [--sizes 3000 8000] [--ranks 5 16 32]

Every round times every candidate once, one after the other, so that a busy machine slows all of
them alike. Printed: the best time of each candidate in milliseconds, and how many times faster the
library's kernel is than the reference (the quotient of the best times, and the median over rounds
of the quotient within a round). With --threads 1 everything, BLAS included, runs in one thread
and its processor time is taken: the comparison to trust where other programs take the cores.
With --held BLAS has one thread per row chunk, as inside a factorization, and its own threads do
not spin beside ours between two rounds.
Sparse: com-DBLP, from $SYMNMF_DATA or ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import get_blas_funcs
from threadpoolctl import ThreadpoolController

from symnmf.kernels.products import balanced_chunks, csr_rows, dense_rows, prefers_dense_rows

Candidates = dict[str, Callable[[], Any]]
Mapping = Callable[..., Iterable[Any]]

COMPILE = """
import time, numpy as np
from symnmf.kernels.products import csr_rows, dense_rows
X, V = np.eye(16, dtype="{dtype}"), np.ones((16, 8), dtype="{dtype}")
index = np.arange(17, dtype=np.int32)
start = time.perf_counter(); dense_rows(X, V, V.copy(), 0, 16)
middle = time.perf_counter(); csr_rows(index, index[:16], X[0], V, V.copy(), 0, 16)
print(middle - start, time.perf_counter() - middle)
"""


def timings(
    candidates: Candidates, rounds: int, clock: Callable[[], float]
) -> dict[str, np.ndarray]:
    """Seconds of every candidate in every round, after one round of warming up."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds + 1):
        for name, run in candidates.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: np.array(values[1:]) for name, values in seconds.items()}


def one_blas_thread(run: Callable[[], Any]) -> Callable[[], Any]:
    """The same call while BLAS may use one thread only."""
    controller = (
        ThreadpoolController()
    )  # finding the libraries takes milliseconds, a limit does not

    def limited() -> None:
        with controller.limit(limits=1, user_api="blas"):
            run()

    return limited


def dense_candidates(
    run_all: Mapping, threads: int, X: np.ndarray, V: np.ndarray, out: np.ndarray
) -> Candidates:
    bounds = np.linspace(0, len(X), threads + 1).astype(int)
    chunks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    fortran = np.asfortranarray(V)
    (symm,) = get_blas_funcs(("symm",), (X, V))

    def over_chunks(kernel: Callable[[int, int], Any]) -> None:
        list(run_all(lambda rows: kernel(*rows), chunks))

    return {
        "ours": partial(over_chunks, lambda a, b: dense_rows(X, V, out, a, b)),
        "blas": partial(np.matmul, X, V, out=out),
        "blas per chunk": one_blas_thread(
            partial(over_chunks, lambda a, b: np.matmul(X[a:b], V, out=out[a:b]))
        ),
        "blas V^T X": lambda: np.copyto(out, np.matmul(V.T, X).T),
        "blas symm": partial(symm, 1.0, X.T, fortran),
        "reading X": partial(over_chunks, lambda a, b: X[a:b].max()),
    }


def sparse_candidates(
    run_all: Mapping, threads: int, X: sp.csr_array, V: np.ndarray, out: np.ndarray
) -> Candidates:
    chunks = balanced_chunks(X.indptr, 8 * threads)

    def kernel(rows: tuple[int, int]) -> None:
        csr_rows(X.indptr, X.indices, X.data, V, out, *rows)

    return {
        "ours": lambda: list(run_all(kernel, chunks)),
        "scipy": lambda: X @ V,
    }


def dblp() -> sp.csr_array | None:
    """The com-DBLP graph, or None where the data are absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("SYMNMF_DATA", default)) / "com_dblp.npz"
    if not path.exists():
        print(f"no {path}: the sparse part is left out")
        return None
    with np.load(path) as stored:
        (u, v), n = stored["edges"].T, int(stored["n"])
    ends = (np.concatenate((u, v)), np.concatenate((v, u)))
    return sp.csr_array((np.ones(2 * len(u)), ends), shape=(n, n))


def compile_seconds() -> list[dict[str, Any]]:
    """First call of each kernel in a fresh process, with an empty and with a filled disk cache."""
    rows = []
    for dtype in ("float64", "float32"):
        with tempfile.TemporaryDirectory() as folder:
            for cache in ("empty", "filled"):
                done = subprocess.run(
                    [sys.executable, "-c", COMPILE.format(dtype=dtype)],
                    env={**os.environ, "NUMBA_CACHE_DIR": folder},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                dense, sparse = map(float, done.stdout.split())
                rows.append({"dtype": dtype, "cache": cache, "dense": dense, "sparse": sparse})
    return rows


def report(label: dict[str, Any], seconds: dict[str, np.ndarray], reference: str) -> dict[str, Any]:
    """Print one line of the table and return it."""
    best = {name: float(values.min()) * 1e3 for name, values in seconds.items()}
    speedup = best[reference] / best["ours"]
    median = float(np.median(seconds[reference] / seconds["ours"]))
    cells = "  ".join(f"{name} {value:.2f}" for name, value in best.items())
    head = " ".join(f"{key}={value}" for key, value in label.items())
    print(f"{head:48s} {speedup:5.2f}x (median {median:.2f}x)  ms: {cells}", flush=True)
    return {**label, "best_ms": best, "speedup_best": speedup, "speedup_median": median}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the table to this file too")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--held", action="store_true", help="BLAS on one thread per row chunk")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 2000, 3000, 8000])
    parser.add_argument("--ranks", type=int, nargs="+", default=[5, 16, 32, 50, 100])
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    table: dict[str, list[dict[str, Any]]] = {"dense": [], "sparse": [], "compile_s": []}
    alone = options.threads == 1
    run_all = map if alone else ThreadPoolExecutor(options.threads).map
    measure = partial(
        timings, rounds=options.rounds, clock=time.thread_time if alone else time.perf_counter
    )
    ThreadpoolController().limit(limits=1 if options.held else options.threads, user_api="blas")

    for n in options.sizes:
        full = rng.random((n, n))
        full += full.T
        for dtype in (np.float64, np.float32):
            X = full.astype(dtype)
            for r in options.ranks:
                V = rng.random((n, r)).astype(dtype)
                runs = dense_candidates(run_all, options.threads, X, V, np.empty_like(V))
                if options.held:
                    runs = {name: runs[name] for name in ("ours", "blas per chunk")}
                chosen = "ours" if prefers_dense_rows(X, r) else "blas"
                label = {"n": n, "r": r, "dtype": X.dtype.name, "rule": chosen}
                reference = "blas per chunk" if options.held else "blas"
                table["dense"].append(report(label, measure(runs), reference))

    graph = dblp()
    for dtype in (np.float64, np.float32) if graph is not None else ():
        A = sp.csr_array(graph, dtype=dtype)
        for r in options.ranks:
            V = rng.random((A.shape[0], r)).astype(dtype)
            runs = sparse_candidates(run_all, options.threads, A, V, np.empty_like(V))
            label = {"graph": "com-DBLP", "r": r, "dtype": A.dtype.name}
            table["sparse"].append(report(label, measure(runs), "scipy"))

    table["compile_s"] = compile_seconds()
    for row in table["compile_s"]:
        print("compile", row)
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
