"""Several starts and low-rank stand-ins: the numbers of docs/large-problems.md.

    python benchmarks/starts.py                        five starts: three ways to run them
    python benchmarks/starts.py --only n2000-r3 orl    some of the problems
    python benchmarks/starts.py --sketch               set out on a sketch, then polish on X
    python benchmarks/starts.py --backends             an iteration on X as array, float32, factors
    python benchmarks/starts.py --drop                 what would stopping hopeless starts save?

Every figure is a ratio taken in one process, best of ``--rounds`` interleaved rounds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import symnmf
from symnmf import datasets, graphs
from symnmf.parallel import Threads, available_cores, one_blas_thread
from symnmf.run.multistart import _generators
from symnmf.storage import LowRank, SymmetricMatrix, as_symmetric
from symnmf.storage.shared import SharedReading

STARTS = 5
SOLVERS = ("a-symhals", "hals-newton")
#: rank and iterations of each problem
PROBLEMS = {
    "n300-r20": (20, 30),
    "n1000-r5": (5, 20),
    "n2000-r3": (3, 20),
    "n2000-r5": (5, 20),
    "n2000-r8": (8, 20),
    "n2000-r20": (20, 10),
    "n4000-r4": (4, 10),
    "orl": (40, 30),
    "coil20": (20, 30),
    "com_dblp": (20, 3),
}

Ways = dict[str, Callable[[], list[symnmf.Result]]]


def dense(n: int, rank: int, noise: float = 0.1) -> np.ndarray:
    """The paper's synthetic X = |G||G|^T + noise |N|."""
    rng = np.random.default_rng(0)
    factor = np.abs(rng.standard_normal((n, rank)))
    upper = np.triu(np.abs(rng.standard_normal((n, n))))
    return factor @ factor.T + noise * (upper + np.triu(upper, 1).T)


def problem(name: str) -> SymmetricMatrix:
    if name.startswith("n"):
        return as_symmetric(dense(int(name[1:].split("-")[0]), 20))
    data = datasets.load(name)
    graph = data.kind == "graph"
    return as_symmetric(graphs.normalize(data.data) if graph else graphs.self_tuning(data.data))


def ways(X: SymmetricMatrix, rank: int, solver: str, iterations: int) -> Ways:
    """The same starts one after another, one per core, and with one reading of X for all."""
    alone = X.with_threads(Threads(1))

    def run(matrix: SymmetricMatrix, generator: np.random.Generator) -> symnmf.Result:
        return symnmf.factorize(
            matrix, rank, solver=solver, random_state=generator, tol=0, max_iter=iterations
        )

    def in_turn() -> list[symnmf.Result]:
        return [run(X, generator) for generator in _generators(0, STARTS)]

    def one_per_core() -> list[symnmf.Result]:
        with ThreadPoolExecutor(available_cores()) as pool:
            return list(pool.map(lambda g: run(alone, g), _generators(0, STARTS)))

    def sharing() -> list[symnmf.Result]:
        reading = SharedReading(X, STARTS)

        def seated(start: int) -> symnmf.Result:
            with reading.seat(start) as seen:
                return run(seen, generators[start])

        generators = _generators(0, STARTS)
        with ThreadPoolExecutor(STARTS) as pool:
            return list(pool.map(seated, range(STARTS)))

    return {"in turn": in_turn, "one per core": one_per_core, "sharing": sharing}


def compare_ways(names: list[str], rounds: int) -> None:
    print(f"{STARTS} starts; seconds, and how many times faster sharing is")
    for name in names:
        rank, iterations = PROBLEMS[name]
        X = problem(name)
        for solver in SOLVERS:
            best: dict[str, float] = {}
            found: dict[str, list[symnmf.Result]] = {}
            for _ in range(rounds):
                for way, task in ways(X, rank, solver, iterations).items():
                    with one_blas_thread():
                        clock = time.perf_counter()
                        found[way] = task()
                        seconds = time.perf_counter() - clock
                    best[way] = min(best.get(way, np.inf), seconds)
            pairs = zip(found["in turn"], found["sharing"], strict=True)
            same = all(np.array_equal(a.U, b.U) for a, b in pairs)
            print(
                f"| {name} r={rank} | {solver} | "
                + " | ".join(f"{best[way]:.3f}" for way in best)
                + f" | {best['in turn'] / best['sharing']:.2f}"
                f" | {best['one per core'] / best['sharing']:.2f}"
                f" | {'equal' if same else 'to rounding'} |",
                flush=True,
            )


def sketch(X: SymmetricMatrix, width: int) -> LowRank:
    """Q (Q^T X Q) Q^T with Q from a randomised range finder (Halko et al., 2011), one power."""
    Q = np.random.default_rng(0).standard_normal((X.shape[0], width))
    with one_blas_thread():
        for _ in range(2):
            Q = np.ascontiguousarray(np.linalg.qr(X.matmul(Q))[0])
        core = Q.T @ X.matmul(Q)
    return LowRank(Q, 0.5 * (core + core.T))


