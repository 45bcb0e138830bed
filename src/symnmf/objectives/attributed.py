"""A misfit to X and one to a table of attributes, with U in both: f(U) and ||F - U W^T||^2."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.kernels.quartics import quartic_sums
from symnmf.objectives.frobenius import Frobenius, MatrixObjective
from symnmf.objectives.objective import Coefficients, Objective
from symnmf.objectives.weighted import Weighted
from symnmf.ops import Factor, Ops, RowSolver
from symnmf.state import Point, Sums
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


class Hidden:
    """A block that is not observed, whose zeros are taken out of the misfit again."""

    sqnorm = 0.0

    def __init__(self, ops: Ops) -> None:
        self.ops = ops

    def add(self, F: Factor, V: Factor, T: Factor, out: Factor) -> Sums:
        """Add F V^T T to ``out``: the model stands for the data."""
        ops = self.ops
        if T.shape[1]:
            out += ops.times(F, ops.cross(V, T))
        size = float(np.vdot(ops.gram(F), ops.gram(V)))
        return -size, 0.0, -size

    def quartic(self, U: Factor, D: Factor) -> Coefficients:
        """Return c_1 to c_4 of -1/2 ||U U^T||^2 along U + t D."""
        ops = self.ops
        return tuple(-c for c in quartic_sums(ops.gram(U), ops.cross(U, D), ops.gram(D)))


class Blocks:
    """Passes over some rows and the same columns each."""

    def __init__(self, parts: list[tuple[slice, Any]]) -> None:
        self.parts = parts

    def add(self, F: Factor, V: Factor, T: Factor, out: Factor) -> Sums:
        """Add S T to ``out`` and return the sums of S."""
        sums = [part.add(F[at], V[at], T[at], out[at]) for at, part in self.parts]
        misfit, fit, size = map(sum, zip(*sums, strict=True))
        return misfit, fit, size

    def quartic(self, U: Factor, D: Factor) -> Coefficients:
        """Return c_1 to c_4 along U + t D."""
        parts = [part.quartic(U[at], D[at]) for at, part in self.parts]
        return tuple(map(sum, zip(*parts, strict=True)))

    @property
    def sqnorm(self) -> float:
        """The sum of w x^2."""
        return float(sum(part.sqnorm for _, part in self.parts))


class Attributed(Weighted):
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

    def __init__(self, base: MatrixObjective, table: Table, weight: float = 1.0) -> None:
        self.base, self.table, self.weight = base, table, weight
        n, m = table.shape
        whole = isinstance(base, Frobenius) or (isinstance(base, Weighted) and base.corrects)
        parts: list[tuple[slice, Any]] = [(slice(n, None), Hidden(base.ops))]
        if isinstance(base, Weighted):
            parts.append((slice(n), base.passes))
        if not whole:  # these passes have all of X in them
            parts.append((slice(n), Hidden(base.ops)))
        seen = np.repeat([n + m, n], [n, m])
        super().__init__(Bordered(base.storage, table, whole), Blocks(parts), True, seen, seen)
        self.rows, self.terms, self.bounded = n, base.terms, base.bounded

    @property
    def term_slope(self) -> float:
        return 0.0  # of W, on which there are no terms

    @property
    def spectral(self) -> bool:
        return self.base.spectral and not self.table.signed

    def describe(self) -> str:
        n, m = self.table.shape
        share = 2.0 * self.weight**2
        return f"{self.base.describe()} + {share:.6g}/2 ||F - U W^T||^2 with F {n} x {m}"

    def digest(self) -> str:
        both = f"{self.base.digest()}\n{self.table.digest()}"
        return hashlib.blake2b(both.encode(), digest_size=16).hexdigest()

    def stacked(self, U: np.ndarray, W: np.ndarray | None = None) -> np.ndarray:
        """Return U on top of W, or of the least squares fit to the table where W is not known."""
        if W is None:
            tall = self.ops.put(np.ascontiguousarray(U, dtype=self.dtype))
            below = self.ops.get(self.table.transposed(tall)).astype(np.float64)
            return np.vstack([U, np.maximum(below @ np.linalg.pinv(U.T @ U), 0.0)])
        return np.vstack([U, self.weight * W])

    # --- terms, which are on U alone

    def lowered(self, product: Factor, V: Factor, *, slope: bool = True) -> Factor:
        if self.terms:
            n = self.rows
            product[:n] = self.base.lowered(product[:n], V[:n], slope=slope)
        return product

    def pulled(self, U: Factor, V: Factor) -> float:
        return self.base.pulled(U[: self.rows], V[: self.rows])

    def pulled_evenly(self, U: Factor) -> float:
        return self.base.pulled_evenly(U[: self.rows])

    # --- moving

    def update(
        self, rows: RowSolver, factor: Factor, other: Factor, gram: np.ndarray, coupling: float,
        out: Factor | None = None,
    ) -> tuple[Factor, Factor | None]:  # fmt: skip
        """Minimise over U with the curvature of V and W, and over W with that of V alone."""
        ops, n = self.ops, self.rows
        product = self.product_at(factor, other, gram=gram, out=out)
        U, G, W = factor[:n], factor[n:], other[n:]
        squares = ops.gram(W)
        lower = ops.combine((1.0, product[n:]), (-1.0, ops.times(G, squares)))
        factor[:n] = ops.solve_rows(rows, U, product[:n], other[:n], gram, coupling)
        factor[n:] = ops.solve_rows(rows, G, lower, W, gram - squares, coupling)
        return factor, None

    def lengthened(self, Z: Point) -> np.ndarray:
        """Return longer steps for W, whose curvature is that of U alone."""
        longer = np.ones(self.shape[0])
        size = float(np.trace(self.ops.gram(Z.values[: self.rows])))
        longer[self.rows :] = float(np.trace(Z.gram)) / size if size > 0.0 else 1.0
        return longer

    # --- the same f elsewhere

    def with_storage(self, storage: SymmetricArray) -> Attributed:
        assert isinstance(storage, Bordered)
        return Attributed(self.base.with_storage(storage.inner), storage.table, self.weight)

    def for_rank(self, rank: int, *, warn: bool = True) -> Objective:
        return self  # the table observes rows that X does not
