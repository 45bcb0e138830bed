"""A large graph with its rows put into groups, on which a choice costs less."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

#: Rows that a graph is contracted to, or this many for each column. Clusters of some dozen groups
#: can still be told from each other there, and tails that hang on by one edge are part of a group.
COARSEST_ROWS, ROWS_EACH = 4000, 50

#: A contraction leaves at most this part of the rows, or it is not worth its memory.
SHRINKING = 0.9


def coarse_rows(rank: int) -> int:
    """Return how many rows the coarsest graph has at most, for so many columns."""
    return max(COARSEST_ROWS, ROWS_EACH * rank)


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
