"""Several layers of one graph: the same rows for all, and how much each counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.graphs.adjacency import normalized
from symnmf.graphs.edges import EdgeTable, read_graph
from symnmf.run.choosing import Answers, Choice, choose, hold_out, quick_fit
from symnmf.run.problem import Problem

#: By how much the weight of a layer is changed to see whether held-out links are predicted better.
FACTOR = 4.0

Weights = tuple[float, ...]


def same_rows(layers: Sequence[Any], argument: str, weight: str | None) -> list[Any]:
    """Return layers with their rows in one order: graphs by the names of their nodes."""
    tables = [read_graph(layer, weight) for layer in layers]
    if all(table is None for table in tables):
        return list(layers)
    ordered = []
    for table in tables:
        if table is None or tables[0] is None or set(table.names) != set(tables[0].names):
            raise InputError(
                f"the layers of {argument} must be all graphs with the same nodes, or all "
                f"matrices; add the nodes that are missing."
            )
        place = {name: row for row, name in enumerate(tables[0].names)}
        rows = np.array([place[name] for name in table.names], np.intp)
        ordered.append(EdgeTable(tables[0].names, rows[table.ends], table.weights))
    return ordered


def choose_layer_weights(
    graphs: Sequence[Any], clusters: int, offsets: Sequence[float | None]
) -> Choice:
    """Choose how much each layer counts by how well held-out links of all are predicted.

    It begins with the same for all. No labels are looked at.
    """

    def near(weights: Weights) -> Iterator[Weights]:
        for layer in range(len(weights)):
            for factor in (1.0 / FACTOR, FACTOR):
                other = np.array(weights)
                other[layer] *= factor
                yield tuple((other / other.sum()).round(12).tolist())

    def split(rng: np.random.Generator) -> Callable[[Weights], Answers]:
        held = [hold_out(graph, rng, symmetric=True) for graph in graphs]
        kept = [
            one.kept if tau is None else normalized(one.kept, tau)
            for one, tau in zip(held, offsets, strict=True)
        ]

        def answers(weights: Weights) -> Answers:
            problem = Problem(kept, layer_weights=list(weights), allow_negative=True)
            U = quick_fit(problem, clusters).U
            return [one.ranked(U, U) for one in held]

        return answers

    equal = (1.0 / len(graphs),) * len(graphs)
    return choose(equal, near, split) if clusters > 1 else Choice(equal)
