"""A large graph with its rows put into groups, on which a choice costs less."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.adjacency import degrees

#: Rows that a graph is contracted to, or this many for each column. Clusters of some dozen groups
#: can still be told from each other there, and tails that hang on by one edge are part of a group.
COARSEST_ROWS, ROWS_EACH = 4000, 50

#: A contraction leaves at most this part of the entries, or work on them is as much as before.
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
    group = np.full(A.shape[0], -1, A.indices.dtype)
    # small degrees first: a hub has others to go with
    order = np.argsort(np.diff(A.indptr), kind="stable")
    roots = np.sqrt(np.maximum(degrees(A), np.finfo(np.float64).tiny))
    from symnmf.kernels.contraction import match_neighbors

    return group, int(match_neighbors(A.indptr, A.indices, A.data, roots, order, group))


def contracted(A: Any, group: np.ndarray, count: int) -> Any:
    """Return Q^T A Q for a symmetric CSR matrix, Q with each row in the column of its group."""
    from symnmf.kernels.contraction import add_up_groups

    members, ends = np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))
    indptr = np.zeros(count + 1, A.indptr.dtype)
    indices, data = np.empty_like(A.indices), np.empty_like(A.data)
    add_up_groups(A.indptr, A.indices, A.data, group, members, ends, indptr, indices, data)
    kept = slice(0, int(indptr[-1]))
    # being symmetric it is its own transpose, whose rows SciPy writes in order
    columns = sp.csc_array((data[kept], indices[kept], indptr), shape=(count, count))
    return columns.tocsr()
