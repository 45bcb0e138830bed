"""What a storage backend offers: products with X, its norm, its parts, its fingerprint."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from symnmf.calls import read_once
from symnmf.ops import Factor, HostOps, Ops

if TYPE_CHECKING:
    from symnmf.parallel import Threads


#: The share of ||X||_F^2 below which differences in float32, each off by about 1e-7 of the entry,
#: have fewer than six digits left.
SINGLE_ABOVE = 1e-8

#: Rows of a coordinate sweep whose products are computed together.
SWEPT_ROWS = 64


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
        return factor[self.top : self.bottom, :], factor[self.left : self.right, :]


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
        self._largest: float | None = None

    @abstractmethod
    def matmul(self, V: Factor, out: Factor | None = None) -> Factor:
        """Return X times V in all indices but one (X @ V); ``out`` may be overwritten with it."""

    @abstractmethod
    def compute_sqnorm(self) -> float:
        """Return ||X||_F^2, accumulated in float64."""

    @abstractmethod
    def compute_largest(self) -> float:
        """Return the largest entry of X in size, or a bound of that order."""

    @abstractmethod
    def digest(self) -> str:
        """Return a fingerprint of all there is to X."""

    @property
    def sqnorm(self) -> float:
        """||X||_F^2."""
        if self._sqnorm is None:
            self._sqnorm = self.compute_sqnorm()
        return self._sqnorm

    def largest(self) -> float:
        """Return the largest entry of X in size, or a bound of that order; computed once."""
        if self._largest is None:
            self._largest = self.compute_largest()
        return self._largest

    @property
    def norm(self) -> float:
        """||X||_F."""
        return math.sqrt(self.sqnorm)

    def own_objective(self) -> Any | None:
        """Return the objective of an array that is no matrix and brings its own."""
        return None

    def with_threads(self, threads: Threads) -> Self:
        """Return X for use on these threads of the host; X itself where it uses none."""
        if not isinstance(self.ops, HostOps):
            return self
        other = copy.copy(self)  # the caller's own keeps its threads
        other.ops = HostOps(threads)
        return other

    @abstractmethod
    def cost(self, rank: int) -> float:
        """Return about how many seconds one thread takes for a product with ``rank`` columns.

        Starts and the number of threads are chosen by it.
        """


class SymmetricMatrix(SymmetricArray):
    """A symmetric n x n matrix that can be multiplied by thin matrices.

    ``matmul`` is all that a storage backend has to give. The rest follows from it, through blocks
    of columns; what a backend does better, it overrides.
    """

    def __init__(self, n: int, dtype: np.dtype, ops: Ops) -> None:
        super().__init__((n, n), dtype, ops)

    def cost(self, rank: int) -> float:
        return 2.0 * self.shape[0] ** 2 * rank / self.ops.rate

    def columns(self, begin: int, end: int) -> Factor:
        """Return columns ``begin..end`` of X, dense and where X is; by symmetry they are rows."""
        unit = np.zeros((self.shape[0], end - begin), self.dtype)
        unit[np.arange(begin, end), np.arange(end - begin)] = 1.0
        return self.matmul(self.ops.put(unit))

    def column_blocks(self) -> Iterator[tuple[int, int, Factor]]:
        """Yield all columns, a few at a time, with the first of them and the first of the next."""
        n = self.shape[0]
        width = max(1, self.ops.block // n)
        for begin in range(0, n, width):
            end = min(begin + width, n)
            yield begin, end, self.columns(begin, end)

    def compute_sqnorm(self) -> float:
        return sum(self.ops.inner(block, block) for _, _, block in self.column_blocks())

    def compute_largest(self) -> float:
        return max(float(np.abs(self.ops.get(block)).max()) for _, _, block in self.column_blocks())

    def digest(self) -> str:
        probe = np.random.default_rng(0).standard_normal((self.shape[0], 4)).astype(self.dtype)
        return fingerprint(self, [self.ops.get(self.matmul(self.ops.put(probe)))])

    def residual_sqnorm(self, U: Factor, V: Factor) -> float | None:
        """Return ||X - U V^T||_F^2 from the entries, exact down to rounding of each entry.

        None where that would cost much more than a product.
        """
        return None

    @property
    def entries(self) -> SymmetricMatrix | None:
        """X itself where solvers may work on single entries, which needs factors of the host."""
        return self if isinstance(self.ops, HostOps) else None

    def coordinate_sweep(self, U: np.ndarray, gram: np.ndarray) -> np.ndarray:
        """Minimise f over each entry of U in turn, given ``gram`` = U^T U; return U.

        ``U`` and ``gram`` may be overwritten.
        """
        from symnmf.kernels.coordinate import sweep_block

        read_once()
        product = np.empty_like(U)
        for first in range(0, len(U), SWEPT_ROWS):
            last = min(first + SWEPT_ROWS, len(U))
            rows = np.ascontiguousarray(self.columns(first, last).T)
            np.matmul(rows, U, out=product[first:last])
            square = np.ascontiguousarray(rows[:, first:last])
            sweep_block(square, first, first, last, product, U, gram)
        return U

    def residual(self, U: Factor) -> np.ndarray:
        """Return X - U U^T as an n x n host array."""
        host = self.ops.get(U).astype(np.float64)
        return np.asarray(self.ops.get(self.columns(0, self.shape[0])) - host @ host.T)

    def parts(self) -> Iterator[tuple[Square, Factor]]:
        """Yield parts of the upper triangle of X, dense, on the device of X.

        A part on the diagonal is a square with both its halves; every other part stands for its
        mirror image too.
        """
        n = self.shape[0]
        for top, bottom, block in self.column_blocks():
            yield Square(top, bottom, top, bottom), block[top:bottom, :]
            if bottom < n:
                yield Square(top, bottom, bottom, n), block[bottom:, :].T

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

    def values_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the entries at these places, on the host."""
        low, high = np.minimum(rows, columns), np.maximum(rows, columns)
        values = np.zeros(len(rows), self.dtype)
        for square, block in self.parts():
            inside = (low >= square.top) & (low < square.bottom)
            inside &= (high >= square.left) & (high < square.right)
            if inside.any():
                held = self.ops.get(block)
                values[inside] = held[low[inside] - square.top, high[inside] - square.left]
        return values


