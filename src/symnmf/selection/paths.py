"""Fits of one matrix at rank after rank, all from the same eigenvectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symnmf.run.loop import solve
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.settings import Settings
from symnmf.run.spectral import leading_subspace
from symnmf.storage import SymmetricMatrix


def rank_path(
    problem: Problem, ranks: Sequence[int], stop: Callable[[], bool], settings: Settings
) -> Iterator[Result]:
    """Yield a fit for each rank, in rising order.

    The eigenvectors for the largest rank serve all of them. A fit from there takes half the
    iterations of one from the rank before and a column of the residual, and ends no higher.
    """
    basis = leading_subspace(problem.scaled.storage, ranks[-1])

    def start(X: SymmetricMatrix, rank: int, random_state: Any) -> np.ndarray:
        return basis.leading(rank).start(X, None)

    for rank in ranks:
        if stop():
            return
        yield solve(problem, rank, settings, init=start)
