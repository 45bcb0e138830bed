"""What a solver may ask of X, wherever X lives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from symnmf.parallel import Bounds, Threads

#: Rows multiplied and then solved while they are still in cache.
FUSED_ROWS = 2048


class InnerSolver(Protocol):
    """Minimises over rows ``begin..end`` of ``factor >= 0``, in place,

    1/2 <factor (gram + penalty I), factor> - <product + penalty anchor, factor>.
    """

    def __call__(
        self,
        factor: np.ndarray,
        product: np.ndarray,
        anchor: np.ndarray,
        gram: np.ndarray,
        penalty: float,
        begin: int,
        end: int,
    ) -> None: ...


class SymmetricMatrix(ABC):
    """A symmetric nonnegative n x n matrix that can be multiplied by thin matrices.

    Subclasses say how rows of ``X @ V`` are computed; the rest follows. ``threads`` is the pool
    that every row-wise operation of a run uses.
    """

    #: whether single entries can be read (some methods need them)
    has_entries: bool = True
    #: whether a few rows of a product cost their share of the whole
    multiplies_by_rows: bool = True
    #: whether ``residual_sqnorm`` costs about as much as a product, not much more
    residual_affordable: bool = True

    def __init__(self, n: int, dtype: np.dtype, threads: Threads) -> None:
        self.shape = (n, n)
        self.dtype = np.dtype(dtype)
        self.threads = threads
        self._sqnorm: float | None = None

    @abstractmethod
    def product_rows(self, V: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
        """Write rows ``begin..end`` of ``X @ V`` to the same rows of ``out``."""

    @abstractmethod
    def compute_sqnorm(self) -> float:
        """Return ||X||_F^2, accumulated in float64."""

    @abstractmethod
    def chunks(self, width: int) -> list[Bounds]:
        """Share the rows of a product with ``width`` columns out over the threads."""

    @abstractmethod
    def residual_rows(self, U: np.ndarray, V: np.ndarray, begin: int, end: int) -> np.ndarray:
        """Return rows ``begin..end`` of X - U V^T as a dense float64 block."""

    @abstractmethod
    def coordinate_sweep(self, U: np.ndarray, gram: np.ndarray) -> None:
        """Minimise f over each entry of U in turn, in place; ``gram`` = U^T U follows.

        Asked for only where ``has_entries``.
        """

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Return the diagonal of X."""

    @abstractmethod
    def scaled(self, factor: float) -> SymmetricMatrix:
        """Return ``factor * X``, a new matrix."""

    @abstractmethod
    def values(self) -> Iterator[np.ndarray]:
        """Yield the stored values, block by block."""

    def pattern(self) -> Iterator[np.ndarray]:
        """Yield what says where the values are, for a fingerprint; nothing for a full matrix."""
        return iter(())

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

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return X @ V."""
        if out is None:
            out = np.empty(V.shape, self.dtype)
        result = out
        self.threads.run(
            lambda begin, end: self.product_rows(V, result, begin, end), self.chunks(V.shape[1])
        )
        return result

    def update(
        self,
        inner: InnerSolver,
        factor: np.ndarray,
        other: np.ndarray,
        gram: np.ndarray,
        penalty: float,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Minimise over ``factor`` >= 0 with ``other`` fixed, in place; return X @ other.

        Each thread multiplies a few rows and solves them at once. A matrix that is spread over
        machines would ship ``inner`` to its row blocks here.
        """
        if not self.multiplies_by_rows:
            whole = self.matmul(other, out)
            self.threads.run(
                lambda begin, end: inner(factor, whole, other, gram, penalty, begin, end),
                self.chunks(factor.shape[1]),
            )
            return whole
        product = np.empty(factor.shape, self.dtype) if out is None else out

        def task(begin: int, end: int) -> None:
            for first in range(begin, end, FUSED_ROWS):
                last = min(first + FUSED_ROWS, end)
                self.product_rows(other, product, first, last)
                inner(factor, product, other, gram, penalty, first, last)

        self.threads.run(task, self.chunks(factor.shape[1]))
        return product

    def in_single_precision(self) -> SymmetricMatrix | None:
        """Return X in float32, or None where a copy of X would cost more than it saves."""
        return None

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float:
        """Return ||X - U V^T||_F^2 from the entries, exact down to rounding of each entry."""
        n = self.shape[0]
        rows = max(1, 262_144 // n)  # a block of 2 MB

        def task(begin: int, end: int) -> float:
            total = 0.0
            for first in range(begin, end, rows):
                block = self.residual_rows(U, V, first, min(first + rows, end))
                total += float(np.vdot(block, block))
            return total

        return sum(self.threads.run(task, self.threads.split(n, 2.0 * n * U.shape[1])))
