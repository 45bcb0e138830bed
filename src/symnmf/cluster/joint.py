"""How much a table of attributes counts beside a graph: what predicts held-out entries of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.graphs.adjacency import normalized
from symnmf.run.choosing import Answers, Choice, choose, hold_out, quick_fit
from symnmf.run.problem import Problem
from symnmf.run.start import SPECTRAL

#: Offsets of degrees that are compared beside the one that suits the graph alone. Attributes hold
#: small components to the others, so that less of it may do.
OFFSETS = (0.0, 1.0)

#: Weights that are tried, from a table that hardly counts to a graph that hardly counts.
WEIGHTS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)


class AttributeWeight(NamedTuple):
    """How much a table counts beside a graph, and tau in mean degrees, chosen along with it."""

    weight: float
    degree_offset: float | None


def choose_weight(
    graph: Any, F: Any, clusters: int, offsets: Sequence[float | None], n_jobs: int | None = None
) -> Choice:
    """Choose the weight of a table beside a graph, and tau, by held-out entries of both.

    No labels are looked at. ``offsets`` are those to choose from, the one to begin with first; None
    for a graph that is not normalised.
    """
    if not (isinstance(graph, np.ndarray) or sp.issparse(graph)):
        raise InputError(
            "attribute_weight='auto' needs the graph in memory, as an array or a sparse matrix; "
            "pass a number, such as attribute_weight=0.3."
        )

    def near(value: AttributeWeight) -> Iterator[AttributeWeight]:
        for weight in WEIGHTS:
            if weight > value.weight:
                yield AttributeWeight(weight, value.degree_offset)
        yield from (AttributeWeight(value.weight, offset) for offset in offsets)

    def split(rng: np.random.Generator) -> Callable[[AttributeWeight], Answers]:
        links, table = hold_out(graph, rng, symmetric=True), hold_out(F, rng, symmetric=False)

        def answers(value: AttributeWeight) -> Answers:
            tau = value.degree_offset
            problem = Problem(
                links.kept if tau is None else normalized(links.kept, tau),
                attributes=table.kept,
                attribute_weight=value.weight,
                allow_negative=True,
                n_jobs=n_jobs,
            )
            result = quick_fit(problem, clusters, init=SPECTRAL)
            return [links.ranked(result.U, result.U), table.ranked(result.U, result.W)]

        return answers

    return choose(AttributeWeight(WEIGHTS[0], offsets[0]), near, split)
