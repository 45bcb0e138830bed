"""1/2 ||X - U U^T||_F^2, every entry of X counted once."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from symnmf.objectives.objective import Coefficients, Objective
from symnmf.objectives.terms import Term, check_quadratic
from symnmf.ops import Factor, Line, RowSolver, quartic
from symnmf.state import Misfit, Point, State, Sums
from symnmf.storage import SymmetricMatrix
from symnmf.storage.spectrum import largest_eigenvalue
from symnmf.storage.symmetric import as_float32

#: Relative errors under which the trace identity has too few digits left.
IDENTITY_TRUSTED_ABOVE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-2}

#: The relative doubt up to which a misfit is carried along a run before X is read for it again.
CARRIED_WITHIN = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 5e-5}


class MatrixObjective(Objective):
    """What objectives of a matrix share: U V^T is the model of two factors, and terms on U.

    A term enters by half of its gradient, which every product is lowered by, so all that is made
    of products (gradients, sweeps, line searches) has it without knowing of it. Where every entry
    counts once, that is a product with X - Q/2. E stays the misfit to the data alone.
    """

    #: whether products depend on one factor alone, so that they outlive an update of the other
    fixed_products: ClassVar[bool] = False

    def with_terms(self, *terms: Term) -> Self:
        """Return f with terms added to it."""
        for term in terms:
            check_quadratic(term, self.ops, self.shape[0], self.dtype)
        other = copy.copy(self)
        other.terms = self.terms + terms
        other.bounded = self.bounded and all(term.nonnegative for term in terms)
        other.homogeneous = self.homogeneous and other.term_slope == 0.0
        return other

    # --- terms

    def _images(self, V: Factor) -> list[tuple[float, Factor]]:
        """Return Q V of each term that has a Q, as numbers and factors."""
        images = (term.times(self.ops, V) for term in self.terms)
        return [image for image in images if image is not None]

    def lowered(self, product: Factor, V: Factor, *, slope: bool = True) -> Factor:
        """Return a product at V less half of the gradient of the terms, 1/2 (Q V + c).

        Without ``slope`` it is that of a direction, whose c is 0.
        """
        if not self.terms:
            return product
        images = [(-0.5 * number, image) for number, image in self._images(V)]
        c = self.term_slope if slope else 0.0
        return self.ops.combine((1.0, product), *images, plus=-0.5 * c) if images or c else product

    def pulled(self, U: Factor, V: Factor) -> float:
        """Return what products are lowered by at U, times V: 1/2 <Q U + c, V>."""
        quadratic = sum(0.5 * q * self.ops.inner(image, V) for q, image in self._images(U))
        return quadratic + self.pulled_evenly(V)

    def pulled_evenly(self, U: Factor) -> float:
        """Return 1/2 <c, U>."""
        c = self.term_slope
        return 0.5 * c * float(self.ops.column_sums(U).sum()) if c else 0.0

    def added(self, U: Point) -> float:
        return self.pulled(U.values, U.values) + self.pulled_evenly(U.values) if self.terms else 0.0

    def split_added(self, state: State) -> float:
        U, V = state.U.values, state.V.values
        return self.pulled(U, V) + self.pulled_evenly(U) if self.terms else 0.0

    def best_multiple(self, U: Point) -> float:
        """Return the s >= 0 that minimises f(s U): with terms a quartic with a linear term."""
        if not self.terms:
            return super().best_multiple(U)
        _, fit, size = U.sums(self)
        first = 2.0 * self.pulled_evenly(U.values)
        second = 2.0 * (self.pulled(U.values, U.values) - 0.5 * first)
        slope = [2.0 * size, 0.0, second - 2.0 * fit, first]  # of 1/2 size s^4 + ... by s
        roots = np.roots(slope) if size > 0.0 else np.empty(0)
        real = roots.real[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0.0)]
        values = 0.5 * size * real**4 + (0.5 * second - fit) * real**2 + first * real
        if not len(real) or values.min() >= 0.0:
            return 0.0
        return float(real[values.argmin()])

    # --- moving

    def split_step(self, rows: RowSolver, state: State) -> None:
        old, buffer = state.V, state.U.known_product
        U, buffer = self.update(
            rows, state.U.values, old.values, old.gram, state.coupling, out=buffer
        )
        gram = self.ops.gram(U)
        # what is left in `product` is X U for the new U: the misfit costs no product
        V, product = self.update(rows, old.values, U, gram, state.coupling, out=buffer)
        state.U, state.V = Point(self.ops, U, product, gram), Point(self.ops, V)

    def update(
        self, rows: RowSolver, factor: Factor, other: Factor, gram: np.ndarray, coupling: float,
        out: Factor | None = None,
    ) -> tuple[Factor, Factor | None]:  # fmt: skip
        """Minimise over ``factor`` >= 0 with ``other`` fixed; return it and the product at other.

        ``gram`` is that of ``other``; ``factor`` and ``out`` may be overwritten. None stands for a
        product that depends on more than ``other``.
        """
        product = self.product_at(factor, other, gram=gram, out=out)
        factor = self.ops.solve_rows(rows, factor, product, other, gram, coupling)
        return factor, product if self.fixed_products else None

    def coupling_bound(self, twice: float) -> float:
        """Return 1/2 sqrt(2 g): Theorem 3' (docs/theory/coupling.md), weights of at most 1.

        A quarter of ||Q||_2 is added for terms, since both parts of the residual are bounded. It
        is infinite where a term can be negative.
        """
        if not self.bounded:
            return np.inf
        return 0.5 * float(np.sqrt(max(twice, 0.0))) + 0.25 * self.term_curvature

    def residual_times(self, U: Factor, V: Factor, T: Factor) -> Factor:
        """Return the symmetric part of S - Q/2 times T of any precision, in float64.

        S is the weighted residual at U V^T.
        """
        thin = self.ops.cast(T, self.dtype)
        image = self.misfit_times(U, V, thin)
        if not self.terms:
            return image
        bent = self.lowered(self.ops.zeros(thin.shape, self.dtype), thin, slope=False)
        return image + self._wide(bent)

    def residual_times_array(self, U: Factor, V: Factor, T: np.ndarray) -> np.ndarray:
        """Return the same for a host array."""
        return self.ops.get(self.residual_times(U, V, self.ops.put(T)))

    def _wide(self, T: Factor) -> Factor:
        return self.ops.cast(T, np.dtype(np.float64))

    @abstractmethod
    def misfit_times(self, U: Factor, V: Factor, T: Factor) -> Factor:
        """Return the symmetric part of S times T, in float64."""

    def plain_misfit_times(self, U: Factor, V: Factor, T: Factor) -> Factor:
        """Return the same of X - U V^T, whatever weights there are."""
        image, A, B, T = map(self._wide, (self.storage.matmul(T), U, V, T))
        return image - 0.5 * (A @ (B.T @ T) + B @ (A.T @ T))

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
        return largest_eigenvalue(self.shape[0], lambda v: -self.residual_times_array(U, V, v))


class Frobenius(MatrixObjective):
    r"""f(U) = 1/2 ||X - U U^T||_F^2.

    The misfit comes from the trace identity

    .. math:: \|X - UV^\top\|^2 = \|X\|^2 - 2\langle XU, V\rangle
        + \langle U^\top U, V^\top V\rangle,

    which needs no product beyond X U. It loses all digits when the misfit is small, so then the
    residual is formed entry by entry instead.
    """

    fixed_products: ClassVar[bool] = True

    def __init__(self, storage: SymmetricMatrix) -> None:
        super().__init__(storage)
        self._sqnorm: float | None = None  # of X, where the storage holds it in float32

    @property
    def plain_misfit(self) -> bool:
        return not self.terms

    @property
    def sqnorm(self) -> float:
        return self.storage.sqnorm if self._sqnorm is None else self._sqnorm

    @property
    def entries(self) -> SymmetricMatrix | None:
        return None if self.terms else self.storage.entries

    # --- f at a point

    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        return self.product_at(U.values, U.values), None

    def sums(self, U: Point, product: Factor) -> Sums:
        fit = self.ops.inner(product, U.values) + self.pulled(U.values, U.values)
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
        if not self.terms:  # the change along a line is that of the misfit
            U.misfit = Misfit(exact)
        return exact

    def split_misfit(self, state: State) -> float:
        U, V = state.U, state.V
        fit = self.ops.inner(U.product(self), V.values) + self.pulled(U.values, V.values)
        total = self.sqnorm - 2.0 * fit + float(np.vdot(U.gram, V.gram))
        exact = None
        if not total > IDENTITY_TRUSTED_ABOVE[self.dtype] * self.sqnorm:
            exact = self.storage.residual_sqnorm(U.values, V.values)
        return max(total, 0.0) if exact is None else exact

    # --- moving

    def product_at(
        self,
        factor: Factor,
        other: Factor,
        *,
        gram: np.ndarray | None = None,
        out: Factor | None = None,
    ) -> Factor:
        return self.lowered(self.storage.matmul(other, out), other)

    def along(
        self, U: Factor, product: Factor, gram: np.ndarray, target: Factor, out: Factor
    ) -> tuple[Line, Coefficients]:
        line = self.ops.line(U, product, target, self.product_at(U, target, out=out))
        return line, quartic(gram, line)

    def advance(
        self, U: Factor, product: Factor, line: Line, t: float
    ) -> tuple[Factor, Factor | None, Factor]:
        return self.ops.advance(U, product, line, t)

    def misfit_times(self, U: Factor, V: Factor, T: Factor) -> Factor:
        return self.plain_misfit_times(U, V, T)

    # --- the same f elsewhere

    @property
    def as_float32(self) -> Frobenius | None:
        narrow = as_float32(self.storage)
        if narrow is None:
            return None
        single = self.with_storage(narrow)
        single._sqnorm = self.sqnorm
        return single
