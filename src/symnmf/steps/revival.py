"""A zero column is a critical point that nothing leads out of; the residual shows a way."""

from __future__ import annotations

import numpy as np

from symnmf.objectives import MatrixObjective, Objective
from symnmf.state import Point

CANDIDATES = 8  # columns that are tried at once
STEPS = 20  # of the projected power method
NONE = np.empty(0, np.intp)  # asked for in every step, and hardly ever anything else
WORTH = 1e-10  # of ||X||_F: a smaller <R v, v> is rounding


def dead_columns(U: Point) -> np.ndarray:
    """Return the columns of U that are zero.

    U^T U may have been carried along a line, which leaves rounding where a column became zero. So
    columns are looked at themselves where its diagonal is as small as that.
    """
    squares = U.gram.diagonal()
    rounding = np.sqrt(np.finfo(U.ops.dtype(U.values)).eps)
    if squares.min() > rounding * squares.max():
        return NONE
    return np.flatnonzero(U.ops.column_sums(U.values) == 0.0)


def column_from_residual(f: Objective, U: Point) -> np.ndarray | None:
    """Return a column v >= 0 that lowers f in place of a zero one, or None where none is found.

    With R = X - U U^T, adding v changes f by -<R v, v> + ||v||^4 / 2; the best multiple of a unit
    vector with q = <R v, v> > 0 is sqrt(q) v, and lowers f by q^2 / 2. The unit vector comes from
    the projected power method on R, from the rows with most left to explain. A handful of products
    with a few columns, on the rare occasion. A term l1 sum(v) may cost more than the column brings;
    then it stays zero. A column that is returned lowers f by at least (WORTH ||X||_F)^2 / 2, so
    that a run finds finitely many.
    """
    if not isinstance(f, MatrixObjective):
        return None
    n = f.shape[0]

    def residual(V: np.ndarray) -> np.ndarray:
        return f.residual_times_array(U.values, U.values, V)

    rows = np.argsort(-residual(np.ones((n, 1)))[:, 0], kind="stable")[: CANDIDATES - 1]
    single = np.zeros((n, len(rows)))
    single[rows, np.arange(len(rows))] = 1.0
    V = np.hstack([np.ones((n, 1)), single + np.maximum(residual(single), 0.0) / f.norm])
    best = 0.5 * (WORTH * f.norm) ** 2
    column, price = None, f.term_slope
    for _ in range(STEPS):
        V /= np.maximum(np.linalg.norm(V, axis=0), np.finfo(float).tiny)
        image = residual(V)
        quotients = np.sum(V * image, axis=0)
        for quotient, v in zip(quotients, V.T, strict=True):
            length, gain = _best_length(float(quotient), price * float(v.sum()))
            if gain > best:
                best, column = gain, length * v
        # without the shift the method would follow a large negative eigenvalue of R
        V = np.maximum(image + np.maximum(-quotients, 0.0) * V, 0.0)
    return column


def _best_length(quotient: float, price: float) -> tuple[float, float]:
    """Return the t >= 0 with the least t^4 / 2 - quotient t^2 + price t, and how much it gains."""
    if quotient <= 0.0:
        return 0.0, 0.0
    t = np.sqrt(quotient)
    if price > 0.0:
        # the largest zero of 2 t^3 - 2 quotient t + price, if there is any above 0
        cosine = -0.75 * price * np.sqrt(3.0 / quotient) / quotient
        if cosine < -1.0:
            return 0.0, 0.0
        t = 2.0 * np.sqrt(quotient / 3.0) * np.cos(np.arccos(cosine) / 3.0)
    return float(t), float(quotient * t**2 - t**4 / 2.0 - price * t)
