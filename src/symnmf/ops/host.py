"""Tall factors as NumPy arrays: compiled kernels over chunks of rows, on one pool of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symnmf.kernels import directions, pairs, reductions
from symnmf.kernels.hals import hals_rows
from symnmf.kernels.pivoting import pivot_rows
from symnmf.ops.operations import Hals, Line, Ops, RowSolver
from symnmf.parallel import Threads

GRAM_ROWS = 4096  # float32 partial sums stay this short before they are added in float64
NARROW = 50  # columns up to which small blocks beat computing one triangle only

#: Solves rows ``begin..end`` of a factor in place, given product, anchor, gram and coupling.
RowKernel = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, int, int], None]


def row_kernel(rows: RowSolver) -> RowKernel:
    """Return the compiled kernel that solves rows this way."""
    if isinstance(rows, Hals):
        sweeps = rows.sweeps
        return lambda factor, product, anchor, gram, coupling, begin, end: hals_rows(
            factor, product, anchor, gram, coupling, sweeps, begin, end
        )
    return pivot_rows


class HostOps(Ops):
    """Operations on arrays in memory.

    Parameters
    ----------
    threads : Threads
        The pool that shares the rows out.
    """

    def __init__(self, threads: Threads) -> None:
        self.threads = threads

    def _sum(self, part: Callable[[int, int], Any], n: int, cost: float) -> Any:
        """Add up ``part`` over the rows, in the order of the chunks."""
        bounds = self.threads.split(n, cost)
        if len(bounds) == 1:
            return part(0, n)
        parts = self.threads.run(part, bounds)
        return sum(parts[1:], start=parts[0])

    def _sums(self, part: Callable[[int, int], Any], n: int, cost: float) -> tuple[Any, ...]:
        """Add up each number or matrix that ``part`` returns."""
        bounds = self.threads.split(n, cost)
        if len(bounds) == 1:
            return tuple(part(0, n))
        parts = self.threads.run(part, bounds)
        return tuple(sum(column[1:], start=column[0]) for column in zip(*parts, strict=True))

    def put(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, order="C")

    def get(self, T: np.ndarray) -> np.ndarray:
        return T

    def dtype(self, T: np.ndarray) -> np.dtype:
        return T.dtype

    def cast(self, T: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return T.astype(dtype, copy=False)

    def copy(self, T: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return T.copy()
        np.copyto(out, T)
        return out

    def empty(self, T: np.ndarray) -> np.ndarray:
        return np.empty_like(T)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return np.zeros(shape, dtype)

    def beside(self, *parts: np.ndarray) -> np.ndarray:
        return np.hstack(parts)

    def columns(self, T: np.ndarray, left: int, right: int, out: np.ndarray) -> np.ndarray:
        out[...] = T[:, left:right]
        return out

    def combine(self, *terms: tuple[float, np.ndarray]) -> np.ndarray:
        (first, T), *others = terms
        kind = T.dtype.type
        total: np.ndarray = kind(first) * T
        for weight, other in others:
            total += other if weight == 1.0 else kind(weight) * other
        return total

    def weigh_rows(self, T: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return T * weights[:, None].astype(T.dtype)

    def clip(self, T: np.ndarray) -> np.ndarray:
        return np.maximum(T, 0, out=T)

    def descend(self, U: np.ndarray, D: np.ndarray, step: float) -> np.ndarray:
        return self.clip(U - U.dtype.type(step) * D)

    def times(self, T: np.ndarray, small: np.ndarray) -> np.ndarray:
        return T @ small.astype(T.dtype)

    def gradient(self, U: np.ndarray, product: np.ndarray, gram: np.ndarray) -> np.ndarray:
        slope = self.times(U, gram)
        slope -= product
        slope *= 2
        return slope

    def multiplied(
        self, U: np.ndarray, product: np.ndarray, gram: np.ndarray, power: float, share: float
    ) -> np.ndarray:
        below = self.times(U, gram)
        # an entry so small that its denominator underflows counts as zero
        usable = (U > 0) & (below > np.finfo(U.dtype).tiny)
        ratio = np.divide(product, below, out=np.zeros_like(U), where=usable)
        kind = U.dtype.type
        if power != 1.0:
            ratio = np.cbrt(ratio) if power == 1.0 / 3.0 else ratio ** kind(power)
        if share != 1.0:
            ratio = (1 - kind(share)) + kind(share) * ratio
        return U * ratio

    def inner(self, A: np.ndarray, B: np.ndarray) -> float:
        n, r = A.shape
        return float(self._sum(lambda b, e: reductions.inner_rows(A, B, b, e), n, 2 * r))

    def gram(self, T: np.ndarray) -> np.ndarray:
        n, r = T.shape
        if r <= NARROW:
            return self.cross(T, T)

        def part(begin: int, end: int) -> np.ndarray:
            total = np.zeros((r, r))
            for first in range(begin, end, GRAM_ROWS):
                block = T[first : min(first + GRAM_ROWS, end)]
                total += block.T @ block
            return total

        return np.asarray(self._sum(part, n, 2 * r * r))

    def cross(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        cost = 2 * A.shape[1] * B.shape[1]
        part = reductions.cross_gram_rows
        return np.asarray(self._sum(lambda b, e: part(A, B, b, e), len(A), cost))

    def column_sums(self, T: np.ndarray) -> np.ndarray:
        return T.sum(axis=0, dtype=np.float64)

    def pair(self, U: np.ndarray, V: np.ndarray) -> tuple[float, float, float]:
        n, r = U.shape
        apart, together, size = self._sums(lambda b, e: reductions.pair_rows(U, V, b, e), n, 6 * r)
        return apart, together, size

    def split(
        self, product: np.ndarray, U: np.ndarray, V: np.ndarray
    ) -> tuple[float, float, float, float]:
        n, r = U.shape
        own, other, apart, size = self._sums(
            lambda b, e: reductions.split_rows(product, U, V, b, e), n, 8 * r
        )
        return own, other, apart, size

    def natural_residual(
        self, U: np.ndarray, product: np.ndarray, gram: np.ndarray, step: float
    ) -> float:
        n, r = U.shape
        weights, part = gram.astype(U.dtype), reductions.natural_residual_rows
        total = self._sum(lambda b, e: part(U, product, weights, step, b, e), n, 2 * r * r)
        return float(np.sqrt(total))

    def solve_rows(
        self,
        rows: RowSolver,
        factor: np.ndarray,
        product: np.ndarray,
        anchor: np.ndarray,
        gram: np.ndarray,
        coupling: float,
    ) -> np.ndarray:
        n, r = factor.shape
        solve = row_kernel(rows)
        self.threads.run(
            lambda b, e: solve(factor, product, anchor, gram, coupling, b, e),
            self.threads.split(n, 2.0 * r * r),
        )
        return factor

    def sweep(
        self,
        rows: RowSolver,
        U: np.ndarray,
        product: np.ndarray,
        gram: np.ndarray,
        coupling: float,
        out: np.ndarray,
    ) -> np.ndarray:
        n, r = U.shape
        solve = row_kernel(rows)

        def task(begin: int, end: int) -> None:
            out[begin:end] = U[begin:end]
            solve(out, product, U, gram, coupling, begin, end)

        self.threads.run(task, self.threads.split(n, 2.0 * r * r))
        return out

    def line(self, U: np.ndarray, product: np.ndarray, Z: np.ndarray, image: np.ndarray) -> Line:
        n, r = U.shape
        slope, bend, cross, gram = self._sums(
            lambda b, e: directions.direction_rows(U, product, Z, image, b, e),
            n,
            4.0 * r * (r + 2),
        )
        return Line(slope, bend, cross, gram, Z, image)

    def advance(
        self, U: np.ndarray, product: np.ndarray, line: Line, t: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n, r = U.shape
        self.threads.run(
            lambda b, e: directions.advance_rows(U, product, line.D, line.image, t, b, e),
            self.threads.split(n, 4.0 * r * (r + 2)),
        )
        return U, product, line.D

    def put_at_zero(
        self, U: np.ndarray, product: np.ndarray, gram: np.ndarray, curvature: float
    ) -> int:
        held = (U > 0) & (curvature * U <= self.times(U, gram) - product)
        U[held] = 0
        return int(np.count_nonzero(held))

    def slot(self, ring: np.ndarray, number: int) -> np.ndarray:
        return ring[number]

    def write_slot(self, ring: np.ndarray, number: int, T: np.ndarray) -> None:
        if not np.may_share_memory(ring[number], T):
            ring[number] = T

    def pair_sums(
        self,
        U: np.ndarray,
        product: np.ndarray,
        gram: np.ndarray,
        level: float,
        gradient: np.ndarray,
        steps: np.ndarray,
        changes: np.ndarray,
        newest: int,
        slots: np.ndarray,
    ) -> np.ndarray:
        n, r = U.shape
        weights, part = gram.astype(U.dtype), pairs.gradient_rows

        def rows(begin: int, end: int) -> np.ndarray:
            return part(
                U, product, weights, level, gradient, steps, changes, newest, slots, begin, end
            )

        return np.asarray(self._sum(rows, n, 2.0 * r * (r + 6 * len(steps))))

    def pair_target(
        self,
        U: np.ndarray,
        gradient: np.ndarray,
        steps: np.ndarray,
        changes: np.ndarray,
        own: float,
        step_weights: np.ndarray,
        change_weights: np.ndarray,
        out: np.ndarray,
    ) -> np.ndarray:
        n, r = U.shape

        def rows(begin: int, end: int) -> None:
            pairs.target_rows(
                U, gradient, steps, changes, own, step_weights, change_weights, out, begin, end
            )

        self.threads.run(rows, self.threads.split(n, 4.0 * r * (len(steps) + 1)))
        return out

    def gauss_newton(
        self,
        U: np.ndarray,
        product: np.ndarray,
        gram: np.ndarray,
        eigen: tuple[np.ndarray, np.ndarray],
        weights: tuple[float, float, float],
        dual: np.ndarray,
        steps: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        n, r = U.shape
        kind = U.dtype
        values, vectors = eigen
        weight, shift, relaxation = weights
        inverse = ((vectors / (values + shift)) @ vectors.T).astype(kind)
        curvature, turn = gram.astype(kind), vectors.astype(kind)
        basis, fixed, pull = (np.empty((n, r), kind) for _ in range(3))
        Z = U.copy()
        bounds = self.threads.split(n, 6.0 * r * r)

        def prepare(begin: int, end: int) -> np.ndarray:
            return directions.prepare_rows(
                U, product, curvature, turn, dual, weight, basis, fixed, pull, begin, end
            )

        def step(begin: int, end: int) -> np.ndarray:
            return directions.relax_rows(
                U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, begin, end
            )

        parts = self.threads.run(prepare, bounds)
        if len(bounds) == 1:
            directions.relax(
                U, basis, fixed, inverse, parts[0], vectors, values,
                weight, shift, relaxation, pull, Z, dual, steps,
            )  # fmt: skip
            return Z, dual
        for _ in range(steps):
            moment = sum(parts[1:], start=parts[0])
            coupling = directions.couple(moment, vectors, values, shift).astype(kind)
            parts = self.threads.run(step, bounds)
        return Z, dual
