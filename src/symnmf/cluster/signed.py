"""Signed graphs: how much negative links count, by what they tell of the clusters found.

A negative link says that its ends belong apart. In the misfit (x - <u_i, u_j>)^2 an x < 0 asks for
<u_i, u_j> = 0, as a missing link does, and makes every overlap cost 2 |x| <u_i, u_j> more. How much
that should be is not known beforehand: negative links may be most of what there is to know, or
noise. So they count c times, from 0 for the positive part alone, and c is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from symnmf import calls
from symnmf.graphs.adjacency import degrees, normalized
from symnmf.run.multistart import Plan
from symnmf.run.result import OUTSIDE
from symnmf.run.settings import Settings

#: Weights of the negative part that are compared.
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)

#: The part of what the best weight explains that is enough for a smaller one. Of data without
#: groups in the negative links a larger weight explains a little more by chance.
ENOUGH = 0.95

#: Where the number of clusters is not known yet, and with it what links tell.
UNKNOWN = 0.25

#: The search for each weight: loose, since labels settle long before U does.
STARTS, TOL, MOST_ITERATIONS = 3, 1e-3, 150


class TriedSign(NamedTuple):
    """What the clusters that one weight leads to explain of the links of both signs."""

    weight: float
    explained: float


@dataclass(frozen=True, eq=False)
class NegativeWeight:
    """How much negative links count, and how that was chosen.

    Attributes
    ----------
    weight : float
        c: the graph is its positive part less c times its negative part.
    tried : tuple of TriedSign
        What was compared; empty where the weight was given.
    """

    weight: float
    tried: tuple[TriedSign, ...] = ()


def signed_parts(A: Any) -> tuple[Any, Any]:
    """Return the positive and the negative part of A, both at least 0, in arrays of their own.

    Older versions of SciPy let ``maximum`` share the indices of A.
    """
    if sp.issparse(A):
        return sp.csr_array(A.maximum(0), copy=True), sp.csr_array((-A).maximum(0), copy=True)
    return np.maximum(A, 0), np.maximum(-A, 0)


def weighted_signs(A: Any, seen: Any, weight: float, tau: float) -> tuple[Any, np.ndarray]:
    """Return A with its negative part times ``weight``, normalised, and the degrees it was by.

    A link counts in the degrees as it does in the matrix. With weight 0 it is the positive part,
    normalised as a graph without negative links is.
    """
    positive, negative = signed_parts(seen)
    known = degrees(positive) + weight * degrees(negative)
    above, below = (positive, negative) if A is seen else signed_parts(A)
    joined = above - weight * below if weight else above
    if sp.issparse(joined):
        joined = sp.csr_array(joined)
        joined.eliminate_zeros()
        joined.sort_indices()
    return normalized(joined, tau, known), known


def explained_by(A: Any, labels: np.ndarray) -> float:
    """Return by how much labels raise the likelihood of the links, each sign on its own.

    Of each sign there are as many links as there are, with the degrees that there are, and they
    fall inside a cluster at one rate and between clusters at another: a degree-corrected planted
    partition (Newman 2016) of the positive links and one of the negative. A sign that goes the
    wrong way, with negative links inside or positive ones between, explains nothing.
    """
    inside = np.flatnonzero(labels != OUTSIDE)
    shape = (len(labels), int(labels.max(initial=0)) + 1)
    members = sp.csr_array((np.ones(len(inside)), (inside, labels[inside])), shape=shape)
    total = 0.0
    for part, sign in zip(signed_parts(A), (1.0, -1.0), strict=True):
        ends = np.asarray(part.sum(axis=1), dtype=np.float64).ravel()
        links = 0.5 * ends.sum()
        if not links > 0.0:
            continue
        led = part @ members
        led = led.toarray() if sp.issparse(led) else np.asarray(led)
        within = 0.5 * float(members.multiply(led).sum())
        expected = float(((members.T @ ends) ** 2).sum()) / (4.0 * links)
        if sign * (within - expected) > 0.0:
            total += _rate(within, expected) + _rate(links - within, links - expected)
    return total


def _rate(found: float, expected: float) -> float:
    return found * float(np.log(found / expected)) if found > 0.0 and expected > 0.0 else 0.0


def choose_negative_weight(
    A: Any, clusters: int, tau: float, n_jobs: int | None = None
) -> NegativeWeight:
    """Choose c: the smallest that explains 95% of what the best of them does."""
    if clusters < 2:
        return NegativeWeight(UNKNOWN)
    tried: list[TriedSign] = []
    settings = Settings.of(tol=TOL, max_iter=MOST_ITERATIONS, record_every=10)
    for weight in WEIGHTS:
        if tried and calls.out_of_time():
            break
        X, _ = weighted_signs(A, A, weight, tau)
        plan = Plan(clusters, settings, n_init=STARTS, random_state=0, n_jobs=n_jobs)
        result = plan.best(plan.problem(X, allow_negative=True))
        tried.append(TriedSign(weight, explained_by(A, result.labels)))
    enough = ENOUGH * max(one.explained for one in tried)
    best = next(one for one in tried if one.explained >= enough)
    return NegativeWeight(best.weight, tuple(tried))
