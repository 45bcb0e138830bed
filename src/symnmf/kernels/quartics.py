"""f along a line in U, of degree 4: its coefficients, its minimum, and U^T U on the way."""

from __future__ import annotations

import math

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled

POLISH = 60  # halvings that exhaust a double between 0 and 1; Newton needs a handful


@compiled(fastmath=REORDER)
def quartic_sums(
    gram: np.ndarray, cross: np.ndarray, length: np.ndarray
) -> tuple[float, float, float, float]:
    """Return <G, S>, ||S||^2 / 2 + <G, K>, <S, K> and ||K||^2 / 2.

    G = U^T U is ``gram`` and K = D^T D is ``length``. S = C + C^T with C = U^T D, ``cross``.
    """
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for i in range(len(gram)):
        for j in range(len(gram)):
            g, s, k = gram[i, j], cross[i, j] + cross[j, i], length[i, j]
            first += g * s
            second += 0.5 * s * s + g * k
            third += s * k
            fourth += 0.5 * k * k
    return first, second, third, fourth


@compiled()
def gram_along(gram: np.ndarray, cross: np.ndarray, length: np.ndarray, t: float) -> np.ndarray:
    """Return (U + t D)^T (U + t D) = G + t S + t^2 K, see :func:`quartic_sums`."""
    r = len(gram)
    following = np.empty((r, r))
    for i in range(r):
        for j in range(r):
            mixed = cross[i, j] + cross[j, i]
            following[i, j] = gram[i, j] + t * mixed + t * t * length[i, j]
    return following


@compiled(inner=True)
def _value(c1: float, c2: float, c3: float, c4: float, t: float) -> float:
    return t * (c1 + t * (c2 + t * (c3 + t * c4)))


@compiled(inner=True)
def _slope(c1: float, c2: float, c3: float, c4: float, t: float) -> float:
    return c1 + t * (2.0 * c2 + t * (3.0 * c3 + t * 4.0 * c4))


@compiled(inner=True)
def _root(c1: float, c2: float, c3: float, c4: float, low: float, high: float) -> float:
    """Return the zero of the derivative between ``low``, where it is negative, and ``high``.

    Newton's method, replaced by a halving wherever it would leave the bracket.
    """
    t = 0.5 * (low + high)
    for _ in range(POLISH):
        slope = _slope(c1, c2, c3, c4, t)
        if slope < 0.0:
            low = t
        elif slope > 0.0:
            high = t
        else:
            return t
        bend = 2.0 * c2 + t * (6.0 * c3 + t * 12.0 * c4)
        following = t - slope / bend if bend != 0.0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - t) <= 4e-16 * abs(t):
            return following
        t = following
    return t


@compiled()
def quartic_step(c1: float, c2: float, c3: float, c4: float) -> tuple[float, float]:
    """Minimise q(t) = c1 t + c2 t^2 + c3 t^3 + c4 t^4 over [0, 1]; return t and q(t).

    Between the zeros of q'' the derivative is monotone, so a change of its sign from - to +
    brackets exactly one minimum. The value returned is never above 0 = q(0).
    """
    # zeros of q''/2 = c2 + 3 c3 t + 6 c4 t^2 without cancellation; c4 >= 0 for our quartics
    first, second = 2.0, 2.0
    below = 9.0 * c3 * c3 - 24.0 * c4 * c2
    if below > 0.0:
        half = -0.5 * (3.0 * c3 + math.copysign(math.sqrt(below), c3))
        if c4 != 0.0:
            first = half / (6.0 * c4)
        if half != 0.0:
            second = c2 / half
    best, lowest = 0.0, 0.0
    value = _value(c1, c2, c3, c4, 1.0)
    if value < lowest:
        best, lowest = 1.0, value
    low = 0.0
    for cut in (min(first, second), max(first, second), 1.0):
        if not 0.0 < cut <= 1.0:
            continue
        if _slope(c1, c2, c3, c4, low) < 0.0 < _slope(c1, c2, c3, c4, cut):
            t = _root(c1, c2, c3, c4, low, cut)
            value = _value(c1, c2, c3, c4, t)
            if value < lowest:
                best, lowest = t, value
        low = cut
    return best, lowest
