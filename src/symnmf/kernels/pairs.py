"""Limited-memory BFGS on tall factors under U >= 0: two passes and a few dot products.

The history keeps, in rings of m slots, steps s_j and the changes y_j of the gradient they made,
and the inner products <s_i, y_j> and <y_i, y_j>, of which one row and column are new each time.
The usual two loops then run on coefficients alone, and the direction is formed in one pass.
"""

from __future__ import annotations

import math

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled

# rows of what `gradient_rows` returns: dot products with each slot, then two numbers
STEP_CHANGE, CHANGE_STEP, CHANGE_CHANGE, STEP_SLOPE, CHANGE_SLOPE, NUMBERS = range(6)


@compiled(fastmath=REORDER)
def gradient_rows(
    U: np.ndarray,
    product: np.ndarray,
    gram: np.ndarray,
    level: float,
    gradient: np.ndarray,
    steps: np.ndarray,
    changes: np.ndarray,
    newest: int,
    slots: np.ndarray,
    begin: int,
    end: int,
) -> np.ndarray:
    """Bring ``gradient`` = U G - X U, half of grad f, up to date and note how it changed.

    If ``newest`` >= 0, ``steps[newest]`` is the step made since ``gradient`` was last computed,
    and ``changes[newest]`` is written: zero where U did not move, for there a bound stops the
    step and not curvature. Return the dot products of s and y of the newest slot with those of
    ``slots``, and of these with the gradient g on the free entries {U > 0 or g < 0}; then the
    squared length of the newest s, and <g, U - max(U - g / level, 0)>.
    """
    r = U.shape[1]
    depth = steps.shape[0]
    sums = np.zeros((6, max(depth, 2)))
    scale = 1.0 / level if level > 0.0 else 0.0
    slope = np.empty(BLOCK * r, U.dtype)
    room = np.empty((BLOCK, r), U.dtype)
    zero = U.dtype.type(0)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        size = (last - first) * r
        np.dot(U[first:last], gram, room[: last - first])
        curved = room[: last - first].reshape(-1)
        u, xu = U[first:last].reshape(-1), product[first:last].reshape(-1)
        g = gradient[first:last].reshape(-1)
        s, y = slope[:size], slope[:size]
        if newest >= 0:
            s, y = steps[newest, first:last].reshape(-1), changes[newest, first:last].reshape(-1)
            length = 0.0
            for k in range(size):
                y[k] = curved[k] - xu[k] - g[k] if s[k] != zero else zero
                length += np.float64(s[k]) * np.float64(s[k])
            sums[NUMBERS, 0] += length
        residual = 0.0
        for k in range(size):
            value = curved[k] - xu[k]
            g[k] = value
            before, move = np.float64(u[k]), scale * np.float64(value)
            held = before if before < move else move  # u - max(u - move, 0)
            residual += np.float64(value) * held
            slope[k] = value if u[k] > zero or value < zero else zero
        sums[NUMBERS, 1] += residual
        for j in slots:
            other_s = steps[j, first:last].reshape(-1)
            other_y = changes[j, first:last].reshape(-1)
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
    # a handful of numbers: plain ones are faster than arrays, and compiling would take longer
    sy, yy = step_change.tolist(), change_change.tolist()
    slots = order.tolist()
    along: dict[int, float] = {}  # alpha of the first loop
    for place, i in reversed(list(enumerate(slots))):
        later = sum(along[j] * sy[i][j] for j in slots[place + 1 :])
        along[i] = _over(float(step_slope[i]) - later, sy[i][i])
    last = slots[-1]
    scale = _over(sy[last][last], yy[last][last])
    steps, changes = np.zeros(len(step_slope)), np.zeros(len(step_slope))
    for place, i in enumerate(slots):
        value = scale * (float(change_slope[i]) - sum(along[j] * yy[i][j] for j in slots))
        value -= sum(float(steps[j]) * sy[j][i] for j in slots[:place])
        steps[i] = _over(value, sy[i][i]) - along[i]
        changes[i] = scale * along[i]
    return -scale, steps, changes


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
    """Write max(U + direction, 0) to rows ``begin..end`` of ``out``; entries not free stay.

    ``out`` may be one of the slots.
    """
    r = U.shape[1]
    kind = U.dtype.type
    zero = kind(0)
    direction = np.empty(BLOCK * r, U.dtype)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        size = (last - first) * r
        u, g = U[first:last].reshape(-1), gradient[first:last].reshape(-1)
        for k in range(size):
            direction[k] = kind(own) * g[k]
        for j in range(len(step_weights)):
            b, c = kind(step_weights[j]), kind(change_weights[j])
            if b == zero and c == zero:  # a slot not in use
                continue
            s, y = steps[j, first:last].reshape(-1), changes[j, first:last].reshape(-1)
            for k in range(size):
                direction[k] += b * s[k] + c * y[k]
        target = out[first:last].reshape(-1)
        for k in range(size):
            moved = max(u[k] + direction[k], zero)
            target[k] = moved if u[k] > zero or g[k] < zero else u[k]
