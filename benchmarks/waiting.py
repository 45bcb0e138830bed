"""What a user waits for, from the call to its return, on the problems of time_to_solution.py.

Three tables. The parts of a call and its total over start and solver seconds; float32 against
float64, in CPU seconds of one thread; and how long a call with ``max_time`` takes. Calls are made
several times and the one with the least total is shown, since other load only ever adds.

    python benchmarks/waiting.py                       # without com-DBLP, some minutes
    python benchmarks/waiting.py --only orl com-dblp --limits 1 5
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

import symnmf
from time_to_solution import PROBLEMS

LARGE = "com-dblp"


def waited(X: Any, rank: int, repeats: int, **options: Any) -> tuple[float, float, Any]:
    """Return the least CPU and wall seconds of some calls, and the result of the quickest."""
    found = []
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        result = symnmf.factorize(X, rank, random_state=0, **options)
        found.append((time.process_time() - cpu, time.perf_counter() - wall, result))
    quickest = min(found, key=lambda run: run[1])
    return min(run[0] for run in found), quickest[1], quickest[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PROBLEMS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limits", nargs="*", type=float, default=[1.0])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = arguments.only or [name for name in PROBLEMS if name != LARGE]
    print(
        "| problem | total | check | start | solve | evaluate | total / (start + solve) |", end=""
    )
    print(" CPU float64 | CPU float32 |", *(f"max_time={t:g}: waited |" for t in arguments.limits))
    for name in names:
        problem = PROBLEMS[name]
        X, _ = problem.make()
        repeats = 1 if name == LARGE else arguments.repeats
        for dtype in (np.float64, np.float32):  # compiles
            symnmf.factorize(X.astype(dtype), problem.rank, max_iter=12, tol=0.0)
        cpu, _, result = waited(X, problem.rank, repeats, n_jobs=1)
        single, _, _ = waited(X.astype(np.float32), problem.rank, repeats, n_jobs=1)
        s = result.seconds
        ratio = s.total / (s.start + s.solve)
        parts = " | ".join(f"{part:.4f}" for part in (s.check, s.start, s.solve, s.evaluate))
        bounded = [
            waited(X, problem.rank, 1, tol=0.0, max_iter=10**7, max_time=limit)[1]
            for limit in arguments.limits
        ]
        print(
            f"| {name} | {s.total:.4f} | {parts} | {ratio:.2f} | {cpu:.4f} | {single:.4f} |",
            *(f"{seconds:.2f} |" for seconds in bounded),
            flush=True,
        )


if __name__ == "__main__":
    main()
