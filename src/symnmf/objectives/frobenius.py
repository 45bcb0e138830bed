"""1/2 ||X - U U^T||_F^2, every entry of X counted once."""

from __future__ import annotations

import copy
import hashlib
from abc import abstractmethod
from typing import Self

import numpy as np

from symnmf.objectives.objective import (
    Coefficients,
    GramMaker,
    Objective,
    relative,
)
from symnmf.objectives.terms import Term, check_quadratic, terms_in_float32
from symnmf.ops import Factor, Line, RowSolver, quartic
from symnmf.parallel import Threads
from symnmf.state import Misfit, Point, State, Sums
from symnmf.storage import SymmetricArray, SymmetricMatrix
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

    def with_terms(self, *terms: Term) -> Self:
        """Return f with terms added to it."""
        for term in terms:
            check_quadratic(term, self.ops, self.shape[0], self.dtype)
        other = copy.copy(self)
        other.terms = self.terms + terms
        other.bounded = self.bounded and all(term.nonnegative for term in terms)
        other.homogeneous = self.homogeneous and other.term_slope == 0.0
        return other

    @property
    def term_slope(self) -> float:
        return sum(term.slope for term in self.terms)

    @property
    def term_curvature(self) -> float:
        return sum(term.size for term in self.terms)

    def describe(self) -> str:
        return " + ".join([self.describe_misfit(), *(term.describe() for term in self.terms)])

    def describe_misfit(self) -> str:
        """Return f without its terms in a formula."""
        return "1/2 ||X - U U^T||^2"

    def digest(self) -> str:
        if not self.terms:
            return self.digest_misfit()
        parts = [self.digest_misfit(), *(term.describe() for term in self.terms)]
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()

    @abstractmethod
    def digest_misfit(self) -> str:
        """Return a fingerprint of f without its terms."""

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
        return quadratic + self._linear(V)

    def _linear(self, U: Factor) -> float:
        c = self.term_slope
        return 0.5 * c * float(self.ops.column_sums(U).sum()) if c else 0.0

    def added(self, U: Point) -> float:
        return self.pulled(U.values, U.values) + self._linear(U.values) if self.terms else 0.0

    def split_added(self, state: State) -> float:
        U, V = state.U.values, state.V.values
        return self.pulled(U, V) + self._linear(U) if self.terms else 0.0

    @abstractmethod
    def split_misfit(self, state: State) -> float:
        """Return the sum of w (x - m)^2 over the model m of two factors."""

    def split_sums(self, state: State) -> tuple[float, float, float, float]:
        apart = self.ops.apart(state.U.values, state.V.values)
        split = self.split_misfit(state)
        return self.misfit(state.U), split, apart, relative(apart, state.V.size)

    def twice_split(self, state: State) -> float:
        apart = self.ops.apart(state.U.values, state.V.values)
        misfit = self.split_misfit(state)
        return misfit + state.coupling * apart + 2.0 * self.split_added(state)

    def best_multiple(self, U: Point) -> float:
        """Return the s >= 0 that minimises f(s U): with terms a quartic with a linear term."""
        if not self.terms:
            return super().best_multiple(U)
        _, fit, size = U.sums(self)
        first = 2.0 * self._linear(U.values)
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
        for number, bent in self._images(thin):
            image = image - 0.5 * number * self._wide(bent)
        return image

    def residual_times_array(self, U: Factor, V: Factor, T: np.ndarray) -> np.ndarray:
        """Return the same for a host array."""
        return self.ops.get(self.residual_times(U, V, self.ops.put(T)))

    def _wide(self, T: Factor) -> Factor:
        return self.ops.cast(T, np.dtype(np.float64))

    @abstractmethod
    def misfit_times(self, U: Factor, V: Factor, T: Factor) -> Factor:
        """Return the symmetric part of S times T, in float64."""

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

    @property
    def plain_misfit(self) -> bool:
        return not self.terms

    def __init__(self, storage: SymmetricMatrix, sqnorm: float | None = None) -> None:
        super().__init__(storage)
        self._sqnorm = sqnorm

    @property
    def sqnorm(self) -> float:
        return self.storage.sqnorm if self._sqnorm is None else self._sqnorm

    @property
    def entries(self) -> SymmetricMatrix | None:
        return None if self.terms else self.storage.entries

    def digest_misfit(self) -> str:
        return self.storage.digest()

    # --- f at a point

    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        return self.lowered(self.storage.matmul(U.values), U.values), None

    def sums(self, U: Point) -> Sums:
        fit = self.ops.inner(U.product(self), U.values) + self.pulled(U.values, U.values)
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
        image = self.lowered(self.storage.matmul(target, out=out), target)
        line = self.ops.line(U, product, target, image)
        return line, quartic(gram, line)

    def advance(
        self, U: Factor, product: Factor, line: Line, t: float
    ) -> tuple[Factor, Factor | None, Factor]:
        return self.ops.advance(U, product, line, t)

    def update(
        self, rows: RowSolver, factor: Factor, other: Factor, gram: GramMaker, coupling: float,
        out: Factor | None = None,
    ) -> tuple[Factor, Factor | None]:  # fmt: skip
        product = self.product_at(factor, other, out=out)
        return self.ops.solve_rows(rows, factor, product, other, gram(), coupling), product

    def misfit_times(self, U: Factor, V: Factor, T: Factor) -> Factor:
        image, A, B, T = map(self._wide, (self.storage.matmul(T), U, V, T))
        return image - 0.5 * (A @ (B.T @ T) + B @ (A.T @ T))

    # --- the same f elsewhere

    @property
    def as_float32(self) -> Frobenius | None:
        narrow, terms = as_float32(self.storage), terms_in_float32(self.terms)
        if narrow is None or terms is None:
            return None
        single = self.with_storage(narrow)
        single.terms, single._sqnorm = terms, self.sqnorm
        return single

    def with_storage(self, storage: SymmetricArray) -> Self:
        other = copy.copy(self)
        other.storage, other._sqnorm = storage, None
        return other

    def with_threads(self, threads: Threads) -> Self:
        return self.with_storage(self.storage.with_threads(threads))
