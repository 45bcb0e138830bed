"""An objective and terms on U added to it."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import numpy as np

from symnmf.objectives.frobenius import MatrixObjective
from symnmf.objectives.objective import Coefficients
from symnmf.objectives.terms import Term
from symnmf.ops import Factor, Line
from symnmf.parallel import Threads
from symnmf.state import Point, State, Sums
from symnmf.storage import SymmetricArray


class Added(MatrixObjective):
    """``base`` plus ``terms``; E stays the misfit to the data alone.

    A term enters by half of its gradient, which every product is lowered by, so all that is made
    of products (gradients, sweeps, line searches) has it without knowing of it.
    """

    offers: ClassVar[frozenset[str]] = frozenset({"rows", "line", "gradient"})
    beyond: ClassVar[str] = "added terms (l1, ridge, links)"
    homogeneous = False

    def __init__(self, base: MatrixObjective, terms: tuple[Term, ...]) -> None:
        super().__init__(base.storage)
        self.base, self.terms = base, terms
        self.bounded = base.bounded and all(term.nonnegative for term in terms)

    @property
    def sqnorm(self) -> float:
        return self.base.sqnorm

    def largest(self) -> float:
        return self.base.largest()

    @property
    def unseen(self) -> np.ndarray | None:
        return self.base.unseen

    @property
    def term_slope(self) -> float:
        return sum(term.slope for term in self.terms)

    @property
    def term_curvature(self) -> float:
        return sum(term.size for term in self.terms)

    @property
    def unit_weights(self) -> bool:
        return self.base.unit_weights

    def describe(self) -> str:
        return " + ".join([self.base.describe(), *(term.describe() for term in self.terms)])

    def digest(self) -> str:
        parts = [self.base.digest(), *(term.describe() for term in self.terms)]
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()

    # --- f at a point

    def _pull(self, V: Factor) -> list[tuple[float, Factor]]:
        """Return what a product is lowered by."""
        return [(-1.0, term.half_gradient(self.ops, V)) for term in self.terms]

    def _plain(self, U: Point) -> Point:
        """Return the point with the product that ``base`` has there."""
        raised = ((1.0, part) for _, part in self._pull(U.values))
        return Point(
            self.ops,
            U.values,
            self.ops.combine((1.0, U.product(self)), *raised),
            U.gram,
        )

    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        product, sums = self.base.product_and_sums(U)
        return self.ops.combine((1.0, product), *self._pull(U.values)), sums

    def sums(self, U: Point) -> Sums:
        return self.base.sums(self._plain(U))

    def misfit(self, U: Point) -> float:
        return self.base.misfit(self._plain(U))

    def added(self, U: Point) -> float:
        return sum(term.value(self.ops, U.values, U.values) for term in self.terms)

    def split_added(self, state: State) -> float:
        U, V = state.U.values, state.V.values
        return sum(term.value(self.ops, U, V) for term in self.terms)

    def _base_state(self, state: State) -> State:
        return State(self._plain(state.U), state.V, coupling=state.coupling)

    def split_sums(self, state: State) -> tuple[float, float, float, float]:
        return self.base.split_sums(self._base_state(state))

    def twice_split(self, state: State) -> float:
        return self.base.twice_split(self._base_state(state)) + 2.0 * self.split_added(state)

    def best_multiple(self, U: Point) -> float:
        """Return the s >= 0 that minimises f(s U), a quartic with a linear term."""
        _, fit, size = self.sums(U)
        ops = self.ops
        flat = sum(
            2.0 * ops.inner(term.half_gradient(ops, U.values), U.values) for term in self.terms
        )
        bent = (term.half_curvature(ops, U.values) for term in self.terms)
        second = sum(2.0 * ops.inner(part, U.values) for part in bent if part is not None)
        first = flat - second
        slope = [2.0 * size, 0.0, second - 2.0 * fit, first]  # of 1/2 size s^4 + ... by s
        roots = np.roots(slope) if size > 0.0 else np.empty(0)
        real = roots.real[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0.0)]
        values = 0.5 * size * real**4 + (0.5 * second - fit) * real**2 + first * real
        if not len(real) or values.min() >= 0.0:
            return 0.0
        return float(real[values.argmin()])

    # --- moving

    def product_at(
        self,
        factor: Factor,
        other: Factor,
        *,
        gram: np.ndarray | None = None,
        out: Factor | None = None,
    ) -> Factor:
        product = self.base.product_at(factor, other, gram=gram, out=out)
        return self.ops.combine((1.0, product), *self._pull(other))

    def along(
        self, U: Factor, product: Factor, gram: np.ndarray, target: Factor, out: Factor
    ) -> tuple[Line, Coefficients]:
        ops = self.ops
        pulls = [term.half_gradient(ops, U) for term in self.terms]
        plain = ops.combine((1.0, product), *((1.0, pull) for pull in pulls))
        line, (c1, c2, *higher) = self.base.along(U, plain, gram, target, out)
        c1 += sum(2.0 * ops.inner(pull, line.D) for pull in pulls)
        bent = [term.half_curvature(ops, line.D) for term in self.terms]
        curves = [part for part in bent if part is not None]
        if curves:
            c2 += sum(ops.inner(part, line.D) for part in curves)
            lowered = ((-1.0, part) for part in curves)
            line = line._replace(image=ops.combine((1.0, line.image), *lowered))
        return line, (c1, c2, *higher)

    def advance(
        self, U: Factor, product: Factor, line: Line, t: float
    ) -> tuple[Factor, Factor | None, Factor]:
        return self.base.advance(U, product, line, t)

    def aim(self, U: Point) -> Factor:
        U.product(self)  # the point keeps it, so the base sees this one
        return self.base.aim(U)

    def coupling_bound(self, twice: float) -> float:
        """Return the base's bound and a quarter of ||Q||_2: both parts of the residual are bounded.

        Infinite where a term can be negative.
        """
        if not self.bounded:
            return np.inf
        return self.base.coupling_bound(twice) + 0.25 * sum(term.size for term in self.terms)

    def residual_times(self, U: Factor, V: Factor, T: np.ndarray) -> np.ndarray:
        image, ops = self.base.residual_times(U, V, T), self.ops
        thin = ops.put(np.ascontiguousarray(T, dtype=self.dtype))
        for term in self.terms:
            curved = term.half_curvature(ops, thin)
            if curved is not None:
                image = image - ops.get(curved).astype(np.float64)
        return image

    # --- the same f elsewhere

    @property
    def as_float32(self) -> Added | None:
        narrow = self.base.as_float32
        terms = tuple(one for term in self.terms if (one := term.as_float32) is not None)
        if narrow is None or len(terms) < len(self.terms):
            return None
        assert isinstance(narrow, MatrixObjective)
        return Added(narrow, terms)

    def with_storage(self, storage: SymmetricArray) -> Added:
        return Added(self.base.with_storage(storage), self.terms)

    def with_threads(self, threads: Threads) -> Added:
        return Added(self.base.with_threads(threads), self.terms)

    def for_rank(self, rank: int, *, warn: bool = True) -> Added:
        ready = self.base.for_rank(rank, warn=warn)
        if ready is self.base:
            return self
        if isinstance(ready, Added):  # a ridge on rows that are hardly observed
            return Added(ready.base, self.terms + ready.terms)
        assert isinstance(ready, MatrixObjective)
        return Added(ready, self.terms)
