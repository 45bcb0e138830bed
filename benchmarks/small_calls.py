"""What a call on a small problem takes, beside eigenvectors and beside another version.

Two tables, in CPU seconds of one thread, the least of several calls taken in turns:

Run it with OPENBLAS_NUM_THREADS=1: with two threads ``eigsh`` is up to 70 times slower.

* ``SymNMF(affinity="precomputed")`` on the graphs of four data sets, from the call to its return,
  beside SciPy's ``eigsh`` and scikit-learn's ``cluster_qr`` on the same graph. The verdict, which
  clusters data without clusters for comparison, is timed apart.
* ``factorize`` with n = 300 and r = 20 to its default tolerance, on ten draws of the synthetic
  data; with ``--beside`` the same in another checkout of this library, whose runs take turns with
  these.

    OPENBLAS_NUM_THREADS=1 python benchmarks/small_calls.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/small_calls.py --beside ../other-checkout/src
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import symnmf
from symnmf import datasets, graphs

DRAWS, NOISES = 5, (0.1, 0.0)


def similarities() -> dict[str, tuple[Any, int]]:
    """Return the graphs, and their numbers of clusters."""
    loaded = {
        "orl": datasets.load("orl"),
        "mnist": datasets.load("mnist_train3147"),
        "digits": datasets.load("digits"),
        "coil20": datasets.load("coil20"),
    }
    return {name: (graphs.build(one.data), one.n_clusters) for name, one in loaded.items()}


def by_eigenvectors(A: Any, k: int) -> np.ndarray:
    """Return the labels of spectral clustering, without a second normalisation."""
    from scipy.sparse.linalg import eigsh
    from sklearn.cluster._spectral import cluster_qr

    vectors = eigsh(A, k=k, which="LA", v0=np.ones(A.shape[0]))[1]
    return np.asarray(cluster_qr(vectors))


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and what it returned."""
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def clusterings(repeats: int) -> None:
    """Print the first table."""
    print("| graph | n | k | eigsh + cluster_qr, ms | SymNMF, ms | ratio | verdict, ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, (A, k) in similarities().items():
        peer, own, judged = [], [], []
        for _ in range(repeats + 1):
            peer.append(cpu(partial(by_eigenvectors, A, k))[0])
            model = symnmf.SymNMF(k, affinity="precomputed", random_state=0, n_jobs=1)
            own.append(cpu(partial(model.fit, A))[0])
            judged.append(cpu(lambda model=model: model.quality_)[0])  # type: ignore[misc]
        times = [min(values[1:]) for values in (peer, own, judged)]  # the first call compiles
        print(
            f"| {name} | {A.shape[0]} | {k} | {1e3 * times[0]:.1f} | {1e3 * times[1]:.1f} | "
            f"{times[1] / times[0]:.2f} | {1e3 * times[2]:.1f} |",
            flush=True,
        )


def synthetic_calls() -> np.ndarray:
    """Return the CPU seconds of ``factorize`` on each of the draws."""
    found = []
    for seed in range(DRAWS):
        for noise in NOISES:
            X, _ = datasets.synthetic(300, 20, noise, random_state=seed)
            call = partial(symnmf.factorize, X, 20, random_state=0, n_jobs=1)
            found.append(min(cpu(call)[0] for _ in range(4)))
    return np.array(found)


def beside(source: Path, rounds: int) -> None:
    """Print the second table, from processes of both versions in turns."""
    least: dict[str, np.ndarray] = {}
    for _ in range(rounds):
        for name, folder in (("here", Path(symnmf.__file__).parents[1]), ("there", source)):
            told = subprocess.run(
                [sys.executable, __file__, "--child"],
                env={**os.environ, "PYTHONPATH": str(folder)},
                capture_output=True,
                text=True,
                check=True,
            )
            seconds = np.array([float(word) for word in told.stdout.split()])
            least[name] = np.minimum(least.get(name, np.inf), seconds)
    here, there = least["here"], least["there"]
    print("| n = 300, r = 20, ten draws | here, ms | there, ms | ratio |")
    print("| --- | --- | --- | --- |")
    for what, reduce in (("median", np.median), ("least", np.min), ("most", np.max)):
        own, other = 1e3 * float(reduce(here)), 1e3 * float(reduce(there))
        print(f"| {what} | {own:.1f} | {other:.1f} | {own / other:.2f} |")
    print(f"geometric mean of the ratios: {np.exp(np.log(here / there).mean()):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=Path, help="src folder of another checkout")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.child:
        synthetic_calls()
        print(*synthetic_calls())
        return
    clusterings(arguments.repeats)
    print()
    if arguments.beside:
        beside(arguments.beside, arguments.rounds)
    else:
        calls = synthetic_calls()
        print(f"n = 300, r = 20: median {1e3 * np.median(calls):.1f} ms of ten draws")


if __name__ == "__main__":
    main()
