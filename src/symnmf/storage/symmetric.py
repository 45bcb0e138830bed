"""What a storage backend offers: products with X, its norm, its parts, its fingerprint."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from symnmf.ops import Factor, Ops, RowSolver

if TYPE_CHECKING:
    from symnmf.parallel import Threads


class Entries(Protocol):
    """What a matrix offers whose single entries can be read."""

    def coordinate_sweep(self, U: Factor, gram: np.ndarray) -> Factor:
        """Minimise f over each entry of U in turn, given ``gram`` = U^T U; return U.

        ``U`` and ``gram`` may be overwritten.
        """

    def residual(self, U: Factor) -> np.ndarray:
        """Return X - U U^T as an n x n host array."""


class Square(NamedTuple):
    """Rows ``top..bottom`` and columns ``left..right`` of X: on the diagonal, or right of it."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def on_diagonal(self) -> bool:
        return self.left == self.top

    def sides(self, factor: Factor) -> tuple[Factor, Factor]:
        """Return the rows of a factor that belong to the rows, and to the columns, of the part."""
        return factor[self.top : self.bottom], factor[self.left : self.right]


#: What is done with a part of X: the part, its weights, rows of the factors for its rows and for
#: its columns, and whether it is on the diagonal.
Work = Callable[[Factor, Factor, list[Factor], list[Factor], bool], Any]


def square_parts(n: int, side: int) -> list[Square]:
    """Cut the upper triangle into squares of this side."""
    edges = [*range(0, n, side), n]
    pairs = itertools.combinations_with_replacement(range(len(edges) - 1), 2)
    return [Square(edges[i], edges[i + 1], edges[j], edges[j + 1]) for i, j in pairs]


class SymmetricArray(ABC):
    """A symmetric array to be explained by U >= 0, in one storage backend.

    Matrices are of :class:`SymmetricMatrix`; anything else brings its own objective.

    Attributes
    ----------
    signed : bool
        Whether X is known to have negative entries.
    shape : tuple of int
        (n, n); longer for a tensor.
    dtype : numpy dtype
        float32 or float64, the precision of X and of the factors.
    ops : Ops
        The operations on factors that live where X does.
    """

    signed: bool = False

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, ops: Ops) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.ops = ops
        self._sqnorm: float | None = None

    @abstractmethod
    def matmul(self, V: Factor, out: Factor | None = None) -> Factor:
        """Return X times V in all indices but one (X @ V); ``out`` may be overwritten with it."""

    @abstractmethod
    def compute_sqnorm(self) -> float:
        """Return ||X||_F^2, accumulated in float64."""

    @abstractmethod
    def largest(self) -> float:
        """Return the largest entry of X, or a bound of that order."""

    @abstractmethod
    def digest(self) -> str:
        """Return a fingerprint of all there is to X."""

    @property
    def sqnorm(self) -> float:
        """||X||_F^2."""
        if self._sqnorm is None:
            self._sqnorm = self.compute_sqnorm()
        return self._sqnorm

    @property
    def norm(self) -> float:
        """||X||_F."""
        return math.sqrt(self.sqnorm)

    def own_objective(self) -> Any | None:
        """Return the objective of an array that is no matrix and brings its own."""
        return None

    # --- several starts

    def with_threads(self, threads: Threads) -> Self:
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

    @property
    def entries(self) -> Entries | None:
        """Access to single entries, or None where they cannot be read."""
        return None

    @property
    def as_float32(self) -> SymmetricMatrix | None:
        """X in float32, or None where a copy of X would cost more than it saves."""
        return None

    @property
    def eigenvectors_pay(self) -> bool:
        """Whether the leading eigenvectors cost little beside a run, so that it begins on them."""
        return True

    def sketch_pays(self, rank: int) -> bool:
        """Whether reading X costs so much that a run should begin on a sketch of it."""
        return False

    def low_rank(self, B: Factor, C: np.ndarray) -> SymmetricMatrix | None:
        """Return B C B^T, kept by its factors where X is; None if there is no such storage."""
        return None

    def residual_sqnorm(self, U: Factor, V: Factor) -> float | None:
        """Return ||X - U V^T||_F^2 from the entries, exact down to rounding of each entry.

        None where that would cost much more than a product.
        """
        return None

    def parts(self) -> Iterator[tuple[Square, Factor]]:
        """Yield parts of the upper triangle of X, dense, on the device of X.

        A part on the diagonal is a square with both its halves; every other part stands for its
        mirror image too. A backend without it takes no mask and no weights.
        """
        raise NotImplementedError

    @property
    def has_parts(self) -> bool:
        """Whether :meth:`parts` is there."""
        return type(self).parts is not SymmetricMatrix.parts

    def visit(
        self, work: Work, factors: Sequence[Factor], weights: Callable[[Square], Factor]
    ) -> Iterator[tuple[Square, Any]]:
        """Yield what ``work`` says of every part of X, in order, from that part of the factors.

        A backend that is spread over workers sends ``work`` there.
        """
        for square, block in self.parts():
            sides = [square.sides(factor) for factor in factors]
            rows, columns = ([side[which] for side in sides] for which in (0, 1))
            yield square, work(block, weights(square), rows, columns, square.on_diagonal)

    def weighted_kernels(self, weights: Callable[[], np.ndarray]) -> Any:
        """Return fused passes over X with weights if there are any; ``weights`` gives W."""
        return None

    def values_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the entries at these places, on the host."""
        low, high = np.minimum(rows, columns), np.maximum(rows, columns)
        found = np.zeros(len(rows), self.dtype)
        for square, block in self.parts():
            inside = (low >= square.top) & (low < square.bottom)
            inside &= (high >= square.left) & (high < square.right)
            if inside.any():
                held = self.ops.get(block)
                found[inside] = held[low[inside] - square.top, high[inside] - square.left]
        return found

    def update(
        self,
        rows: RowSolver,
        factor: Factor,
        other: Factor,
        gram: Callable[[], np.ndarray],
        coupling: float,
        out: Factor | None = None,
    ) -> tuple[Factor, Factor]:
        """Minimise 1/2 ||X - F V^T||^2 + coupling/2 ||F - V||^2 over F >= 0; return F and X V.

        F is ``factor``, V is ``other`` and ``gram`` gives V^T V, asked for when the product is
        under way; ``factor`` and ``out`` may be overwritten.
        """
        product = self.matmul(other, out)
        return self.ops.solve_rows(rows, factor, product, other, gram(), coupling), product
