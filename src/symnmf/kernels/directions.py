"""Passes over tall factors for line searches and Gauss-Newton steps, summed in float64.

Rows are worked on in blocks that stay in cache through all that is done to them. Within a block
they are one flat slice: loops of known length from zero run in SIMD lanes, loops over the few
columns of a row do not.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled


@compiled(fastmath=REORDER)
def direction_rows(
    U: np.ndarray,
    product: np.ndarray,
    Z: np.ndarray,
    image: np.ndarray,
    begin: int,
    end: int,
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Turn Z into D = Z - U and ``image`` = X Z into X D.

    Return <X U, D>, <X D, D>, U^T D and D^T D.
    """
    r = U.shape[1]
    slope = 0.0
    bend = 0.0
    cross = np.zeros((r, r))
    length = np.zeros((r, r))
    added = np.empty((r, r), U.dtype)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        u, xu = U[first:last].reshape(-1), product[first:last].reshape(-1)
        z, xz = Z[first:last].reshape(-1), image[first:last].reshape(-1)
        for k in range(len(u)):
            d = z[k] - u[k]
            xd = xz[k] - xu[k]
            z[k] = d
            xz[k] = xd
            slope += np.float64(xu[k]) * np.float64(d)
            bend += np.float64(xd) * np.float64(d)
        np.dot(U[first:last].T, Z[first:last], added)
        cross += added
        np.dot(Z[first:last].T, Z[first:last], added)
        length += added
    return slope, bend, cross, length


@compiled(fastmath=REORDER)
def advance_rows(
    U: np.ndarray,
    product: np.ndarray,
    D: np.ndarray,
    image: np.ndarray,
    step: float,
    begin: int,
    end: int,
) -> None:
    """Add ``step`` D to U and X D (``image``) times ``step`` to X U; D becomes the step made."""
    first, last = begin * U.shape[1], end * U.shape[1]
    u, xu = U.reshape(-1)[first:last], product.reshape(-1)[first:last]
    d, xd = D.reshape(-1)[first:last], image.reshape(-1)[first:last]
    t = D.dtype.type(step)
    for k in range(len(u)):
        d[k] *= t
        # rounding could leave a crumb below zero where the step goes all the way to it
        u[k] = max(u[k] + d[k], D.dtype.type(0))
        xu[k] += t * xd[k]


@compiled(fastmath=REORDER)
def prepare_rows(
    U: np.ndarray,
    product: np.ndarray,
    gram: np.ndarray,
    vectors: np.ndarray,
    dual: np.ndarray,
    weight: float,
    basis: np.ndarray,
    fixed: np.ndarray,
    pull: np.ndarray,
    room: np.ndarray,
    begin: int,
    end: int,
) -> np.ndarray:
    """Write what the steps of :func:`relax_rows` start from; return basis^T pull.

    ``basis`` is U times the eigenvectors of ``gram``; with R = X U - U G, ``fixed`` is
    R - weight U and ``pull`` is R - weight dual. ``room`` holds two blocks of rows.
    """
    total = np.zeros(gram.shape)
    added = np.empty(gram.shape, U.dtype)
    w = U.dtype.type(weight)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        np.dot(U[first:last], vectors, basis[first:last])
        np.dot(U[first:last], gram, room[0, : last - first])
        curved = room[0, : last - first].reshape(-1)
        u, xu = U[first:last].reshape(-1), product[first:last].reshape(-1)
        held, lam = fixed[first:last].reshape(-1), dual[first:last].reshape(-1)
        v = pull[first:last].reshape(-1)
        for k in range(len(u)):
            residual = xu[k] - curved[k]
            held[k] = residual - w * u[k]
            v[k] = residual - w * lam[k]
        np.dot(basis[first:last].T, pull[first:last], added)
        total += added
    return total


@compiled(fastmath=REORDER)
def couple(moment: np.ndarray, vectors: np.ndarray, values: np.ndarray, shift: float) -> np.ndarray:
    r"""Return N with D = V (G + shift I)^-1 + U Q N solving D G + U D^T U + shift D = V.

    ``moment`` is (U Q)^T V, where G = Q diag(l) Q^T. With B = (U Q)^T V Q the equation falls into
    pairs of entries, and

    .. math:: (N Q)_{ij} = \frac{l_j B_{ij} / (l_j + shift) - B_{ji}}{shift (l_i + l_j + shift)}.
    """
    B = np.dot(moment, vectors)
    r = len(values)
    N = np.empty((r, r))
    for i in range(r):
        for j in range(r):
            own = values[j] / (values[j] + shift) * B[i, j]
            N[i, j] = (own - B[j, i]) / (shift * (values[i] + values[j] + shift))
    return np.dot(N, vectors.T)


@compiled(fastmath=REORDER)
def relax_rows(
    U: np.ndarray,
    basis: np.ndarray,
    fixed: np.ndarray,
    inverse: np.ndarray,
    coupling: np.ndarray,
    weight: float,
    relaxation: float,
    pull: np.ndarray,
    Z: np.ndarray,
    dual: np.ndarray,
    room: np.ndarray,
    begin: int,
    end: int,
) -> np.ndarray:
    """Do one step of alternating directions; return basis^T pull for the next.

    D = pull inverse + basis coupling is the free minimiser, Z the nearest nonnegative factor to
    its (relaxed) end U + D and ``dual`` what the bound holds back. ``room``
    holds two blocks of rows.
    """
    total = np.zeros(inverse.shape)
    added = np.empty(inverse.shape, U.dtype)
    kind = U.dtype.type
    w, a, b = kind(weight), kind(relaxation), kind(1.0 - relaxation)
    zero = kind(0.0)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        np.dot(pull[first:last], inverse, room[0, : last - first])
        np.dot(basis[first:last], coupling, room[1, : last - first])
        left, right = room[0, : last - first].reshape(-1), room[1, : last - first].reshape(-1)
        u, held = U[first:last].reshape(-1), fixed[first:last].reshape(-1)
        z, lam = Z[first:last].reshape(-1), dual[first:last].reshape(-1)
        v = pull[first:last].reshape(-1)
        for k in range(len(u)):
            y = a * (u[k] + left[k] + right[k]) + b * z[k] + lam[k]
            z[k] = max(y, zero)
            lam[k] = min(y, zero)
            v[k] = held[k] + w * abs(y)
        np.dot(basis[first:last].T, pull[first:last], added)
        total += added
    return total


@compiled()
def relax(
    U: np.ndarray,
    basis: np.ndarray,
    fixed: np.ndarray,
    inverse: np.ndarray,
    moment: np.ndarray,
    vectors: np.ndarray,
    values: np.ndarray,
    weight: float,
    shift: float,
    relaxation: float,
    pull: np.ndarray,
    Z: np.ndarray,
    dual: np.ndarray,
    room: np.ndarray,
    steps: int,
) -> None:
    """Do ``steps`` steps over all rows at once, where one thread does them all."""
    for _ in range(steps):
        coupling = couple(moment, vectors, values, shift).astype(U.dtype)
        moment = relax_rows(
            U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, room, 0, len(U)
        )
