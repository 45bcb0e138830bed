"""Neighbourhoods of low conductance: where communities are looked for, and how many there are.

A node with its neighbours is often a good community in itself (Gleich and Seshadhri, KDD 2012).
Neighbourhoods are taken by conductance, the lowest first, and one is left out where too many of
its nodes have been taken already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.kernels.neighborhoods import boundary_rate, choose_seeds, triangle_weights

#: Shares of nodes already taken up to which a neighbourhood is a seed, tried in turn until there
#: are enough of them.
SHARES = (0.25, 0.5, 0.75, 1.0)
#: The share that neighbourhoods are counted by.
COUNTED = 0.5
#: A node with one edge has a neighbourhood that is an edge, which says nothing.
LEAST_DEGREE = 2


@dataclass(frozen=True, eq=False)
class Seeds:
    """Neighbourhoods chosen as starts: their members, and the weight per pair of members of each.

    ``boundary`` is the mean weight, per member, of the edges to a node outside that has an edge
    inside: what a node on the border of a community has by chance.
    """

    sets: list[np.ndarray]
    density: np.ndarray
    boundary: float


def as_edges(A: Any) -> sp.csr_array:
    """Return a graph as compiled code takes it: CSR, float64, sorted, without a diagonal."""
    edges = sp.csr_array(A, dtype=np.float64, copy=True)
    edges.setdiag(0.0)
    edges.eliminate_zeros()
    edges.sort_indices()
    return edges


def neighborhood_seeds(A: sp.csr_array, count: int | None = None) -> Seeds:
    """Return ``count`` neighbourhoods to start from, or fewer where the graph has fewer.

    By default these are all with a node that no earlier one has. With a number they are the largest
    of those that share at most a quarter of their nodes with earlier ones; half, three quarters and
    all but one where a quarter gives too few. A is as :func:`as_edges` returns it.
    """
    degrees = np.diff(A.indptr)
    inner, order = _by_conductance(A)
    if count is None:
        covered = np.zeros(A.shape[0], np.bool_)
        centers = choose_seeds(A.indptr, A.indices, order, covered, 1.0)
    else:
        centers = _largest(A, order, degrees, count)
    size = degrees[centers] + 1
    pairs = size * (size - 1) / 2
    sets = [
        np.append(A.indices[A.indptr[i] : A.indptr[i + 1]], np.asarray(i, A.indices.dtype))
        for i in centers
    ]
    rate = float(boundary_rate(A.indptr, A.indices, A.data, centers))
    return Seeds(sets, inner[centers] / pairs, rate)


def neighborhood_count(A: sp.csr_array) -> int:
    """Return how many neighbourhoods there are that share at most half of their nodes with others.

    On ten ego networks with known circles that many communities matched them about as well as the
    true number did (mean ONMI 0.351 and 0.340 of three, 0.188 and 0.200 of the seven others).
    """
    covered = np.zeros(A.shape[0], np.bool_)
    _, order = _by_conductance(A)
    return len(choose_seeds(A.indptr, A.indices, order, covered, COUNTED))


def _by_conductance(A: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """The weight inside each neighbourhood, and the nodes by conductance, the lowest first."""
    degrees = np.diff(A.indptr)
    strength = np.asarray(A.sum(axis=1)).ravel()
    by_degree = np.empty(A.shape[0], dtype=np.int64)
    by_degree[np.argsort(degrees, kind="stable")] = np.arange(A.shape[0])
    inner = strength + triangle_weights(A.indptr, A.indices, A.data, by_degree)
    volume = strength + A @ strength
    total = float(strength.sum())
    smaller = np.maximum(np.minimum(volume, total - volume), 1e-300)
    conductance = (volume - 2.0 * inner) / smaller
    conductance[volume >= total] = 0.0
    order = np.argsort(conductance, kind="stable")
    return inner, order[degrees[order] >= LEAST_DEGREE]


def _largest(A: sp.csr_array, order: np.ndarray, degrees: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` largest of the seeds of the least share that gives enough."""
    covered = np.zeros(A.shape[0], np.bool_)
    chosen = np.zeros(0, np.int64)
    for share in SHARES:
        rest = order[~np.isin(order, chosen)] if len(chosen) else order
        more = choose_seeds(A.indptr, A.indices, rest, covered, share)
        largest = more[np.argsort(-degrees[more], kind="stable")]
        chosen = np.concatenate([chosen, largest])[:count]
        if len(chosen) == count:
            break
    return chosen
