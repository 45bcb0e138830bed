"""Sums over factors in one pass, accumulated in float64 whatever the factors' precision."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled
from symnmf.parallel import Threads

GRAM_ROWS = 4096  # float32 partial sums stay this short before they are added in float64
REASSOCIATE = {"reassoc", "contract", "nsz"}  # lets the sums below run in SIMD lanes


@compiled(fastmath=REASSOCIATE)
def inner_rows(A: np.ndarray, B: np.ndarray, begin: int, end: int) -> float:
    """Return <A, B> over rows ``begin..end``."""
    total = 0.0
    a, b = A[begin:end].reshape(-1), B[begin:end].reshape(-1)
    for k in range(len(a)):
        total += np.float64(a[k]) * np.float64(b[k])
    return total


@compiled(fastmath=REASSOCIATE)
def pair_rows(
    U: np.ndarray, V: np.ndarray, begin: int, end: int
) -> tuple[float, float, float, float]:
    """Return ||U - V||^2, <U, V>, ||U||^2 and ||V||^2 over rows ``begin..end``."""
    apart = 0.0
    together = 0.0
    first = 0.0
    second = 0.0
    one, other = U[begin:end].reshape(-1), V[begin:end].reshape(-1)
    for k in range(len(one)):
        u = np.float64(one[k])
        v = np.float64(other[k])
        apart += (u - v) * (u - v)
        together += u * v
        first += u * u
        second += v * v
    return apart, together, first, second


@compiled(fastmath=REASSOCIATE)
def natural_residual_rows(
    U: np.ndarray, descent: np.ndarray, target: np.ndarray, step: float, begin: int
) -> float:
    """Return ||U - max(U - step * 2 (descent - target), 0)||^2 over one block of rows.

    ``descent`` holds the rows of U U^T U from ``begin`` on, ``target`` is all of X U.
    """
    total = 0.0
    end = begin + descent.shape[0]
    own, curved = U[begin:end].reshape(-1), descent.reshape(-1)
    wanted = target[begin:end].reshape(-1)
    for k in range(len(own)):
        u = np.float64(own[k])
        move = 2.0 * step * (np.float64(curved[k]) - np.float64(wanted[k]))
        kept = u if u < move else move  # u - max(u - move, 0)
        total += kept * kept
    return total


def inner(A: np.ndarray, B: np.ndarray, threads: Threads) -> float:
    """Return <A, B> = trace(A^T B)."""
    n, r = A.shape
    return sum(
        threads.run(lambda begin, end: inner_rows(A, B, begin, end), threads.split(n, 2 * r))
    )


def pair(U: np.ndarray, V: np.ndarray, threads: Threads) -> tuple[float, float, float, float]:
    """Return ||U - V||^2, <U, V>, ||U||^2 and ||V||^2."""
    n, r = U.shape
    parts = threads.run(lambda begin, end: pair_rows(U, V, begin, end), threads.split(n, 6 * r))
    apart, together, first, second = (float(sum(column)) for column in zip(*parts, strict=True))
    return apart, together, first, second


def gram(V: np.ndarray, threads: Threads) -> np.ndarray:
    """Return V^T V in float64."""
    n, r = V.shape

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

    def part(begin: int, end: int) -> np.ndarray:
        total = np.zeros((r, B.shape[1]))
        for first in range(begin, end, GRAM_ROWS):
            last = min(first + GRAM_ROWS, end)
            total += A[first:last].T @ B[first:last]
        return total

    parts = threads.run(part, threads.split(n, 2 * r * B.shape[1]))
    return sum(parts[1:], start=parts[0])


def natural_residual(
    U: np.ndarray, product: np.ndarray, gram_U: np.ndarray, step: float, threads: Threads
) -> float:
    """Return ||U - max(U - step * grad f(U), 0)||_F with grad f(U) = 2 (U U^T U - X U)."""
    n, r = U.shape
    weights = gram_U.astype(U.dtype)

    def part(begin: int, end: int) -> float:
        total = 0.0
        for first in range(begin, end, GRAM_ROWS):
            block = U[first : min(first + GRAM_ROWS, end)] @ weights
            total += natural_residual_rows(U, block, product, step, first)
        return total

    return float(np.sqrt(sum(threads.run(part, threads.split(n, 2 * r * r)))))
