"""The parts into which X falls: rows of different ones have no entry in common, or a weak one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symnmf.kernels.components import JOINING, add_squares_inside, label_components
from symnmf.storage.dense import DenseMatrix
from symnmf.storage.sparse import SparseMatrix, narrow
from symnmf.storage.symmetric import SymmetricArray

#: An entry joins no components where it is below this part of the largest entry of one of its rows,
#: and below JOINING of that of the other.
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
    graph = X.indptr, X.indices, X.data
    count, labels = labels_of(*graph, WEAK)
    if count <= 1:
        return None
    squares = np.zeros(count)
    add_squares_inside(*graph, labels, squares)
    return Components(labels, np.sqrt(squares))


def labels_of(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, share: float = 0.0
) -> tuple[int, np.ndarray]:
    """Return how many components a sparse graph has, and that of each row.

    An entry joins two rows if it is larger than the ``share`` of the largest entry of both, or than
    JOINING of that of one.
    """
    n = len(indptr) - 1
    labels, waiting = np.empty((2, n), np.int64)
    graph = *narrow(indptr, indices), data
    count = label_components(*graph, share, np.empty(n), waiting, labels)
    return int(count), labels


def _of_dense(X: np.ndarray) -> Components | None:
    sizes = np.maximum(X.max(axis=1), -X.min(axis=1))
    labels = np.full(len(X), -1)
    norms: list[float] = []
    while (labels < 0).any():
        labels[first := int(np.argmin(labels))] = len(norms)
        waiting = [first]
        while waiting and (left := np.flatnonzero(labels < 0)).size:
            row = waiting.pop()
            smaller, larger = (
                np.minimum(sizes[row], sizes[left]),
                np.maximum(sizes[row], sizes[left]),
            )
            joins = np.abs(X[row, left]) > np.minimum(WEAK * larger, JOINING * smaller)
            labels[left[joins]] = len(norms)
            waiting.extend(left[joins])
        own = np.flatnonzero(labels == len(norms))
        if len(own) == len(X):
            return None
        norms.append(float(np.linalg.norm(X[np.ix_(own, own)].astype(np.float64))))
    return Components(labels, np.array(norms))
