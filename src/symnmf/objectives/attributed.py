"""A misfit to X and one to a table of attributes, with U in both: f(U) and ||F - U W^T||^2."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.objectives.frobenius import (
    IDENTITY_TRUSTED_ABOVE,
    Frobenius,
    MatrixObjective,
)
from symnmf.objectives.objective import Coefficients, GramMaker, Objective
from symnmf.ops import Factor, Line, RowSolver, quartic
from symnmf.parallel import Threads
from symnmf.state import Point, State, Sums
from symnmf.storage.bordered import Bordered
from symnmf.storage.symmetric import SymmetricArray
from symnmf.storage.table import Table, as_table


def with_table(f: MatrixObjective, F: Any, weight: Any) -> Attributed:
    """Return f and weight/2 ||X||^2 / ||F||^2 ||F - U W^T||^2, the table checked."""
    number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
    if not (number and np.isfinite(weight) and weight > 0):
        raise InputError(f"attribute_weight must be a number above 0, got {weight!r}.")
    table = as_table(F, f.shape[0], f.dtype, f.ops)
    unit = f.sqnorm / table.sqnorm if f.sqnorm > 0.0 else 1.0
    root = float(np.sqrt(0.5 * weight * unit))
    return Attributed(f, table.scaled(root), root)


class Attributed(MatrixObjective):
    r"""f(U) + ||F - U W^T||_F^2 over U >= 0 and W >= 0, f an objective of X.

    The factor of a run is Z = (U; W), U on top of W. This is the misfit of Z Z^T to the block
    matrix [[X, F], [F^T, ?]], whose last block is not observed. So everything that holds for a
    misfit with hidden entries holds here: f falls in every step, and a critical point is critical
    in U and in W. The hidden block is not visited entry by entry: W^T W is enough.

    Parameters
    ----------
    base : MatrixObjective
        f, which may have weights and terms of its own; terms are on U alone.
    table : Table
        F, times the root of half its weight.
    weight : float
        That root, by which W is divided before it is returned.
    """

    homogeneous = False

    def __init__(self, base: MatrixObjective, table: Table, weight: float = 1.0) -> None:
        super().__init__(Bordered(base.storage, table))
        self.base, self.table, self.weight = base, table, weight
        self.rows = base.shape[0]
        self.bounded = base.bounded
        # products of a plain misfit move along a line as its factor does
        self.plain = isinstance(base, Frobenius)

    # --- what X is

    @property
    def sqnorm(self) -> float:
        return self.base.sqnorm + 2.0 * self.table.sqnorm

    def largest(self) -> float:
        return max(self.base.largest(), self.table.largest())

    @property
    def unseen(self) -> np.ndarray | None:
        return None  # a row of the table is always observed

    @property
    def term_slope(self) -> float:
        return 0.0  # of W, on which there are no terms

    @property
    def term_curvature(self) -> float:
        return self.base.term_curvature

    @property
    def unit_weights(self) -> bool:
        return False

    @property
    def spectral(self) -> bool:
        return self.base.spectral and not self.table.signed

    def describe_misfit(self) -> str:
        n, m = self.table.shape
        share = 2.0 * self.weight**2
        return f"{self.base.describe()} + {share:.6g}/2 ||F - U W^T||^2 with F {n} x {m}"

    def digest_misfit(self) -> str:
        both = f"{self.base.digest()}\n{self.table.digest()}"
        return hashlib.blake2b(both.encode(), digest_size=16).hexdigest()

    # --- f at a point

    def _cut(self, Z: Factor) -> tuple[Factor, Factor]:
        return Z[: self.rows], Z[self.rows :]

    def _joined(self, upper: Factor, lower: Factor, out: Factor | None = None) -> Factor:
        if out is None:
            ops = self.ops
            out = ops.zeros((self.shape[0], upper.shape[1]), ops.dtype(upper))
        out[: self.rows], out[self.rows :] = upper, lower
        return out

    def _own(self, Z: Point) -> Point:
        """Return the point of f alone."""
        U, W = self._cut(Z.values)
        product = Z.known_product
        if product is not None:
            product = self.ops.combine((1.0, product[: self.rows]), (-1.0, self.table.times(W)))
        return Point(self.ops, U, product)

    def stacked(self, U: np.ndarray, W: np.ndarray | None = None) -> np.ndarray:
        """Return U on top of W, or of the least squares fit to the table where W is not known."""
        if W is None:
            tall = self.ops.put(np.ascontiguousarray(U, dtype=self.dtype))
            below = self.ops.get(self.table.transposed(tall)).astype(np.float64)
            return np.vstack([U, np.maximum(below @ np.linalg.pinv(U.T @ U), 0.0)])
        return np.vstack([U, self.weight * W])

    def product_and_sums(self, Z: Point) -> tuple[Factor, Sums | None]:
        return self.product_at(Z.values, Z.values), None

    def _table_misfit(self, fit: float, size: float, U: Factor, W: Factor) -> float:
        total = self.table.sqnorm - 2.0 * fit + size
        if total > IDENTITY_TRUSTED_ABOVE[self.dtype] * self.table.sqnorm:
            return total
        return self.table.residual_sqnorm(U, W)

    def sums(self, Z: Point) -> Sums:
        ops, (U, W) = self.ops, self._cut(Z.values)
        squares = ops.gram(W)
        gram = Z.gram - squares
        size = float(np.vdot(gram, squares))
        upper, lower = self._cut(Z.product(self))
        fit = ops.inner(lower, W) - float(np.vdot(squares, squares))
        if self.plain:
            explained = ops.inner(upper, U) - fit + self.base.pulled(U, U)
            own = float(np.vdot(gram, gram))
            misfit = self.base.sqnorm - 2.0 * explained + own
        else:
            misfit, explained, own = self.base.sums(self._own(Z))
        total = misfit + 2.0 * (self.table.sqnorm - 2.0 * fit + size)
        return total, explained + 2.0 * fit, own + 2.0 * size

    def misfit(self, Z: Point) -> float:
        total = Z.sums(self)[0]
        if total > 2.0 * IDENTITY_TRUSTED_ABOVE[self.dtype] * self.sqnorm:
            return total
        U, W = self._cut(Z.values)
        return self.base.misfit(self._own(Z)) + 2.0 * self.table.residual_sqnorm(U, W)

    def added(self, Z: Point) -> float:
        return self.base.added(Point(self.ops, self._cut(Z.values)[0]))

    def _split_own(self, state: State) -> State:
        V = state.V
        top = Point(self.ops, self._cut(V.values)[0])
        return State(self._own(state.U), top, coupling=state.coupling)

    def split_added(self, state: State) -> float:
        return self.base.split_added(self._split_own(state))

    def split_misfit(self, state: State) -> float:
        """Return that of U V^T, where F and F^T have a misfit each."""
        ops = self.ops
        (U, W), (V, T) = self._cut(state.U.values), self._cut(state.V.values)
        own = self.base.split_misfit(self._split_own(state))
        for left, right in ((U, T), (V, W)):
            fit = ops.inner(self.table.times(right), left)
            size = float(np.vdot(ops.gram(left), ops.gram(right)))
            own += self._table_misfit(fit, size, left, right)
        return max(own, 0.0)

    # --- moving

    def product_at(
        self,
        factor: Factor,
        other: Factor,
        *,
        gram: np.ndarray | None = None,
        out: Factor | None = None,
    ) -> Factor:
        ops = self.ops
        (F, G), (V, W) = self._cut(factor), self._cut(other)
        upper = ops.combine((1.0, self.base.product_at(F, V)), (1.0, self.table.times(W)))
        bent = ops.times(G, ops.gram(W))  # of the hidden block: its model stands for its data
        lower = ops.combine((1.0, self.table.transposed(V)), (1.0, bent))
        return self._joined(upper, lower, out)

    def update(
        self, rows: RowSolver, factor: Factor, other: Factor, gram: GramMaker, coupling: float,
        out: Factor | None = None,
    ) -> tuple[Factor, Factor | None]:  # fmt: skip
        """Minimise over U with the curvature of V and W, and over W with that of V alone."""
        ops = self.ops
        (U, G), (V, W) = self._cut(factor), self._cut(other)
        inner, squares = ops.gram(V), ops.gram(W)
        upper = ops.combine((1.0, self.base.product_at(U, V)), (1.0, self.table.times(W)))
        U = ops.solve_rows(rows, U, upper, V, inner + squares, coupling)
        G = ops.solve_rows(rows, G, self.table.transposed(V), W, inner, coupling)
        return self._joined(U, G), None

    def along(
        self, Z: Factor, product: Factor, gram: np.ndarray, target: Factor, out: Factor
    ) -> tuple[Line, Coefficients]:
        ops, table = self.ops, self.table
        U, W = self._cut(Z)
        squares = ops.gram(W)
        inner = gram - squares
        E = ops.combine((1.0, target[self.rows :]), (-1.0, W))
        line, (c1, c2, c3, c4) = self._own_line(U, W, product, inner, target, out)
        D = line.D
        beside, below = table.times(E), table.transposed(D)
        slope = ops.inner(below, W)  # <F W, D>
        if self.plain:  # the product had F W in it
            c1 += 2.0 * slope
        cross, lower = line.cross, ops.cross(W, E)
        mixed, bent = cross + cross.T, lower + lower.T
        moved, grown = line.gram, ops.gram(E)
        # ||F - (U + t D)(W + t E)^T||^2 from products and r x r matrices
        c1 += -2.0 * (slope + ops.inner(beside, U)) + _dot(inner, bent) + _dot(mixed, squares)
        c2 += -2.0 * ops.inner(beside, D) + _dot(inner, grown) + _dot(moved, squares)
        c2 += _dot(mixed, bent)
        c3 += _dot(mixed, grown) + _dot(moved, bent)
        c4 += _dot(moved, grown)
        image = ops.combine((1.0, line.image), (1.0, beside)) if self.plain else beside
        way = Line(
            0.0, 0.0, cross + lower, moved + grown, self._joined(D, E),
            self._joined(image, below, out),
        )  # fmt: skip
        return way, (c1, c2, c3, c4)

    def _own_line(
        self, U: Factor, W: Factor, product: Factor, gram: np.ndarray, target: Factor, out: Factor
    ) -> tuple[Line, Coefficients]:
        """Return what f alone does on the line; where it is plain, by the product of all of it."""
        ops, n = self.ops, self.rows
        if not self.plain:
            own = ops.combine((1.0, product[:n]), (-1.0, self.table.times(W)))
            return self.base.along(U, own, gram, target[:n], out[:n])
        D = ops.combine((1.0, target[:n]), (-1.0, U))
        image = self.base.lowered(self.base.storage.matmul(D, out[:n]), D, slope=False)
        slope, bend = ops.inner(product[:n], D), ops.inner(image, D)
        line = Line(slope, bend, ops.cross(U, D), ops.gram(D), D, image)
        return line, quartic(gram, line)

    def advance(
        self, Z: Factor, product: Factor, line: Line, t: float
    ) -> tuple[Factor, Factor | None, Factor]:
        ops = self.ops
        if not self.plain:
            moved = ops.combine((t, line.D))
            return ops.clip(ops.combine((1.0, Z), (1.0, moved))), None, moved
        # all of the product moves in a straight line but for what the hidden block adds
        W = Z[self.rows :]
        product[self.rows :] -= ops.times(W, ops.gram(W))
        Z, product, moved = ops.advance(Z, product, line, t)
        W = Z[self.rows :]
        product[self.rows :] += ops.times(W, ops.gram(W))
        return Z, product, moved

    def aim(self, Z: Point) -> Factor:
        """Return the product with longer steps for W, whose curvature is that of U alone."""
        ops = self.ops
        size = float(np.trace(ops.gram(Z.values[: self.rows])))
        if not size > 0.0:
            return Z.product(self)
        longer = np.ones(self.shape[0])
        longer[self.rows :] = float(np.trace(Z.gram)) / size
        curved = ops.times(Z.values, Z.gram)
        gap = ops.weigh_rows(ops.combine((1.0, Z.product(self)), (-1.0, curved)), longer)
        return ops.combine((1.0, curved), (1.0, gap))

    def misfit_times(self, U: Factor, V: Factor, T: Factor) -> Factor:
        (A, G), (B, H), (C, K) = self._cut(U), self._cut(V), self._cut(T)
        upper = self.base.residual_times(A, B, C) + self._wide(self.table.times(K))
        below = self._wide(self.table.transposed(C))
        A, G, B, H, C, K = map(self._wide, (A, G, B, H, C, K))
        # the symmetric part of what is left of F, at A H^T and at B G^T
        upper = upper - 0.5 * (A @ (H.T @ K) + B @ (G.T @ K))
        below = below - 0.5 * (H @ (A.T @ C) + G @ (B.T @ C))
        return self._joined(upper, below)

    # --- the same f elsewhere

    def with_storage(self, storage: SymmetricArray) -> Attributed:
        assert isinstance(storage, Bordered)
        return Attributed(self.base.with_storage(storage.inner), storage.table, self.weight)

    def with_threads(self, threads: Threads) -> Attributed:
        return Attributed(self.base.with_threads(threads), self.table, self.weight)

    def for_rank(self, rank: int, *, warn: bool = True) -> Objective:
        return self  # the table observes rows that X does not


def _dot(A: np.ndarray, B: Any) -> float:
    return float(np.vdot(A, B))
