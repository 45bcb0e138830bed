"""Passes over pairs that carry weights, in the pattern of a sparse matrix: O(pairs r) each.

A pair (i, j) stands for the term w (x - m)^2 / 2 with m = <u_i, v_j>. ``x`` and ``w`` hold one
number for each stored pair, or a single one that all of them share.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled
from symnmf.kernels.spans import CACHE_LINE, CACHED_BYTES, PREFETCH_AHEAD, prefetch


@compiled(inline="always")
def prefetch_row(V: np.ndarray, row: int) -> None:
    """Ask for a row of ``V``."""
    columns = V.shape[1]
    first = np.int64(row) * columns
    for c in range(0, columns, CACHE_LINE // V.itemsize):
        prefetch(V, first + c)


@compiled(inline="always")
def prefetch_pair(indices: np.ndarray, position: int, last: int, V: np.ndarray) -> None:
    """Ask for the two rows of ``V`` which the entries from ``position`` on will need."""
    if position + 1 < last:
        prefetch_row(V, indices[position])
        prefetch_row(V, indices[position + 1])


@compiled(fastmath=REORDER)
def residual_product_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
    F: np.ndarray,
    V: np.ndarray,
    T: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> tuple[float, float, float]:
    """Add rows ``begin..end`` of S T to ``out``, where S = W o (X - F V^T) on the pairs.

    Mostly T is V, whose row is at hand then. Return the sums of w (x - m)^2, w x m and w m^2.
    """
    r, columns = V.shape[1], T.shape[1]
    many_x, many_w = len(x) > 1, len(w) > 1
    last = indptr[end] if V.size * V.itemsize > CACHED_BYTES else 0
    total = np.empty(columns, T.dtype)
    misfit, fit, size = 0.0, 0.0, 0.0
    for i in range(begin, end):
        own = F[i]
        total[:] = 0
        for p in range(indptr[i], indptr[i + 1]):
            if (p & 1) == 0:
                prefetch_pair(indices, p + PREFETCH_AHEAD, last, V)
            other, moved = V[indices[p]], T[indices[p]]
            m = V.dtype.type(0)
            for k in range(r):
                m += own[k] * other[k]
            value, weight = x[p if many_x else 0], w[p if many_w else 0]
            s = weight * (value - m)
            misfit += np.float64(s) * np.float64(value - m)
            fit += np.float64(weight * value) * np.float64(m)
            size += np.float64(weight * m) * np.float64(m)
            for k in range(columns):
                total[k] += s * moved[k]
        for k in range(columns):
            out[i, k] += total[k]
    return misfit, fit, size


@compiled(fastmath=REORDER)
def quartic_rows(
    first: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
    both: np.ndarray,
    begin: int,
    end: int,
) -> tuple[float, float, float, float]:
    """Return c_1 to c_4 of the pairs' part of f(U + t D) - f(U) = sum_k c_k t^k.

    With s = x - <u_i, u_j>, a = <u_i, d_j> + <d_i, u_j> and b = <d_i, d_j> it is the sum of
    w ((s - t a - t^2 b)^2 - s^2) / 2. Every term vanishes with D. Only pairs on and above the
    diagonal are visited. ``both`` is U and D side by side.
    """
    r = both.shape[1] // 2
    many_x, many_w = len(x) > 1, len(w) > 1
    last = indptr[end] if both.size * both.itemsize > CACHED_BYTES else 0
    c1, c2, c3, c4 = 0.0, 0.0, 0.0, 0.0
    zero = both.dtype.type(0)
    for i in range(begin, end):
        u, d = both[i, :r], both[i, r:]
        for p in range(first[i], indptr[i + 1]):
            if (p & 1) == 0:
                prefetch_pair(indices, p + PREFETCH_AHEAD, last, both)
            j = indices[p]
            v, e = both[j, :r], both[j, r:]
            m, mixed, moved = zero, zero, zero
            for k in range(r):
                m += u[k] * v[k]
                mixed += u[k] * e[k] + d[k] * v[k]
                moved += d[k] * e[k]
            weight = np.float64(w[p if many_w else 0])
            if j != i:
                weight *= 2.0
            s = np.float64(x[p if many_x else 0]) - np.float64(m)
            a, b = np.float64(mixed), np.float64(moved)
            c1 -= weight * s * a
            c2 += weight * (0.5 * a * a - s * b)
            c3 += weight * a * b
            c4 += 0.5 * weight * b * b
    return c1, c2, c3, c4
