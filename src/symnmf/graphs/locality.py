"""Whether the edges of a graph join what is near, as those of neighbour graphs do."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

#: A weighted graph is taken for one of neighbours where no node with edges has fewer neighbours
#: than this part of the median, and more than this part of the paths of two edges are closed by a
#: third. Paths are counted at so many nodes.
FEWEST, CLOSED, SEEN = 0.6, 0.2, 2000


def joins_neighbours(A: Any) -> bool:
    """Whether edges seem to join what is near: enough of them at every node, many in triangles.

    Graphs without weights are taken for networks.
    """
    if not sp.issparse(A) or not A.nnz or np.ptp(A.data) == 0.0:
        return False
    graph = sp.csr_array(A)
    counts = np.diff(graph.indptr)
    if counts[counts > 0].min() < FEWEST * np.median(counts[counts > 0]):
        return False
    edges = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    rows = np.arange(len(counts))
    if len(rows) > SEEN:
        rows = np.random.default_rng(0).choice(len(rows), SEEN, replace=False)
    some = edges[rows]
    closed = float((some @ edges).multiply(some).sum())
    return closed > CLOSED * float((counts[rows] * (counts[rows] - 1)).sum())
