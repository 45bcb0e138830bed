"""Anderson acceleration of a fixed-point map on tall factors: the passes and the small system.

The history keeps, in rings of m slots, images Z_j of the map and the moves F_j = Z_j - U_j, and
the matrix of their inner products <F_i, F_j>, of which one row is new each time.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled

REORDER = {"reassoc", "contract", "nsz"}  # lets the sums below run in SIMD lanes
BLOCK = 1024  # entries worked on together, so that they stay in L1
RIDGE = 1e-10  # relative: what inner products in float64 can still tell apart


@compiled(fastmath=REORDER)
def remember_rows(
    U: np.ndarray, images: np.ndarray, moves: np.ndarray, slot: int, used: int, begin: int, end: int
) -> np.ndarray:
    """Write F = images[slot] - U to ``moves[slot]``; return <F, moves[j]> for the used slots."""
    r = U.shape[1]
    dots = np.zeros(moves.shape[0])
    for first in range(begin * r, end * r, BLOCK):
        last = min(first + BLOCK, end * r)
        before = U.reshape(-1)[first:last]
        image = images[slot].reshape(-1)[first:last]
        move = moves[slot].reshape(-1)[first:last]
        for k in range(len(move)):
            move[k] = image[k] - before[k]
        for j in range(used):
            other = moves[j].reshape(-1)[first:last]
            total = 0.0
            for k in range(len(move)):
                total += np.float64(move[k]) * np.float64(other[k])
            dots[j] += total
    return dots


@compiled()
def mixing_weights(dots: np.ndarray, newest: int, used: int) -> np.ndarray:
    """Return the weights w, summing to 1, that minimise ||sum_j w_j F_j||.

    Solved for the differences to the newest move, by Cholesky with a ridge that keeps nearly
    equal moves from being weighed against each other by rounding.
    """
    size = used - 1
    slots = np.empty(size, np.int64)
    k = 0
    for j in range(used):
        if j != newest:
            slots[k] = j
            k += 1
    own = dots[newest, newest]
    matrix = np.empty((size, size))
    values = np.empty(size)
    trace = 0.0
    for a in range(size):
        i = slots[a]
        values[a] = own - dots[i, newest]
        for b in range(size):
            j = slots[b]
            matrix[a, b] = dots[i, j] - dots[i, newest] - dots[newest, j] + own
        trace += matrix[a, a]
    weights = np.zeros(used)
    weights[newest] = 1.0
    floor = RIDGE * trace
    if not floor > 0.0:
        return weights
    for a in range(size):
        for b in range(a + 1):
            value = matrix[a, b]
            for c in range(b):
                value -= matrix[a, c] * matrix[b, c]
            if a == b:
                matrix[a, a] = np.sqrt(max(value, 0.0) + floor)
            else:
                matrix[a, b] = value / matrix[b, b]
        for c in range(a):
            values[a] -= matrix[a, c] * values[c]
        values[a] /= matrix[a, a]
    for a in range(size - 1, -1, -1):
        for c in range(a + 1, size):
            values[a] -= matrix[c, a] * values[c]
        values[a] /= matrix[a, a]
        weights[slots[a]] = values[a]
        weights[newest] -= values[a]
    return weights


@compiled(fastmath=REORDER)
def mix_rows(
    images: np.ndarray, weights: np.ndarray, out: np.ndarray, begin: int, end: int
) -> None:
    """Write max(sum_j weights[j] images[j], 0) to rows ``begin..end`` of ``out``."""
    kind = out.dtype.type
    r = out.shape[1]
    for first in range(begin * r, end * r, BLOCK):
        last = min(first + BLOCK, end * r)
        mixture = out.reshape(-1)[first:last]
        mixture[:] = 0
        for j in range(weights.shape[0]):
            weight = kind(weights[j])
            image = images[j].reshape(-1)[first:last]
            for k in range(len(mixture)):
                mixture[k] += weight * image[k]
        for k in range(len(mixture)):
            mixture[k] = max(mixture[k], kind(0))
