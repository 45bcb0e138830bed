"""A fine partition of a graph, by moves that raise its modularity.

Nodes move between groups, groups are refined into parts that hang together, and parts become the
nodes of a smaller graph, until nothing moves: the way of Leiden (Traag, Waltman and van Eck 2019),
with the best move in place of a drawn one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.kernels.moves import raise_modularity
from symnmf.run.result import OUTSIDE

#: Passes over the whole graph, each from the groups that the last one found.
PASSES = 3


def as_graph(A: Any) -> sp.csr_array:
    """Return similarities as moves take them: CSR, float64, sorted, without a diagonal."""
    graph = sp.csr_array(A, dtype=np.float64, copy=True)
    graph.setdiag(0.0)
    graph.data[graph.data < 0.0] = 0.0  # what pushes nodes apart holds no group together
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def fine_partition(graph: sp.csr_array, rng: np.random.Generator) -> np.ndarray:
    """Return groups of high modularity, numbered from 0; a node without edges is alone."""
    labels = np.arange(graph.shape[0])
    for _ in range(PASSES):
        before = labels.copy()
        order = rng.permutation(len(labels))
        raise_modularity(graph.indptr, graph.indices, graph.data, order, labels)
        if np.array_equal(before, labels):
            break
    return labels


def merges(graph: sp.csr_array, labels: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """Merge the two groups that add most to the modularity, or cost it least, until one is left.

    Yields the group that stays, the one that joins it, and what is between all groups then; rows
    and columns of groups that have joined others are zero.
    """
    ties = between(graph, labels)
    volume = ties.sum(axis=1)
    total = max(float(volume.sum()), 1e-300)
    gain = ties - np.outer(volume, volume) / total
    np.fill_diagonal(gain, -np.inf)
    for _ in range(len(volume) - 1):
        i, j = sorted(np.unravel_index(int(np.argmax(gain)), gain.shape))
        ties[i] += ties[j]
        ties[:, i] += ties[:, j]
        ties[j] = ties[:, j] = 0.0
        volume[i] += volume[j]
        alive = np.isfinite(gain[i])
        alive[j] = False
        gain[i] = gain[:, i] = np.where(alive, ties[i] - volume[i] * volume / total, -np.inf)
        gain[j] = gain[:, j] = -np.inf
        yield int(i), int(j), ties


def between(graph: sp.csr_array, labels: np.ndarray) -> np.ndarray:
    """Return the weight between every two groups; inside one, from both ends."""
    members = members_of(labels)
    return np.asarray((members.T @ graph @ members).toarray())


def members_of(labels: np.ndarray) -> sp.csr_array:
    """Return labels as a matrix with a column for each group."""
    n = len(labels)
    return sp.csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, int(labels.max()) + 1))


def labels_by_size(
    labels: np.ndarray, clusters: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels with the largest cluster first, equal ones by their first member; the order."""
    clusters = int(labels.max(initial=0)) + 1 if clusters is None else clusters
    inside = np.flatnonzero(labels != OUTSIDE)[::-1]
    first = np.full(clusters, len(labels))
    first[labels[inside]] = inside
    order = np.lexsort((first, -np.bincount(labels[inside], minlength=clusters)))
    number = np.empty(clusters, dtype=labels.dtype)
    number[order] = np.arange(clusters)
    return np.where(labels == OUTSIDE, OUTSIDE, number[labels]), order


def numbered(labels: np.ndarray) -> np.ndarray:
    """Return labels as 0, 1, ... without gaps."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
