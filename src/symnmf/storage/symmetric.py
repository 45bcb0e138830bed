"""What a solver may ask of X, wherever X lives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from symnmf.ops import Line, Ops, RowSolver, Tall, quartic

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


class SymmetricArray(ABC):
    """A symmetric array to be explained by U >= 0: what the loop asks of X.

    A matrix is of order 2; tensors are in ``symnmf.tensors``.

    Attributes
    ----------
    weighted : bool
        Whether entries count with weights, f(U) = 1/2 sum_ij w_ij (x_ij - <u_i, u_j>)^2.
    signed : bool
        Whether X is known to have negative entries.
    shape : tuple of int
        (n, ..., n), as many times as the order d says.
    dtype : numpy dtype
        float32 or float64, the precision of X and of the factors.
    ops : Ops
        The operations on factors that live where X does.
    """

    weighted: bool = False
    signed: bool = False

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, ops: Ops) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.ops = ops
        self._sqnorm: float | None = None

    @property
    def order(self) -> int:
        """d, the number of indices of an entry."""
        return len(self.shape)

    @abstractmethod
    def matmul(self, V: Tall, out: Tall | None = None) -> Tall:
        """Return X times V in all indices but one (X @ V); ``out`` may be overwritten with it."""

    @abstractmethod
    def compute_sqnorm(self) -> float:
        """Return ||X||_F^2, accumulated in float64."""

    @abstractmethod
    def largest(self) -> float:
        """Return the largest entry of X, or a bound of that order."""

    @abstractmethod
    def scaled(self, factor: float) -> SymmetricArray:
        """Return ``factor * X``, a new array."""

    @abstractmethod
    def digest(self) -> str:
        """Return a fingerprint of all there is to X."""

    def product_at(
        self,
        factor: Tall,
        other: Tall,
        *,
        gram: np.ndarray | None = None,
        out: Tall | None = None,
    ) -> Tall:
        """Return P with P - F (V^T V) = S V, S the residual at F V^T; here X V for every F.

        F is ``factor``, V is ``other`` and ``gram`` is V^T V where it is known. At F = V = U it
        stands for X U in all that is made of gradients; ``out`` may be overwritten.
        """
        return self.matmul(other, out)

    def weighted_sums(
        self, U: Tall, V: Tall, product: Tall | None = None
    ) -> tuple[float, float, float] | None:
        """Return the sums of w (x - m)^2, w x m and w m^2, M = U V^T; None without weights.

        ``product`` is :meth:`product_at` for U = V, where it is known.
        """
        return None

    def product_and_sums(
        self, U: Tall, gram: np.ndarray | None
    ) -> tuple[Tall, tuple[float, float, float] | None]:
        """Return :meth:`product_at` for F = V = U, and :meth:`weighted_sums` if they come along."""
        return self.product_at(U, U, gram=gram), None

    def for_rank(self, rank: int, *, warn: bool = True) -> Self:
        """Return X ready for factors of ``rank`` columns; warn of rows that are hardly observed."""
        return self

    @property
    def unseen(self) -> np.ndarray | None:
        """The rows of which nothing is observed, or None where there are none."""
        return None

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

    def on(self, threads: Threads) -> Self:
        """Return X for use on these threads of the host; X itself where it uses none."""
        return self

    def threads_for(self, rank: int) -> int:
        """Return how many threads of the host one iteration keeps busy; 0 for another device's."""
        return 1

    def starts_per_reading(self, rank: int) -> int:
        """Return how many starts gain from one common reading of X; 1 where none does."""
        return 1


class SymmetricMatrix(SymmetricArray):
    """A symmetric n x n matrix that can be multiplied by thin matrices."""

    def __init__(self, n: int, dtype: np.dtype, ops: Ops) -> None:
        super().__init__((n, n), dtype, ops)

    @abstractmethod
    def scaled(self, factor: float) -> SymmetricMatrix:
        """Return ``factor * X``, a new matrix."""

    @property
    def entries(self) -> Entries | None:
        """Access to single entries, or None where they cannot be read."""
        return None

    @property
    def single(self) -> SymmetricMatrix | None:
        """X in float32, or None where a copy of X would cost more than it saves."""
        return None

    def sketch_pays(self, rank: int) -> bool:
        """Whether reading X costs so much that a run should begin on a sketch of it."""
        return False

    def low_rank(self, B: Tall, C: np.ndarray) -> SymmetricMatrix | None:
        """Return B C B^T, kept by its factors where X is; None where there is no such storage."""
        return None

    def residual_sqnorm(self, U: Tall, V: Tall) -> float | None:
        """Return ||X - U V^T||_F^2 from the entries, exact down to rounding of each entry.

        None where that would cost much more than a product.
        """
        return None

    # --- what depends on the point where entries have weights; the defaults are those without

    def residual_times(self, U: Tall, V: Tall, T: np.ndarray) -> np.ndarray:
        """Return the symmetric part of the residual X - U V^T times a host array, in float64."""
        thin = np.ascontiguousarray(T, dtype=self.dtype)
        image = self.ops.get(self.matmul(self.ops.put(thin))).astype(np.float64)
        A, B = (self.ops.get(factor).astype(np.float64) for factor in (U, V))
        return image - 0.5 * (A @ (B.T @ T) + B @ (A.T @ T))

    def along(
        self, U: Tall, product: Tall, gram: np.ndarray, target: Tall, out: Tall
    ) -> tuple[Line, tuple[float, float, float, float]]:
        """Return the way from U to ``target`` and the coefficients of f on it.

        ``target`` and ``out`` may be overwritten.
        """
        line = self.ops.line(U, product, target, self.matmul(target, out=out))
        return line, quartic(gram, line)

    def advance(
        self, U: Tall, product: Tall, line: Line, t: float
    ) -> tuple[Tall, Tall | None, Tall]:
        """Return max(U + t D, 0), the product there if it came for free, and t D.

        All four factors may be overwritten.
        """
        return self.ops.advance(U, product, line, t)

    def aim(self, U: Tall, product: Tall, gram: np.ndarray) -> Tall:
        """Return the product that a step should aim with, whose curvature is that of U^T U.

        Where entries of a row are hidden, that curvature is too large and a step too short by as
        much; a line search then says how much of the longer one is taken.
        """
        return product

    def update(
        self,
        rows: RowSolver,
        factor: Tall,
        other: Tall,
        gram: Callable[[], np.ndarray],
        coupling: float,
        out: Tall | None = None,
    ) -> tuple[Tall, Tall]:
        """Minimise over ``factor`` >= 0 with ``other`` fixed; return it and X @ other.

        ``gram`` gives other^T other, and is asked when the product is under way; ``factor`` and
        ``out`` may be overwritten. Instead of a product that depends on the point, None is
        returned.
        """
        product = self.matmul(other, out)
        return self.ops.solve_rows(rows, factor, product, other, gram(), coupling), product
