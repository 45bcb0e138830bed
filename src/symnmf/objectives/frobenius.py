"""1/2 ||X - U U^T||_F^2, every entry of X counted once."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from symnmf.objectives.objective import (
    Coefficients,
    GramMaker,
    Objective,
    relative,
)
from symnmf.ops import Factor, Line, RowSolver, quartic
from symnmf.parallel import Threads
from symnmf.state import Misfit, Point, State, Sums
from symnmf.storage import Entries, SymmetricArray, SymmetricMatrix
from symnmf.storage.spectrum import largest_eigenvalue

#: Relative errors under which the trace identity has too few digits left.
IDENTITY_TRUSTED_ABOVE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-2}

#: The relative doubt up to which a misfit is carried along a run before X is read for it again.
CARRIED_WITHIN = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 5e-5}


class MatrixObjective(Objective):
    """What objectives of a matrix share: U V^T is the model of two factors."""

    def split_step(self, rows: RowSolver, state: State) -> None:
        old, buffer = state.V, state.U.known_product
        U, buffer = self.update(
            rows, state.U.values, old.values, lambda: old.gram, state.coupling, out=buffer
        )
        gram = self.ops.gram_ahead(U)
        # what is left in `product` is X U for the new U: the misfit costs no product
        V, product = self.update(rows, old.values, U, gram, state.coupling, out=buffer)
        state.U, state.V = Point(self.ops, U, product, gram()), Point(self.ops, V)

    def update(
        self, rows: RowSolver, factor: Factor, other: Factor, gram: GramMaker, coupling: float,
        out: Factor | None = None,
    ) -> tuple[Factor, Factor | None]:  # fmt: skip
        """Minimise over ``factor`` >= 0 with ``other`` fixed; return it and the product at other.

        ``factor`` and ``out`` may be overwritten. None stands for a product that depends on more
        than ``other``.
        """
        curvature = gram()
        product = self.product_at(factor, other, gram=curvature, out=out)
        return self.ops.solve_rows(rows, factor, product, other, curvature, coupling), None

    def coupling_bound(self, twice: float) -> float:
        """Return 1/2 sqrt(2 g): Theorem 3' (docs/theory/coupling.md), weights of at most 1."""
        return 0.5 * float(np.sqrt(max(twice, 0.0)))

    @abstractmethod
    def residual_times(self, U: Factor, V: Factor, T: np.ndarray) -> np.ndarray:
        """Return the symmetric part of S, the weighted residual at U V^T, times a host array.

        With added terms it is S - Q/2. In float64.
        """

    def split_gradients(self, state: State) -> list[np.ndarray]:
        get = self.ops.get
        U, V = (get(point.values).astype(np.float64) for point in (state.U, state.V))
        pull = state.coupling * (U - V)
        first, second = state.U.values, state.V.values
        product_U = get(self.product_at(first, second, gram=state.V.gram))
        product_V = get(self.product_at(second, first, gram=state.U.gram))
        return [U @ state.V.gram - product_U + pull, V @ state.U.gram - product_V - pull]

    def split_curvature(self, state: State) -> float:
        """Return the largest eigenvalue of minus the symmetric part of the residual."""
        U, V = state.U.values, state.V.values
        return largest_eigenvalue(self.shape[0], lambda v: -self.residual_times(U, V, v))


