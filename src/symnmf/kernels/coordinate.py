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
def _root_near(a: float, b: float, x: float) -> float:
    """Return the root of x^3 + a x + b for a > 0 > b, by Newton's method from ``x`` > 0.

    The cubic is convex and grows for x > 0, so from the first step on the iterates fall towards
    the root; from a nearby ``x`` three steps are the rule.
    """
    for _ in range(200):
        step = ((x * x + a) * x + b) / (3.0 * x * x + a)
        x -= step
        if abs(step) <= 1e-5 * x:  # the next would be the square of it
            break
    return x


@compiled(fastmath={"contract", "nsz"})
def minimise_row(
    i: int,
    diagonal: float,
    product: np.ndarray,
    U: np.ndarray,
    gram: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Minimise f over each entry of row ``i`` of U in turn, in place.

    ``diagonal`` is x_ii, ``product`` is row ``i`` of X U without it, and ``gram`` is U^T U in
    float64, which is kept up to date. With u the row and G_0 the Gram matrix of the others, f is
    1/2 (x_ii - ||u||^2)^2 - 2 <product, u> + <u, G_0 u> and a constant. Entries that are zero and
    stay so cost next to nothing. ``scratch`` is 3 x r.
    """
    r = U.shape[1]
    old, row, curved = scratch[0], scratch[1], scratch[2]
    curved[:] = 0.0  # G u, with the G from before this row moved
    norm = 0.0
    for j in range(r):
        h = np.float64(U[i, j])
        old[j] = h
        row[j] = h
        if h != 0.0:
            norm += h * h
            for k in range(r):
                curved[k] += h * gram[j, k]
    overlap = norm  # <old, row>
    for j in range(r):
        h = row[j]
        others = gram[j, j] - old[j] * old[j]
        a = others + norm - h * h - diagonal
        b = curved[j] - overlap * old[j] - others * h - product[j]
        if h == 0.0 and a >= 0.0 and b >= 0.0:
            continue
        if a > 0.0 and b < 0.0 < h:
            new = np.float64(U.dtype.type(_root_near(a, b, h)))
        else:
            new = np.float64(U.dtype.type(best_entry(a, b)))
        step = new - h
        if step == 0.0:
            continue
        for k in range(r):
            curved[k] += step * gram[j, k]
        norm += step * (new + h)
        overlap += step * old[j]
        row[j] = new
        U[i, j] = new
    for j in range(r):
        before, after = old[j], row[j]
        if before != 0.0 or after != 0.0:
            for k in range(r):
                gram[j, k] += after * row[k] - before * old[k]


@compiled(fastmath={"contract", "nsz"})
def sweep_csr(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, U: np.ndarray, gram: np.ndarray
) -> None:
    """Go through all rows of a CSR matrix.

    A row of X U is computed on arrival, so rows that moved since the last sweep never have to
    pass their changes on.
    """
    r = U.shape[1]
    product = np.empty(r)
    scratch = np.empty((3, r))
    for i in range(U.shape[0]):
        product[:] = 0.0
        diagonal = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            k = indices[p]
            x = np.float64(values[p])
            if k == i:
                diagonal = x
                continue
            for j in range(r):
                product[j] += x * np.float64(U[k, j])
        minimise_row(i, diagonal, product, U, gram, scratch)


@compiled(fastmath={"contract", "nsz"})
def sweep_factors(
    left: np.ndarray, right: np.ndarray, inner: np.ndarray, U: np.ndarray, gram: np.ndarray
) -> None:
    """Go through all rows of X = left right^T; ``inner`` = right^T U in float64 follows."""
    r = U.shape[1]
    product = np.empty(r)
    moved = np.empty(r)
    scratch = np.empty((3, r))
    for i in range(U.shape[0]):
        diagonal = 0.0
        product[:] = 0.0
        for k in range(left.shape[1]):
            x = np.float64(left[i, k])
            diagonal += x * np.float64(right[i, k])
            for j in range(r):
                product[j] += x * inner[k, j]
        for j in range(r):
            moved[j] = -np.float64(U[i, j])
            product[j] += diagonal * moved[j]
        minimise_row(i, diagonal, product, U, gram, scratch)
        for j in range(r):
            moved[j] += np.float64(U[i, j])
        for k in range(right.shape[1]):
            x = np.float64(right[i, k])
            for j in range(r):
                inner[k, j] += x * moved[j]


@compiled(fastmath={"contract", "nsz"})
def sweep_block(
    X: np.ndarray,
    origin: int,
    begin: int,
    end: int,
    product: np.ndarray,
    U: np.ndarray,
    gram: np.ndarray,
) -> None:
    """Go through rows ``begin..end`` of a dense X, of which ``product`` = X U is up to date.

    ``X`` may be a square on the diagonal, whose first row is row ``origin`` of the matrix.
    The products are from before the block; what its rows have moved since is added on arrival.
    """
    r = U.shape[1]
    moved = np.empty((end - begin, r))
    own = np.empty(r)
    scratch = np.empty((3, r))
    for i in range(begin, end):
        diagonal = np.float64(X[i - origin, i - origin])
        for j in range(r):
            own[j] = np.float64(product[i, j]) - diagonal * np.float64(U[i, j])
        for k in range(begin, i):
            x = np.float64(X[i - origin, k - origin])
            for j in range(r):
                own[j] += x * moved[k - begin, j]
        for j in range(r):
            moved[i - begin, j] = -np.float64(U[i, j])
        minimise_row(i, diagonal, own, U, gram, scratch)
        for j in range(r):
            moved[i - begin, j] += np.float64(U[i, j])
