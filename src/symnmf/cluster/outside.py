"""Rows that belong nowhere: which have no cluster, and how little the others belong to theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.adjacency import attraction, degrees, normalized
from symnmf.graphs.partitions import weight_inside
from symnmf.interchange import to_host
from symnmf.run.result import Result

#: Part of the mean entry of U that a row gets which the factorization left at 0.
TRACE = 1e-9


def with_connected_rows(result: Result, A: Any, graph: Any) -> Result:
    """Give rows that have similarities, but zeros in U, a trace of a cluster.

    A small component can be worth no column of U. Its rows then go with what they are similar to;
    where that has no cluster either, with the column that is smallest, which minds them least.
    """
    if not (sp.issparse(A) or isinstance(A, np.ndarray)):
        return result
    U = to_host(result.U)
    left = np.flatnonzero(~U.any(axis=1))
    left = left[degrees(graph)[left] > 0] if left.size else left
    if not left.size or not U.any():
        return result
    drawn = np.asarray(A[left] @ U)
    sizes = np.einsum("ij,ij->j", U, U)
    smallest = int(np.argmin(np.where(sizes > 0, sizes, np.inf)))
    column = np.where(drawn.max(axis=1) > 0, drawn.argmax(axis=1), smallest)
    kept = U.copy()
    kept[left, column] = TRACE * U.mean()
    V = kept if result.V is result.U else result.V
    return replace(result, U=kept, V=V)


def outlier_scores(graph: Any, labels: np.ndarray, points: Any = None) -> np.ndarray:
    r"""Return how little each row belongs to its cluster, from 0 to 1.

    It is :math:`1 - \min(s_i, 1)\, c_i`. The part :math:`c_i` of a row's similarities leads to its
    own cluster, and :math:`s_i` says how near it is to its neighbours, as they are to theirs: the
    inverse of the local outlier factor (Breunig, Kriegel, Ng and Sander 2000) of points, and of
    graphs the sum of the row of :math:`D^{-1/2} A D^{-1/2}`, which is below 1 where neighbours
    have larger degrees. A row in no cluster has 1.
    """
    positive = attraction(graph)
    near = _density(points) if points is not None else degrees(normalized(positive))
    own = weight_inside(positive, labels, int(labels.max(initial=0)) + 1)
    own /= np.maximum(degrees(positive), 1e-300)
    return np.asarray(np.clip(1.0 - np.minimum(near, 1.0) * own, 0.0, 1.0))


def _density(points: Any) -> np.ndarray:
    """Return the inverse of the local outlier factor."""
    from sklearn.neighbors import LocalOutlierFactor

    found = LocalOutlierFactor(n_neighbors=min(20, points.shape[0] - 1)).fit(points)
    return np.asarray(-1.0 / found.negative_outlier_factor_)