class Frobenius(MatrixObjective):
    r"""f(U) = 1/2 ||X - U U^T||_F^2.

    The misfit comes from the trace identity

    .. math:: \|X - UV^\top\|^2 = \|X\|^2 - 2\langle XU, V\rangle
        + \langle U^\top U, V^\top V\rangle,

    which needs no product beyond X U. It loses all digits when the misfit is small, so then the
    residual is formed entry by entry instead.
    """

    offers: ClassVar[frozenset[str]] = frozenset({"plain", "rows", "line", "gradient"})

    def __init__(self, storage: SymmetricMatrix, sqnorm: float | None = None) -> None:
        super().__init__(storage)
        self._sqnorm = sqnorm

    @property
    def sqnorm(self) -> float:
        return self.storage.sqnorm if self._sqnorm is None else self._sqnorm

    @property
    def entries(self) -> Entries | None:
        return self.storage.entries

    def digest(self) -> str:
        return self.storage.digest()

    # --- f at a point

    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        return self.storage.matmul(U.values), None

    def sums(self, U: Point) -> Sums:
        fit = self.ops.inner(U.product(self), U.values)
        size = float(np.vdot(U.gram, U.gram))
        return self.sqnorm - 2.0 * fit + size, fit, size

    def misfit(self, U: Point) -> float:
        total, known = U.sums(self)[0], U.misfit
        if total > IDENTITY_TRUSTED_ABOVE[self.dtype] * self.sqnorm:
            return total
        if known is not None and known.doubt <= CARRIED_WITHIN[self.dtype] * known.sqnorm:
            return known.sqnorm
        exact = self.storage.residual_sqnorm(U.values, U.values)
        if exact is None:
            return max(total, 0.0)
        U.misfit = Misfit(exact)
        return exact

    def split_sums(self, state: State) -> tuple[float, float, float, float]:
        U, V = state.U, state.V
        own, mixed, apart, size = self.ops.split(U.product(self), U.values, V.values)
        return (
            self._trusted(self._identity(own, U, U), U.values, U.values),
            self._trusted(self._identity(mixed, U, V), U.values, V.values),
            apart,
            relative(apart, size),
        )

    def twice_split(self, state: State) -> float:
        U, V = state.U, state.V
        _, mixed, apart, _ = self.ops.split(U.product(self), U.values, V.values)
        return max(self._identity(mixed, U, V), 0.0) + state.coupling * apart

    def _identity(self, explained: float, U: Point, V: Point) -> float:
        return self.sqnorm - 2.0 * explained + float(np.vdot(U.gram, V.gram))

    def _trusted(self, total: float, U: Factor, V: Factor) -> float:
        if not total > IDENTITY_TRUSTED_ABOVE[self.dtype] * self.sqnorm:
            exact = self.storage.residual_sqnorm(U, V)
            if exact is not None:
                return exact
        return max(total, 0.0)

    # --- moving

    def product_at(
        self,
        factor: Factor,
        other: Factor,
        *,
        gram: np.ndarray | None = None,
        out: Factor | None = None,
    ) -> Factor:
        return self.storage.matmul(other, out)

    def along(
        self, U: Factor, product: Factor, gram: np.ndarray, target: Factor, out: Factor
    ) -> tuple[Line, Coefficients]:
        line = self.ops.line(U, product, target, self.storage.matmul(target, out=out))
        return line, quartic(gram, line)

    def advance(
        self, U: Factor, product: Factor, line: Line, t: float
    ) -> tuple[Factor, Factor | None, Factor]:
        return self.ops.advance(U, product, line, t)

    def update(
        self, rows: RowSolver, factor: Factor, other: Factor, gram: GramMaker, coupling: float,
        out: Factor | None = None,
    ) -> tuple[Factor, Factor | None]:  # fmt: skip
        return self.storage.update(rows, factor, other, gram, coupling, out=out)

    def residual_times(self, U: Factor, V: Factor, T: np.ndarray) -> np.ndarray:
        thin = np.ascontiguousarray(T, dtype=self.dtype)
        image = self.ops.get(self.storage.matmul(self.ops.put(thin))).astype(np.float64)
        A, B = (self.ops.get(factor).astype(np.float64) for factor in (U, V))
        return image - 0.5 * (A @ (B.T @ T) + B @ (A.T @ T))

    # --- the same f elsewhere

    @property
    def as_float32(self) -> Frobenius | None:
        narrow = self.storage.as_float32
        return None if narrow is None else Frobenius(narrow, self.sqnorm)

    def with_storage(self, storage: SymmetricArray) -> Self:
        return type(self)(storage)  # type: ignore[arg-type]

    def with_threads(self, threads: Threads) -> Self:
        return self.with_storage(self.storage.with_threads(threads))
