"""`make bench`: what one iteration costs, each figure a ratio taken in one process.

Prints a table and writes ``out/bench.json``. Figures that need the real data say so where it is
absent.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import symnmf
from symnmf import datasets, graphs
from symnmf.parallel import one_blas_thread
from symnmf.run.loop import Run
from symnmf.run.settings import Settings
from symnmf.run.start import starting_point
from symnmf.solvers import as_solver
from symnmf.storage import as_symmetric

#: the authors' MATLAB code in Octave on ORL's graph, milliseconds per iteration with evaluation
OCTAVE = {"symanls": 15.6, "symhals": 6.4}


def median_seconds(task: Callable[[], object], repeats: int) -> float:
    task()
    times = []
    for _ in range(repeats):
        clock = time.perf_counter()
        task()
        times.append(time.perf_counter() - clock)
    return statistics.median(times)


def step_clock(X: object, rank: int, solver: str = "a-symhals") -> Callable[[], float]:
    """Return a task that does one iteration, without evaluation, and returns its seconds."""
    matrix = as_symmetric(X)
    U0 = starting_point(matrix, rank, "scaled-random", 0)
    method = as_solver(solver)
    state = method.start(matrix, U0)
    state.coupling = 0.1 * float(np.trace(U0.T @ U0)) / rank

    def task() -> float:
        with one_blas_thread():  # a run enters this once, so it is not counted
            method.step(matrix, state)
            clock = time.perf_counter()
            method.step(matrix, state)
            return time.perf_counter() - clock

    return task


def interleaved(clock: Callable[[], float], base: Callable[[], object], repeats: int) -> float:
    """Return the median of an iteration over ``base``, the two timed turn by turn."""
    clock()
    return statistics.median(clock() / median_seconds(base, 1) for _ in range(repeats))


def dense_figure(n: int, rank: int, repeats: int, dtype: type = np.float64) -> float:
    rng = np.random.default_rng(0)
    X: np.ndarray = rng.random((n, n), dtype=np.float32).astype(dtype)
    X += X.T.copy()
    V: np.ndarray = rng.random((n, rank)).astype(dtype)

    def two_products() -> None:
        X @ V
        X @ V

    return interleaved(step_clock(X, rank), two_products, repeats)


def sparse_figure(repeats: int) -> float:
    X = graphs.normalize(datasets.load("com_dblp").data)
    V = np.random.default_rng(0).random((X.shape[0], 50))

    def two_products() -> None:
        X @ V
        X @ V

    return interleaved(step_clock(X, 50), two_products, repeats)


def memory_figure() -> float:
    """Return the peak beyond X of a dense run at n=4000, r=20, in MB."""
    X = np.random.default_rng(0).random((4000, 4000))
    X += X.T.copy()
    symnmf.factorize(X[:50, :50], 20, max_iter=2, tol=0)  # compile first
    tracemalloc.start()
    symnmf.factorize(X, 20, random_state=0, max_iter=5, tol=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def default_on_sparse() -> dict[str, float]:
    """An iteration of the default solver over two SciPy products, in the precisions it passes."""
    X = datasets.load("com_dblp").data
    V = np.random.default_rng(0).random((X.shape[0], 50))
    kinds: list[str] = []
    history = symnmf.factorize(
        X,
        50,
        random_state=0,
        tol=0,
        max_iter=45,
        callback=lambda now: kinds.append(now.U.dtype.name),
    ).history
    seconds = np.diff(history["seconds"])
    products = 2 * median_seconds(lambda: X @ V, 5)
    switch = kinds.index("float64")  # this step also converts, so it is left out
    parts = {"float32": seconds[2 : switch - 1], "float64, later": seconds[switch + 1 :]}
    return {name: float(np.median(part)) / products for name, part in parts.items()}


def orl_figure(solver: str, iterations: int = 400) -> tuple[float, float]:
    """Return milliseconds per iteration with evaluation on ORL's graph (lambda = 0.66), and E."""
    with warnings.catch_warnings():  # two components, as these data are known to have
        warnings.simplefilter("ignore", graphs.GraphWarning)
        X = as_symmetric(graphs.self_tuning(datasets.load("orl").data))
    best, error = np.inf, np.nan
    for _ in range(5):
        run = Run(X, Settings.of(solver, 0.66, tol=0.0, max_iter=iterations))
        with one_blas_thread():
            run.begin(starting_point(X, 40, "scaled-random", 0))
            clock = time.perf_counter()
            result = run.result(run.iterate())
        best = min(best, (time.perf_counter() - clock) / iterations)
        error = result.error
    return 1e3 * best, error


def import_figure() -> float:
    """Return the seconds `import symnmf` takes beyond `import numpy`."""

    def seconds(module: str) -> float:
        return median_seconds(
            lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True), 5
        )

    return seconds("symnmf") - seconds("numpy")


def measure() -> list[tuple[str, float, str]]:
    rows = [
        ("A-SymHALS / two NumPy products, n=300 r=20", dense_figure(300, 20, 301), "<= 3"),
        ("A-SymHALS / two NumPy products, n=3000 r=20", dense_figure(3000, 20, 21), "<= 1.2"),
        ("A-SymHALS / two NumPy products, n=8000 r=32", dense_figure(8000, 32, 7), "<= 1.1"),
        (
            "float32 the same, n=8000 r=32 (to float32 products)",
            dense_figure(8000, 32, 7, np.float32),
            "-",
        ),
        ("peak beyond X, n=4000 r=20, MB", memory_figure(), "< 30"),
        ("import symnmf beyond numpy, s", import_figure(), "< 0.3"),
    ]
    present = {entry.name for entry in datasets.available() if entry.present}
    if "com_dblp" in present:
        rows.append(("A-SymHALS / two scipy products, com-DBLP r=50", sparse_figure(7), "<= 1.8"))
        for name, figure in default_on_sparse().items():
            rows.append((f"auto / two scipy products, com-DBLP r=50, {name}", figure, "<= 0.8"))
    if "orl" in present:
        for solver, asked in (("symanls", ">= 5"), ("symhals", ">= 20")):
            milliseconds, error = orl_figure(solver)
            rows.append((f"{solver} on ORL, ms per iteration (E={error:.6f})", milliseconds, "-"))
            rows.append(
                (f"{solver} on ORL, times faster than Octave", OCTAVE[solver] / milliseconds, asked)
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=Path("out/bench.json"))
    arguments = parser.parse_args()
    rows = measure()
    for name, value, asked in rows:
        print(f"{name:60} {value:10.3f}   {asked}")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "versions": {"symnmf": symnmf.__version__, "numpy": np.__version__},
        "machine": {"cores": os.cpu_count(), "processor": platform.processor()},
        "figures": {name: value for name, value, _ in rows},
    }
    arguments.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
