"""Several layers of one graph: the same rows for all, and how much each counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symnmf import calls
from symnmf.cluster.holding_out import HeldOut, hold_out
from symnmf.errors import InputError
from symnmf.graphs.adjacency import normalized
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.run.solving import solve
from symnmf.run.start import as_generator

#: By how much the weight of a layer is changed to see whether held-out links are predicted better,
#: and how often all layers are gone through.
FACTOR, ROUNDS = 4.0, 2

#: The gain in the mean chance to rank a held-out link right that is worth unequal weights.
WORTH = 0.005

#: How far the runs go, and how often entries are held out.
TOL, MOST_ITERATIONS, SPLITS = 1e-3, 150, 2


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """How much each layer counts, and how that was chosen.

    Attributes
    ----------
    weights : ndarray
        Their sum is 1.
    tried : tuple of (ndarray, float)
        Weights that were compared, each with the chance that a held-out link is ranked above a pair
        without one, a mean over the layers; empty where weights were given.
    """

    weights: np.ndarray
    tried: tuple[tuple[np.ndarray, float], ...] = ()

    @classmethod
    def of(cls, weights: np.ndarray, choice: LayerWeights | None) -> LayerWeights:
        """Return the choice, or weights that were given."""
        return cls(weights) if choice is None else choice


def same_rows(layers: Sequence[Any], argument: str) -> list[Any]:
    """Return layers with their rows in one order: graphs by the names of their nodes."""
    graphs = [hasattr(one, "adjacency") or hasattr(one, "get_edgelist") for one in layers]
    if not any(graphs):
        return list(layers)
    if not all(graphs):
        raise InputError(f"the layers of {argument} must be all graphs or all matrices.")
    if not all(hasattr(one, "nodes") for one in layers):
        return list(layers)
    first = set(layers[0].nodes)
    if any(set(one.nodes) != first for one in layers):
        raise InputError(
            f"the layers of {argument} must have the same nodes; add the others first."
        )
    import networkx

    ordered = []
    for one in layers:
        graph = networkx.Graph()
        graph.add_nodes_from(layers[0].nodes)
        graph.add_edges_from(one.edges(data=True))
        ordered.append(graph)
    return ordered


def choose_layer_weights(
    graphs: Sequence[Any], clusters: int, offsets: Sequence[float | None]
) -> LayerWeights:
    """Choose how much each layer counts by how well held-out links of all are predicted.

    It begins with the same for all. No labels are looked at.
    """
    count = len(graphs)
    equal = np.full(count, 1.0 / count)
    if clusters < 2 or count < 2:
        return LayerWeights(equal)
    rng = as_generator(0)
    splits = [[hold_out(graph, rng, symmetric=True) for graph in graphs] for _ in range(SPLITS)]
    tried: list[tuple[np.ndarray, float]] = []

    def score(weights: np.ndarray) -> float:
        found = [_predicted(split, weights, clusters, offsets) for split in splits]
        tried.append((weights, float(np.mean(found))))
        return tried[-1][1]

    best, top = equal, score(equal)
    for _ in range(ROUNDS):
        before = top
        for layer in range(count):
            for factor in (1.0 / FACTOR, FACTOR):
                if calls.out_of_time():
                    break
                weights = best.copy()
                weights[layer] *= factor
                weights /= weights.sum()
                reached = score(weights)
                if reached > top + WORTH:
                    best, top = weights, reached
                    break
        if top == before:
            break
    return LayerWeights(best, tuple(tried))


def _predicted(
    split: Sequence[HeldOut], weights: np.ndarray, clusters: int, offsets: Sequence[float | None]
) -> float:
    """Return the chance that a held-out link is ranked right, a mean over the layers."""
    kept = [
        held.kept if tau is None else normalized(held.kept, tau)
        for held, tau in zip(split, offsets, strict=True)
    ]
    problem = Problem(kept, layer_weights=weights, allow_negative=True)
    settings = Settings.of(tol=TOL, max_iter=MOST_ITERATIONS, record_every=10)
    U = solve(problem, clusters, settings, init="auto", random_state=0).U
    return float(np.mean([held.ranked(U, U) for held in split]))
