"""Call to return of this checkout beside another one, problem by problem, in one run.

Processes of both versions take turns, one thread each. A problem's time is the least of its calls
in all rounds, so the ratios mean something on a busy machine too. Each makes every call once
before it is timed, which loads or compiles what it needs.

    python benchmarks/beside.py ../other-checkout
    python benchmarks/beside.py ../other-checkout --only iris digits --rounds 5
    python benchmarks/beside.py ../other-checkout --large        # MNIST's 70 000 images, com-DBLP
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SYMNMF_DATA", HERE.parent / "shared" / "data"))
QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


def synthetic(n: int, r: int, noise: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    G = np.abs(rng.standard_normal((n, r)))
    N = np.triu(np.abs(rng.standard_normal((n, n))))
    return np.asarray(G @ G.T + noise * (N + np.triu(N, 1).T))


@cache
def edges(name: str) -> sp.csr_array:
    z = np.load(DATA / f"{name}.npz")
    i, j = z["edges"].T
    n = int(z["n"]) if "n" in z else int(z["edges"].max()) + 1
    A = sp.coo_array((np.ones(len(i)), (i, j)), (n, n)).tocsr()
    return sp.csr_array(A + A.T)


@cache
def images(name: str) -> np.ndarray:
    z = np.load(DATA / f"{name}.npz")
    X = np.concatenate([z[key] for key in z if z[key].ndim == 2])
    return X.astype(np.float64)


def problems() -> dict[str, Callable[[], Callable[[], Any]]]:
    """Return what is timed: each makes its data, and returns the call."""
    import networkx as nx
    from sklearn.datasets import load_digits, load_iris, load_wine
    from sklearn.preprocessing import scale

    import symnmf

    def fit(k: int, X: Any, **options: Any) -> Callable[[], Any]:
        return lambda: symnmf.SymNMF(k, random_state=0, n_jobs=1, **options).fit(X)

    def found(G: Any, k: int, **options: Any) -> Callable[[], Any]:
        return lambda: symnmf.communities(G, k, random_state=0, n_jobs=1, **options)

    def run(X: Any, r: int, **options: Any) -> Callable[[], Any]:
        options.setdefault("tol", 1e-5)
        return lambda: symnmf.factorize(X, r, random_state=0, n_jobs=1, **options)

    def on_graph(name: str, r: int, **options: Any) -> Callable[[], Any]:
        return run(symnmf.graphs.build(images(name)), r, **options)

    def masked() -> np.ndarray:
        upper = np.triu(np.random.default_rng(1).random((400, 400)) < 0.5)
        return np.asarray(upper | upper.T | np.eye(400, dtype=bool), dtype=float)

    small, middle = synthetic(300, 20, 0.1), synthetic(400, 20, 0.1)
    return {
        "iris": lambda: fit(3, scale(load_iris().data)),
        "wine": lambda: fit(3, scale(load_wine().data)),
        "digits": lambda: fit(10, load_digits().data),
        "les mis": lambda: found(nx.les_miserables_graph(), 6),
        "n=300": lambda: run(small, 20),
        "n=300, exact": lambda: run(synthetic(300, 20, 0.0), 20),
        "n=300, symhals": lambda: run(small, 20, solver="symhals", max_iter=200),
        "n=2000": lambda: run(synthetic(2000, 50, 0.1), 50),
        "n=2000, float32": lambda: run(synthetic(2000, 50, 0.1).astype(np.float32), 50),
        "ORL graph": lambda: on_graph("ORL", 40),
        "COIL-20 graph": lambda: on_graph("COIL20", 20),
        "MNIST graph": lambda: on_graph("MNIST_train3147", 10),
        "MNIST graph, 4 starts": lambda: on_graph("MNIST_train3147", 10, n_init=4),
        "mask": lambda: run(middle, 20, mask=masked(), max_iter=200),
        "mask, l1": lambda: run(middle, 20, mask=masked(), l1=2.0, max_iter=200),
        "l1": lambda: run(middle, 20, l1=5.0),
        "ridge": lambda: run(middle, 20, ridge=20.0),
        "poisson": lambda: run(edges("email_eu_core"), 42, loss="poisson", max_iter=100),
        "row-sparse": lambda: found(edges("ego_facebook"), 200, overlapping=True),
        "ORL": lambda: fit(40, images("ORL")),
        "email": lambda: found(edges("email_eu_core"), 42),
    }


def large_problems() -> dict[str, Callable[[], Callable[[], Any]]]:
    import symnmf

    def mnist() -> Callable[[], Any]:
        X = images("MNIST_full")
        return lambda: symnmf.SymNMF(10, random_state=0, n_jobs=1).fit(X)

    def dblp() -> Callable[[], Any]:
        A = edges("com_dblp")
        return lambda: symnmf.communities(A, 50, random_state=0, n_jobs=1)

    return {"MNIST, 70 000 images": mnist, "com-DBLP": dblp}


def time_calls(names: list[str], large: bool) -> None:
    """Print the seconds of each call, as this process's symnmf makes it."""
    warnings.simplefilter("ignore")
    seconds = {}
    for name, make in (large_problems() if large else problems()).items():
        if names and name not in names:
            continue
        try:
            call = make()
            calls: list[float] = []
            while len(calls) < (1 if large else 4) and sum(calls) < 20.0:
                began = time.perf_counter()
                call()
                calls.append(time.perf_counter() - began)
            seconds[name] = min(calls[1:] or calls)
        except Exception as error:
            print(f"{name}: {error!r}", file=sys.stderr)
    print(json.dumps(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        time_calls(arguments.only, arguments.large)
        return
    least: dict[Path, dict[str, float]] = {HERE: {}, arguments.other.resolve(): {}}
    for _ in range(arguments.rounds):
        for checkout, times in least.items():
            command = [sys.executable, __file__, str(checkout), "--child"]
            command += ["--large"] * arguments.large + ["--only", *arguments.only]
            paths = {"PYTHONPATH": str(checkout / "src"), "SYMNMF_DATA": str(DATA)}
            child = subprocess.run(
                command, env={**os.environ, **QUIET, **paths}, stdout=subprocess.PIPE, check=True
            )
            for name, seconds in json.loads(child.stdout).items():
                times[name] = min(seconds, times.get(name, math.inf))
    here, there = least.values()
    print("| problem | here, ms | there, ms | ratio |\n| --- | --- | --- | --- |")
    ratios = []
    for name in there:
        if name in here:
            ratios.append(here[name] / there[name])
            print(
                f"| {name} | {1e3 * here[name]:.1f} | {1e3 * there[name]:.1f} | {ratios[-1]:.2f} |"
            )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.2f}, most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
