"""Passes over tall factors for line searches and Gauss-Newton steps, summed in float64.

Rows are worked on in blocks that stay in cache through all that is done to them. Within a block
they are one flat span, so that loops run in SIMD lanes. As all passes that threads may share, a
kernel takes its arguments as a tuple, then which part of the rows it does and where that begins
and ends; ``room`` and ``sums`` have a row for each part, to work in and to add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled
from symnmf.kernels.small_products import multiply_rows, multiply_rows_twice, sum_over_rows
from symnmf.kernels.spans import span


@compiled(fastmath=REORDER)
def direction_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Turn Z into D = Z - U and ``image`` = X Z into X D.

    ``given`` is U, X U, Z, image, the address of products, room of r^2 and sums: <X U, D>,
    <X D, D>, U^T D and D^T D.
    """
    U, product, Z, image, address, room, sums = given
    r = U.shape[1]
    slope, bend = 0.0, 0.0
    added = span(room, part * r * r, r * r)
    start = part * sums.shape[1]
    cross, length = span(sums, start + 2, r * r), span(sums, start + 2 + r * r, r * r)
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        at, size = first * r, rows * r
        u, xu = span(U, at, size), span(product, at, size)
        z, xz = span(Z, at, size), span(image, at, size)
        for k in range(size):
            d = z[k] - u[k]
            xd = xz[k] - xu[k]
            z[k] = d
            xz[k] = xd
            slope += np.float64(xu[k]) * np.float64(d)
            bend += np.float64(xd) * np.float64(d)
        sum_over_rows(address, u, z, added, rows, r, r)
        for k in range(r * r):
            cross[k] += added[k]
        sum_over_rows(address, z, z, added, rows, r, r)
        for k in range(r * r):
            length[k] += added[k]
    sums[part, 0] = slope
    sums[part, 1] = bend


@compiled(fastmath=REORDER)
def advance_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Add ``step`` D to U and X D (``image``) times ``step`` to X U; D becomes the step made.

    ``given`` is U, X U, D, image, step.
    """
    U, product, D, image, step = given
    at, size = begin * U.shape[1], (end - begin) * U.shape[1]
    u, xu = span(U, at, size), span(product, at, size)
    d, xd = span(D, at, size), span(image, at, size)
    t, zero = U.dtype.type(step), U.dtype.type(0)
    for k in range(size):
        d[k] *= t
        # rounding could leave a crumb below zero where the step goes all the way to it
        u[k] = max(u[k] + d[k], zero)
        xu[k] += t * xd[k]


@compiled(fastmath=REORDER)
def prepare_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Write what the steps of :func:`relax_rows` start from.

    ``given`` is U, X U, G = U^T U, its eigenvectors, ``dual``, ``weight``; ``residual``, which
    becomes R = X U - U G, and ``basis``, which becomes U times the eigenvectors; the address of
    products; room of two blocks of rows and r^2; and sums, basis^T (R - weight dual).
    """
    U, product, gram, vectors, dual, weight, residual, basis, address, room, sums = given
    r = U.shape[1]
    start = part * room.shape[1]
    pull, added = span(room, start, BLOCK * r), span(room, start + 2 * BLOCK * r, r * r)
    total = span(sums, part * r * r, r * r)
    for k in range(r * r):
        total[k] = 0.0
    small, turn = span(gram, 0, r * r), span(vectors, 0, r * r)
    w = U.dtype.type(weight)
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        at, size = first * r, rows * r
        u, xu, q = span(U, at, size), span(product, at, size), span(basis, at, size)
        left, lam = span(residual, at, size), span(dual, at, size)
        multiply_rows(address, u, small, left, rows, r, r)
        for k in range(size):
            left[k] = xu[k] - left[k]
            pull[k] = left[k] - w * lam[k]
        multiply_rows(address, u, turn, q, rows, r, r)
        sum_over_rows(address, q, pull, added, rows, r, r)
        for k in range(r * r):
            total[k] += added[k]


