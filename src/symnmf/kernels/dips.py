"""How far a sample is from having one mode: Hartigan's dip, as he and Hartigan describe it."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled


@compiled()
def hull(x, first, last, raised, sign, out, corner):  # type: ignore[no-untyped-def]
    """Write the convex minorant (``sign`` 1) or concave majorant (-1) of a step function.

    Its points are (x_i, i + raised) for i from ``first`` to ``last``; ``corner`` marks vertices.
    """
    stack = np.empty(last - first + 1, np.int64)
    size = 0
    for i in range(first, last + 1):
        while size and x[i] == x[stack[size - 1]] and sign < 0:  # the higher of two at one place
            size -= 1
        if size and x[i] == x[stack[size - 1]]:
            continue
        while size > 1:
            a, b = stack[size - 2], stack[size - 1]
            if sign * ((b - a) * (x[i] - x[b]) - (i - b) * (x[b] - x[a])) < 0.0:
                break
            size -= 1
        stack[size] = i
        size += 1
    for i in range(first, last + 1):
        corner[i] = False
    at = 0
    for i in range(first, last + 1):
        while at + 1 < size - 1 and x[stack[at + 1]] <= x[i]:
            at += 1
        a, b = stack[at], stack[min(at + 1, size - 1)]
        rise = (b - a) / (x[b] - x[a]) if x[b] > x[a] else 0.0
        out[i] = a + raised + rise * (x[i] - x[a])
    for k in range(size):
        corner[stack[k]] = True


@compiled()
def dip(x):  # type: ignore[no-untyped-def]
    """Return the dip of sorted values: the distance to the nearest unimodal distribution."""
    n = len(x)
    below, above = np.empty(n), np.empty(n)
    lower, upper = np.empty(n, np.bool_), np.empty(n, np.bool_)
    first, last, widest = 0, n - 1, 1.0
    while True:
        hull(x, first, last, 0.0, 1.0, below, lower)
        hull(x, first, last, 1.0, -1.0, above, upper)
        gap, place = -1.0, first
        for i in range(first, last + 1):
            if (lower[i] or upper[i]) and above[i] - below[i] > gap:
                gap, place = above[i] - below[i], i
        if gap <= widest:
            break
        left, right = place, place
        while not lower[left]:
            left -= 1
        while not upper[right]:
            right += 1
        for i in range(first, left + 1):
            widest = max(widest, i + 1.0 - below[i])
        for i in range(right, last + 1):
            widest = max(widest, above[i] - i)
        if left == first and right == last:
            break
        first, last = left, right
    return widest / (2.0 * n)
