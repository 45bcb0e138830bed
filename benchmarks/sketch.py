"""What a sketch first brings on dense similarities: readings of X, CPU seconds and the error.

Eight similarities of real data: cosines, RBF kernels and correlations of images, documents, terms
and neighbourhoods. Each is factorized to the same tolerance from a random start, from turned
eigenvectors and from a sketch. The same certificate is asked of all three: the stationarity on X
itself. LAI-SymNMF (Hayashi, Aksoy, Ballard, Park 2025) factorizes the sketch and ends there; its
error on X is shown beside them.

    python benchmarks/sketch.py                        # n from 2000 to 4000, some minutes
    python benchmarks/sketch.py --large                # up to n = 10 000
    python benchmarks/sketch.py --only mnist-cosine --tol 1e-4
    python benchmarks/sketch.py --disk 8               # X in a file of 8 GB, removed afterwards

Seconds are CPU time of one thread, so that other load on the machine does not matter.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf import datasets
from symnmf.run.problem import Problem
from symnmf.run.sketch import sketch_start

INITS = ("scaled-random", "spectral", "sketch")


def rows(name: str, n: int, seed: int = 0) -> Any:
    """Return n rows of a data set."""
    data = datasets.load(name).data
    count = min(n, data.shape[0])
    return data[np.sort(np.random.default_rng(seed).choice(data.shape[0], count, replace=False))]


def symmetric(X: np.ndarray) -> np.ndarray:
    return np.asarray((X + X.T) / 2)


def cosine(Y: Any) -> np.ndarray:
    Y = Y.toarray() if sp.issparse(Y) else np.asarray(Y, float)
    Y = Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), 1e-300)
    return symmetric(np.maximum(Y @ Y.T, 0.0))


def correlation(Y: Any) -> np.ndarray:
    Y = np.asarray(Y, float)
    return cosine(Y - Y.mean(axis=1, keepdims=True))


def rbf(Y: Any) -> np.ndarray:
    Y = np.asarray(Y, float)
    squares = np.sum(Y * Y, axis=1)
    apart = np.maximum(squares[:, None] + squares - 2 * (Y @ Y.T), 0.0)
    return symmetric(np.exp(-apart / np.median(apart)))


def weighted(counts: Any) -> sp.csr_array:
    """tf-idf."""
    counts = sp.csr_array(counts).astype(float)
    seen = np.maximum((counts > 0).sum(axis=0), 1)
    return sp.csr_array(counts.multiply((np.log(counts.shape[0] / seen) + 1)[None, :]))


def terms(counts: Any, n: int) -> sp.csr_array:
    """The n most frequent terms, each by its documents."""
    found = weighted(counts)
    frequent = np.argsort(-np.asarray((found > 0).sum(axis=0)).ravel())[:n]
    return sp.csr_array(found[:, frequent].T)


PROBLEMS: dict[str, tuple[Callable[[int], np.ndarray], int, int, int]] = {
    "mnist-cosine": (lambda n: cosine(rows("mnist_full", n)), 10, 2000, 8000),
    "mnist-cosine-30": (lambda n: cosine(rows("mnist_full", n, 1)), 30, 3000, 10_000),
    "mnist-rbf": (lambda n: rbf(rows("mnist_full", n, 2)), 10, 4000, 8000),
    "mnist-rbf-40": (lambda n: rbf(rows("mnist_full", n, 3)), 40, 2500, 6000),
    "mnist-correlation": (lambda n: correlation(rows("mnist_full", n, 4)), 20, 3000, 8000),
    "newsgroups-cosine": (lambda n: cosine(weighted(rows("newsgroups", n))), 20, 3000, 8000),
    "tdt2-cosine": (lambda n: cosine(weighted(rows("TDT2_first3147", n))), 10, 3147, 3147),
    "tdt2-terms": (
        lambda n: cosine(terms(datasets.load("TDT2_first3147").data, n)),
        20,
        2000,
        6000,
    ),
    "facebook-cosine": (lambda n: cosine(datasets.load("ego_facebook").data), 30, 4039, 4039),
}


def measured(X: np.ndarray, rank: int, init: str, tol: float) -> tuple[float, Any]:
    """Return the CPU seconds of a call and its result."""
    began = time.process_time()
    result = symnmf.factorize(X, rank, init=init, tol=tol, random_state=0, max_iter=3000, n_jobs=1)
    return time.process_time() - began, result


def on_disk(gigabytes: float) -> None:
    """Factorize cosines of MNIST's images in a file of so many gigabytes, and remove it."""
    n = min(int(np.sqrt(gigabytes * 1e9 / 4)), 70_000)
    Y = rows("mnist_full", n).astype(np.float32)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "similarities.npy"
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, n))
        for first in range(0, n, 2000):
            X[first : first + 2000] = Y[first : first + 2000] @ Y.T
        X.flush()
        del X
        result = symnmf.factorize(path, 10, tol=1e-4, random_state=0)
        size = path.stat().st_size / 1e9
    print(
        f"{size:.1f} GB on disk, n = {n}, r = 10: {result.passes} readings, {result.status}, "
        f"E = {result.error:.6f}, {result.seconds.total:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--disk", type=float, metavar="GB", help="X in a file of this size")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    if arguments.disk:
        on_disk(arguments.disk)
        return
    symnmf.factorize(np.ones((40, 40)), 2, init="sketch")  # compiles
    gains = []
    print("| similarity | n | r | start | CPU s | readings | E | stationarity |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.only:
        make, rank, small, large = PROBLEMS[name]
        X = make(large if arguments.large else small)
        problem = Problem.of(X, n_jobs=1)
        seen = {}
        for init in INITS:
            seconds, result = measured(X, rank, init, arguments.tol)
            seen[init] = seconds, result.passes
            print(
                f"| {name} | {len(X)} | {rank} | {init} | {seconds:.2f} | {result.passes} | "
                f"{result.error:.6f} | {result.history['stationarity'][-1]:.1e} |",
                flush=True,
            )
        began = time.process_time()
        U = sketch_start(problem.objective, rank, None)
        seconds = time.process_time() - began
        error = problem.objective.storage.residual_sqnorm(U, U) or np.nan
        print(
            f"| {name} | {len(X)} | {rank} | low-rank input, no polish | {seconds:.2f} | 6 | "
            f"{error / problem.objective.sqnorm:.6f} | |",
            flush=True,
        )
        gains.append([seen["scaled-random"][k] / seen["sketch"][k] for k in (0, 1)])
    time_gain, reading_gain = np.array(gains).T
    for what, gain in (("CPU seconds", time_gain), ("readings", reading_gain)):
        print(f"{what}: median {np.median(gain):.2f} times fewer, least {gain.min():.2f}")


if __name__ == "__main__":
    main()
