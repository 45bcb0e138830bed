"""Sums over factors in one pass, accumulated in float64 whatever the factors' precision."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled


@compiled(fastmath=REORDER)
def inner_rows(A: np.ndarray, B: np.ndarray, begin: int, end: int) -> float:
    """Return <A, B> over rows ``begin..end``."""
    total = 0.0
    a, b = A[begin:end].reshape(-1), B[begin:end].reshape(-1)
    for k in range(len(a)):
        total += np.float64(a[k]) * np.float64(b[k])
    return total


@compiled(fastmath=REORDER)
def pair_rows(U: np.ndarray, V: np.ndarray, begin: int, end: int) -> tuple[float, float, float]:
    """Return ||U - V||^2, <U, V> and ||V||^2 over rows ``begin..end``."""
    apart = 0.0
    together = 0.0
    size = 0.0
    one, other = U[begin:end].reshape(-1), V[begin:end].reshape(-1)
    for k in range(len(one)):
        u = np.float64(one[k])
        v = np.float64(other[k])
        apart += (u - v) * (u - v)
        together += u * v
        size += v * v
    return apart, together, size


@compiled(fastmath=REORDER)
def split_rows(
    product: np.ndarray, U: np.ndarray, V: np.ndarray, begin: int, end: int
) -> tuple[float, float, float, float]:
    """Return <product, U>, <product, V>, ||U - V||^2 and ||V||^2 over rows ``begin..end``."""
    fit = 0.0
    other_fit = 0.0
    apart = 0.0
    size = 0.0
    one, other = U[begin:end].reshape(-1), V[begin:end].reshape(-1)
    p = product[begin:end].reshape(-1)
    for k in range(len(one)):
        u = np.float64(one[k])
        v = np.float64(other[k])
        x = np.float64(p[k])
        fit += x * u
        other_fit += x * v
        apart += (u - v) * (u - v)
        size += v * v
    return fit, other_fit, apart, size


@compiled(fastmath=REORDER)
def natural_residual_rows(
    U: np.ndarray,
    target: np.ndarray,
    gram: np.ndarray,
    step: float,
    begin: int,
    end: int,
) -> float:
    """Return ||U - max(U - step * 2 (U gram - target), 0)||^2 over rows ``begin..end``."""
    total = 0.0
    room = np.empty((BLOCK, U.shape[1]), U.dtype)
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        np.dot(U[first:last], gram, room[: last - first])
        curved = room[: last - first].reshape(-1)
        own, wanted = U[first:last].reshape(-1), target[first:last].reshape(-1)
        for k in range(len(own)):
            u = np.float64(own[k])
            move = 2.0 * step * (np.float64(curved[k]) - np.float64(wanted[k]))
            kept = u if u < move else move  # u - max(u - move, 0)
            total += kept * kept
    return total


@compiled()
def cross_gram_rows(A: np.ndarray, B: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Return A^T B over rows ``begin..end``; float32 sums stay short before they are added up."""
    total = np.zeros((A.shape[1], B.shape[1]))
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        total += np.dot(A[first:last].T, B[first:last])
    return total
