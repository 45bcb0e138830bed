"""Terms that can be added to an objective: one class each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from symnmf.ops import Factor, Ops

__all__ = ["L1", "Links", "Ridge", "Term"]


class Term(ABC):
    r"""A term 1/2 <Q U, U> + <C, U> with a symmetric Q and a constant C >= 0.

    In a split problem it is 1/2 <Q U, V> + 1/2 <C, U> + 1/2 <C, V>, which is the same at U = V.
    A subclass says what half of its gradient is, and how the quadratic part of that moves.
    """

    @abstractmethod
    def value(self, ops: Ops, U: Factor, V: Factor) -> float:
        """Return the term at the factors of a split problem; V is U if there is one factor."""

    @abstractmethod
    def half_gradient(self, ops: Ops, V: Factor) -> Factor:
        """Return 1/2 (Q V + C), which a product is lowered by."""

    def half_curvature(self, ops: Ops, D: Factor) -> Factor | None:
        """Return 1/2 Q D; None where Q is 0."""
        return None

    @property
    def size(self) -> float:
        """||Q||_2, or a bound on it."""
        return 0.0

    @property
    def slope(self) -> float:
        """The least entry of C: how fast an entry of U that leaves 0 raises the term."""
        return 0.0

    @property
    def nonnegative(self) -> bool:
        """Whether the term is at least 0 for all factors that are."""
        return True

    @property
    def as_float32(self) -> Self | None:
        """The term for factors in float32; None if it has no such form."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """Return the term in a formula, for people; it is part of the fingerprint of a problem."""


@dataclass(frozen=True)
class L1(Term):
    """weight * sum_ij u_ij: fewer and sharper memberships."""

    weight: float

    def value(self, ops: Ops, U: Factor, V: Factor) -> float:
        total = float(ops.column_sums(U).sum())
        if V is not U:
            total = 0.5 * (total + float(ops.column_sums(V).sum()))
        return self.weight * total

    def half_gradient(self, ops: Ops, V: Factor) -> Factor:
        return ops.constant(V, 0.5 * self.weight)

    @property
    def slope(self) -> float:
        return self.weight

    @property
    def as_float32(self) -> Self:
        return self

    def describe(self) -> str:
        return f"{self.weight:.12g} sum(U)"


@dataclass(frozen=True, eq=False)
class Ridge(Term):
    """weight/2 ||U||_F^2, or of some rows only.

    ``rows`` are 1 for the rows that it holds; None for all of them.
    """

    weight: float
    rows: np.ndarray | None = None

    def _held(self, ops: Ops, T: Factor) -> Factor:
        return T if self.rows is None else ops.weigh_rows(T, self.rows)

    def value(self, ops: Ops, U: Factor, V: Factor) -> float:
        return 0.5 * self.weight * ops.inner(self._held(ops, U), V)

    def half_gradient(self, ops: Ops, V: Factor) -> Factor:
        return ops.combine((0.5 * self.weight, self._held(ops, V)))

    def half_curvature(self, ops: Ops, D: Factor) -> Factor:
        return self.half_gradient(ops, D)

    @property
    def size(self) -> float:
        return self.weight

    @property
    def as_float32(self) -> Self:
        return self

    def describe(self) -> str:
        if self.rows is None:
            return f"{self.weight:.12g}/2 ||U||^2"
        return f"{self.weight:.12g}/2 ||U_S||^2 over {int(self.rows.sum())} hardly observed rows S"


@dataclass(frozen=True, eq=False)
class Links(Term):
    """1/2 <Q U, U> for a sparse symmetric Q: positive entries keep two rows apart."""

    matrix: Any  # a storage of Q, which lives where X does

    def value(self, ops: Ops, U: Factor, V: Factor) -> float:
        return 0.5 * ops.inner(self.matrix.matmul(U), V)

    def half_gradient(self, ops: Ops, V: Factor) -> Factor:
        return ops.combine((0.5, self.matrix.matmul(V)))

    def half_curvature(self, ops: Ops, D: Factor) -> Factor:
        return self.half_gradient(ops, D)

    @property
    def size(self) -> float:
        return float(self.matrix.norm)

    @property
    def nonnegative(self) -> bool:
        return not self.matrix.signed

    @property
    def as_float32(self) -> Self | None:
        narrow = self.matrix.as_float32
        return None if narrow is None else replace(self, matrix=narrow)

    def describe(self) -> str:
        return f"1/2 <Q U, U> with Q {self.matrix.digest()}"
