"""Signed graphs: how much negative links count, by what predicts held-out links of both signs.

A negative link says that its ends belong apart. In the misfit (x - <u_i, u_j>)^2 an x < 0 asks for
<u_i, u_j> = 0, as a missing link does, and makes every overlap cost 2 |x| <u_i, u_j> more. How much
that should be is not known beforehand: negative links may be most of what there is to know, or
noise. So they count c times, from 0 for the positive part alone, and c is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symnmf.graphs.adjacency import attraction, degrees, normalized
from symnmf.run.choosing import Answers, Choice, choose, hold_out, quick_fit
from symnmf.run.problem import Problem
from symnmf.run.start import SPECTRAL

#: Weights of the negative part that are compared.
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)


def weighted_signs(A: Any, weight: float, tau: float) -> tuple[Any, np.ndarray]:
    """Return A with its negative part times ``weight``, normalised, and the degrees it was by.

    A link counts in the degrees as it does in the matrix. With weight 0 it is the positive part,
    normalised as a graph without negative links is.
    """
    above, below = attraction(A), attraction(-A)
    known = degrees(above) + weight * degrees(below)
    return normalized(above - weight * below if weight else above, tau, known), known


def choose_negative_weight(A: Any, clusters: int, tau: float, n_jobs: int | None = None) -> Choice:
    """Choose c, from 0 up, by held-out links: positive ones above pairs without, negative below."""

    def split(rng: np.random.Generator) -> Callable[[float], Answers]:
        above, below = (hold_out(attraction(part), rng, symmetric=True) for part in (A, -A))
        kept = above.kept - below.kept

        def answers(weight: float) -> Answers:
            X, _ = weighted_signs(kept, weight, tau)
            problem = Problem(X, allow_negative=True, n_jobs=n_jobs)
            U = quick_fit(problem, clusters, init=SPECTRAL).U
            return [above.ranked(U, U), 1.0 - below.ranked(U, U)]

        return answers

    return choose(0.0, lambda weight: [one for one in WEIGHTS if one > weight], split)