def residual_by_columns(X: SymmetricMatrix, U: Factor, V: Factor) -> float:
    """Return ||X - U V^T||_F^2, for an X whose columns cost little.

    Differences are formed in the precision of X, and once more in float64 where they have lost
    their digits.
    """
    total = _from_columns(X, U, V, X.dtype)
    if has_digits(X.dtype, total, X.sqnorm):
        return total
    return _from_columns(X, U, V, np.dtype(np.float64))


def has_digits(dtype: np.dtype, sqnorm: float, whole: float) -> bool:
    """Whether a misfit formed in ``dtype`` has its digits, for ||X||_F^2 = ``whole``."""
    return dtype == np.float64 or sqnorm > SINGLE_ABOVE * whole


def _from_columns(X: SymmetricMatrix, U: Factor, V: Factor, dtype: np.dtype) -> float:
    """Return ||X - U V^T||_F^2 from some columns at a time; half of each where U is V."""
    read_once()
    n, ops, same = X.shape[0], X.ops, V is U
    left = ops.cast(U, dtype)
    right = left if same else ops.cast(V, dtype)
    width = max(1, ops.block // n)

    def strip(begin: int) -> float:
        end, first = min(begin + width, n), begin if same else 0
        rows = ops.cast(X.columns(begin, end).T[:, first:], dtype)
        gap = rows - right[begin:end] @ left[first:].T
        if not same:
            return ops.inner(gap, gap)
        square = gap[:, : end - begin]
        return 2.0 * ops.inner(gap, gap) - ops.inner(square, square)

    parts = [(begin,) for begin in range(0, n, width)]
    if isinstance(ops, HostOps):
        return sum(ops.threads.run(strip, parts))
    return sum(strip(*part) for part in parts)


@singledispatch
def as_float32(X: SymmetricMatrix) -> SymmetricMatrix | None:
    """Return X in float32, or None where a copy of X would cost more than it saves."""
    return None


def fingerprint(X: SymmetricArray, parts: Iterable[np.ndarray]) -> str:
    """Return a digest of all there is to X; how it is cut into ``parts`` does not matter."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{X.shape} {X.dtype}".encode())
    for block in parts:
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()
