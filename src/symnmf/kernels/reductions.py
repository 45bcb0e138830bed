"""Sums over factors in one pass, accumulated in float64 whatever the factors' precision."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import BLOCK, REORDER, compiled
from symnmf.parallel import Threads

GRAM_ROWS = 4096  # float32 partial sums stay this short before they are added in float64
NARROW = 50  # columns up to which small blocks beat computing one triangle only


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
    for first in range(begin, end, BLOCK):
        last = min(first + BLOCK, end)
        curved = np.dot(U[first:last], gram).reshape(-1)
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


def inner(A: np.ndarray, B: np.ndarray, threads: Threads) -> float:
    """Return <A, B> = trace(A^T B)."""
    n, r = A.shape
    return sum(
        threads.run(lambda begin, end: inner_rows(A, B, begin, end), threads.split(n, 2 * r))
    )


def pair(U: np.ndarray, V: np.ndarray, threads: Threads) -> tuple[float, float, float]:
    """Return ||U - V||^2, <U, V> and ||V||^2."""
    n, r = U.shape
    parts = threads.run(lambda begin, end: pair_rows(U, V, begin, end), threads.split(n, 6 * r))
    apart, together, size = (float(sum(column)) for column in zip(*parts, strict=True))
    return apart, together, size


def split(
    product: np.ndarray, U: np.ndarray, V: np.ndarray, threads: Threads
) -> tuple[float, float, float, float]:
    """Return <product, U>, <product, V>, ||U - V||^2 and ||V||^2, all that a split run measures."""
    n, r = U.shape
    parts = threads.run(
        lambda begin, end: split_rows(product, U, V, begin, end), threads.split(n, 8 * r)
    )
    own, other, apart, size = (float(sum(column)) for column in zip(*parts, strict=True))
    return own, other, apart, size


def gram(V: np.ndarray, threads: Threads) -> np.ndarray:
    """Return V^T V in float64."""
    n, r = V.shape
    if r <= NARROW:
        return cross_gram(V, V, threads)

    def part(begin: int, end: int) -> np.ndarray:
        total = np.zeros((r, r))
        for first in range(begin, end, GRAM_ROWS):
            block = V[first : min(first + GRAM_ROWS, end)]
            total += block.T @ block
        return total

    parts = threads.run(part, threads.split(n, 2 * r * r))
    return sum(parts[1:], start=parts[0])


def cross_gram(A: np.ndarray, B: np.ndarray, threads: Threads) -> np.ndarray:
    """Return A^T B in float64."""
    n, r = A.shape
    parts = threads.run(
        lambda begin, end: cross_gram_rows(A, B, begin, end),
        threads.split(n, 2 * r * B.shape[1]),
    )
    return sum(parts[1:], start=parts[0])


def natural_residual(
    U: np.ndarray, product: np.ndarray, gram_U: np.ndarray, step: float, threads: Threads
) -> float:
    """Return ||U - max(U - step * grad f(U), 0)||_F with grad f(U) = 2 (U U^T U - X U)."""
    n, r = U.shape
    weights = gram_U.astype(U.dtype)
    parts = threads.run(
        lambda begin, end: natural_residual_rows(U, product, weights, step, begin, end),
        threads.split(n, 2 * r * r),
    )
    return float(np.sqrt(sum(parts)))
