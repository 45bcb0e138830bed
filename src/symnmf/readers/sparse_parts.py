"""Sparse matrices and graphs from checked index arrays."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.readers.source import Source, shown

FREE_DIMENSION = 2**20
"""Rows or columns a sparse matrix may have however few entries it stores."""

DIMENSION_PER_ENTRY = 64
"""Rows or columns a sparse matrix may have beyond that, for each entry it stores."""


def check_dimensions(source: Source, shape: tuple[int, int], entries: int) -> None:
    """Refuse dimensions that would cost far more memory than the entries account for."""
    limit = min(max(FREE_DIMENSION, DIMENSION_PER_ENTRY * entries), 2**31 - 1)
    if min(shape) < 1:
        raise source.error(f"its matrix is {shape[0]} x {shape[1]}, which holds nothing")
    if max(shape) > limit:
        raise source.error(
            f"its header asks for a {shape[0]} x {shape[1]} matrix for {entries} entries, and at"
            f" most {limit} rows or columns are plausible"
        )


def from_coordinates(
    source: Source,
    shape: tuple[int, int],
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
) -> sp.csr_array:
    """A csr array from indices inside a shape, both checked already; repeats are summed."""
    matrix = sp.coo_array((values, (rows, columns)), shape=shape).tocsr()
    check_finite(source, matrix.data)
    return matrix


def check_finite(source: Source, values: np.ndarray) -> None:
    """Refuse NaN and infinities among the stored entries of a sparse matrix."""
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise source.error(f"its stored entry {place} is not a finite number")


def first_repeat(high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group equal pairs: the sorting order, and which sorted pair equals the one before it.

    Indices lie below ``2**31``, so a pair fits into one int64 (``check_dimensions`` saw to it).
    """
    key = (high.astype(np.int64) << 31) | low
    order = np.argsort(key, kind="stable")
    key = key[order]
    same = np.zeros(order.size, dtype=bool)
    same[1:] = key[1:] == key[:-1]
    return order, same


def adjacency(
    source: Source,
    n: int,
    pairs: tuple[np.ndarray, np.ndarray],
    weights: np.ndarray | None,
    names: np.ndarray | None = None,
    lines: np.ndarray | None = None,
) -> sp.csr_array:
    r"""The symmetric adjacency matrix of an undirected graph on ``n`` nodes.

    ``A[u, v] = A[v, u] = w``. An edge listed again, in either direction, is the same edge; listed
    again with another weight it is refused, because sum, mean and maximum are all plausible. A
    self-loop stands once on the diagonal. Edges of weight zero are not stored.
    """
    check_dimensions(source, (n, n), pairs[0].size)
    u, v = (end.astype(np.int32, copy=False) for end in pairs)
    off = u != v
    both = sp.coo_array(
        (
            np.ones(u.size + np.count_nonzero(off), np.int8)
            if weights is None
            else np.concatenate([weights, weights[off]]),
            (np.concatenate([u, v[off]]), np.concatenate([v, u[off]])),
        ),
        shape=(n, n),
    )
    both.has_canonical_format = True  # repeats are dropped below, not summed
    # turning rows into columns sorts them, in linear time, and A = A^T
    rows = both.tocsr()
    del both
    turned = rows.tocsc()
    del rows
    indptr, indices, data = turned.indptr, turned.indices, turned.data
    repeats = _repeats(indptr, indices)
    if repeats.any():
        if weights is not None and (data[1:] != data[:-1])[repeats].any():
            raise _conflict(source, (u, v), weights, names, lines)
        kept = np.append(True, ~repeats)
        indptr = np.append(0, np.cumsum(kept))[indptr].astype(indptr.dtype)
        indices, data = indices[kept], data[kept]
    if weights is None:
        data = np.ones(indices.size)
    matrix = sp.csr_array((data, indices, indptr), shape=(n, n))
    check_finite(source, matrix.data)
    matrix.eliminate_zeros()
    return matrix


def _repeats(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Which sorted index, but for the first, equals the one before it in the same row."""
    same = indices[1:] == indices[:-1]
    starts = indptr[1:-1]
    same[starts[(starts > 0) & (starts < indices.size)] - 1] = False
    return same


def _conflict(
    source: Source,
    pairs: tuple[np.ndarray, np.ndarray],
    weights: np.ndarray,
    names: np.ndarray | None,
    lines: np.ndarray | None,
) -> InputError:
    """The error about the first edge that is listed with two weights."""
    u, v = pairs
    order, same = first_repeat(np.maximum(u, v), np.minimum(u, v))
    differs = np.flatnonzero(same[1:] & (weights[order][1:] != weights[order][:-1]))
    first, second = (int(order[differs[0] + k]) for k in (0, 1))
    nodes = [
        shown(node if names is None else names[node]) for node in (int(u[first]), int(v[first]))
    ]
    return source.error(
        f"the edge between {nodes[0]} and {nodes[1]} has the weights {weights[first]:g} and"
        f" {weights[second]:g}; list each edge once",
        None if lines is None else int(lines[second]),
    )
