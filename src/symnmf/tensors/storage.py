"""A symmetric tensor in memory: an array, or its different index tuples and their values."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf.kernels.products import balanced_chunks
from symnmf.ops import HostOps
from symnmf.parallel import Bounds, Threads
from symnmf.storage.host import HostArray
from symnmf.storage.sparse import COST_OF_AN_ENTRY
from symnmf.tensors import kernels
from symnmf.tensors.model import Model

if TYPE_CHECKING:
    from symnmf.tensors.objective import TensorMisfit


class SymmetricTensor(HostArray):
    """A symmetric nonnegative T of order 3 or 4, of side n, and what a factorization asks of it.

    Attributes
    ----------
    repeats_observed : bool
        Whether entries with a repeated index, such as T_iij, count. If not, they are treated as
        unknown, and only entries with d different indices are fitted.
    """

    def __init__(
        self, side: int, order: int, dtype: np.dtype, repeats_observed: bool, threads: Threads
    ) -> None:
        super().__init__((side,) * order, dtype, HostOps(threads))
        self.order, self.repeats_observed = order, repeats_observed

    def own_objective(self) -> TensorMisfit:
        from symnmf.tensors.objective import TensorMisfit

        return TensorMisfit(self)

    @property
    def model(self) -> Model:
        """[[U, ..., U]] over the observed entries."""
        return Model(self.order, self.repeats_observed, self.ops)

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return T_(1)(V kr ... kr V), n x r: T contracted with each column of V, d - 1 times."""
        return self.contract([V] * (self.order - 1))

    @abstractmethod
    def contract(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        """Return T_(1)(A kr B) or, of order 4, T_(1)(A kr B kr C) for the d - 1 ``factors``."""

    @abstractmethod
    def contracted(self, vectors: Sequence[np.ndarray]) -> Any:
        """Return the n x n matrix T(., ., w) or, of order 4, T(., ., w, z); dense or sparse."""

    def residual_sqnorm(self, factors: Sequence[np.ndarray]) -> float | None:
        """Return ||T - [[U_1, ..., U_d]]||^2 over the observed entries, formed one by one.

        None where that costs more than a run.
        """
        return None

    def digest(self) -> str:
        return super().digest() + ("" if self.repeats_observed else " distinct")

    def __repr__(self) -> str:
        sides = " x ".join(map(str, self.shape))
        seen = "" if self.repeats_observed else ", repeated indices unobserved"
        return f"{type(self).__name__}({sides}, {self.dtype}{seen})"


class DenseTensor(SymmetricTensor):
    """A symmetric C-contiguous array of three or four dimensions.

    A few slices T[i] are worked on at a time, so a product needs little memory, and comes out the
    same for every number of threads.
    """

    def __init__(self, T: np.ndarray, threads: Threads, *, repeats_observed: bool = True) -> None:
        super().__init__(T.shape[0], T.ndim, T.dtype, repeats_observed, threads)
        self.array = T
        if not repeats_observed:  # zeros, so that products leave these entries out
            self.array = np.zeros_like(T)
            for i in range(len(T)):
                np.copyto(self.array[i], T[i], where=distinct(len(T), T.ndim, i))

    def contract(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        n, r = factors[0].shape
        out = np.empty((n, r), self.dtype)
        # the ranges of rows do not depend on the number of threads
        rows = max(1, self.ops.block // (n ** (self.order - 2) * r))

        def task(begin: int, end: int) -> None:
            for first in range(begin * rows, min(end * rows, n), rows):
                last = min(first + rows, n)
                part = (self.array[first:last].reshape(-1, n) @ factors[-1]).reshape(
                    last - first, *self.shape[2:], r
                )
                for factor in reversed(factors[:-1]):
                    part = np.einsum("...jr,jr->...r", part, factor)
                out[first:last] = part

        cost = 2.0 * rows * n ** (self.order - 1) * r
        self.threads.run(task, self.threads.split(-(-n // rows), cost))
        return out

    def compute_sqnorm(self) -> float:
        blocks = (block.astype(np.float64, copy=False) for block in self.array)
        return sum((float(np.vdot(block, block)) for block in blocks), start=0.0)

    def contracted(self, vectors: Sequence[np.ndarray]) -> np.ndarray:
        part = self.array
        for vector in vectors:
            part = part @ vector.astype(self.dtype, copy=False)
        return part

    def residual_sqnorm(self, factors: Sequence[np.ndarray]) -> float:
        first, *middle, last = (factor.astype(np.float64, copy=False) for factor in factors)
        n, r = last.shape

        def task(begin: int, end: int) -> float:
            total = 0.0
            for i in range(begin, end):
                rows = first[i : i + 1]
                for factor in middle:
                    rows = (rows[:, None, :] * factor).reshape(-1, r)
                gap = (self.array[i].reshape(-1, n) - rows @ last.T).reshape(self.shape[1:])
                if not self.repeats_observed:
                    gap *= distinct(n, self.order, i)
                total += float(np.vdot(gap, gap))
            return total

        cost = 2.0 * n ** (self.order - 1) * r
        return float(sum(self.threads.run(task, self.threads.split(n, cost))))

    def cost(self, rank: int) -> float:
        return 2.0 * self.shape[0] ** self.order * rank / self.ops.rate

    def values(self) -> Iterator[np.ndarray]:
        yield from self.array


class SparseTensor(SymmetricTensor):
    """A symmetric tensor that keeps each entry once, and a list of its tuples for every row.

    Use :func:`symnmf.tensors.from_tuples` or :func:`symnmf.tensors.from_hyperedges`, which check
    their arguments.

    Attributes
    ----------
    indices : ndarray of shape (m, d)
        The tuples, each sorted, in lexicographic order.
    data : ndarray of shape (m,)
        Their values.
    """

    def __init__(
        self,
        indices: np.ndarray,
        data: np.ndarray,
        side: int,
        threads: Threads,
        *,
        repeats_observed: bool = True,
    ) -> None:
        super().__init__(side, indices.shape[1], data.dtype, repeats_observed, threads)
        if not repeats_observed:
            single = np.all(np.diff(indices, axis=1) > 0, axis=1)
            indices, data = indices[single], data[single]
        self.indices, self.data = indices, data
        # each tuple is listed under every different index it holds, see kernels.py
        first = np.ones(indices.shape, dtype=bool)
        first[:, 1:] = indices[:, 1:] != indices[:, :-1]
        rows, places = indices.T[first.T], np.nonzero(first.T)[1]
        others = [np.delete(indices, slot, axis=1)[first[:, slot]] for slot in range(self.order)]
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=side)
        self.indptr = np.concatenate(([0], np.cumsum(counts)))
        self.others = np.concatenate(others)[order]
        self.weights = data[places[order]] * _arrangements(self.others).astype(data.dtype)

    def contract(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        first, second, last = factors[0], factors[1], factors[-1]
        out = np.empty(first.shape, self.dtype)
        lists = self.indptr, self.others, self.weights
        if all(factor is first for factor in factors):
            self.threads.run(
                lambda b, e: kernels.power_rows(*lists, first, out, b, e),
                self._bounds(first.shape[1]),
            )
        else:
            self.threads.run(
                lambda b, e: kernels.mixed_rows(*lists, first, second, last, out, b, e),
                self._bounds(2 * first.shape[1]),
            )
        return out

    def _bounds(self, width: int) -> list[Bounds]:
        parts = self.threads.parts(3.0 * self.order * len(self.data) * width)
        return balanced_chunks(self.indptr, parts)

    def compute_sqnorm(self) -> float:
        values = self.data.astype(np.float64, copy=False)
        return float(np.dot(_arrangements(self.indices) * values, values))

    def contracted(self, vectors: Sequence[np.ndarray]) -> sp.csr_array:
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        share = self.weights / math.factorial(self.order - 1)
        total = sp.csr_array(self.shape[:2], dtype=self.dtype)
        for column, *rest in itertools.permutations(self.others.T):
            data = share * math.prod(w[place] for w, place in zip(vectors, rest, strict=True))
            total = total + sp.csr_array((data, (rows, column)), shape=self.shape[:2])
        return total

    def cost(self, rank: int) -> float:
        return COST_OF_AN_ENTRY * 2.0 * self.others.size * rank / self.ops.rate

    def reweighted(self, data: np.ndarray) -> SparseTensor:
        """Return a tensor of the same tuples with other values."""
        values, observed = np.asarray(data, self.dtype), self.repeats_observed
        return SparseTensor(
            self.indices, values, self.shape[0], self.threads, repeats_observed=observed
        )

    @property
    def rows_in_use(self) -> np.ndarray:
        """Which rows hold an entry."""
        return np.diff(self.indptr) > 0

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {len(self.data)} tuples)"

    def values(self) -> Iterator[np.ndarray]:
        yield self.data

    def pattern(self) -> Iterator[np.ndarray]:
        yield self.indices.astype(np.int64, copy=False)


def distinct(side: int, order: int, first: int) -> np.ndarray:
    """Return, for entries whose first index is ``first``, which have no repeated index."""
    others = np.indices((side,) * (order - 1), sparse=True)
    keep = np.ones((side,) * (order - 1), dtype=bool)
    for index in others:
        keep &= index != first
    for one, two in itertools.combinations(others, 2):
        keep &= one != two
    return keep


def _arrangements(indices: np.ndarray) -> np.ndarray:
    """Return in how many different orders each sorted tuple can be written."""
    counts = np.full(len(indices), math.factorial(indices.shape[1]))
    run = np.ones(len(indices), dtype=np.int64)
    for one, two in itertools.pairwise(indices.T):
        run = np.where(one == two, run + 1, 1)
        counts //= run
    return counts
