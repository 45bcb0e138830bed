"""Squares of what a fit leaves of X, for tiles of X in its own precision."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled


@compiled(fastmath=REORDER)
def gap_sqnorm(X: np.ndarray, top: int, left: int, fitted: np.ndarray) -> float:
    """Return ||X_T - fitted||_F^2 for the tile T of X that begins at ``top``, ``left``.

    Differences are taken in the type of X and their squares summed in float64. X comes whole: a
    tile of it would not be known to be contiguous, and the loop would not run in SIMD lanes.
    """
    total = 0.0
    for i in range(fitted.shape[0]):
        row, own = X[top + i], fitted[i]
        for j in range(len(own)):
            gap = np.float64(row[left + j] - own[j])
            total += gap * gap
    return total
