"""Factor factors as NumPy arrays: compiled kernels over chunks of rows, on one pool of threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symnmf.kernels import directions, pairs, reductions
from symnmf.kernels.compiling import BLOCK
from symnmf.kernels.hals import hals_rows
from symnmf.kernels.hals import room_of as hals_room
from symnmf.kernels.sharing import share
from symnmf.kernels.small_products import NARROW, multiplier, times_rows
from symnmf.ops.operations import Hals, Line, Nnls, Ops, RowSolver
from symnmf.parallel import Threads

GRAM_ROWS = 4096  # float32 partial sums stay this short before they are added in float64
COMBINED_ROWS = 2048  # rows that are added up while they are in cache
READING = 8.0  # floating point operations that take as long as to read an entry of two factors

#: A pass over rows ``begin..end``, see :mod:`symnmf.kernels.directions`.
Pass = Callable[[Any, int, int, int], None]

#: Solves rows ``begin..end`` of a factor in place, given product, anchor, gram and coupling.
RowKernel = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, int, int], None]


def row_kernel(rows: RowSolver) -> RowKernel:
    """Return the compiled kernel that solves rows this way."""
    if isinstance(rows, Nnls):
        from symnmf.kernels.pivoting import pivot_rows

        return pivot_rows
    sweeps = rows.sweeps

    def sweep(
        factor: np.ndarray,
        product: np.ndarray,
        anchor: np.ndarray,
        gram: np.ndarray,
        coupling: float,
        begin: int,
        end: int,
    ) -> None:
        room = np.empty((1, hals_room(factor.shape[1], factor.itemsize)), factor.dtype)
        hals_rows((factor, product, anchor, gram, coupling, sweeps, room), 0, begin, end)

    return sweep


class HostOps(Ops):
    """Operations on arrays in memory.

    Parameters
    ----------
    threads : Threads or None
        The pool that shares the rows out; None for all cores.
    """

    def __init__(self, threads: Threads | None = None) -> None:
        self.threads = Threads() if threads is None else threads

    def _pass(
        self,
        alone: Pass,
        shared: str,
        cost: float,
        given: tuple[Any, ...],
        *,
        room: int = 0,
        sums: int = 0,
    ) -> np.ndarray:
        """Do a pass over all rows of the first argument, on one thread or on several.

        ``alone`` is the kernel of a part and ``shared`` the pass of :mod:`symnmf.kernels.passes`
        that does it on several threads. ``cost`` is that of a row; ``room`` and ``sums`` are how
        many numbers each part of the rows needs to work in, and adds up. Return the sums.
        """
        first = given[0]
        n = len(first)
        bounds = self.threads.bounds(n, cost)
        parts = 1 if bounds is None else len(bounds) - 1
        if room:
            given += (np.empty((parts, room), first.dtype),)
        totals = np.zeros((parts, sums))
        if sums:
            given += (totals,)
        if bounds is None:
            alone(given, 0, 0, n)
            return totals[0]
        return share(shared, self.threads.count, bounds, given)

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

    def combine(self, *terms: tuple[float, np.ndarray], plus: float = 0.0) -> np.ndarray:
        n, r = terms[0][1].shape
        total = np.empty_like(terms[0][1])

        def rows(begin: int, end: int) -> None:
            for top in range(begin, end, COMBINED_ROWS):
                place = slice(top, min(top + COMBINED_ROWS, end))
                _combine(total[place], [(weight, T[place]) for weight, T in terms], plus)

        self.threads.run(rows, self.threads.split(n, 2.0 * r * len(terms)))
        return total

    def weigh_rows(self, T: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return T * weights[:, None].astype(T.dtype)

    def clip(self, T: np.ndarray) -> np.ndarray:
        return np.maximum(T, 0, out=T)

    def descend(self, U: np.ndarray, D: np.ndarray, step: float) -> np.ndarray:
        return self.clip(U - U.dtype.type(step) * D)

    def times(self, T: np.ndarray, small: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        right = small.astype(T.dtype, order="C", copy=False)
        if out is None:
            out = np.empty((len(T), right.shape[1]), T.dtype)
        given = (np.ascontiguousarray(T), right, out, multiplier(T.dtype))
        self._pass(times_rows, "times", 2.0 * right.size, given)
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
        alone = reductions.inner_rows
        if not single_sums(A, B):
            if self.threads.bounds(len(A), cost) is None:
                return float(np.vdot(A, B))
            alone = _inner
        return float(self._pass(alone, "inner", cost, (A, B), sums=1)[0])

    def gram(self, T: np.ndarray) -> np.ndarray:
        n, r = T.shape
        if r <= NARROW:
            return self.cross(T, T)

        def part(begin: int, end: int) -> np.ndarray:
            total = np.zeros((r, r))
            for first in range(begin, end, GRAM_ROWS):
                block = T[first : min(first + GRAM_ROWS, end)]
                total += block.T @ block  # of which BLAS computes one triangle only
            return total

        return np.asarray(self._sum(part, n, 2 * r * r))

    def cross(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
        size, alone = A.shape[1] * B.shape[1], reductions.cross_gram_rows
        given = (A, B, multiplier(A.dtype))
        found = self._pass(alone, "cross_gram", 2 * size, given, room=size, sums=size)
        return found.reshape(A.shape[1], B.shape[1])

    def column_sums(self, T: np.ndarray) -> np.ndarray:
        return T.sum(axis=0, dtype=np.float64)

    def pair(self, U: np.ndarray, V: np.ndarray) -> tuple[float, float, float]:
        cost, alone = READING * U.shape[1], reductions.pair_rows
        apart, together, length = self._pass(alone, "pair", cost, (U, V), sums=3).tolist()
        return apart, together, length

    def split(
        self, product: np.ndarray, U: np.ndarray, V: np.ndarray
    ) -> tuple[float, float, float, float]:
        cost, alone = 1.5 * READING * U.shape[1], reductions.split_rows
        found = self._pass(alone, "split", cost, (product, U, V), sums=4)
        fit, other_fit, apart, length = found.tolist()
        return fit, other_fit, apart, length

    def natural_residual(
        self, U: np.ndarray, product: np.ndarray, gram: np.ndarray, step: float
    ) -> float:
        r, alone = U.shape[1], reductions.natural_residual_rows
        given = (U, product, gram.astype(U.dtype, copy=False), step, multiplier(U.dtype))
        found = self._pass(alone, "natural_residual", 2 * r**2, given, room=BLOCK * r, sums=1)
        return math.sqrt(found[0])

    def solve_rows(
        self,
        rows: RowSolver,
        factor: np.ndarray,
        product: np.ndarray,
        anchor: np.ndarray,
        gram: np.ndarray,
        coupling: float,
    ) -> np.ndarray:
        r = factor.shape[1]
        given = (factor, product, anchor, gram, coupling)
        if isinstance(rows, Hals):
            room = hals_room(r, factor.itemsize)
            self._pass(hals_rows, "hals", 2.0 * r**2, (*given, rows.sweeps), room=room)
        else:
            self._pass(_pivot, "pivot", 2.0 * r**2, given)
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
        size, given = r * r, (U, product, Z, image, multiplier(U.dtype))
        found = self._pass(
            directions.direction_rows,
            "direction",
            4.0 * r * (r + 2),
            given,
            room=size,
            sums=2 + 2 * size,
        )
        slope, bend = found[:2].tolist()
        cross, length = found[2:].reshape(2, r, r)
        return Line(slope, bend, cross, length, Z, image)

    def advance(
        self, U: np.ndarray, product: np.ndarray, line: Line, t: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        given = (U, product, line.D, line.image, t)
        self._pass(directions.advance_rows, "advance", 3.0 * READING * U.shape[1], given)
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
        reach: float,
        gradient: np.ndarray,
        steps: np.ndarray,
        changes: np.ndarray,
        newest: int,
        slots: np.ndarray,
    ) -> np.ndarray:
        r, kept = U.shape[1], max(len(steps), 3)
        weights = gram.astype(U.dtype, copy=False)
        given = (
            U, product, weights, level, reach, gradient, steps, changes, newest, slots,
            multiplier(U.dtype),
        )  # fmt: skip
        found = self._pass(
            pairs.gradient_rows,
            "gradient",
            2.0 * r * (r + 6 * len(steps)),
            given,
            room=2 * BLOCK * r,
            sums=6 * kept,
        )
        return found.reshape(6, kept)

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
        r = U.shape[1]
        cost = 4.0 * r * (len(steps) + 1)
        self._pass(pairs.target_rows, "target", cost, given, room=BLOCK * r)
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
        inverse = ((vectors / (values + shift)) @ vectors.T).astype(kind, copy=False)
        turn = vectors.astype(kind, order="C", copy=False)
        kept = [] if spare is None else spare
        residual, basis = (kept.pop() if kept else np.empty_like(U) for _ in range(2))
        Z = np.empty_like(U)
        bounds = self.threads.bounds(n, 6.0 * r * r)
        parts = 1 if bounds is None else len(bounds) - 1
        room, sums = np.empty((parts, 2 * BLOCK * r + r * r), kind), np.empty((parts, r * r))
        curvature, coupling = gram.astype(kind, copy=False), np.empty((r, r), kind)
        address = multiplier(kind)
        prepared = (
            U, product, curvature, turn, dual, weight, residual, basis, address, room, sums,
        )  # fmt: skip
        relaxed = (
            U, residual, basis, inverse, coupling, weight, relaxation, Z, dual,
            np.zeros(2, np.int64), address, room, sums,
        )  # fmt: skip
        exact = multiplier(sums.dtype)
        model = (exact, np.ascontiguousarray(vectors), values, shift, steps)
        if bounds is None:
            directions.prepare_rows(prepared, 0, 0, n)
            directions.relax(relaxed, *model)
        else:
            share("gauss_newton", self.threads.count, bounds, prepared, relaxed, *model)
        kept += [residual, basis]
        return Z, dual


def single_sums(A: np.ndarray, B: np.ndarray) -> bool:
    """Whether BLAS, which has nothing to compile, would round sums of products to float32."""
    return not A.dtype == B.dtype == np.float64


def _inner(given: Any, part: int, begin: int, end: int) -> None:
    A, B, sums = given
    sums[part, 0] = np.vdot(A[begin:end], B[begin:end])


def _pivot(given: Any, part: int, begin: int, end: int) -> None:
    from symnmf.kernels.pivoting import pivot_rows

    pivot_rows(*given, begin, end)


def _combine(total: np.ndarray, terms: list[tuple[float, np.ndarray]], plus: float) -> None:
    """Write the sum of weighted arrays and a number."""
    kind = total.dtype.type
    (first, T), *others = terms
    np.multiply(T, kind(first), out=total)
    for weight, other in others:
        total += other if weight == 1.0 else kind(weight) * other
    if plus:
        total += kind(plus)
