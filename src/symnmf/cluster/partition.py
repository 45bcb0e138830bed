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
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from symnmf.graphs.adjacency import normalized
from symnmf.kernels.moves import raise_modularity
from symnmf.run.result import OUTSIDE

#: Nodes up to which all eigenvectors at once are cheaper.
SMALL = 100

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


def restricted(graph: sp.csr_array, rows: np.ndarray) -> sp.csr_array:
    """Return the graph of some rows."""
    if len(rows) == graph.shape[0]:
        return graph
    part = sp.csr_array(graph[rows][:, rows])
    part.sort_indices()
    return part


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


def halves(graph: sp.csr_array, degree_offset: float = 1.0) -> np.ndarray:
    """Return which nodes are in one of two halves of a graph.

    It is the sign of the leading eigenvector of the modularity, divided by the roots of degrees
    with an offset in mean degrees.
    """
    n, weight = graph.shape[0], np.asarray(graph.sum(axis=1)).ravel()
    if not weight.any():
        return np.zeros(n, dtype=bool)
    scaled = normalized(graph, degree_offset)
    offset = degree_offset * weight[weight > 0].mean()
    chance = weight / np.sqrt(np.maximum(weight + offset, 1e-300) * weight.sum())
    if n <= SMALL:
        return np.asarray(np.linalg.eigh(scaled.toarray() - np.outer(chance, chance))[1][:, -1] > 0)

    def product(v: np.ndarray) -> np.ndarray:
        v = v.ravel()
        return np.asarray(scaled @ v - chance * (chance @ v))

    start = 1.0 + np.random.default_rng(0).random(n)
    modularity = LinearOperator((n, n), matvec=product, dtype=np.float64)
    try:
        vectors = eigsh(modularity, k=1, which="LA", v0=start, tol=1e-3)[1]
    except ArpackNoConvergence as error:
        vectors = error.eigenvectors
    return np.asarray(vectors[:, 0] > 0.0) if vectors.shape[1] else np.zeros(n, dtype=bool)


def merges(graph: sp.csr_array, labels: np.ndarray) -> Iterator[tuple[int, int, float, np.ndarray]]:
    """Merge the two groups that add most to the modularity, or cost it least, until one is left.

    Yields the group that stays, the one that joins it, the weight that this adds, and what is
    between all groups then; rows and columns of groups that have joined others are zero.
    """
    ties = between(graph, labels)
    volume = ties.sum(axis=1)
    total = max(float(volume.sum()), 1e-300)
    gain = ties - np.outer(volume, volume) / total
    np.fill_diagonal(gain, -np.inf)
    for _ in range(len(volume) - 1):
        i, j = sorted(np.unravel_index(int(np.argmax(gain)), gain.shape))
        added = 2.0 * float(gain[i, j])
        ties[i] += ties[j]
        ties[:, i] += ties[:, j]
        ties[j] = ties[:, j] = 0.0
        volume[i] += volume[j]
        alive = np.isfinite(gain[i])
        alive[j] = False
        gain[i] = gain[:, i] = np.where(alive, ties[i] - volume[i] * volume / total, -np.inf)
        gain[j] = gain[:, j] = -np.inf
        yield int(i), int(j), added, ties


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
