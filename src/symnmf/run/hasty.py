"""Starts for a call that has no time for eigenvectors: no product with a factor, no n r^2 pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.run.seeds import as_edges, neighborhood_seeds
from symnmf.storage import SymmetricMatrix
from symnmf.storage.spectrum import host_product
from symnmf.storage.wrapping import in_memory

#: Rounds in which rows outside all neighbourhoods join those of their neighbours.
ROUNDS = 3
#: Of the mean entry: what is 0 in U_0 should be able to grow.
FLOOR = 0.01


def hasty_start(X: SymmetricMatrix, rank: int) -> np.ndarray:
    """Return U_0 if there is no time for a better one.

    Of a sparse graph in memory: neighbourhoods of low conductance, which rows outside join. Of any
    other X: uniform numbers at its scale.
    """
    graph: Any = None if X.signed else in_memory(X)
    if graph is not None and sp.issparse(graph) and graph.nnz:
        return _from_neighborhoods(as_edges(graph), rank).astype(X.dtype, copy=False)
    return _uniform(X, rank).astype(X.dtype, copy=False)


def _from_neighborhoods(graph: sp.csr_array, rank: int) -> np.ndarray:
    n = graph.shape[0]
    seeds = neighborhood_seeds(graph, rank)
    lengths = [len(members) for members in seeds.sets]
    rows = np.concatenate([*seeds.sets, np.empty(0, np.int64)])
    columns = np.repeat(np.arange(len(seeds)), lengths)
    heights = np.repeat(np.sqrt(seeds.density), lengths)
    U = sp.csr_array((heights, (rows, columns)), shape=(n, rank))
    for _ in range(ROUNDS):
        outside = np.flatnonzero(np.diff(U.indptr) == 0)
        # the best row where columns do not overlap: <x_i, u_c> / ||u_c||^2
        squares = np.asarray(U.multiply(U).sum(axis=0)).ravel()
        joined = graph[outside] @ U @ sp.diags_array(1.0 / np.where(squares > 0, squares, 1.0))
        if not joined.nnz:
            break
        U = U + sp.csr_array(_selection(outside, n) @ joined)
    rng = np.random.default_rng(0)
    left = np.flatnonzero((np.diff(U.indptr) == 0) & (np.diff(graph.indptr) > 0))
    height = float(U.data.mean()) if U.nnz else float(np.sqrt(graph.data.mean()))
    start = U.toarray()
    if left.size:
        empty = np.flatnonzero(~start.any(axis=0))
        start[left, rng.choice(empty if empty.size else rank, left.size)] = height
    empty = np.flatnonzero(~start.any(axis=0))
    start[:, empty] = start.mean() * rng.random((n, empty.size))
    return np.maximum(start, FLOOR * start.mean(), out=start)


def _selection(rows: np.ndarray, n: int) -> sp.csr_array:
    """Return the n x m matrix that puts m rows in these places."""
    places = (rows, np.arange(len(rows)))
    return sp.csr_array((np.ones(len(rows)), places), shape=(n, len(rows)))


def _uniform(X: SymmetricMatrix, rank: int) -> np.ndarray:
    """Return uniform numbers, times the s that is best for X on average over them.

    Entries of U have mean 1/2 and mean square 1/3, so the averages of <X U, U> and ||U U^T||^2
    need the sum of X alone.
    """
    n, r = X.shape[0], rank
    total = float(host_product(X, np.ones(n)).sum())
    size = n * (n - 1) * (r * r / 16.0 + r * 7.0 / 144.0) + n * (r * r / 9.0 + r * 4.0 / 45.0)
    scale = np.sqrt(max(0.25 * r * total, 0.0) / size)
    U: np.ndarray = np.random.default_rng(0).random((n, r))
    return (scale or 1.0) * U
