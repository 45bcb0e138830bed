"""Passes over tall factors for line searches and Gauss-Newton steps, summed in float64.

Rows are worked on in blocks that stay in cache through all that is done to them. Within a block
they are one flat span, so that loops run in SIMD lanes. A kernel does rows ``begin..end`` and
returns its sums over them, so that threads may share the rows.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled
from symnmf.kernels.dense_products import multiply, multiply_rows, sum_over_rows
from symnmf.kernels.spans import span


@compiled(fastmath=REORDER)
def direction_rows(
    U: np.ndarray,
    product: np.ndarray,
    Z: np.ndarray,
    image: np.ndarray,
    begin: int,
    end: int,
) -> np.ndarray:
    """Turn Z into D = Z - U and ``image`` = X Z into X D, where ``product`` is X U.

    Return <X U, D>, <X D, D>, and the entries of U^T D and of D^T D.
    """
    r = U.shape[1]
    size = r * r
    sums, added = np.zeros(2 + 2 * size), np.empty(size, U.dtype)
    slope, bend = 0.0, 0.0
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        at, count = first * r, rows * r
        u, xu = span(U, at, count), span(product, at, count)
        z, xz = span(Z, at, count), span(image, at, count)
        for k in range(count):
            d = z[k] - u[k]
            xd = xz[k] - xu[k]
            z[k] = d
            xz[k] = xd
            slope += np.float64(xu[k]) * np.float64(d)
            bend += np.float64(xd) * np.float64(d)
        sum_over_rows(u, z, added, rows, r)
        for k in range(size):
            sums[2 + k] += added[k]
        sum_over_rows(z, z, added, rows, r)
        for k in range(size):
            sums[2 + size + k] += added[k]
    sums[0], sums[1] = slope, bend
    return sums


@compiled(fastmath=REORDER)
def couple(
    moment: np.ndarray,
    vectors: np.ndarray,
    values: np.ndarray,
    shift: float,
    coupling: np.ndarray,
) -> None:
    r"""Write N to ``coupling``: D = V (G + shift I)^-1 + U Q N solves D G + U D^T U + shift D = V.

    ``moment`` is (U Q)^T V, where G = Q diag(l) Q^T. With B = (U Q)^T V Q the equation falls into
    pairs of entries, and

    .. math:: (N Q)_{ij} = \frac{l_j B_{ij} / (l_j + shift) - B_{ji}}{shift (l_i + l_j + shift)}.
    """
    r = len(values)
    B, N, turned = np.empty(r * r), np.empty(r * r), span(vectors, 0, r * r)
    multiply_rows(span(moment, 0, r * r), turned, B, r, r)
    for i in range(r):
        for j in range(r):
            own = values[j] / (values[j] + shift) * B[i * r + j]
            N[j * r + i] = (own - B[j * r + i]) / (shift * (values[i] + values[j] + shift))
    multiply_rows(turned, N, B, r, r)  # N is transposed, and so is B
    for i in range(r):
        for j in range(r):
            coupling[i, j] = B[j * r + i]


@compiled(fastmath=REORDER)
def relax_rows(
    U: np.ndarray,
    residual: np.ndarray,
    basis: np.ndarray,
    inverse: np.ndarray,
    moment: np.ndarray,
    vectors: np.ndarray,
    values: np.ndarray,
    shift: float,
    weight: float,
    relaxation: float,
    Z: np.ndarray,
    dual: np.ndarray,
    steps: int,
    begin: int,
    end: int,
) -> np.ndarray:
    """Do steps of alternating directions on Z and ``dual``: several only where all rows are given.

    D = pull inverse + basis coupling is the free minimiser, where pull = R + weight (Z - U - dual),
    ``inverse`` is (G + shift I)^-1 and ``moment`` basis^T pull. Z becomes the nearest nonnegative
    factor to its (relaxed) end U + D and ``dual`` what the bound holds back. Return basis^T pull
    for the next step.
    """
    r = U.shape[1]
    coupling, added = np.empty((r, r), U.dtype), np.empty(r * r, U.dtype)
    pull, step = np.empty(BLOCK * r, U.dtype), np.empty(BLOCK * r, U.dtype)
    turned = np.empty(BLOCK * r, U.dtype)
    back, across = span(inverse, 0, r * r), span(coupling, 0, r * r)
    kind = U.dtype.type
    w, a, b, zero = kind(weight), kind(relaxation), kind(1.0 - relaxation), kind(0.0)
    for _ in range(steps):
        couple(moment, vectors, values, shift, coupling)
        moment = np.zeros((r, r))
        total = span(moment, 0, r * r)
        for first in range(begin, end, BLOCK):
            rows = min(BLOCK, end - first)
            at, size = first * r, rows * r
            u, held, q = span(U, at, size), span(residual, at, size), span(basis, at, size)
            z, lam = span(Z, at, size), span(dual, at, size)
            for k in range(size):
                pull[k] = held[k] + w * (z[k] - u[k] - lam[k])
            multiply_rows(pull, back, step, rows, r)
            multiply_rows(q, across, turned, rows, r)
            for k in range(size):
                y = a * (u[k] + (step[k] + turned[k])) + b * z[k] + lam[k]
                z[k] = max(y, zero)
                lam[k] = min(y, zero)
                pull[k] = held[k] + w * (z[k] - u[k] - lam[k])
            sum_over_rows(q, pull, added, rows, r)
            for k in range(r * r):
                total[k] += added[k]
    return moment


@compiled()
def cross_rows(A: np.ndarray, B: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Return A^T B over rows ``begin..end``; float32 sums stay short before they are added up."""
    a, b = A.shape[1], B.shape[1]
    sums, added = np.zeros((a, b)), np.empty(a * b, A.dtype)
    total = span(sums, 0, a * b)
    for first in range(begin, end, BLOCK):
        rows = min(BLOCK, end - first)
        left, right = span(A, first * a, rows * a), span(B, first * b, rows * b)
        multiply(left, right, added, a, b, rows, 1, a)
        for k in range(a * b):
            total[k] += added[k]
    return sums
