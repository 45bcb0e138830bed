r"""1/2 ||T - [[U, ..., U]]||^2 for a symmetric tensor T of order d.

.. math:: \|T - [[U_1, \dots, U_d]]\|^2 = \|T\|^2
    - 2\langle T_{(1)}(U_d \odot \cdots \odot U_2), U_1\rangle + \|[[U_1, \dots, U_d]]\|^2, \qquad
    \tfrac1d \nabla f(U) = U (U^\top U)^{\circ(d-1)} - T_{(1)}(U \odot \cdots \odot U).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.objectives.frobenius import IDENTITY_TRUSTED_ABOVE
from symnmf.objectives.objective import Objective
from symnmf.ops import Factor, RowSolver
from symnmf.state import Point, State, Sums
from symnmf.storage.spectrum import largest_eigenvalue
from symnmf.tensors.solver import TensorNewton
from symnmf.tensors.storage import SymmetricTensor


class TensorMisfit(Objective):
    """f(U) = 1/2 ||T - [[U, ..., U]]||^2 over the entries of T that are observed.

    Entries that are not observed are filled with what the model says of them, so the product at U
    is that of T without gaps.
    """

    default_solver: ClassVar[Any] = TensorNewton()
    homogeneous = False
    spectral = False

    def __init__(self, storage: SymmetricTensor) -> None:
        super().__init__(storage)
        self.order = self.split_factors = storage.order
        self.bounded = storage.repeats_observed
        self.default_coupling = "shrinking" if self.bounded else "adaptive"

    def describe_misfit(self) -> str:
        return f"1/2 ||T - [[{', '.join('U' * self.order)}]]||^2"

    # --- f at a point

    def curvature(self, gram: np.ndarray) -> np.ndarray:
        """Return (U^T U)^(d-1), entry by entry."""
        return gram ** (self.order - 1)

    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        return self.product_at(U.values, U.values), None

    def sums(self, U: Point, product: Factor) -> Sums:
        size = self.storage.model.sqnorm([U.values] * self.order)
        fit = self.ops.inner(product, U.values)
        if not self.bounded:  # without what was filled in
            fit -= float(np.sum(U.gram**self.order)) - size
        return self.sqnorm - 2.0 * fit + size, fit, size

    def misfit(self, U: Point) -> float:
        return self._trusted(U.sums(self)[0], [U.values] * self.order)

    def _trusted(self, total: float, factors: Sequence[np.ndarray]) -> float:
        """Return the misfit, from the entries where the identity has lost its digits."""
        exact = None
        if not total > IDENTITY_TRUSTED_ABOVE[self.dtype] * self.sqnorm:
            exact = self.storage.residual_sqnorm(factors)
        return max(total, 0.0) if exact is None else exact

    def split_misfit(self, state: State) -> float:
        factors = [point.values for point in state.factors]
        T = self.storage
        explained = self.ops.inner(T.contract(factors[1:]), factors[0])
        split = self.sqnorm - 2.0 * explained + T.model.sqnorm(factors)
        return self._trusted(split, factors)

    # --- moving

    def product_at(
        self,
        factor: Factor,
        other: Factor,
        *,
        gram: np.ndarray | None = None,
        out: Factor | None = None,
    ) -> Factor:
        """Return T_(1)(U kr ... kr U) with unobserved entries taken as the model says."""
        return self._filled([other] * self.order, 0)

    def _filled(self, factors: Sequence[np.ndarray], own: int) -> np.ndarray:
        """Return T contracted with all factors but one, unobserved entries filled by the model."""
        product = self.storage.contract([factors[q] for q in range(self.order) if q != own])
        hidden = self.storage.model.hidden(factors, own)
        return product if hidden is None else product + hidden

    def change_along(self, U: Point, D: np.ndarray) -> np.ndarray:
        r"""Return the coefficients of t, t^2, ... in f(U + tD) - f(U), a polynomial of degree 2d.

        The inner products with T come from products with D,

        .. math:: \langle T, (U + tD)^{\otimes d}\rangle
            = \sum_k \binom dk t^k \langle T, D^{\otimes k} \otimes U^{\otimes d-k}\rangle,

        and ||[[U + tD, ...]]||^2 from sums over the factors.
        """
        ops, d, T = self.ops, self.order, self.storage
        powers = T.matmul(D)
        product, hidden = U.product(self), T.model.hidden([U.values] * d, 0)
        own = product if hidden is None else product - hidden
        inner = {1: ops.inner(own, D), d - 1: ops.inner(powers, U.values), d: ops.inner(powers, D)}
        if d == 4:
            inner[2] = ops.inner(T.contract([D, D, U.values]), U.values)
        change = 0.5 * T.model.line(U.values, D)[1:]
        for k, value in inner.items():
            change[k - 1] -= math.comb(d, k) * value
        return change

    def split_step(self, rows: RowSolver, state: State) -> None:
        """Solve the rows of each factor in turn.

        With all factors but U_p fixed, they are those of a matrix problem: the Gram matrix is the
        entrywise product of the others', the anchor their mean, the coupling (d - 1) lambda.
        """
        ops, d = self.ops, self.order
        factors = [point.values for point in state.factors]
        grams = [point.gram for point in state.factors]
        for p in range(d):
            fixed = [factor for q, factor in enumerate(factors) if q != p]
            gram = np.prod([gram for q, gram in enumerate(grams) if q != p], axis=0)
            anchor = ops.combine(*((1.0 / (d - 1), factor) for factor in fixed))
            weight = (d - 1) * state.coupling
            product = self._filled(factors, p)
            factors[p] = ops.solve_rows(rows, factors[p], product, anchor, gram, weight)
            grams[p] = ops.gram(factors[p])
        points = [Point(ops, f, gram=gram) for f, gram in zip(factors, grams, strict=True)]
        state.U, state.V, *state.others = points

    # --- what the theorems on lambda ask

    def coupling_bound(self, twice: float) -> float:
        r"""Return a lambda above which a monotone run from equal factors ends with equal factors.

        With rho = sqrt(2 g) and M = ||T|| + rho it is the larger of
        rho (2^(d-1) M)^((d-2)/d) / d and (2^(d-2) rho^(d-1) / d)^(2/d).
        docs/theory/tensors.md has the proof.
        """
        if not self.bounded:
            raise InputError(
                "coupling 'theory' and 'shrinking' need every entry of T observed, or a column "
                "could grow unseen; use 'adaptive', a number, or repeated='observed'."
            )
        d, misfit = self.order, float(np.sqrt(max(twice, 0.0)))
        large = misfit * (2.0 ** (d - 1) * (self.norm + misfit)) ** ((d - 2) / d) / d
        small = (2.0 ** (d - 2) * misfit ** (d - 1) / d) ** (2.0 / d)
        return max(large, small)

    def split_gradients(self, state: State) -> list[np.ndarray]:
        factors = [point.values for point in state.factors]
        total = sum(factor.astype(np.float64) for factor in factors)
        slopes = []
        for p, own in enumerate(factors):
            gram = np.prod([point.gram for q, point in enumerate(state.factors) if q != p], axis=0)
            pull = state.coupling * (self.order * own - total)
            slopes.append(own @ gram - self._filled(factors, p) + pull)
        return slopes

    def split_curvature(self, state: State) -> float:
        r"""Return the largest :math:`\lambda_{max}` of :math:`sym\,R(\cdot, \cdot, w_j)`.

        R = [[U_1, ..., U_d]] - T over the observed entries, contracted with column j of all
        factors but two; the largest over all pairs of factors and all columns.
        """
        factors = [point.values for point in state.factors]
        worst = -np.inf
        for pair in itertools.combinations(range(self.order), 2):
            rest = [q for q in range(self.order) if q not in pair]
            for j in range(factors[0].shape[1]):
                columns = {q: factors[q][:, j : j + 1].astype(np.float64) for q in rest}
                worst = max(worst, self._contracted_eigenvalue(factors, pair, columns))
        return float(worst)

    def _contracted_eigenvalue(
        self,
        factors: Sequence[np.ndarray],
        pair: tuple[int, int],
        columns: dict[int, np.ndarray],
    ) -> float:
        data = self.storage.contracted([column[:, 0] for column in columns.values()])
        contracted, (first, second) = self.storage.model.contracted, pair

        def multiply(vectors: np.ndarray) -> np.ndarray:
            fitted = contracted(factors, first, {second: vectors, **columns})
            fitted = fitted + contracted(factors, second, {first: vectors, **columns})
            return np.asarray(0.5 * fitted - data @ vectors)

        return largest_eigenvalue(self.shape[0], multiply)

    #: f along a line is no quartic; see change_along
    along: Any = None
    advance = along
