"""HALS sweeps in Gram form (the paper's Algorithms 2 and 3, row by row).

With V fixed, column i of U in the paper's update (eq. HALS) is

    u_i = max((X V + lambda V)_i - sum_{j != i} u_j (V^T V)_ji, 0) / ((V^T V)_ii + lambda),

which couples the columns of one row and never two rows. So a kernel sees only the factor, the
product X V, the anchor V and the r x r Gram matrix, and any range of rows is a task of its own.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled

TILE = 64  # rows worked on together, so that SIMD runs across rows


@compiled(fastmath={"contract", "nsz"})
def hals_rows(
    factor: np.ndarray,
    product: np.ndarray,
    anchor: np.ndarray,
    gram: np.ndarray,
    coupling: float,
    sweeps: int,
    begin: int,
    end: int,
) -> None:
    """Sweep ``sweeps`` times over the columns of rows ``begin..end`` of ``factor``, in place."""
    r = factor.shape[1]
    off_diagonal = gram.astype(factor.dtype)
    shift = off_diagonal.dtype.type(coupling)
    inverse = np.empty(r, off_diagonal.dtype)
    for j in range(r):
        diagonal = gram[j, j] + coupling
        inverse[j] = 1.0 / diagonal if diagonal > 0.0 else 0.0
        off_diagonal[j, j] = 0.0
    cross = np.empty((r, TILE), off_diagonal.dtype)
    rows = np.zeros((r, TILE), off_diagonal.dtype)
    value = np.empty(TILE, off_diagonal.dtype)
    for first in range(begin, end, TILE):
        size = min(TILE, end - first)
        for t in range(size):
            for j in range(r):
                cross[j, t] = product[first + t, j] + shift * anchor[first + t, j]
                rows[j, t] = factor[first + t, j]
        for _ in range(sweeps):
            for j in range(r):
                if inverse[j] == 0.0:  # a column of zeros and no coupling: nothing decides it
                    continue
                for t in range(TILE):
                    value[t] = cross[j, t]
                k = 0
                while k + 8 <= r:  # eight at a time, so that `value` is loaded and stored less
                    a, b, c, d = (
                        off_diagonal[j, k],
                        off_diagonal[j, k + 1],
                        off_diagonal[j, k + 2],
                        off_diagonal[j, k + 3],
                    )
                    e, f, g, h = (
                        off_diagonal[j, k + 4],
                        off_diagonal[j, k + 5],
                        off_diagonal[j, k + 6],
                        off_diagonal[j, k + 7],
                    )
                    for t in range(TILE):
                        value[t] -= (
                            a * rows[k, t]
                            + b * rows[k + 1, t]
                            + c * rows[k + 2, t]
                            + d * rows[k + 3, t]
                            + e * rows[k + 4, t]
                            + f * rows[k + 5, t]
                            + g * rows[k + 6, t]
                            + h * rows[k + 7, t]
                        )
                    k += 8
                while k < r:
                    a = off_diagonal[j, k]
                    for t in range(TILE):
                        value[t] -= a * rows[k, t]
                    k += 1
                scale = inverse[j]
                for t in range(TILE):
                    rows[j, t] = max(value[t] * scale, off_diagonal.dtype.type(0))
        for t in range(size):
            for j in range(r):
                factor[first + t, j] = rows[j, t]
