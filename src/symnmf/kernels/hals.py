"""HALS sweeps in Gram form (the paper's Algorithms 2 and 3, row by row).

With V fixed, column i of U in the paper's update (eq. HALS) is

    u_i = max((X V + lambda V)_i - sum_{j != i} u_j (V^T V)_ji, 0) / ((V^T V)_ii + lambda),

which couples the columns of one row and never two rows. So a kernel sees only the factor, the
product X V, the anchor V and the r x r Gram matrix, and any range of rows is a task of its own.
"""

from __future__ import annotations

from typing import Any

from symnmf.kernels.compiling import compiled
from symnmf.kernels.products import VECTOR_BYTES, multiply_tile
from symnmf.kernels.spans import span

VECTORS = 8  # of rows worked on together, so that SIMD runs across rows and sums stay in registers


@compiled(fastmath={"contract", "nsz"})
def hals_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Sweep over the columns of rows ``begin..end`` of a factor, in place.

    ``given`` is the factor, X V, the anchor, V^T V, lambda, how many sweeps, and room.
    """
    factor, product, anchor, gram, coupling, sweeps, room = given
    r = factor.shape[1]
    tile = VECTORS * (VECTOR_BYTES // factor.itemsize)
    kind = factor.dtype.type
    start = part * room.shape[1]
    cross, rows = span(room, start, r * tile), span(room, start + r * tile, r * tile)
    start += 2 * r * tile
    value, weights = span(room, start, tile), span(room, start + tile, r * r)
    inverse = span(room, start + tile + r * r, r)
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
                multiply_tile(weights, j * r, r, rows, 0, r, value, VECTORS, 1, 1)
                target, moved = span(cross, j * tile, size), span(rows, j * tile, size)
                scale = inverse[j]
                for t in range(size):
                    moved[t] = max((target[t] - value[t]) * scale, zero)
        for j in range(r):
            moved = span(rows, j * tile, size)
            for t in range(size):
                own[t * r + j] = moved[t]


def room_of(rank: int, itemsize: int) -> int:
    """Return how many numbers of room :func:`hals_rows` needs for each part."""
    tile = VECTORS * (VECTOR_BYTES // itemsize)
    return (2 * rank + 1) * tile + rank * (rank + 1)
