"""Extreme scales: work on 2^-dk X from 2^-k U_0 and give 2^k U back, d the order of X."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symnmf.objectives.objective import Objective

#: Largest entries inside this range need no rescaling: fourth powers of the factors stay finite in
#: float32 too, in which a run on a float64 matrix may begin.
COMFORTABLE = (1e-6, 1e6)


@dataclass(frozen=True)
class Units:
    """Powers of two between the caller's units and those of the run; exact, so no digit changes.

    Attributes
    ----------
    exponent : int
        k: the run sees 2^-dk X and 2^-k U.
    order : int
        d: 2 for a matrix.
    """

    exponent: int = 0
    order: int = 2

    @classmethod
    def of(cls, X: Objective) -> Units:
        """Choose the units for an objective; the trivial ones unless its entries are extreme."""
        largest = X.largest()
        low, high = COMFORTABLE
        if largest == 0.0 or low <= largest <= high:
            return cls(order=X.order)
        return cls(int(np.floor(np.log2(largest) / X.order)), X.order)

    @cached_property
    def root(self) -> float:
        """2^k, the unit of factors."""
        return float(2.0**self.exponent)

    @cached_property
    def data(self) -> float:
        """2^dk, the unit of X; infinite if there is no such number."""
        return float(np.exp2(self.order * self.exponent))

    @cached_property
    def coupling(self) -> float:
        """2^(2d-2)k, the unit of lambda: 1/2 ||X||^2 and lambda/2 ||U||^2 are of one kind."""
        return float(np.exp2((2 * self.order - 2) * self.exponent))

    def factor_in(self, U: np.ndarray) -> np.ndarray:
        """Return a factor in the run's units."""
        return U if self.exponent == 0 else np.ldexp(U, -self.exponent).astype(U.dtype)

    def factor_out(self, U: np.ndarray) -> np.ndarray:
        """Return a factor in the caller's units."""
        return U if self.exponent == 0 else np.ldexp(U, self.exponent).astype(U.dtype)

    def coupling_in(self, coupling: float, power: int) -> float:
        """Return lambda in the run's units, for one that grows with that power of X.

        1: computed from the X of the run, nothing to do; 0: a number of the caller's; 2: see
        :class:`symnmf.coupling.LargestEntrySquared`. It is kept where its square is a number.
        """
        if self.exponent == 0 or power == 1:
            return coupling
        for _ in range(2 * self.order - 2):  # one root at a time: their product may overflow
            coupling *= self.root ** (power - 1)
        return float(min(max(coupling, 1e-150), 1e150))
