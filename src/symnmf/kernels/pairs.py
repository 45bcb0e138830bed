"""Limited-memory BFGS on tall factors under U >= 0: two passes and a few dot products.

The history keeps, in rings of m slots, steps s_j and the changes y_j of the gradient they made,
and the inner products <s_i, y_j> and <y_i, y_j>, of which one row and column are new each time.
The usual two loops then run on coefficients alone, and the direction is formed in one pass.
"""

from __future__ import annotations

import math

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled
from symnmf.kernels.dense_products import multiply_rows
from symnmf.kernels.spans import span

# rows of what `gradient_rows` returns: dot products with each slot, then three numbers
STEP_CHANGE, CHANGE_STEP, CHANGE_CHANGE, STEP_SLOPE, CHANGE_SLOPE, NUMBERS = range(6)


@compiled(fastmath=REORDER)
def gradient_rows(
    U: np.ndarray,
    product: np.ndarray,
    gram: np.ndarray,
    level: float,
    reach: float,
    gradient: np.ndarray,
    steps: np.ndarray,
    changes: np.ndarray,
    newest: int,
    slots: np.ndarray,
    begin: int,
    end: int,
) -> np.ndarray:
    """Bring ``gradient`` = U G - X U, half of grad f, up to date and note how it changed.

    ``product`` is X U, ``gram`` G = U^T U, ``steps`` and ``changes``
    the rings. If ``newest`` >= 0, ``steps[newest]`` is the step made since ``gradient`` was last
    computed, and ``changes[newest]`` is written: zero where U did not move, for there a bound stops
    the step and not curvature. Return the dot products of s and y of the newest slot with those of
    ``slots``, and of these with the gradient g on the free entries {U > 0 or g < 0}; then the
    squared length of the newest s, <g, U - max(U - g / level, 0)> and
    ||U - max(U - reach g, 0)||^2.
    """
    n, r = U.shape
    sums = np.zeros((NUMBERS + 1, max(len(steps), 3)))
    curved, slope = np.empty(BLOCK * r, U.dtype), np.empty(BLOCK * r, U.dtype)
    small = span(gram, 0, r * r)
    scale = 1.0 / level if level > 0.0 else 0.0
    zero = U.dtype.type(0)
    latest = max(newest, 0)  # without one, what it says is not used
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        at, size = first * r, rows * r
        u, xu, g = span(U, at, size), span(product, at, size), span(gradient, at, size)
        s, y = span(steps, latest * n * r + at, size), span(changes, latest * n * r + at, size)
        multiply_rows(u, small, curved, rows, r)
        if newest >= 0:
            length = 0.0
            for k in range(size):
                y[k] = curved[k] - xu[k] - g[k] if s[k] != zero else zero
                length += np.float64(s[k]) * np.float64(s[k])
            sums[NUMBERS, 0] += length
        residual, natural = 0.0, 0.0
        for k in range(size):
            value = curved[k] - xu[k]
            g[k] = value
            before, move = np.float64(u[k]), scale * np.float64(value)
            held = before if before < move else move  # u - max(u - move, 0)
            residual += np.float64(value) * held
            move = reach * np.float64(value)
            held = before if before < move else move
            natural += held * held
            slope[k] = value if u[k] > zero or value < zero else zero
        sums[NUMBERS, 1] += residual
        sums[NUMBERS, 2] += natural
        for j in slots:
            other_s = span(steps, j * n * r + at, size)
            other_y = span(changes, j * n * r + at, size)
            a, b, c, d, e = 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(size):
                p, q, m = np.float64(other_s[k]), np.float64(other_y[k]), np.float64(slope[k])
                v, w = np.float64(s[k]), np.float64(y[k])
                a += v * q
                b += w * p
                c += w * q
                d += p * m
                e += q * m
            sums[STEP_CHANGE, j] += a
            sums[CHANGE_STEP, j] += b
            sums[CHANGE_CHANGE, j] += c
            sums[STEP_SLOPE, j] += d
            sums[CHANGE_SLOPE, j] += e
    return sums


def direction_weights(
    step_change: np.ndarray,
    change_change: np.ndarray,
    step_slope: np.ndarray,
    change_slope: np.ndarray,
    order: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the weights of -H g = a g + sum_j (b_j s_j + c_j y_j), H the L-BFGS inverse Hessian.

    ``step_change[i, j]`` is <s_i, y_j>, ``change_change[i, j]`` is <y_i, y_j>, ``step_slope`` and
    ``change_slope`` are <s_j, g> and <y_j, g>, and ``order`` lists the slots from the oldest.
    """
    # a handful of numbers: plain ones and loops are faster than arrays and sums of generators, and
    # compiling would take longer
    sy, yy = step_change.tolist(), change_change.tolist()
    s_slope, y_slope, slots = step_slope.tolist(), change_slope.tolist(), order.tolist()
    along = [0.0] * len(sy)  # alpha of the first loop
    for place in range(len(slots) - 1, -1, -1):
        i = slots[place]
        own, later = sy[i], 0.0
        for j in slots[place + 1 :]:
            later += along[j] * own[j]
        along[i] = _over(s_slope[i] - later, own[i])
    last = slots[-1]
    scale = _over(sy[last][last], yy[last][last])
    steps, changes = [0.0] * len(sy), [0.0] * len(sy)
    for place, i in enumerate(slots):
        own, all_of_it, before = yy[i], 0.0, 0.0
        for j in slots:
            all_of_it += along[j] * own[j]
        for j in slots[:place]:
            before += steps[j] * sy[j][i]
        steps[i] = _over(scale * (y_slope[i] - all_of_it) - before, sy[i][i]) - along[i]
        changes[i] = scale * along[i]
    return -scale, np.array(steps), np.array(changes)


def _over(value: float, divisor: float) -> float:
    """Divide as arrays do: by zero it gives inf or NaN, and the line search stays where it is."""
    if divisor:
        return value / divisor
    return math.copysign(math.inf, value) if value else math.nan


@compiled(fastmath=REORDER)
def target_rows(
    U: np.ndarray,
    gradient: np.ndarray,
    steps: np.ndarray,
    changes: np.ndarray,
    own: float,
    step_weights: np.ndarray,
    change_weights: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Write max(U + direction, 0) to ``out``, which may be a slot; entries not free stay.

    The direction is the gradient, the steps and the changes times their weights.
    """
    n, r = U.shape
    kind = U.dtype.type
    zero, weight = kind(0), kind(own)
    direction = np.empty(BLOCK * r, U.dtype)
    for first in range(begin, end, BLOCK):
        at, size = first * r, min(BLOCK, end - first) * r
        u, g, target = span(U, at, size), span(gradient, at, size), span(out, at, size)
        for k in range(size):
            direction[k] = weight * g[k]
        for j in range(len(step_weights)):
            b, c = kind(step_weights[j]), kind(change_weights[j])
            if b == zero and c == zero:  # a slot not in use
                continue
            s, y = span(steps, j * n * r + at, size), span(changes, j * n * r + at, size)
            for k in range(size):
                direction[k] += b * s[k] + c * y[k]
        for k in range(size):
            moved = max(u[k] + direction[k], zero)
            target[k] = moved if u[k] > zero or g[k] < zero else u[k]
