"""Tall factors as NumPy arrays: rows are shared out over threads, and worked on in cache."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symnmf.kernels import directions, pairs
from symnmf.kernels.dense_products import times_rows
from symnmf.kernels.hals import hals_rows
from symnmf.ops.operations import Line, Nnls, Ops, RowSolver
from symnmf.parallel import Threads

BLOCK_ROWS = 2048  # of the factors that are worked on at a time
READING = 8.0  # floating point operations that take as long as to read an entry of two factors


class HostOps(Ops):
    """Operations on arrays in memory.

    Parameters
    ----------
    threads : Threads or None
        The threads that share the rows; None for all cores.
    """

    def __init__(self, threads: Threads | None = None) -> None:
        self.threads = Threads() if threads is None else threads

    def _rows(self, kernel: Callable[[int, int], Any], n: int, cost: float) -> Any:
        """Do a kernel on all of n rows, which cost so much each; return the sum of its results."""
        found, *others = self.threads.run(kernel, self.threads.split(n, cost))
        for other in others:  # in the order of the rows, whoever did them
            found = found + other
        return found

    def _over(self, block: Callable[[slice], Any], n: int, cost: float) -> list[Any]:
        """Do a few of n rows at a time, which cost so much each; return what that gives, in order.

        They stay in cache while several things are done to them.
        """

        def part(begin: int, end: int) -> list[Any]:
            tops = range(begin, end, BLOCK_ROWS)
            return [block(slice(top, min(top + BLOCK_ROWS, end))) for top in tops]

        chunks = self.threads.split(n, cost)
        if len(chunks) == 1:
            return part(0, n)
        parts = self.threads.run(part, chunks)
        return list(itertools.chain.from_iterable(parts))

    def product(self, F: Any, V: np.ndarray) -> np.ndarray:
        """Return F V for a full or a sparse F."""
        return np.asarray(F @ V)

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

    def combine(self, *terms: tuple[float, np.ndarray], plus: float = 0.0) -> np.ndarray:
        n, r = terms[0][1].shape
        total = np.empty_like(terms[0][1])

        kind = total.dtype.type

        def block(rows: slice) -> None:
            (first, T), *others = terms
            own = total[rows]
            np.multiply(T[rows], kind(first), out=own)
            for weight, other in others:
                own += other[rows] if weight == 1.0 else kind(weight) * other[rows]
            if plus:
                own += kind(plus)

        self._over(block, n, 2.0 * r * len(terms))
        return total

    def weigh_rows(self, T: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return T * weights[:, None].astype(T.dtype)

    def clip(self, T: np.ndarray) -> np.ndarray:
        return np.maximum(T, 0, out=T)

    def times(self, T: np.ndarray, small: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        T, right = np.ascontiguousarray(T), np.ascontiguousarray(small, T.dtype)
        found = np.empty((len(T), right.shape[1]), T.dtype) if out is None else out
        kernel = partial(times_rows, T, right, found)
        self.threads.run(kernel, self.threads.split(len(T), 2.0 * right.size))
        return found

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
        return sum(self._over(lambda rows: _inner(A[rows], B[rows]), len(A), cost))

    def cross(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
        kernel = partial(directions.cross_rows, A, B)
        return np.asarray(self._rows(kernel, len(A), 2.0 * A.shape[1] * B.shape[1]))

    def column_sums(self, T: np.ndarray) -> np.ndarray:
        return T.sum(axis=0, dtype=np.float64)

    def natural_residual(
        self, U: np.ndarray, product: np.ndarray, gram: np.ndarray, step: float
    ) -> float:
        small, twice = gram.astype(U.dtype, copy=False), U.dtype.type(2.0 * step)

        def block(rows: slice) -> float:
            u = U[rows]
            move = u @ small
            move -= product[rows]
            move *= twice
            np.minimum(u, move, out=move)  # u - max(u - move, 0)
            return _inner(move, move)

        return math.sqrt(sum(self._over(block, len(U), 2.0 * U.shape[1] ** 2)))

    def solve_rows(
        self,
        rows: RowSolver,
        factor: np.ndarray,
        product: np.ndarray,
        anchor: np.ndarray,
        gram: np.ndarray,
        coupling: float,
    ) -> np.ndarray:
        kernel: Callable[[int, int], Any]
        if isinstance(rows, Nnls):
            from symnmf.kernels.pivoting import pivot_rows

            kernel = partial(pivot_rows, factor, product, anchor, gram, coupling)
        else:
            kernel = partial(hals_rows, factor, product, anchor, gram, coupling, rows.sweeps)
        self.threads.run(kernel, self.threads.split(len(factor), 2.0 * factor.shape[1] ** 2))
        return factor

    def line(self, U: np.ndarray, product: np.ndarray, Z: np.ndarray, image: np.ndarray) -> Line:
        n, r = U.shape
        kernel = partial(directions.direction_rows, U, product, Z, image)
        sums = self._rows(kernel, n, 4.0 * r * (r + 2))
        cross, length = sums[2:].reshape(2, r, r)
        return Line(float(sums[0]), float(sums[1]), cross, length, Z, image)

    def advance(
        self, U: np.ndarray, product: np.ndarray, line: Line, t: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        step = U.dtype.type(t)

        def block(rows: slice) -> None:
            own, moved = U[rows], line.D[rows]
            moved *= step
            own += moved
            # rounding could leave a crumb below zero where the step goes all the way to it
            np.maximum(own, 0, out=own)
            product[rows] += step * line.image[rows]

        self._over(block, len(U), 3.0 * READING * U.shape[1])
        return U, product, line.D

    def put_at_zero(
        self, U: np.ndarray, product: np.ndarray, gram: np.ndarray, curvature: float
    ) -> int:
        held = (U > 0) & (curvature * U <= self.times(U, gram) - product)
        U[held] = 0
        return int(np.count_nonzero(held))

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
        n, r = U.shape
        kernel = partial(
            pairs.gradient_rows,
            *(U, product, gram.astype(U.dtype, copy=False), level, reach),
            *(gradient, steps, changes, newest, slots),
        )
        return np.asarray(self._rows(kernel, n, 2.0 * r * (r + 6 * len(steps))))

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
        weights = own, step_weights, change_weights
        kernel = partial(pairs.target_rows, U, gradient, steps, changes, *weights, out)
        self.threads.run(kernel, self.threads.split(len(U), 4.0 * U.shape[1] * (len(steps) + 1)))
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
        values, vectors = eigen[0], np.ascontiguousarray(eigen[1])
        weight, shift, relaxation = weights
        inverse = ((vectors / (values + shift)) @ vectors.T).astype(kind, copy=False)
        kept = [] if spare is None else spare
        residual, basis = (kept.pop() if kept else np.empty_like(U) for _ in range(2))
        np.subtract(product, self.times(U, gram, out=residual), out=residual)
        self.times(U, vectors, out=basis)
        moment = self.cross(basis, self.combine((1.0, residual), (-weight, dual)))
        Z, cost = U.copy(), 6.0 * r * r
        together = steps if len(self.threads.split(n, cost)) == 1 else 1
        for _ in range(0, steps, together):
            model = inverse, moment, vectors, values, shift, weight, relaxation
            relax = partial(directions.relax_rows, U, residual, basis, *model, Z, dual, together)
            moment = self._rows(relax, n, cost)
        kept += [residual, basis]
        return Z, dual


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    """Return <a, b>, summed in float64."""
    return float(np.vdot(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)))