def compare_sketch(rounds: int) -> None:
    """Wall-clock seconds to within 0.1% of the higher of the two final errors, which both reach."""
    for n, rank in ((1000, 20), (2000, 20), (2000, 50)):
        X = as_symmetric(dense(n, rank))
        for solver in SOLVERS:
            for seed in range(rounds):
                plain = _curve(X, rank, solver, seed, sketched=False)
                through = _curve(X, rank, solver, seed, sketched=True)
                goal = 1.001 * max(plain[-1][1], through[-1][1])
                a, b = (next((t for t, e in c if e <= goal), np.inf) for c in (plain, through))
                print(
                    f"| n={n} r={rank} | {solver} | {seed} | {a:.2f} | {b:.2f} | {a / b:.2f}"
                    f" | {plain[-1][1]:.4g} | {through[-1][1]:.4g} |",
                    flush=True,
                )


def _curve(
    X: SymmetricMatrix, rank: int, solver: str, seed: int, *, sketched: bool
) -> list[tuple[float, float]]:
    rows: list[tuple[float, float]] = []
    clock = time.perf_counter()
    options: dict[str, Any] = {"solver": solver, "max_iter": 300}
    init: str | np.ndarray = "scaled-random"
    if sketched:
        small = sketch(X, rank + rank // 5 + 5)
        init = symnmf.factorize(small, rank, tol=1e-3, random_state=seed, **options).U
    symnmf.factorize(
        X,
        rank,
        init=init,
        tol=0 if sketched else 1e-4,
        random_state=seed,
        callback=lambda now: rows.append((time.perf_counter() - clock, now.error)),
        **(options | {"max_iter": 100} if sketched else options),
    )
    return rows


def compare_homes(rounds: int) -> None:
    """Best milliseconds per iteration, and the memory of X, for the same X in several backends."""

    def iteration(X: SymmetricMatrix) -> float:
        runs = (
            symnmf.factorize(X, 10, solver="hals-newton", random_state=0, tol=0, max_iter=6)
            for _ in range(rounds)
        )
        return 1e3 * min(float(np.diff(run.history["seconds"])[1:].min()) for run in runs)

    rng = np.random.default_rng(0)
    for n in (4_000, 200_000):
        B = rng.random((n, 32))
        backends: dict[str, SymmetricMatrix] = {
            "factors": LowRank(B),
            "factors, float32": LowRank(B.astype(np.float32)),
        }
        if n <= 10_000:
            full = B @ B.T
            full = 0.5 * (full + full.T)
            backends["array"] = as_symmetric(full)
            backends["array, float32"] = as_symmetric(full.astype(np.float32))
        for name, X in backends.items():
            numbers = X.B.nbytes if isinstance(X, LowRank) else n * n * X.dtype.itemsize
            print(f"| {n} | {name} | {numbers / 1e6:.1f} MB | {iteration(X):.2f} |", flush=True)


def replay(group: list[symnmf.History], near: float, behind: float) -> tuple[int, float]:
    """Return the iterations that stopping hopeless starts leaves, and the least error then.

    A start is stopped when its stationarity is at most ``near`` and it explains less of X than
    the leader does, by a share of more than ``behind``.
    """
    running = dict(enumerate(group))
    iterations, leader, reached = 0, np.inf, np.inf
    for k in range(max(map(len, group))):
        leader = min([leader, *(float(history["error"][k]) for history in running.values())])
        for start, history in list(running.items()):
            error = float(history["error"][k])
            hopeless = error > leader + behind * (1.0 - leader)
            if k == len(history) - 1:
                reached = min(reached, error)
            elif not hopeless or k < 4 or history["stationarity"][k] > near:
                continue
            iterations += k + 1
            del running[start]
    return iterations, reached


def study_dropping(groups: int = 12) -> None:
    """What stopping starts that look hopeless would save, and how often it loses the best."""
    images = ("orl", "coil20", "mnist_train3147")
    for name in (*images, "tdt2", "email_eu_core", "football", "polbooks"):
        data = datasets.load(name)
        assert data.target is not None
        X, rank = problem(name), int(np.unique(data.target).size)
        histories = [
            symnmf.factorize(X, rank, tol=1e-4, random_state=seed, n_jobs=1).history
            for seed in range(STARTS * groups)
        ]
        total = sum(map(len, histories))
        for near in (0.1, 0.03, 0.01, 0.003):
            for behind in (0.0, 0.001, 0.005):
                left, lost = 0, 0
                for first in range(0, len(histories), STARTS):
                    group = histories[first : first + STARTS]
                    iterations, reached = replay(group, near, behind)
                    left += iterations
                    best = min(float(history["error"][-1]) for history in group)
                    lost += reached > best * (1.0 + 1e-6)
                print(
                    f"| {name} | {near:g} | {behind:g} | {1 - left / total:.0%} saved"
                    f" | best lost in {lost} of {groups} |",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--sketch", action="store_true")
    parser.add_argument("--backends", action="store_true")
    parser.add_argument("--drop", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # short runs do not converge
    if arguments.sketch:
        compare_sketch(arguments.rounds)
    elif arguments.backends:
        compare_homes(arguments.rounds)
    elif arguments.drop:
        study_dropping()
    else:
        compare_ways(arguments.only, arguments.rounds)


if __name__ == "__main__":
    main()
