"""Candidates for nearest neighbours: a cheap bound decides who is looked at more closely."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled

LANES = 64  # bounds that are compared before anything branches
STEP = 64  # coordinates added to a distance before it is compared; rows are padded to this


@compiled(fastmath=REORDER)
def keep_nearest(
    inner: np.ndarray,
    new: np.ndarray,
    points: np.ndarray,
    new_halves: np.ndarray,
    halves: np.ndarray,
    slack: np.ndarray,
    row: int,
    column: int,
    same: bool,
    found: np.ndarray,
    squares: np.ndarray,
) -> int:
    """Put the points ``column..`` among the nearest of new ones ``row..``; return how many it read.

    ``inner[a, b]`` bounds the inner product of new point row + a and point column + b from above.
    So |x|^2 + |y|^2 - 2 inner bounds their squared distance from below. Where that is below the
    largest of ``squares[row + a]`` and ``slack``, the distance is summed up, until it is too long.

    ``new`` and ``points`` have their leading coordinates first, a multiple of STEP of them;
    ``new_halves`` and ``halves`` are half of the squared length of each, and ``slack`` is what
    rounding may take from a bound. ``found`` and ``squares`` are the nearest so far and their
    squared distances, ascending. A point is not its own neighbour where the new ones are the
    ``same`` points.
    """
    width = found.shape[1]
    dimension = points.shape[1]
    count = inner.shape[1]
    read = 0
    for a in range(inner.shape[0]):
        i = row + a
        products = inner[a]
        nearest, lengths = found[i], squares[i]
        own = new[i]
        limit = lengths[width - 1]
        least = new_halves[i] - np.float32(0.5) * (limit + slack[i])
        for first in range(0, count, LANES):
            bounds = products[first : first + LANES]
            other_halves = halves[column + first : column + first + len(bounds)]
            hits = 0
            for b in range(len(bounds)):
                hits += 1 if bounds[b] - other_halves[b] >= least else 0
            if hits == 0:
                continue
            for b in range(len(bounds)):
                j = column + first + b
                if bounds[b] - other_halves[b] < least or (same and i == j):
                    continue
                read += 1
                length = np.float32(0.0)
                for start in range(0, dimension, STEP):
                    one, other = own[start : start + STEP], points[j, start : start + STEP]
                    part = np.float32(0.0)
                    for c in range(STEP):
                        difference = one[c] - other[c]
                        part += difference * difference
                    length += part
                    if length >= limit:
                        break
                if length >= limit:
                    continue
                place = width - 1
                while place > 0 and lengths[place - 1] > length:
                    lengths[place] = lengths[place - 1]
                    nearest[place] = nearest[place - 1]
                    place -= 1
                lengths[place] = length
                nearest[place] = j
                limit = lengths[width - 1]
                least = new_halves[i] - np.float32(0.5) * (limit + slack[i])
    return read
