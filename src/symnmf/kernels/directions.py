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
from symnmf.kernels.spans import multiply, span


@compiled(fastmath=REORDER)
def direction_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Turn Z into D = Z - U and ``image`` = X Z into X D.

    ``given`` is U, X U, Z, image, room of r^2 and sums: <X U, D>, <X D, D>, U^T D and D^T D.
    """
    U, product, Z, image, room, sums = given
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
        multiply("tn", r, r, rows, u, z, added)
        for k in range(r * r):
            cross[k] += added[k]
        multiply("tn", r, r, rows, z, z, added)
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

    ``given`` is U, X U, G = U^T U, its eigenvectors, ``dual``, ``weight``; ``basis``, which becomes
    U times the eigenvectors, and with R = X U - U G ``fixed``, R - weight U, and ``pull``,
    R - weight dual; room of two blocks of rows and r^2; and sums, basis^T pull.
    """
    U, product, gram, vectors, dual, weight, basis, fixed, pull, room, sums = given
    r = U.shape[1]
    curved = span(room, part * room.shape[1], BLOCK * r)
    added = span(room, part * room.shape[1] + 2 * BLOCK * r, r * r)
    total = span(sums, part * r * r, r * r)
    for k in range(r * r):
        total[k] = 0.0
    small, turn = span(gram, 0, r * r), span(vectors, 0, r * r)
    w = U.dtype.type(weight)
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        at, size = first * r, rows * r
        u, xu, q = span(U, at, size), span(product, at, size), span(basis, at, size)
        held, lam, v = span(fixed, at, size), span(dual, at, size), span(pull, at, size)
        multiply("nn", rows, r, r, u, turn, q)
        multiply("nn", rows, r, r, u, small, curved)
        for k in range(size):
            residual = xu[k] - curved[k]
            held[k] = residual - w * u[k]
            v[k] = residual - w * lam[k]
        multiply("tn", r, r, rows, q, v, added)
        for k in range(r * r):
            total[k] += added[k]


@compiled(fastmath=REORDER)
def couple_into(
    coupling: np.ndarray, moment: np.ndarray, vectors: np.ndarray, values: np.ndarray, shift: float
) -> None:
    r"""Write N with D = V (G + shift I)^-1 + U Q N solving D G + U D^T U + shift D = V.

    ``moment`` is (U Q)^T V, where G = Q diag(l) Q^T. With B = (U Q)^T V Q the equation falls into
    pairs of entries, and

    .. math:: (N Q)_{ij} = \frac{l_j B_{ij} / (l_j + shift) - B_{ji}}{shift (l_i + l_j + shift)}.
    """
    r = len(values)
    B, N, turned = np.empty(r * r), np.empty(r * r), span(vectors, 0, r * r)
    multiply("nn", r, r, r, moment, turned, B)
    for i in range(r):
        for j in range(r):
            own = values[j] / (values[j] + shift) * B[i * r + j]
            N[i * r + j] = (own - B[j * r + i]) / (shift * (values[i] + values[j] + shift))
    multiply("nt", r, r, r, N, turned, B)
    found = span(coupling, 0, r * r)
    for k in range(r * r):
        found[k] = coupling.dtype.type(B[k])


@compiled(fastmath=REORDER)
def relax_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Do one step of alternating directions.

    D = pull inverse + basis coupling is the free minimiser, Z the nearest nonnegative factor to
    its (relaxed) end U + D and ``dual`` what the bound holds back. ``given`` is U, basis, fixed,
    (G + shift I)^-1, coupling, weight, relaxation, pull, Z, dual; room of two blocks of rows and
    r^2; and sums, basis^T pull for the next step.
    """
    U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, room, sums = given
    r = U.shape[1]
    start = part * room.shape[1]
    left, right = span(room, start, BLOCK * r), span(room, start + BLOCK * r, BLOCK * r)
    added, total = span(room, start + 2 * BLOCK * r, r * r), span(sums, part * r * r, r * r)
    for k in range(r * r):
        total[k] = 0.0
    back, across = span(inverse, 0, r * r), span(coupling, 0, r * r)
    kind = U.dtype.type
    w, a, b = kind(weight), kind(relaxation), kind(1.0 - relaxation)
    zero = kind(0.0)
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        at, size = first * r, rows * r
        v, q = span(pull, at, size), span(basis, at, size)
        u, held = span(U, at, size), span(fixed, at, size)
        z, lam = span(Z, at, size), span(dual, at, size)
        multiply("nn", rows, r, r, v, back, left)
        multiply("nn", rows, r, r, q, across, right)
        for k in range(size):
            y = a * (u[k] + left[k] + right[k]) + b * z[k] + lam[k]
            z[k] = max(y, zero)
            lam[k] = min(y, zero)
            v[k] = held[k] + w * abs(y)
        multiply("tn", r, r, rows, q, v, added)
        for k in range(r * r):
            total[k] += added[k]


@compiled()
def relax(given: Any, vectors: np.ndarray, values: np.ndarray, shift: float, steps: int) -> None:
    """Do ``steps`` steps over all rows at once, where one thread does them all.

    ``given`` is that of :func:`relax_rows`; its sums are those of :func:`prepare_rows`.
    """
    n = given[0].shape[0]
    for _ in range(steps):
        couple_into(given[4], given[11], vectors, values, shift)
        relax_rows(given, 0, 0, n)
