"""One run on 1, 2, 4, ... threads, beside what memory and arithmetic allow.

    python benchmarks/threads.py [--most 16] [--iterations 30] [--edges com_dblp.npz]

Dense X with n = 4000 and n = 1000, and com-DBLP with 50 columns where its edges are at hand. Every
run does the same number of iterations. The floors are those of the product with X alone, which no
iteration can do without: its flops at the rate of BLAS on all threads, and its bytes at the rate
at which the threads read memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf import graphs
from symnmf.parallel import Threads, available_cores, one_blas_thread


def best(run: Callable[[], Any], times: int = 3) -> float:
    """Return the seconds of the fastest of a few runs."""
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def planted(n: int, rank: int) -> np.ndarray:
    """Return a noisy X of low rank."""
    rng = np.random.default_rng(0)
    B = rng.random((n, rank))
    noise = rng.random((n, n))
    X: np.ndarray = B @ B.T + 0.05 * (noise + noise.T)
    return X


def rates(count: int) -> tuple[float, float]:
    """Return bytes and floating point operations per second of so many threads together."""
    threads = Threads(count)
    data = np.ones((count, 8_000_000))
    square = np.ones((count, 600, 600))
    parts = [(k, k + 1) for k in range(count)]
    with one_blas_thread():
        read = best(lambda: threads.run(lambda k, _: data[k].sum(), parts))
        multiplied = best(lambda: threads.run(lambda k, _: square[k] @ square[k], parts))
    return data.nbytes / read, count * 2.0 * 600**3 / multiplied


def problems(edges: Path | None) -> dict[str, tuple[Any, int]]:
    """Return what is factorized, with its rank."""
    found: dict[str, tuple[Any, int]] = {
        "dense, n = 4000, r = 50": (planted(4000, 50), 50),
        "dense, n = 1000, r = 20": (planted(1000, 20), 20),
    }
    if edges is not None and edges.exists():
        A, _ = graphs.from_edges(np.load(edges)["edges"])
        found["com-DBLP, r = 50"] = (graphs.normalize(A, degree_offset=1.0), 50)
    return found


def seconds_each(X: Any, rank: int, count: int, steps: int) -> float:
    """Return the seconds of one of so many iterations on so many threads."""

    def run(iterations: int) -> None:
        symnmf.factorize(
            X, rank, init="scaled-random", random_state=0, tol=0, max_iter=iterations, n_jobs=count
        )

    run(2)
    return (best(lambda: run(1 + steps), 2) - best(lambda: run(1), 2)) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=available_cores())
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--edges", type=Path, help="an npz file with the edges of com-DBLP")
    arguments = parser.parse_args()
    counts = [2**k for k in range(arguments.most.bit_length()) if 2**k <= arguments.most]
    measured = {count: rates(count) for count in counts}
    for name, (X, rank) in problems(arguments.edges).items():
        n = X.shape[0]
        entries = X.nnz if sp.issparse(X) else n * n
        flops = 2.0 * entries * rank
        # a sparse product reads its columns from cache at best, and a row of V at worst
        size = entries * 12 + 2 * n * rank * 8 if sp.issparse(X) else entries * 8
        steps = arguments.iterations // 3 if sp.issparse(X) else arguments.iterations
        alone = float("nan")
        print(f"{name}: {steps} iterations")
        for count in counts:
            each = seconds_each(X, rank, count, steps)
            alone = each if count == 1 else alone
            bandwidth, speed = measured[count]
            print(
                f"  {count:3d} threads {1e3 * each:8.2f} ms an iteration, {alone / each:5.2f} "
                f"times one thread; floors {1e3 * flops / speed:.2f} ms (flops), "
                f"{1e3 * size / bandwidth:.2f} ms (bytes)",
                flush=True,
            )


if __name__ == "__main__":
    main()
