"""Squares of what a fit leaves of X, tile by tile."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled
from symnmf.kernels.small_products import multiply_rows
from symnmf.kernels.spans import span

#: Rows and columns of a tile: 128 KB in float64.
SIDE = 128


@compiled(fastmath=REORDER)
def gap_sqnorm(
    X: np.ndarray,
    U: np.ndarray,
    panels: np.ndarray,
    same: bool,
    strip: int,
    address: int,
    room: np.ndarray,
) -> float:
    """Return the sum of the squares of X - U V^T over a strip of SIDE rows.

    ``panels`` are the blocks of SIDE rows of V, each of them transposed, one after the other; see
    :func:`panels_of`. If U and V are the ``same``, tiles below the diagonal are those above it, and
    the strip counts these twice. ``address`` is that of products in the type of U, and ``room`` a
    tile of this type. Differences are taken in the wider of the types of X and U, and their squares
    are added up in float64.
    """
    n, r = U.shape
    top = strip * SIDE
    rows = min(SIDE, n - top)
    own = span(U, top * r, rows * r)
    total = 0.0
    for panel in range(strip if same else 0, -(-n // SIDE)):
        left = panel * SIDE
        columns = min(SIDE, n - left)
        fitted = span(room, 0, rows * columns)
        multiply_rows(address, own, span(panels, left * r, r * columns), fitted, rows, r, columns)
        part = 0.0
        for i in range(rows):
            row, model = span(X, (top + i) * n + left, columns), span(fitted, i * columns, columns)
            for j in range(columns):
                gap = np.float64(row[j] - model[j])
                part += gap * gap
        total += 2.0 * part if same and panel > strip else part
    return total


def panels_of(V: np.ndarray) -> np.ndarray:
    """Return the blocks of SIDE rows of V, each transposed, in one array of numbers."""
    n, r = V.shape
    panels, whole = np.empty(n * r, V.dtype), n // SIDE * SIDE
    blocks = V[:whole].reshape(-1, SIDE, r)
    panels[: whole * r].reshape(-1, r, SIDE)[...] = blocks.transpose(0, 2, 1)
    panels[whole * r :].reshape(r, n - whole)[...] = V[whole:].T
    return panels
