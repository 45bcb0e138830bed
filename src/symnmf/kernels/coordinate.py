"""Exact coordinate descent, one row of U at a time (Vandaele et al., 2016)."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled
from symnmf.kernels.spans import span

#: No root of x^3 + a x + b with |a|, |b| <= 1 lies above it: x^3 = x + 1.
ABOVE_ALL_ROOTS = 1.33

#: Newton's method ends where a step changes an entry by less than this part of it. The next step
#: would change it by about the square.
SETTLED = 1e-9

#: How many times -b is x^3 + a x at a guess, at most, for Newton's method to begin there: its first
#: step leads that much too far up, and each one after it a third of the way down.
TOO_FAR = 1e30


@compiled()
def best_entry(a: float, b: float, near: float) -> float:
    """Return the minimiser over x >= 0 of x^4/4 + a x^2/2 + b x; ``near`` is a guess, or 0.

    Stationary points are the roots of x^3 + a x + b. They sum to zero, so of three real ones the
    smallest is negative and the middle one a maximum: only the largest can beat x = 0. For x > 0
    the cubic is convex. So Newton's method falls towards its largest root from any point above
    it, and with only one root (a > 0 > b) from its first step on.
    """
    if a >= 0.0 and b >= 0.0:
        return 0.0
    if a > 0.0 and near > 0.0 and -b <= TOO_FAR * (near * (near * near + a)):
        x, unit = near, 1.0
    else:
        # in units in which the larger coefficient is 1, cubes neither overflow nor underflow
        unit = max(np.sqrt(abs(a)), abs(b) ** (1.0 / 3.0))
        a = a / unit / unit
        b = b / unit / unit / unit  # one at a time: the cube of a tiny unit is 0
        x = ABOVE_ALL_ROOTS
    for _ in range(200):
        step = ((x * x + a) * x + b) / (3.0 * x * x + a)
        x -= step
        # a root with 3 x^2 <= -2 a is beaten by x = 0, and below 0 there is none to come
        if b >= 0.0 and (x <= 0.0 or 3.0 * x * x <= -2.0 * a):
            return 0.0
        if abs(step) <= SETTLED * x:
            break
    return x * unit


@compiled(inner=True, fastmath={"contract", "nsz"})
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
    stay so cost next to nothing. ``scratch`` holds 3 r numbers.
    """
    r = U.shape[1]
    own = span(U, i * r, r)
    old, row, curved = span(scratch, 0, r), span(scratch, r, r), span(scratch, 2 * r, r)
    norm = 0.0
    for j in range(r):
        h = np.float64(own[j])
        old[j] = h
        row[j] = h
        curved[j] = 0.0  # G u, with the G from before this row moved
        norm += h * h
    for j in range(r):
        h = old[j]
        if h != 0.0:
            column = span(gram, j * r, r)
            for k in range(r):
                curved[k] += h * column[k]
    overlap = norm  # <old, row>
    for j in range(r):
        h = row[j]
        column = span(gram, j * r, r)
        others = column[j] - old[j] * old[j]
        a = others + norm - h * h - diagonal
        b = curved[j] - overlap * old[j] - others * h - product[j]
        if h == 0.0 and a >= 0.0 and b >= 0.0:
            continue
        new = np.float64(U.dtype.type(best_entry(a, b, h)))
        step = new - h
        if step == 0.0:
            continue
        for k in range(r):
            curved[k] += step * column[k]
        norm += step * (new + h)
        overlap += step * old[j]
        row[j] = new
        own[j] = U.dtype.type(new)
    for j in range(r):
        before, after = old[j], row[j]
        if before != 0.0 or after != 0.0:
            column = span(gram, j * r, r)
            for k in range(r):
                column[k] += after * row[k] - before * old[k]


@compiled(fastmath={"contract", "nsz"})
def sweep_csr(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    U: np.ndarray,
    gram: np.ndarray,
    room: np.ndarray,
) -> None:
    """Go through all rows of a CSR matrix.

    A row of X U is computed on arrival, so rows that moved since the last sweep never have to
    pass their changes on. ``room`` holds 4 r numbers: a kernel that makes arrays itself takes
    longer to compile and to load.
    """
    r = U.shape[1]
    product, scratch = span(room, 0, r), span(room, r, 3 * r)
    for i in range(U.shape[0]):
        diagonal = 0.0
        for j in range(r):
            product[j] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            k = np.int64(indices[p])
            x = np.float64(values[p])
            if k == i:
                diagonal = x
                continue
            other = span(U, k * r, r)
            for j in range(r):
                product[j] += x * np.float64(other[j])
        minimise_row(i, diagonal, product, U, gram, scratch)


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
    scratch = np.empty(3 * r)
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
