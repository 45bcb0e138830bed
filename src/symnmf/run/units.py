"""Extreme scales: work on 4^-k X from 2^-k U_0 and give 2^k U back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symnmf.matrices import SymmetricMatrix

#: Largest entries inside this range need no rescaling: fourth powers of the factors stay finite in
#: float32 too, in which a run on a float64 matrix may begin.
COMFORTABLE = (1e-6, 1e6)


@dataclass(frozen=True)
class Units:
    """Powers of two between the caller's units and those of the run; exact, so no digit changes.

    Attributes
    ----------
    exponent : int
        k: the run sees 4^-k X and 2^-k U.
    """

    exponent: int = 0

    @classmethod
    def of(cls, X: SymmetricMatrix) -> Units:
        """Choose the units for X; the trivial ones unless its entries are extreme."""
        largest = X.largest()
        low, high = COMFORTABLE
        if largest == 0.0 or low <= largest <= high:
            return cls()
        return cls(int(np.floor(np.log2(largest) / 2.0)))

    @property
    def root(self) -> float:
        """2^k, the unit of factors."""
        return float(2.0**self.exponent)

    @property
    def square(self) -> float:
        """4^k, the unit of X and lambda."""
        return self.root * self.root

    def matrix(self, X: SymmetricMatrix) -> SymmetricMatrix:
        """Return X in the run's units."""
        if self.exponent == 0:
            return X
        # two steps: 4^-k itself may overflow
        return X.scaled(2.0**-self.exponent).scaled(2.0**-self.exponent)

    def factor_in(self, U: np.ndarray) -> np.ndarray:
        """Return a factor in the run's units."""
        return U if self.exponent == 0 else np.ldexp(U, -self.exponent).astype(U.dtype)

    def factor_out(self, U: np.ndarray) -> np.ndarray:
        """Return a factor in the caller's units."""
        return U if self.exponent == 0 else np.ldexp(U, self.exponent).astype(U.dtype)

    def penalty_in(self, penalty: float, power: int) -> float:
        """Return lambda in the run's units, for one that grows with that power of X.

        1: computed from the X of the run, nothing to do; 0: a number of the caller's; 2: see
        :class:`symnmf.penalty.LargestEntrySquared`. It is kept where its square is a number.
        """
        if self.exponent == 0 or power == 1:
            return penalty
        # one root at a time: their product may overflow
        shift = self.root ** (power - 1)
        return float(min(max(penalty * shift * shift, 1e-150), 1e150))
