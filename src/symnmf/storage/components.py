"""The parts into which X falls: rows of different ones have no entry in common, or a weak one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from symnmf.storage.dense import DenseMatrix
from symnmf.storage.sparse import SparseMatrix
from symnmf.storage.symmetric import SymmetricArray

#: An entry joins no components where it is below this part of the largest entry of both its rows.
WEAK = 1e-3


@dataclass(frozen=True, eq=False)
class Components:
    """The connected components of X without its weak entries.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The component of each row.
    norms : ndarray
        ||X_c||_F for each component c.
    """

    labels: np.ndarray
    norms: np.ndarray


def components_of(X: SymmetricArray) -> Components | None:
    """Return the components of X; None if there is one, or entries cannot be read."""
    if isinstance(X, SparseMatrix):
        return _of_sparse(X)
    return _of_dense(X.array) if isinstance(X, DenseMatrix) else None


def _of_sparse(X: SparseMatrix) -> Components | None:
    from scipy.sparse.csgraph import connected_components

    lengths = np.diff(X.indptr)
    graph = _strong_entries(X, lengths)
    if in_one_piece(graph):
        return None
    count, labels = connected_components(graph, directed=False)
    if count == 1:
        return None
    own = np.repeat(labels, lengths)
    inside = np.where(own == labels[X.indices], X.data, 0).astype(np.float64, copy=False)
    return Components(labels, np.sqrt(np.bincount(own, inside**2, count)))


def in_one_piece(graph: sp.csr_array) -> bool:
    """Whether a sparse graph is connected; it takes a fifth of the time that labels take."""
    from scipy.sparse.csgraph import breadth_first_order

    return len(breadth_first_order(graph, 0, return_predecessors=False)) == graph.shape[0]


def _strong_entries(X: SparseMatrix, lengths: np.ndarray) -> sp.csr_array:
    """Return X without the entries that join no rows; ``lengths`` is how many each row has."""
    size = np.abs(X.data) if X.signed else X.data
    if len(size) and size.min() > WEAK * size.max():  # as on most graphs
        return sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    filled = np.flatnonzero(lengths)
    limits = np.zeros(len(lengths), size.dtype)
    if len(filled):
        limits[filled] = WEAK * np.maximum.reduceat(size, X.indptr[filled])
    joins = size > np.minimum(np.repeat(limits, lengths), limits[X.indices])
    ends = np.concatenate([[0], np.cumsum(joins)]).astype(X.indptr.dtype)
    return sp.csr_array((X.data[joins], X.indices[joins], ends[X.indptr]), shape=X.shape)


def _of_dense(X: np.ndarray) -> Components | None:
    limits = WEAK * np.maximum(X.max(axis=1), -X.min(axis=1))
    labels = np.full(len(X), -1)
    norms: list[float] = []
    while (labels < 0).any():
        labels[first := int(np.argmin(labels))] = len(norms)
        waiting = [first]
        while waiting and (left := np.flatnonzero(labels < 0)).size:
            row = waiting.pop()
            joins = np.abs(X[row, left]) > np.minimum(limits[row], limits[left])
            labels[left[joins]] = len(norms)
            waiting.extend(left[joins])
        own = np.flatnonzero(labels == len(norms))
        if len(own) == len(X):
            return None
        norms.append(float(np.linalg.norm(X[np.ix_(own, own)].astype(np.float64))))
    return Components(labels, np.array(norms))
