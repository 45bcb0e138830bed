"""The parts into which X falls: rows of different ones have no entry in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from symnmf.storage.dense import DenseMatrix
from symnmf.storage.sparse import SparseMatrix
from symnmf.storage.symmetric import SymmetricArray


@dataclass(frozen=True, eq=False)
class Components:
    """The connected components of X.

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
    """Return the components of X; None where there is one, or entries cannot be read."""
    if isinstance(X, SparseMatrix):
        matrix = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    elif isinstance(X, DenseMatrix) and _falls_apart(X.array):
        matrix = sp.csr_array(X.array)
    else:
        return None
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(matrix, directed=False)
    if count == 1:
        return None
    squares = np.repeat(labels, np.diff(matrix.indptr))
    norms = np.sqrt(np.bincount(squares, matrix.data.astype(np.float64) ** 2, minlength=count))
    return Components(labels, norms)


def _falls_apart(array: np.ndarray) -> bool:
    """Whether a dense X may have several components: not where a row has no zero."""
    return not any((row != 0).all() for row in array[:: max(1, len(array) // 64)])
