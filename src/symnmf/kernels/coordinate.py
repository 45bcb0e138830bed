"""Exact coordinate descent, one row of U at a time (Vandaele et al., 2016)."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled


@compiled()
def best_entry(a: float, b: float) -> float:
    """Return the minimiser over x >= 0 of x^4/4 + a x^2/2 + b x.

    Stationary points are the roots of x^3 + a x + b. They sum to zero, so of three real ones the
    smallest is negative and the middle one a maximum: only the largest can beat x = 0.
    """
    if a >= 0.0 and b >= 0.0:
        return 0.0
    # in units in which the larger coefficient is 1, cubes neither overflow nor underflow
    unit = max(np.sqrt(abs(a)), np.cbrt(abs(b)))
    a = a / unit / unit
    b = b / unit / unit / unit  # one at a time: the cube of a tiny unit is 0
    discriminant = 4.0 * a * a * a + 27.0 * b * b
    if discriminant <= 0.0:
        angle = np.arctan2(np.sqrt(-discriminant / 108.0), -b / 2.0)
        x = 2.0 * np.sqrt(-a / 3.0) * np.cos(angle / 3.0)
    elif b >= 0.0:  # the only root is not positive
        return 0.0
    else:
        # Cardano's two cube roots, without taking the difference of near equals
        larger = np.cbrt((-b + np.sqrt(discriminant / 27.0)) / 2.0)
        smaller = -a / (3.0 * larger)
        if a > 0.0:
            x = -b / (larger * larger + smaller * smaller + a / 3.0)
        else:
            x = larger + smaller
    slope = 3.0 * x * x + a
    if slope > 0.0:  # one step of Newton's method for the digits the cosine lost
        x -= (x * x * x + a * x + b) / slope
    if x <= 0.0 or x * (x * x * x / 4.0 + a * x / 2.0 + b) >= 0.0:
        return 0.0
    return x * unit


@compiled()
def coordinate_row(
    i: int, indices: np.ndarray, values: np.ndarray, U: np.ndarray, gram: np.ndarray
) -> None:
    """Minimise f over each entry of row ``i`` of U in turn, in place.

    ``indices`` and ``values`` are row ``i`` of X, and ``gram`` is U^T U in float64, which is kept
    up to date. The row of X U is computed on arrival, so rows that moved since the last sweep
    never have to pass their changes on.
    """
    r = U.shape[1]
    row = np.empty(r)
    product = np.zeros(r)
    norm = 0.0
    for j in range(r):
        row[j] = U[i, j]
        norm += row[j] * row[j]
    diagonal = 0.0
    for p in range(len(indices)):
        k = indices[p]
        x = np.float64(values[p])
        if k == i:
            diagonal = x
        for j in range(r):
            product[j] += x * U[k, j]
    for j in range(r):
        h = row[j]
        a = gram[j, j] + norm - 2.0 * h * h - diagonal
        b = -product[j] - h * h * h - h * a
        for k in range(r):
            b += row[k] * gram[j, k]
        new = np.float64(U.dtype.type(best_entry(a, b)))
        step = new - h
        if step == 0.0:
            continue
        square = (new - h) * (new + h)
        for k in range(r):
            gram[j, k] += step * row[k]
            gram[k, j] = gram[j, k]
        gram[j, j] += square - step * h
        norm += square
        product[j] += step * diagonal
        row[j] = new
        U[i, j] = new
