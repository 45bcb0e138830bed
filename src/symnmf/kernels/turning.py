"""The nearest rotation, by products alone: an SVD of a small matrix takes five times as long."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled
from symnmf.kernels.dense_products import multiply_rows, sum_over_rows
from symnmf.kernels.spans import span

#: Steps of Newton and Schulz: enough where the largest singular value is 1e4 times the least.
STEPS = 40
#: Least singular value, over the largest, that the first steps expect. Smaller ones take more.
LEAST = 0.05
#: ||I - M^T M||_F at which M is a rotation up to rounding; each step squares it.
ROTATED = 1e-13


@compiled(fastmath=REORDER)
def rotate(address: int, matrix: np.ndarray) -> bool:
    """Put the orthogonal factor M (M^T M)^-1/2 of a square matrix in its place.

    By the iteration of Newton and Schulz, M (3 I - M^T M) / 2, from a multiple of M without a
    singular value above 1. M is stretched before each step so that the LEAST singular value it is
    taken to have, and the largest, come equally close to 1 (Chen and Chow 2014). Return False where
    some direction is too short for this, and M is spent.
    """
    r = len(matrix)
    M, gram, following = span(matrix, 0, r * r), np.empty(r * r), np.empty(r * r)
    sum_over_rows(address, M, M, gram, r, r, r)
    largest = 0.0  # sum of a row of |M^T M|: no eigenvalue is larger
    for i in range(r):
        total = 0.0
        for j in range(r):
            total += abs(gram[i * r + j])
        largest = max(largest, total)
    if not 0.0 < largest < np.inf:
        return False
    scale = 1.0 / np.sqrt(largest)
    for k in range(r * r):
        M[k] *= scale
    least = LEAST
    for _ in range(STEPS):
        sum_over_rows(address, M, M, gram, r, r, r)
        stretch = np.sqrt(3.0 / (1.0 + least + least * least))
        missed = 0.0
        for i in range(r):
            for j in range(r):
                entry, own = gram[i * r + j], 1.0 if i == j else 0.0
                missed += (entry - own) ** 2
                gram[i * r + j] = 0.5 * stretch * (3.0 * own - stretch * stretch * entry)
        least *= 0.5 * stretch * (3.0 - (stretch * least) ** 2)
        if missed <= ROTATED * ROTATED * r:
            return True
        multiply_rows(address, M, gram, following, r, r, r)
        for k in range(r * r):
            M[k] = following[k]
    return False
