"""Fits of one matrix at rank after rank, all from the same eigenvectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symnmf.graphs.adjacency import degrees, normalized
from symnmf.objectives.likelihood import Likelihood
from symnmf.run.loop import solve
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.settings import Settings
from symnmf.run.spectral import leading_subspace
from symnmf.storage import SymmetricMatrix, as_symmetric
from symnmf.storage.wrapping import in_memory


def rank_path(
    problem: Problem, ranks: Sequence[int], stop: Callable[[], bool], settings: Settings
) -> Iterator[Result]:
    """Yield a fit for each rank, in rising order, as long as there is time.

    The eigenvectors for the largest rank serve all of them. A fit from there takes half the
    iterations of one from the rank before and a column of the residual, and ends no higher.
    """
    start: Any
    if isinstance(problem.objective, Likelihood):
        start = scaled_start(problem, ranks[-1])
    else:
        basis = leading_subspace(problem.objective.storage, ranks[-1])

        def start(X: SymmetricMatrix, rank: int, random_state: Any) -> np.ndarray:
            return basis.leading(rank).start(X, None)

    for rank in ranks:
        if stop():
            return
        result = solve(problem, rank, settings, init=start)
        if result.status == "max_time":  # it says less than the others
            return
        yield result


def scaled_start(problem: Problem, most: int) -> Callable[..., np.ndarray]:
    """Return starts from the eigenvectors of the normalised X, in the units of X.

    Likelihoods have degrees in the model. Of X itself the leading eigenvectors are those of hubs.
    """
    A: Any = in_memory(problem.objective.storage)
    known = degrees(A)
    scaled: Any = as_symmetric(normalized(A, 0.0, known), n_jobs=1)
    basis, roots = leading_subspace(scaled, most), np.sqrt(known)[:, None]

    def start(X: SymmetricMatrix, rank: int, random_state: Any) -> np.ndarray:
        return basis.leading(rank).start(scaled, None) * roots

    return start
