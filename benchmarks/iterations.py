"""Milliseconds per iteration of nine solvers on four problems, to lay two versions side by side.

Run it in turn under each version, several times, and compare the least of each figure:

    PYTHONPATH=old/src python benchmarks/iterations.py old-1.json
    PYTHONPATH=new/src python benchmarks/iterations.py new-1.json
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import symnmf
from symnmf import datasets, graphs

SOLVERS = ("symanls", "symhals", "a-symhals", "auto", "pgd", "cd", "beta-snmf", "lbfgs", "admm")
SPLIT = ("symanls", "symhals", "a-symhals")
SLOW = ("symanls", "cd", "lbfgs")


def problems() -> Iterator[tuple[str, Any, int, int]]:
    """Yield names, matrices, ranks and iterations."""
    yield "synthetic 1500", datasets.synthetic(1500, 30, 0.1, random_state=0)[0], 30, 40
    yield "synthetic 300", datasets.synthetic(300, 20, 0.1, random_state=0)[0], 20, 200
    yield "ORL", graphs.self_tuning(datasets.load_orl().data), 40, 150
    yield "COIL-20", graphs.self_tuning(datasets.load_coil20().data), 20, 100


def per_iteration(X: Any, rank: int, solver: str, iterations: int) -> float:
    """Return the least milliseconds of three runs, without evaluation."""
    best = np.inf
    for _ in range(3):
        result = symnmf.factorize(
            X,
            rank,
            solver=solver,
            coupling=0.5 if solver in SPLIT else None,
            init="scaled-random",
            random_state=0,
            tol=0.0,
            max_iter=iterations,
            record_every=10**6,
        )
        seconds = result.history["seconds"]
        best = min(best, 1e3 * float(seconds[-1] - seconds[0]) / iterations)
    return best


def main() -> None:
    warnings.simplefilter("ignore")
    found = {
        f"{name}, {solver}": per_iteration(
            X, rank, solver, max(iterations // 5, 5) if solver in SLOW else iterations
        )
        for name, X, rank, iterations in problems()
        for solver in SOLVERS
    }
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1))
    for name, milliseconds in found.items():
        print(f"{name:28} {milliseconds:9.3f}")


if __name__ == "__main__":
    main()
