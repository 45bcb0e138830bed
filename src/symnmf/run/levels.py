r"""A start for large sparse X from smaller problems, each of which is X itself, restricted.

Let P put n rows into m groups, let w > 0 weigh rows, and let Q = diag(w) P with columns of length
1, so that Q^T Q = I. With X_c = Q^T X Q and U = Q U_c,

.. math:: \|X - U U^\top\|^2 = \|X_c - U_c U_c^\top\|^2 + \|X\|^2 - \|X_c\|^2.

So a smaller problem of the same kind is the given one over the U that are constant on groups up to
w, and what its solution gains, U = Q U_c keeps: from level to level f never rises.

Any w will do for that, but where X is the normalized graph D^-1/2 A D^-1/2, with tau added to the
degrees or not, w = D^1/2 makes every X_c the normalized graph of the contracted A. X itself tells
this w: it is the only positive one with w_i^2 = w_i (X w)_i + tau (:func:`row_weights`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from symnmf.objectives import Objective
from symnmf.run.spectral import LARGE, leading_subspace, spectral_start
from symnmf.storage import SparseMatrix
from symnmf.storage.symmetric import as_float32


class Improve(Protocol):
    """Returns U after at most so many steps on X."""

    def __call__(self, X: SparseMatrix, U: np.ndarray, *, steps: int) -> np.ndarray: ...


#: What the start is called.
LEVELS = "levels"

#: Rows that X is contracted to, or this many for each column. Clusters of some dozen groups can
#: still be told from each other there, and tails that hang on by one edge are part of a group.
COARSEST_ROWS, ROWS_EACH = 4000, 50

#: A level has at most this part of the rows of the one below, or it is not worth its memory.
SHRINKING = 0.9

#: Products with one vector that the largest eigenvalue and the weights of rows are found by.
POWER_STEPS, WEIGHT_STEPS = 10, 50

#: Steps at the coarsest level, where they are cheap, and at each of the others.
COARSEST_STEPS, STEPS = 100, 15


@dataclass(frozen=True)
class Level:
    """A contracted X, and what brings its U back to the X it was made from."""

    X: SparseMatrix
    group: np.ndarray
    weights: np.ndarray

    def expanded(self, U: np.ndarray) -> np.ndarray:
        """Return Q U."""
        return self.weights[:, None] * U[self.group]


def coarse_rows(rank: int) -> int:
    """Return how many rows the coarsest level has at most, for so many columns."""
    return max(COARSEST_ROWS, ROWS_EACH * rank)


def row_weights(X: sp.csr_array) -> np.ndarray:
    """Return w > 0 with w_i^2 = w_i (X w)_i + 1, about: the roots of degrees, up to a factor.

    That is diag(w) (I - X) w = 1, which has one solution where the eigenvalues of X are below 1.
    Another X is divided by its largest one.
    """
    w = np.ones(X.shape[0])
    for _ in range(POWER_STEPS):
        w = X @ (w / np.linalg.norm(w))
    largest = max(1.0, float(np.linalg.norm(w)))
    w = np.ones(X.shape[0])
    for _ in range(WEIGHT_STEPS):
        image = (X @ w) / largest
        w = (image + np.sqrt(image * image + 4.0)) / 2.0
    return w


def groups_of_neighbors(A: Any) -> tuple[np.ndarray, int]:
    """Put every row into a group with the one it is tied to most; return groups and their number.

    ``A`` has the arrays of a CSR matrix. Ties are divided by the roots of both degrees, without
    anything added to these: two nodes that have no other neighbours belong together before any
    others.
    """
    group = np.full(A.shape[0], -1, np.int64)
    # small degrees first: a hub has others to go with
    order = np.argsort(np.diff(A.indptr), kind="stable")
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    degrees = np.bincount(rows, A.data, minlength=A.shape[0])
    roots = np.sqrt(np.maximum(degrees, np.finfo(np.float64).tiny))
    ties = A.data / (roots[rows] * roots[A.indices])
    from symnmf.kernels.contraction import match_neighbors

    return group, int(match_neighbors(A.indptr, A.indices, ties, order, group))


def contracted(A: Any, group: np.ndarray, count: int, weights: np.ndarray | None = None) -> Any:
    """Return Q^T A Q as a CSR matrix, Q with the weight of each row in the column of its group."""
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    data = A.data
    if weights is not None:
        data = data * weights[rows] * weights[A.indices]
    places = (group[rows], group[A.indices])
    return sp.coo_array((data, places), shape=(count, count)).tocsr()


def contractions(X: SparseMatrix, rank: int) -> list[Level]:
    """Return ever smaller versions of X, each contracted from the one before."""
    weights = row_weights(_rows(X))
    levels: list[Level] = []
    while X.shape[0] > coarse_rows(rank):
        group, count = groups_of_neighbors(_scaled(X, weights))
        if count > SHRINKING * X.shape[0]:
            break
        lengths = np.sqrt(np.bincount(group, weights * weights, minlength=count))
        share = (weights / lengths[group]).astype(X.dtype)
        smaller = contracted(X, group, count, share)
        X = SparseMatrix(smaller.indptr, smaller.indices, smaller.data, X.threads)
        levels.append(Level(X, group, share))
        weights = lengths
    return levels


def start_by_levels(f: Objective, rank: int, improve: Improve) -> np.ndarray:
    """Return U_0 from the coarsest level upwards; it does not depend on a seed.

    The coarsest level starts from its eigenvectors, turned; every level does some steps, by
    ``improve(X, U, steps=...)``, before it hands its U on.
    """
    X = f.storage
    if not isinstance(X, SparseMatrix):  # nothing to contract
        return spectral_start(f, rank, None)
    dtype = X.dtype
    if X.shape[0] * rank > LARGE:
        X = as_float32(X)
    levels = contractions(X, rank)
    coarsest = levels[-1].X if levels else X
    U = leading_subspace(coarsest, rank).start(coarsest, None)
    for place in range(len(levels) - 1, -1, -1):
        steps = COARSEST_STEPS if place == len(levels) - 1 else STEPS
        U = levels[place].expanded(improve(levels[place].X, U, steps=steps))
    return np.ascontiguousarray(U, dtype=dtype)


def _scaled(X: SparseMatrix, weights: np.ndarray) -> sp.csr_array:
    """Return diag(w) X diag(w), the graph that X was normalised from."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    data = X.data * weights[rows] * weights[X.indices]
    return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)


def _rows(X: SparseMatrix) -> sp.csr_array:
    return sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
