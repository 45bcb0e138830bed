"""Fused passes over tall factors for line searches and conjugate gradients, summed in float64.

Rows are contiguous, so a range of them is worked on as one flat slice: loops of known length from
zero run in SIMD lanes, loops over the few columns of a row do not.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled

REORDER = {"reassoc", "contract", "nsz"}  # lets the sums below run in SIMD lanes


@compiled(fastmath=REORDER)
def direction_rows(
    U: np.ndarray,
    product: np.ndarray,
    Z: np.ndarray,
    image: np.ndarray,
    begin: int,
    end: int,
) -> tuple[float, float]:
    """Turn Z into D = Z - U and ``image`` = X Z into X D; return <X U, D> and <X D, D>."""
    first, last = begin * U.shape[1], end * U.shape[1]
    u, xu = U.reshape(-1)[first:last], product.reshape(-1)[first:last]
    z, xz = Z.reshape(-1)[first:last], image.reshape(-1)[first:last]
    slope = 0.0
    bend = 0.0
    for k in range(len(u)):
        d = z[k] - u[k]
        xd = xz[k] - xu[k]
        z[k] = d
        xz[k] = xd
        slope += np.float64(xu[k]) * np.float64(d)
        bend += np.float64(xd) * np.float64(d)
    return slope, bend


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
    """Write U + step D to ``D`` and X (U + step D) to ``image``."""
    first, last = begin * U.shape[1], end * U.shape[1]
    u, xu = U.reshape(-1)[first:last], product.reshape(-1)[first:last]
    d, xd = D.reshape(-1)[first:last], image.reshape(-1)[first:last]
    t = D.dtype.type(step)
    for k in range(len(u)):
        # rounding could leave a crumb below zero where the step goes all the way to it
        d[k] = max(u[k] + t * d[k], D.dtype.type(0))
        xd[k] = xu[k] + t * xd[k]


@compiled(fastmath=REORDER)
def free_gradient_rows(
    U: np.ndarray,
    curved: np.ndarray,
    product: np.ndarray,
    free: np.ndarray,
    residual: np.ndarray,
    begin: int,
    end: int,
) -> float:
    """Write 1 where an entry may move and, there, the negative gradient; return its square norm.

    ``curved`` holds U U^T U; an entry is free where U > 0 or the gradient pulls it up.
    """
    first, last = begin * U.shape[1], end * U.shape[1]
    u, uuu = U.reshape(-1)[first:last], curved.reshape(-1)[first:last]
    xu, mask = product.reshape(-1)[first:last], free.reshape(-1)[first:last]
    pulls = residual.reshape(-1)[first:last]
    total = 0.0
    for k in range(len(u)):
        pull = xu[k] - uuu[k]
        mask[k] = 1 if u[k] > 0 or pull > 0 else 0
        pulls[k] = mask[k] * pull
        total += np.float64(pulls[k]) * np.float64(pulls[k])
    return total


@compiled(fastmath=REORDER)
def curvature_rows(
    image: np.ndarray,
    other: np.ndarray,
    search: np.ndarray,
    free: np.ndarray,
    shift: float,
    begin: int,
    end: int,
) -> float:
    """Finish ``image = free * (image + other + shift search)`` and return <search, image>."""
    first, last = begin * image.shape[1], end * image.shape[1]
    a, b = image.reshape(-1)[first:last], other.reshape(-1)[first:last]
    p, mask = search.reshape(-1)[first:last], free.reshape(-1)[first:last]
    s = image.dtype.type(shift)
    total = 0.0
    for k in range(len(a)):
        a[k] = mask[k] * (a[k] + b[k] + s * p[k])
        total += np.float64(a[k]) * np.float64(p[k])
    return total


@compiled(fastmath=REORDER)
def descend_rows(
    D: np.ndarray,
    residual: np.ndarray,
    search: np.ndarray,
    image: np.ndarray,
    length: float,
    begin: int,
    end: int,
) -> float:
    """D += length search; residual -= length image; return the new ||residual||^2."""
    first, last = begin * D.shape[1], end * D.shape[1]
    d, left = D.reshape(-1)[first:last], residual.reshape(-1)[first:last]
    p, q = search.reshape(-1)[first:last], image.reshape(-1)[first:last]
    a = D.dtype.type(length)
    total = 0.0
    for k in range(len(d)):
        d[k] += a * p[k]
        left[k] -= a * q[k]
        total += np.float64(left[k]) * np.float64(left[k])
    return total


@compiled(fastmath=REORDER)
def turn_rows(search: np.ndarray, residual: np.ndarray, ratio: float, begin: int, end: int) -> None:
    """Set search = residual + ratio search."""
    first, last = begin * search.shape[1], end * search.shape[1]
    p, left = search.reshape(-1)[first:last], residual.reshape(-1)[first:last]
    b = search.dtype.type(ratio)
    for k in range(len(p)):
        p[k] = left[k] + b * p[k]


@compiled(fastmath=REORDER)
def project_rows(U: np.ndarray, D: np.ndarray, begin: int, end: int) -> None:
    """Set D = max(U + D, 0)."""
    first, last = begin * U.shape[1], end * U.shape[1]
    u, d = U.reshape(-1)[first:last], D.reshape(-1)[first:last]
    for k in range(len(u)):
        d[k] = max(u[k] + d[k], D.dtype.type(0))
