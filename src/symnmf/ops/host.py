"""Tall factors as NumPy arrays: compiled kernels over chunks of rows, on one pool of threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from symnmf.kernels import directions, pairs, passes, reductions
from symnmf.kernels.compiling import BLOCK
from symnmf.kernels.hals import hals_rows
from symnmf.kernels.pivoting import pivot_rows
from symnmf.kernels.team import together
from symnmf.ops.operations import Hals, Line, Ops, RowSolver
from symnmf.parallel import Threads

GRAM_ROWS = 4096  # float32 partial sums stay this short before they are added in float64
COMBINED_ROWS = 2048  # rows that are added up while they are in cache
READING = 8.0  # floating point operations that take as long as to read an entry of two factors
NARROW = 50  # columns up to which small blocks beat computing one triangle only

T = TypeVar("T")

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

    def _pass(
        self, alone: Callable[..., T], shared: Callable[..., T], cost: float, *given: Any
    ) -> T:
        """Do a pass over all rows of the first argument, on one thread or on several."""
        n = len(given[0])
        bounds = self.threads.bounds(n, cost)
        if bounds is None:
            return alone(*given, 0, n)
        return together(shared, self.threads.count, bounds, *given)

    def _sum(self, part: Callable[[int, int], Any], n: int, cost: float) -> Any:
        """Add up ``part`` over the rows, in the order of the chunks."""
        bounds = self.threads.split(n, cost)
        if len(bounds) == 1:
            return part(0, n)
        parts = self.threads.run(part, bounds)
        return sum(parts[1:], start=parts[0])

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
        n, r = terms[0][1].shape
        total = np.empty_like(terms[0][1])

        def rows(begin: int, end: int) -> None:
            for top in range(begin, end, COMBINED_ROWS):
                place = slice(top, min(top + COMBINED_ROWS, end))
                _combine(total[place], [(weight, T[place]) for weight, T in terms])

        self.threads.run(rows, self.threads.split(n, 2.0 * r * len(terms)))
        return total

    def weigh_rows(self, T: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return T * weights[:, None].astype(T.dtype)

    def clip(self, T: np.ndarray) -> np.ndarray:
        return np.maximum(T, 0, out=T)

    def descend(self, U: np.ndarray, D: np.ndarray, step: float) -> np.ndarray:
        return self.clip(U - U.dtype.type(step) * D)

    def times(self, T: np.ndarray, small: np.ndarray) -> np.ndarray:
        right, n = small.astype(T.dtype), len(T)
        bounds = self.threads.split(n, 2.0 * right.size)
        if len(bounds) == 1:
            return T @ right
        out = np.empty((n, right.shape[1]), T.dtype)
        self.threads.run(lambda b, e: np.matmul(T[b:e], right, out=out[b:e]), bounds)
        return out

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
        cost = READING * A.shape[1]
        return float(self._pass(_inner, passes.inner, cost, A, B))

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
        return self._pass(_cross, passes.cross_gram, cost, A, B)

    def column_sums(self, T: np.ndarray) -> np.ndarray:
        return T.sum(axis=0, dtype=np.float64)

    def pair(self, U: np.ndarray, V: np.ndarray) -> tuple[float, float, float]:
        return self._pass(reductions.pair_rows, passes.pair, READING * U.shape[1], U, V)

    def split(
        self, product: np.ndarray, U: np.ndarray, V: np.ndarray
    ) -> tuple[float, float, float, float]:
        return self._pass(
            reductions.split_rows, passes.split, 1.5 * READING * U.shape[1], product, U, V
        )

    def natural_residual(
        self, U: np.ndarray, product: np.ndarray, gram: np.ndarray, step: float
    ) -> float:
        cost, alone = 2 * U.shape[1] ** 2, reductions.natural_residual_rows
        given = (U, product, gram.astype(U.dtype), step)
        return math.sqrt(self._pass(alone, passes.natural_residual, cost, *given))

    def solve_rows(
        self,
        rows: RowSolver,
        factor: np.ndarray,
        product: np.ndarray,
        anchor: np.ndarray,
        gram: np.ndarray,
        coupling: float,
    ) -> np.ndarray:
        cost = 2.0 * factor.shape[1] ** 2
        if isinstance(rows, Hals):
            given = (factor, product, anchor, gram, coupling, rows.sweeps)
            self._pass(hals_rows, passes.hals, cost, *given)
        else:
            self._pass(pivot_rows, passes.pivot, cost, factor, product, anchor, gram, coupling)
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
        np.copyto(out, U)
        return self.solve_rows(rows, out, product, U, gram, coupling)

    def line(self, U: np.ndarray, product: np.ndarray, Z: np.ndarray, image: np.ndarray) -> Line:
        r = U.shape[1]
        slope, bend, cross, gram = self._pass(
            directions.direction_rows, passes.direction, 4.0 * r * (r + 2), U, product, Z, image
        )
        return Line(slope, bend, cross, gram, Z, image)

    def advance(
        self, U: np.ndarray, product: np.ndarray, line: Line, t: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        given = (U, product, line.D, line.image, t)
        self._pass(directions.advance_rows, passes.advance, 3.0 * READING * U.shape[1], *given)
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
        r, weights = U.shape[1], gram.astype(U.dtype)
        given = (U, product, weights, level, gradient, steps, changes, newest, slots)
        cost = 2.0 * r * (r + 6 * len(steps))
        return self._pass(pairs.gradient_rows, passes.gradient, cost, *given)

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
        given = (U, gradient, steps, changes, own, step_weights, change_weights, out)
        cost = 4.0 * U.shape[1] * (len(steps) + 1)
        self._pass(pairs.target_rows, passes.target, cost, *given)
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
        spare: list[np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        n, r = U.shape
        kind = U.dtype
        values, vectors = eigen
        weight, shift, relaxation = weights
        inverse = ((vectors / (values + shift)) @ vectors.T).astype(kind)
        curvature, turn = gram.astype(kind), vectors.astype(kind)
        kept = [] if spare is None else spare
        Z = U.copy()
        basis, fixed, pull = (kept.pop() if kept else np.empty_like(U) for _ in range(3))
        bounds = self.threads.bounds(n, 6.0 * r * r)
        # not made by each part: memory that threads give back and ask for again is slow
        room = np.empty((1 if bounds is None else len(bounds) - 1, 2, BLOCK, r), kind)
        if bounds is not None:
            together(
                passes.gauss_newton, self.threads.count, bounds,
                U, product, curvature, turn, inverse, vectors, values,
                weight, shift, relaxation, dual, Z, basis, fixed, pull, room, steps,
            )  # fmt: skip
            kept += [basis, fixed, pull]
            return Z, dual
        moment = directions.prepare_rows(
            U, product, curvature, turn, dual, weight, basis, fixed, pull, room[0], 0, n
        )
        directions.relax(
            U, basis, fixed, inverse, moment, vectors, values,
            weight, shift, relaxation, pull, Z, dual, room[0], steps,
        )  # fmt: skip
        kept += [basis, fixed, pull]
        return Z, dual


def _inner(A: np.ndarray, B: np.ndarray, begin: int, end: int) -> float:
    """Return <A, B> over some rows: by BLAS, which has nothing to compile, if sums are exact."""
    if A.dtype == B.dtype == np.float64:
        return float(np.vdot(A[begin:end], B[begin:end]))
    return float(reductions.inner_rows(A, B, begin, end))


def _cross(A: np.ndarray, B: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Return A^T B over some rows, likewise."""
    if A.dtype == B.dtype == np.float64:
        return np.asarray(A[begin:end].T @ B[begin:end])
    return np.asarray(reductions.cross_gram_rows(A, B, begin, end))


def _combine(total: np.ndarray, terms: list[tuple[float, np.ndarray]]) -> None:
    """Write the sum of weighted arrays."""
    kind = total.dtype.type
    (first, T), *others = terms
    np.multiply(T, kind(first), out=total)
    for weight, other in others:
        total += other if weight == 1.0 else kind(weight) * other
