r"""Conjugate gradients for the Gauss-Newton step of a tensor's f under U >= 0, two passes a step.

With K = G^(d-1) and H = G^(d-2) entry by entry, G = U^T U, the model of f/d is

.. math:: \langle UK - P, D\rangle
    + \tfrac12\langle D, DK + (d-1)\,U((D^\top U) \circ H) + \mu D\rangle

on the free entries {U > 0 or slope < 0}. T is in P only, so a step needs no product with it.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled


@compiled(fastmath=REORDER)
def begin_rows(
    U: np.ndarray,
    product: np.ndarray,
    curvature: np.ndarray,
    inverse: np.ndarray,
    free: np.ndarray,
    step: np.ndarray,
    residual: np.ndarray,
    preconditioned: np.ndarray,
    direction: np.ndarray,
    begin: int,
    end: int,
) -> tuple[float, np.ndarray]:
    """Say which entries are ``free``, write residual = P - UK and residual @ ``inverse`` there.

    ``step`` and ``direction`` become 0. Return <residual, preconditioned>, preconditioned^T U.
    """
    r = U.shape[1]
    total = 0.0
    cross = np.zeros((r, r))
    zero = U.dtype.type(0)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        curved = np.dot(U[first:last], curvature)
        for i in range(first, last):
            for c in range(r):
                slope = curved[i - first, c] - product[i, c]
                loose = U[i, c] > zero or slope < zero
                free[i, c] = loose
                residual[i, c] = -slope if loose else zero
                step[i, c] = zero
                direction[i, c] = zero
        shaped = np.dot(residual[first:last], inverse)
        for i in range(first, last):
            for c in range(r):
                z = shaped[i - first, c] if free[i, c] else zero
                preconditioned[i, c] = z
                total += np.float64(residual[i, c]) * np.float64(z)
        cross += np.dot(preconditioned[first:last].T, U[first:last])
    return total, cross


@compiled(fastmath=REORDER)
def curve_rows(
    U: np.ndarray,
    curvature: np.ndarray,
    coupling: np.ndarray,
    beta: float,
    free: np.ndarray,
    preconditioned: np.ndarray,
    direction: np.ndarray,
    image: np.ndarray,
    begin: int,
    end: int,
) -> float:
    """Write direction = preconditioned + beta direction and its image; return their inner product.

    ``curvature`` is K + mu I, ``coupling`` (d - 1) (direction^T U) o H for the new direction.
    """
    r = U.shape[1]
    total = 0.0
    kind = U.dtype.type
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        for i in range(first, last):
            for c in range(r):
                direction[i, c] = preconditioned[i, c] + kind(beta) * direction[i, c]
        curved = np.dot(direction[first:last], curvature)
        coupled = np.dot(U[first:last], coupling)
        for i in range(first, last):
            for c in range(r):
                value = curved[i - first, c] + coupled[i - first, c] if free[i, c] else kind(0)
                image[i, c] = value
                total += np.float64(direction[i, c]) * np.float64(value)
    return total


@compiled(fastmath=REORDER)
def advance_rows(
    U: np.ndarray,
    inverse: np.ndarray,
    alpha: float,
    free: np.ndarray,
    direction: np.ndarray,
    image: np.ndarray,
    step: np.ndarray,
    residual: np.ndarray,
    preconditioned: np.ndarray,
    begin: int,
    end: int,
) -> tuple[float, np.ndarray]:
    """Go ``alpha`` along the direction; return <residual, preconditioned>, preconditioned^T U."""
    r = U.shape[1]
    total = 0.0
    cross = np.zeros((r, r))
    kind = U.dtype.type
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        for i in range(first, last):
            for c in range(r):
                step[i, c] += kind(alpha) * direction[i, c]
                residual[i, c] -= kind(alpha) * image[i, c]
        shaped = np.dot(residual[first:last], inverse)
        for i in range(first, last):
            for c in range(r):
                z = shaped[i - first, c] if free[i, c] else kind(0)
                preconditioned[i, c] = z
                total += np.float64(residual[i, c]) * np.float64(z)
        cross += np.dot(preconditioned[first:last].T, U[first:last])
    return total, cross
