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

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from symnmf.kernels.contraction import match_neighbors
from symnmf.objectives import Objective
from symnmf.run.spectral import leading_subspace, spectral_start
from symnmf.storage import SparseMatrix

#: Returns U after so many steps on X.
Improve: TypeAlias = Callable[[SparseMatrix, np.ndarray, int], np.ndarray]

#: Bytes of a factor above which an iteration waits for memory. X is contracted until its factor is
#: smaller; smaller still, and the groups say too much of how the run will end: on com-DBLP with 50
#: columns, ends get worse with every level beyond.
LARGE = 32 * 2**20

#: A level has at most this part of the rows of the one below, or it is not worth its memory.
SHRINKING = 0.9

#: Products with one vector that the largest eigenvalue and the weights of rows are found by.
POWER_STEPS, WEIGHT_STEPS = 10, 50

#: Steps at the coarsest level, where they are cheap, and at each of the others.
COARSEST_STEPS, STEPS = 60, 15


@dataclass(frozen=True)
class Level:
    """A contracted X, and what brings its U back to the X it was made from."""

    X: SparseMatrix
    group: np.ndarray
    weights: np.ndarray

    def expanded(self, U: np.ndarray) -> np.ndarray:
        """Return Q U."""
        return self.weights[:, None] * U[self.group]


def _large(X: SparseMatrix, rank: int) -> bool:
    return X.shape[0] * rank * X.dtype.itemsize > LARGE


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


def contractions(X: SparseMatrix, rank: int) -> list[Level]:
    """Return ever smaller versions of X, each contracted from the one before."""
    weights = row_weights(_rows(X))
    levels: list[Level] = []
    while _large(X, rank):
        n = X.shape[0]
        group = np.full(n, -1, np.int64)
        # small degrees first: a hub has others to go with
        order = np.argsort(np.diff(X.indptr), kind="stable")
        count = match_neighbors(X.indptr, X.indices, X.data, order, group)
        if count > SHRINKING * n:
            break
        lengths = np.sqrt(np.bincount(group, weights * weights, minlength=count))
        share = weights / lengths[group]
        Q = sp.csr_array((share.astype(X.dtype), (np.arange(n), group)), shape=(n, count))
        smaller = sp.csr_array(Q.T @ _rows(X) @ Q)
        X = SparseMatrix(smaller.indptr, smaller.indices, smaller.data, X.threads)
        levels.append(Level(X, group, share.astype(X.dtype)))
        weights = lengths
    return levels


def start_by_levels(f: Objective, rank: int, improve: Improve) -> np.ndarray:
    """Return U_0 from the coarsest level upwards; it does not depend on a seed.

    The coarsest level starts from its eigenvectors, turned; every level does some steps, by
    ``improve(X, U, steps)``, before it hands its U on.
    """
    X = f.storage
    if not isinstance(X, SparseMatrix):  # nothing to contract
        return spectral_start(f, rank, None)
    levels = contractions(X, rank)
    coarsest = levels[-1].X if levels else X
    U = leading_subspace(coarsest, rank).start(coarsest, None)
    for place in range(len(levels) - 1, -1, -1):
        steps = COARSEST_STEPS if place == len(levels) - 1 else STEPS
        U = levels[place].expanded(improve(levels[place].X, U, steps))
    return np.ascontiguousarray(U, dtype=X.dtype)


def _rows(X: SparseMatrix) -> sp.csr_array:
    return sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
