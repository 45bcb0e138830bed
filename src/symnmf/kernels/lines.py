"""Powers of U + tD entry by entry, as polynomials in t, and their sums over rows."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import BLOCK, compiled


@compiled()
def _fill(
    U: np.ndarray, D: np.ndarray, binomials: np.ndarray, first: int, last: int, out: np.ndarray
) -> None:
    """Write the coefficients of (U + tD)^m, m + 1 blocks of columns, for rows ``first..last``."""
    r = U.shape[1]
    m = len(binomials) - 1
    for i in range(first, last):
        for c in range(r):
            term = U.dtype.type(1)
            for k in range(m + 1):  # D^k upwards, then U^(m-k) downwards
                out[i - first, k * r + c] = binomials[k] * term
                term *= D[i, c]
            term = U.dtype.type(1)
            for k in range(m, -1, -1):
                out[i - first, k * r + c] *= term
                term *= U[i, c]


@compiled()
def power_gram_rows(
    U: np.ndarray, D: np.ndarray, binomials: np.ndarray, begin: int, end: int
) -> np.ndarray:
    """Return the Gram matrix of the coefficients of (U + tD)^m over rows ``begin..end``."""
    width = U.shape[1] * len(binomials)
    total = np.zeros((width, width))
    block = np.empty((BLOCK, width), U.dtype)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        _fill(U, D, binomials, first, last, block)
        part = block[: last - first]
        total += np.dot(part.T, part)
    return total


@compiled()
def power_sum_rows(
    U: np.ndarray, D: np.ndarray, binomials: np.ndarray, begin: int, end: int
) -> np.ndarray:
    """Return the Gram matrix of the coefficients of the row sums of (U + tD)^m."""
    r, count = U.shape[1], len(binomials)
    total = np.zeros((count, count))
    block = np.empty((BLOCK, r * count), U.dtype)
    sums = np.empty((BLOCK, count))
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        _fill(U, D, binomials, first, last, block)
        for i in range(last - first):
            for k in range(count):
                sums[i, k] = block[i, k * r : (k + 1) * r].sum()
        part = sums[: last - first]
        total += np.dot(part.T, part)
    return total
