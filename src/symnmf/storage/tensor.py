"""What a symmetric tensor must be able to do; where its entries live is each subclass's own."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from symnmf.ops import HostOps
from symnmf.parallel import Threads
from symnmf.storage.host import HostArray
from symnmf.storage.repeated_indices import Model


class SymmetricTensor(HostArray):
    """A symmetric nonnegative T of order 3 or 4, of side n, and what a factorization asks of it.

    Attributes
    ----------
    repeats_observed : bool
        Whether entries with a repeated index, such as T_iij, count. If not, they are treated as
        unknown, and only entries with d different indices are fitted.
    model : Model
        [[U, ..., U]] over the observed entries.
    """

    #: whether the residual T - [[U, ..., U]] can be formed entry by entry
    residual_affordable: bool = True

    def __init__(
        self, side: int, order: int, dtype: np.dtype, repeats_observed: bool, threads: Threads
    ) -> None:
        super().__init__((side,) * order, dtype, HostOps(threads))
        self.repeats_observed = repeats_observed

    @property
    def model(self) -> Model:
        return Model(self.order, self.repeats_observed, self.ops)

    @abstractmethod
    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return T_(1)(V kr ... kr V), n x r: T contracted with each column of V, d - 1 times."""

    @abstractmethod
    def contract(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        """Return T_(1)(A kr B) or, of order 4, T_(1)(A kr B kr C) for the d - 1 ``factors``."""

    @abstractmethod
    def contracted(self, vectors: Sequence[np.ndarray]) -> Any:
        """Return the n x n matrix T(., ., w) or, of order 4, T(., ., w, z); dense or sparse."""

    @abstractmethod
    def slice(self, i: int) -> np.ndarray:
        """Return the entries whose first index is ``i``, an array of d - 1 dimensions."""

    def residual_sqnorm(self, factors: Sequence[np.ndarray]) -> float:
        """Return ||T - [[U_1, ..., U_d]]||^2 over the observed entries, formed one by one."""
        first, *middle, last = (factor.astype(np.float64, copy=False) for factor in factors)
        n, r = last.shape

        def task(begin: int, end: int) -> float:
            total = 0.0
            for i in range(begin, end):
                rows = first[i : i + 1]
                for factor in middle:
                    rows = (rows[:, None, :] * factor).reshape(-1, r)
                gap = self.slice(i).reshape(-1, n) - rows @ last.T
                if not self.repeats_observed:
                    gap *= distinct(n, self.order, i).reshape(gap.shape)
                total += float(np.vdot(gap, gap))
            return total

        cost = 2.0 * n ** (self.order - 1) * r
        return float(sum(self.threads.run(task, self.threads.split(n, cost))))

    def digest(self) -> str:
        seen = "" if self.repeats_observed else " distinct"
        return super().digest() + seen

    def __repr__(self) -> str:
        sides = " x ".join(map(str, self.shape))
        seen = "" if self.repeats_observed else ", repeated indices unobserved"
        return f"{type(self).__name__}({sides}, {self.dtype}{seen})"


def distinct(side: int, order: int, first: int) -> np.ndarray:
    """Return, for entries whose first index is ``first``, which have no repeated index."""
    others = np.indices((side,) * (order - 1), sparse=True)
    keep = np.ones((side,) * (order - 1), dtype=bool)
    for index in others:
        keep &= index != first
    for one, two in itertools.combinations(others, 2):
        keep &= one != two
    return keep
