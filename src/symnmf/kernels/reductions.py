"""Sums over factors in one pass, accumulated in float64 whatever the factors' precision.

The arguments are those of every pass that threads may share, see :mod:`symnmf.kernels.directions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled
from symnmf.kernels.small_products import multiply_rows, sum_over_rows
from symnmf.kernels.spans import span


@compiled(fastmath=REORDER)
def inner_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Sum <A, B>; ``given`` is A, B, sums."""
    A, B, sums = given
    at, size = begin * A.shape[1], (end - begin) * A.shape[1]
    a, b = span(A, at, size), span(B, at, size)
    total = 0.0
    for k in range(size):
        total += np.float64(a[k]) * np.float64(b[k])
    sums[part, 0] = total


@compiled(fastmath=REORDER)
def pair_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Sum ||U - V||^2, <U, V> and ||V||^2; ``given`` is U, V, sums."""
    U, V, sums = given
    at, size = begin * U.shape[1], (end - begin) * U.shape[1]
    one, other = span(U, at, size), span(V, at, size)
    apart, together, length = 0.0, 0.0, 0.0
    for k in range(size):
        u = np.float64(one[k])
        v = np.float64(other[k])
        apart += (u - v) * (u - v)
        together += u * v
        length += v * v
    sums[part, 0], sums[part, 1], sums[part, 2] = apart, together, length


@compiled(fastmath=REORDER)
def split_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Sum <P, U>, <P, V>, ||U - V||^2 and ||V||^2; ``given`` is P, U, V, sums."""
    product, U, V, sums = given
    at, size = begin * U.shape[1], (end - begin) * U.shape[1]
    p, one, other = span(product, at, size), span(U, at, size), span(V, at, size)
    fit, other_fit, apart, length = 0.0, 0.0, 0.0, 0.0
    for k in range(size):
        u = np.float64(one[k])
        v = np.float64(other[k])
        x = np.float64(p[k])
        fit += x * u
        other_fit += x * v
        apart += (u - v) * (u - v)
        length += v * v
    sums[part, 0], sums[part, 1], sums[part, 2], sums[part, 3] = fit, other_fit, apart, length


@compiled(fastmath=REORDER)
def natural_residual_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Sum ||U - max(U - step * 2 (U G - P), 0)||^2.

    ``given`` is U, P, G, step, the address of products, room of a block of rows, sums.
    """
    U, product, gram, step, address, room, sums = given
    r = U.shape[1]
    curved, small = span(room, part * BLOCK * r, BLOCK * r), span(gram, 0, r * r)
    total = 0.0
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        own, wanted = span(U, first * r, rows * r), span(product, first * r, rows * r)
        multiply_rows(address, own, small, curved, rows, r, r)
        for k in range(rows * r):
            u = np.float64(own[k])
            move = 2.0 * step * (np.float64(curved[k]) - np.float64(wanted[k]))
            kept = u if u < move else move  # u - max(u - move, 0)
            total += kept * kept
    sums[part, 0] = total


@compiled()
def cross_gram_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Sum A^T B; ``given`` is A, B, the address of products, room of an entry each, sums.

    float32 sums stay short before they are added up.
    """
    A, B, address, room, sums = given
    a, b = A.shape[1], B.shape[1]
    added, total = span(room, part * a * b, a * b), span(sums, part * a * b, a * b)
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        left, right = span(A, first * a, rows * a), span(B, first * b, rows * b)
        sum_over_rows(address, left, right, added, rows, a, b)
        for k in range(a * b):
            total[k] += added[k]
