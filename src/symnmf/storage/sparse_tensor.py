"""T as its different index tuples i <= j <= k (<= l) and their values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from symnmf.kernels import tuples
from symnmf.kernels.products import balanced_chunks
from symnmf.parallel import Bounds, Threads
from symnmf.storage.tensor import SymmetricTensor

#: Entries of the full tensor up to which its residual is formed; more would cost more than the run.
RESIDUAL_UP_TO = 4 * 10**8


class SparseTensor(SymmetricTensor):
    """A symmetric tensor that keeps each entry once, and a list of its tuples for every row.

    Use :func:`symnmf.tensors.from_tuples` or :func:`symnmf.tensors.from_hyperedges`, which check
    what they are given.

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
        self.residual_affordable = float(side) ** self.order <= RESIDUAL_UP_TO
        self._shares: dict[int, list[Bounds]] = {}
        self._index_rows()

    def _index_rows(self) -> None:
        """List the tuples of every row, as :mod:`symnmf.kernels.tuples` reads them."""
        side, indices = self.shape[0], self.indices
        first = np.ones(indices.shape, dtype=bool)
        first[:, 1:] = indices[:, 1:] != indices[:, :-1]
        counts = np.bincount(indices[first], minlength=side)
        self.indptr = np.concatenate(([0], np.cumsum(counts)))
        self.others = np.empty((self.indptr[-1], self.order - 1), indices.dtype)
        self.weights = np.empty(self.indptr[-1], self.dtype)
        tuples.fill_rows(indices, self.data, self.indptr[:-1].copy(), self.others, self.weights)

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(V.shape, self.dtype) if out is None else out
        self._each(lambda b, e: tuples.power_rows(*self._lists, V, result, b, e), V.shape[1])
        return result

    def contract(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        first, second, last = factors[0], factors[1], factors[-1]
        if all(factor is first for factor in factors):
            return self.matmul(first)
        out = np.empty(first.shape, self.dtype)
        self._each(
            lambda b, e: tuples.mixed_rows(*self._lists, first, second, last, out, b, e),
            2 * first.shape[1],
        )
        return out

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

    def threads_for(self, rank: int) -> int:
        return len(self._bounds(rank))

    def slice(self, i: int) -> np.ndarray:
        listed = np.s_[self.indptr[i] : self.indptr[i + 1]]
        others = self.others[listed]
        values = self.weights[listed] / _arrangements(others)
        full = np.zeros(self.shape[1:], self.dtype)
        for places in itertools.permutations(others.T):
            full[places] = values
        return full

    def reweighted(self, data: np.ndarray) -> SparseTensor:
        """Return a tensor of the same tuples with other values."""
        return SparseTensor(
            self.indices,
            np.asarray(data, self.dtype),
            self.shape[0],
            self.threads,
            repeats_observed=self.repeats_observed,
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

    @property
    def _lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.others, self.weights

    def _each(self, task: Callable[[int, int], None], width: int) -> None:
        self.threads.run(task, self._bounds(width))

    def _bounds(self, width: int) -> list[Bounds]:
        parts = self.threads.parts(3.0 * self.order * len(self.data) * width)
        if parts not in self._shares:
            self._shares[parts] = balanced_chunks(self.indptr, parts)
        return self._shares[parts]


def _arrangements(indices: np.ndarray) -> np.ndarray:
    """Return in how many different orders each sorted tuple can be written."""
    counts = np.full(len(indices), math.factorial(indices.shape[1]))
    run = np.ones(len(indices), dtype=np.int64)
    for one, two in itertools.pairwise(indices.T):
        run = np.where(one == two, run + 1, 1)
        counts //= run
    return counts