@compiled(fastmath=REORDER)
def couple_into(
    address: int,
    coupling: np.ndarray,
    moment: np.ndarray,
    vectors: np.ndarray,
    values: np.ndarray,
    shift: float,
) -> None:
    r"""Write N with D = V (G + shift I)^-1 + U Q N solving D G + U D^T U + shift D = V.

    ``moment`` is (U Q)^T V, where G = Q diag(l) Q^T. With B = (U Q)^T V Q the equation falls into
    pairs of entries, and

    .. math:: (N Q)_{ij} = \frac{l_j B_{ij} / (l_j + shift) - B_{ji}}{shift (l_i + l_j + shift)}.
    """
    r = len(values)
    B, N, turned = np.empty(r * r), np.empty(r * r), span(vectors, 0, r * r)
    multiply_rows(address, span(moment, 0, r * r), turned, B, r, r, r)
    for i in range(r):
        for j in range(r):
            own = values[j] / (values[j] + shift) * B[i * r + j]
            N[j * r + i] = (own - B[j * r + i]) / (shift * (values[i] + values[j] + shift))
    multiply_rows(address, turned, N, B, r, r, r)  # N is transposed, and so is B
    found = span(coupling, 0, r * r)
    for i in range(r):
        for j in range(r):
            found[i * r + j] = coupling.dtype.type(B[j * r + i])


@compiled(fastmath=REORDER)
def relax_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Do one step of alternating directions.

    With Y = Z - U + dual, D = pull inverse + basis coupling is the free minimiser, Z the nearest
    nonnegative factor to its (relaxed) end U + D and ``dual`` what the bound holds back, where
    pull = R + weight (Z - U - dual). ``given`` is U, R, basis, (G + shift I)^-1, coupling, weight,
    relaxation; Y, which becomes Z in the last step; dual, which is read in the first step and
    written in the last; which step this is, of how many; the address of products; room of two
    blocks of rows and r^2; and sums, basis^T pull for the next step.
    """
    (
        U, residual, basis, inverse, coupling, weight, relaxation, Y, dual, place, address, room,
        sums,
    ) = given  # fmt: skip
    r = U.shape[1]
    start = part * room.shape[1]
    pull, step = span(room, start, BLOCK * r), span(room, start + BLOCK * r, BLOCK * r)
    added, total = span(room, start + 2 * BLOCK * r, r * r), span(sums, part * r * r, r * r)
    for k in range(r * r):
        total[k] = 0.0
    back, across = span(inverse, 0, r * r), span(coupling, 0, r * r)
    kind = U.dtype.type
    w, a, b = kind(weight), kind(relaxation), kind(1.0 - relaxation)
    zero = kind(0.0)
    begins, ends = place[0] == 0, place[0] == place[1] - 1
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        at, size = first * r, rows * r
        u, held, q = span(U, at, size), span(residual, at, size), span(basis, at, size)
        y, lam = span(Y, at, size), span(dual, at, size)
        if begins:
            for k in range(size):
                pull[k] = held[k] - w * lam[k]
                y[k] = lam[k]
        else:
            for k in range(size):
                moved, bound = max(y[k], -u[k]), min(y[k] + u[k], zero)
                pull[k] = held[k] + w * (moved - bound)
                y[k] = b * moved + bound
        multiply_rows_twice(address, pull, back, q, across, step, rows, r)
        if ends:
            for k in range(size):
                whole = u[k] + (y[k] + a * step[k])
                y[k] = max(whole, zero)
                lam[k] = min(whole, zero)
            continue
        for k in range(size):
            following = y[k] + a * step[k]
            y[k] = following
            moved, bound = max(following, -u[k]), min(following + u[k], zero)
            pull[k] = held[k] + w * (moved - bound)
        sum_over_rows(address, q, pull, added, rows, r, r)
        for k in range(r * r):
            total[k] += added[k]


@compiled()
def relax(
    given: Any, exact: int, vectors: np.ndarray, values: np.ndarray, shift: float, steps: int
) -> None:
    """Do ``steps`` steps over all rows at once, where one thread does them all.

    ``given`` is that of :func:`relax_rows`; its sums are those of :func:`prepare_rows`. ``exact``
    is the address of products in float64.
    """
    n, place = given[0].shape[0], given[9]
    place[1] = steps
    for number in range(steps):
        place[0] = number
        couple_into(exact, given[4], given[-1], vectors, values, shift)
        relax_rows(given, 0, 0, n)
