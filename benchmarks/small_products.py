"""Products of rows with a small matrix, sums over rows and products with an X that stays in cache.

    OPENBLAS_NUM_THREADS=1 python benchmarks/small_products.py [--rounds 7] [--ranks 5 10 20 50]

Each against NumPy's BLAS on one thread, called in turns; the least time of all rounds counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symnmf.kernels.small_products import multiplier, times_rows
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads

#: Rows of the factors, which a cache holds, and of X.
ROWS, SIDES = 2048, (300, 500, 1000)


def rates(work: float, rounds: int, *runs: Callable[[], Any]) -> list[float]:
    """Return how many GFLOP a second each of the runs does."""
    repeats = max(1, int(2e8 / work))
    least = [np.inf] * len(runs)
    for _ in range(rounds + 1):
        for number, run in enumerate(runs):
            begun = time.perf_counter()
            for _ in range(repeats):
                run()
            least[number] = min(least[number], time.perf_counter() - begun)
    return [repeats * work / seconds / 1e9 for seconds in least]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ranks", type=int, nargs="+", default=[5, 10, 20, 32, 50, 100, 200])
    options = parser.parse_args()
    rng, ops = np.random.default_rng(0), HostOps(Threads(1))
    print("| | type |", " | ".join(f"r = {r}" for r in options.ranks), "|")
    print("| --- | --- |" + " --- |" * len(options.ranks))
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        cells: dict[str, list[str]] = {}
        for r in options.ranks:
            A, small = rng.random((ROWS, r)).astype(dtype), rng.random((r, r)).astype(dtype)
            out, address = np.empty_like(A), multiplier(dtype)
            work = 2.0 * ROWS * r * r
            found = {
                "rows times r x r": rates(
                    work,
                    options.rounds,
                    partial(times_rows, (A, small, out, address), 0, 0, ROWS),
                    partial(np.matmul, A, small, out=out),
                ),
                "sum over rows": rates(
                    work,
                    options.rounds,
                    partial(ops.cross, A, out),
                    partial(np.matmul, A.T, out),
                ),
            }
            for n in SIDES:
                X, V = rng.random((n, n)).astype(dtype), rng.random((n, r)).astype(dtype)
                target = np.empty_like(V)
                found[f"X V, n = {n}"] = rates(
                    2.0 * n * n * r,
                    options.rounds,
                    partial(times_rows, (X, V, target, address), 0, 0, n),
                    partial(np.matmul, X, V, out=target),
                )
            for name, (own, blas) in found.items():
                cells.setdefault(name, []).append(f"{own:.0f} ({own / blas:.1f})")
        for name, row in cells.items():
            print(f"| {name} | {dtype.name} |", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
