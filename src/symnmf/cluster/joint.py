"""How much a table of attributes counts beside a graph: what predicts held-out entries of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from symnmf import calls
from symnmf.cluster.holding_out import hold_out
from symnmf.errors import InputError
from symnmf.graphs.adjacency import normalized
from symnmf.objectives.attributed import Attributed
from symnmf.run.multistart import SPECTRAL
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.settings import Settings
from symnmf.run.solving import solve
from symnmf.run.start import RandomState, as_generator

#: The weight that is tried first, the factor to the next ones, and a finer one at the end.
FIRST, FACTOR, FINE = 10.0**-0.5, 10.0**0.5, 10.0**0.25

#: The least weight and the largest; beyond them the table, or the graph, hardly counts.
LEAST, MOST = 0.01, 100.0

#: Weights in a row that may bring nothing before no further one is tried.
PATIENCE = 2

#: How often entries are held out.
SPLITS = 2

#: How far the runs go: what is compared settles long before U does.
TOL, MOST_ITERATIONS = 1e-3, 150

#: Offsets of degrees that are compared beside the one that suits the graph alone. Attributes hold
#: small components to the others, so that less of it may do.
OFFSETS = (0.25, 1.0)


class Tried(NamedTuple):
    """How well held-out entries were predicted with one weight.

    ``links`` and ``attributes`` are the chances that a link that was held out is ranked above a
    pair without one, and an entry of the table that was held out above one that is 0.
    """

    degree_offset: float | None
    weight: float
    links: float
    attributes: float

    @property
    def score(self) -> float:
        """Their sum, which is largest where neither is explained at the cost of the other."""
        return self.links + self.attributes


@dataclass(frozen=True, eq=False)
class AttributeWeight:
    """The weight of a table of attributes, and how it was chosen.

    Attributes
    ----------
    weight : float
        ``attribute_weight`` of :class:`symnmf.Problem`.
    degree_offset : float or None
        tau in mean degrees, which is chosen along with it; None where nothing is normalised.
    tried : tuple of Tried
        What was compared; empty where the weight was given.
    """

    weight: float
    degree_offset: float | None = None
    tried: tuple[Tried, ...] = ()


class Split:
    """A graph and a table with entries held out, and how well a fit of the rest predicts them."""

    def __init__(self, graph: Any, F: Any, rng: np.random.Generator) -> None:
        self.links = hold_out(graph, rng, symmetric=True)
        self.table = hold_out(F, rng, symmetric=False)

    def scores(
        self, offset: float | None, weight: float, clusters: int, start: Result | None, n_jobs: Any
    ) -> tuple[Result, np.ndarray]:
        """Fit what was kept, from where another weight ended; return the fit and its two scores."""
        A = self.links.kept
        problem = Problem(
            A if offset is None else normalized(A, offset),
            attributes=self.table.kept,
            attribute_weight=weight,
            allow_negative=True,
            n_jobs=n_jobs,
        )
        init: Any = SPECTRAL
        if start is not None:
            assert isinstance(problem.objective, Attributed)
            init = problem.objective.stacked(start.U, start.W)
        settings = Settings.of(tol=TOL, max_iter=MOST_ITERATIONS, record_every=10)
        found = solve(problem, clusters, settings, init=init, random_state=0)
        U, W = found.U, found.W
        assert W is not None
        return found, np.array([self.links.ranked(U, U), self.table.ranked(U, W)])


def choose_weight(
    graph: Any,
    F: Any,
    clusters: int,
    offsets: Sequence[float | None],
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> AttributeWeight:
    """Choose the weight of a table beside a graph, and tau, by held-out entries of both.

    No labels are looked at. ``offsets`` are those to choose from; None for a graph that is not
    normalised.
    """
    if not (isinstance(graph, np.ndarray) or sp.issparse(graph)):
        raise InputError(
            "attribute_weight='auto' needs the graph in memory, as an array or a sparse matrix; "
            "pass a number, such as attribute_weight=0.3."
        )
    seed = int(random_state) if isinstance(random_state, int | np.integer) else 0
    rng = as_generator(seed)
    splits = [Split(graph, F, rng) for _ in range(SPLITS)]
    tried: list[Tried] = []

    def attempt(
        offset: float | None, weight: float, starts: Sequence[Result | None]
    ) -> tuple[Tried, list[Result]]:
        found = [
            split.scores(offset, weight, clusters, start, n_jobs)
            for split, start in zip(splits, starts, strict=True)
        ]
        both = np.mean([scores for _, scores in found], axis=0)
        tried.append(Tried(offset, weight, float(both[0]), float(both[1])))
        return tried[-1], [result for result, _ in found]

    best: Tried | None = None
    kept: list[Result] = []
    for offset in offsets:
        if best is not None and calls.out_of_time():
            break
        first, ends = attempt(offset, FIRST, [None] * SPLITS)
        top, tops = first, ends
        for factor in (1.0 / FACTOR, FACTOR):
            weight, at, in_vain = FIRST * factor, ends, 0
            while LEAST <= 1.001 * weight <= 1.002 * MOST and in_vain < PATIENCE:
                now, at = attempt(offset, weight, at)
                in_vain = 0 if now.score > top.score else in_vain + 1
                if now.score > top.score:
                    top, tops = now, at
                weight *= factor
        if best is None or top.score > best.score:
            best, kept = top, tops
    assert best is not None
    near = [attempt(best.degree_offset, best.weight * by, kept)[0] for by in (1.0 / FINE, FINE)]
    best = max((best, *near), key=lambda one: one.score)
    return AttributeWeight(best.weight, best.degree_offset, tuple(tried))
