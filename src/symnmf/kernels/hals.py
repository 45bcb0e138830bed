"""HALS sweeps in Gram form (the paper's Algorithms 2 and 3, row by row).

With V fixed, column i of U in the paper's update (eq. HALS) is

    u_i = max((X V + lambda V)_i - sum_{j != i} u_j (V^T V)_ji, 0) / ((V^T V)_ii + lambda),

which couples the columns of one row and never two rows. So a kernel sees only the factor, the
product X V, the anchor V and the r x r Gram matrix, and any range of rows is a task of its own.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled
from symnmf.kernels.dense_products import multiply_tile
from symnmf.kernels.spans import VECTOR_BYTES, span

VECTORS = 8  # of rows worked on together, so that SIMD runs across rows and sums stay in registers


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
    """Sweep over the columns of rows ``begin..end`` of ``factor``, in place, so many times.

    ``product`` is X V, ``anchor`` V, ``gram`` V^T V and ``coupling`` lambda.
    """
    r = factor.shape[1]
    item = factor.itemsize
    tile = VECTORS * (VECTOR_BYTES // item)
    kind = factor.dtype.type
    cross, rows = np.empty(r * tile, factor.dtype), np.empty(r * tile, factor.dtype)
    value, weights = np.empty(tile, factor.dtype), np.empty(r * r, factor.dtype)
    inverse = np.empty(r, factor.dtype)
    last = tile - VECTOR_BYTES // item
    shift, zero = kind(coupling), kind(0)
    for j in range(r):
        for k in range(r):
            weights[j * r + k] = kind(gram[j, k])
        diagonal = gram[j, j] + coupling
        inverse[j] = kind(1.0 / diagonal) if diagonal > 0.0 else zero
        weights[j * r + j] = zero
    for k in range(r * tile):  # rows past the end of the factor have to be numbers, too
        rows[k] = zero
    for first in range(begin, end, tile):
        size = min(tile, end - first)
        wanted, own = span(product, first * r, size * r), span(factor, first * r, size * r)
        held = span(anchor, first * r, size * r)
        for j in range(r):  # writing in order costs less than reading in order
            target, moved = span(cross, j * tile, size), span(rows, j * tile, size)
            for t in range(size):
                target[t] = wanted[t * r + j] + shift * held[t * r + j]
                moved[t] = own[t * r + j]
        for _ in range(sweeps):
            for j in range(r):
                if inverse[j] == zero:  # a column of zeros and no coupling: nothing decides it
                    continue
                multiply_tile(
                    weights, j * r, r, 1, rows, r, value, 0, tile, 0, last,
                    VECTORS, VECTOR_BYTES, 1,
                )  # fmt: skip
                target, moved = span(cross, j * tile, size), span(rows, j * tile, size)
                scale = inverse[j]
                for t in range(size):
                    moved[t] = max((target[t] - value[t]) * scale, zero)
        for j in range(r):
            moved = span(rows, j * tile, size)
            for t in range(size):
                own[t * r + j] = moved[t]
