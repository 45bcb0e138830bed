"""What a solver may ask of X, wherever X lives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

import numpy as np

from symnmf.ops import Ops, RowSolver, Tall

if TYPE_CHECKING:
    from symnmf.parallel import Threads


class Entries(Protocol):
    """What a matrix offers whose single entries can be read."""

    def coordinate_sweep(self, U: Tall, gram: np.ndarray) -> Tall:
        """Minimise f over each entry of U in turn, given ``gram`` = U^T U; return U.

        ``U`` and ``gram`` may be overwritten.
        """

    def residual(self, U: Tall) -> np.ndarray:
        """Return X - U U^T as an n x n host array."""


class SymmetricMatrix(ABC):
    """A symmetric nonnegative n x n matrix that can be multiplied by thin matrices.

    Attributes
    ----------
    shape : (n, n)
    dtype : numpy dtype
        float32 or float64, the precision of X and of the factors.
    ops : Ops
        The operations on factors that live where X does.
    """

    def __init__(self, n: int, dtype: np.dtype, ops: Ops) -> None:
        self.shape = (n, n)
        self.dtype = np.dtype(dtype)
        self.ops = ops
        self._sqnorm: float | None = None

    @abstractmethod
    def matmul(self, V: Tall, out: Tall | None = None) -> Tall:
        """Return X @ V; ``out`` may be overwritten with it."""

    @abstractmethod
    def compute_sqnorm(self) -> float:
        """Return ||X||_F^2, accumulated in float64."""

    @abstractmethod
    def largest(self) -> float:
        """Return the largest entry of X, or a bound of that order."""

    @abstractmethod
    def scaled(self, factor: float) -> SymmetricMatrix:
        """Return ``factor * X``, a new matrix."""

    @abstractmethod
    def digest(self) -> str:
        """Return a fingerprint of all there is to X."""

    @property
    def entries(self) -> Entries | None:
        """Access to single entries, or None where they cannot be read."""
        return None

    @property
    def single(self) -> SymmetricMatrix | None:
        """X in float32, or None where a copy of X would cost more than it saves."""
        return None

    def residual_sqnorm(self, U: Tall, V: Tall) -> float | None:
        """Return ||X - U V^T||_F^2 from the entries, exact down to rounding of each entry.

        None where that would cost much more than a product.
        """
        return None

    def update(
        self,
        rows: RowSolver,
        factor: Tall,
        other: Tall,
        gram: np.ndarray,
        penalty: float,
        out: Tall | None = None,
    ) -> tuple[Tall, Tall]:
        """Minimise over ``factor`` >= 0 with ``other`` fixed; return it and X @ other.

        ``gram`` is other^T other; ``factor`` and ``out`` may be overwritten.
        """
        product = self.matmul(other, out)
        return self.ops.solve_rows(rows, factor, product, other, gram, penalty), product

    @property
    def sqnorm(self) -> float:
        """||X||_F^2."""
        if self._sqnorm is None:
            self._sqnorm = self.compute_sqnorm()
        return self._sqnorm

    @property
    def norm(self) -> float:
        """||X||_F."""
        return float(np.sqrt(self.sqnorm))

    # --- several starts

    def on(self, threads: Threads) -> SymmetricMatrix:
        """Return X for use on these threads of the host; X itself where it uses none."""
        return self

    def threads_for(self, rank: int) -> int:
        """Return how many threads of the host one iteration keeps busy."""
        return 1

    def starts_per_reading(self, rank: int) -> int:
        """Return how many starts gain from one common reading of X; 1 where none does."""
        return 1
