"""Fits of one matrix at rank after rank, each from the last one and a column of the residual."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symnmf.matrices import SymmetricMatrix
from symnmf.run.loop import solve
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.settings import Settings

#: Products with the residual that find a column to add.
POWER_STEPS = 8


def rank_path(
    problem: Problem,
    ranks: Sequence[int],
    rng: np.random.Generator,
    stop: Callable[[], bool],
    settings: Settings,
) -> Iterator[Result]:
    """Yield a fit for each rank, in rising order."""
    U: np.ndarray | None = None
    for rank in ranks:
        if stop():
            return
        if U is None:
            start: Any = "scaled-random"
        else:
            start = U
            while start.shape[1] < rank:
                start = np.hstack([start, residual_column(problem.X, start, rng)])
        result = solve(problem, rank, settings, init=start, random_state=rng)
        U = result.U
        yield result


def residual_column(X: SymmetricMatrix, U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the column v >= 0, at its best scale, that nearly explains most of what U leaves."""
    n = len(U)
    v = rng.random((n, 1))
    for _ in range(POWER_STEPS):
        image = X.residual_times(U, U, v)
        v = np.maximum(image, 0.0)
        if not v.any():
            v = rng.random((n, 1))
        v /= np.linalg.norm(v)
    gain = float(np.sum(v * X.residual_times(U, U, v)))
    # a column of zeros would stay so: a crumb of the mean entry at least
    least = 1e-2 * float(np.mean(U)) * np.sqrt(n)
    scale = max(np.sqrt(max(gain, 0.0)), least)
    return (scale * v + 1e-3 * least * rng.random((n, 1)) / np.sqrt(n)).astype(U.dtype)
