"""The parts into which X falls: rows of different ones have no entry in common, or a weak one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from symnmf.storage.dense import DenseMatrix
from symnmf.storage.sparse import SparseMatrix
from symnmf.storage.symmetric import SymmetricArray
from symnmf.storage.wrapping import in_memory

#: An entry joins no components where it is below this part of the largest entry of one of its rows,
#: and below JOINING of that of the other.
WEAK = 1e-3

#: Part of the largest entry of the smaller row that joins it, however large the other one is.
JOINING = 0.1


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

    def sums(self, of_rows: np.ndarray) -> np.ndarray:
        """Return the sums of the rows' numbers over each component."""
        return np.bincount(self.labels, of_rows, minlength=len(self.norms))


def components_of(X: SymmetricArray) -> Components | None:
    """Return the components of X; None if there is one, or entries cannot be read."""
    if isinstance(X, SparseMatrix):
        return _of_sparse(in_memory(X))
    return _of_dense(X.array) if isinstance(X, DenseMatrix) else None


def connected(A: sp.csr_array, sizes: np.ndarray | None = None) -> tuple[int, np.ndarray]:
    """Return how many components a symmetric A has, and that of each row.

    Every entry but 0 joins two rows, or every one that is not weak for rows of these ``sizes``.
    """
    from symnmf.kernels.connected import label_components

    sizes = np.zeros(A.shape[0]) if sizes is None else sizes
    labels = np.empty(A.shape[0], np.int64)
    count = label_components(A.indptr, A.indices, A.data, sizes, WEAK, JOINING, labels)
    return int(count), labels


def _of_sparse(X: sp.csr_array) -> Components | None:
    sizes = np.zeros(X.shape[0])
    filled = np.diff(X.indptr) > 0
    sizes[filled] = np.maximum.reduceat(np.abs(X.data), X.indptr[:-1][filled]) if X.nnz else 0.0
    count, labels = connected(X, sizes)
    if count <= 1:
        return None
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    inside = labels[rows] == labels[X.indices]
    squares = np.square(X.data[inside], dtype=np.float64)
    return Components(labels, np.sqrt(np.bincount(labels[rows[inside]], squares, count)))


def _least(sizes: np.ndarray | np.floating, others: np.ndarray) -> np.ndarray:
    """Return what entries that join rows with largest entries of these sizes are above."""
    return np.minimum(WEAK * np.maximum(sizes, others), JOINING * np.minimum(sizes, others))


def _of_dense(X: np.ndarray) -> Components | None:
    sizes = np.maximum(X.max(axis=1), -X.min(axis=1))
    labels = np.full(len(X), -1)
    norms: list[float] = []
    while (labels < 0).any():
        labels[first := int(np.argmin(labels))] = len(norms)
        waiting = [first]
        while waiting and (left := np.flatnonzero(labels < 0)).size:
            row = waiting.pop()
            joins = np.abs(X[row, left]) > _least(sizes[row], sizes[left])
            labels[left[joins]] = len(norms)
            waiting.extend(left[joins])
        own = np.flatnonzero(labels == len(norms))
        if len(own) == len(X):
            return None
        norms.append(float(np.linalg.norm(X[np.ix_(own, own)].astype(np.float64))))
    return Components(labels, np.array(norms))
