"""Iterations to tol under two references of stationarity: the start's residual, and ||X|| ||U||.

A run is made once and its history read at the two levels. The residual of the start is taken at its
best multiple.

    python benchmarks/stopping.py                 # five starts, a few minutes
    python benchmarks/stopping.py --only orl --starts 2
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import symnmf
from clustering import GRAPHS, IMAGES_AND_TEXT, matrix_and_rank
from symnmf.objectives.objective import REFERENCE_SHARE

METHODS: dict[str, dict[str, Any]] = {
    "auto": {"solver": "auto"},
    "a-symhals": {"solver": "a-symhals"},
}


def residual(X: Any, U: np.ndarray) -> float:
    """Return the natural residual at U with step 1/||X||."""
    size = np.sqrt((X * X).sum())
    slope = 2.0 * (U @ (U.T @ U) - X @ U)
    return float(np.linalg.norm(np.minimum(size * U, slope)))


def both(X: Any, k: int, how: dict[str, Any], seed: int, tol: float) -> tuple[int, int]:
    """Return the iterations of one start under the old reference and under the present one."""
    size = np.sqrt((X * X).sum())
    start = symnmf.factorize(X, k, random_state=seed, tol=0, max_iter=0).U
    reference = residual(X, start)
    met: dict[str, int] = {}

    def look(now: symnmf.Snapshot) -> bool:
        together = now.consensus <= tol * np.linalg.norm(now.V)
        present = now.stationarity
        absolute = present * REFERENCE_SHARE * size * np.linalg.norm(now.U)
        for name, value in (("start", absolute / reference), ("present", present)):
            if value <= tol and together:
                met.setdefault(name, now.iteration)
        return len(met) == 2

    symnmf.factorize(X, k, random_state=seed, tol=0, max_iter=3000, callback=look, **how)
    return met.get("start", 3000), met.get("present", 3000)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    names = (*IMAGES_AND_TEXT, *GRAPHS, "synthetic")
    parser.add_argument("--only", nargs="+", choices=names, default=list(names))
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--tol", type=float, default=1e-5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | " + " | ".join(f"{name}, before / now" for name in METHODS) + " |")
    print("| --- |" + " --- |" * len(METHODS))
    for name in options.only:
        X, k = matrix_and_rank(name)
        cells = []
        for how in METHODS.values():
            pairs = [both(X, k, how, seed, options.tol) for seed in range(options.starts)]
            before, now = np.median(pairs, axis=0)
            cells.append(f"{before:.0f} / {now:.0f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
