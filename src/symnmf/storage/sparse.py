"""X as a compressed sparse row matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from symnmf.calls import read_once
from symnmf.kernels.products import balanced_chunks, csr_rows
from symnmf.parallel import Bounds, Threads
from symnmf.storage.host import HostMatrix
from symnmf.storage.symmetric import as_float32, residual_by_columns

#: Parts of a product for each thread: rows differ in what they cost, cached or not.
PARTS_EACH = 4

#: Rows and stored entries up to which 32 bits are enough for an index.
NARROW_UP_TO = np.iinfo(np.int32).max

#: Time for an entry of a sparse product, over that of a dense one: measured.
COST_OF_AN_ENTRY = 3.0

#: Above this n the n x n residual of a sparse X would cost more than the run.
RESIDUAL_UP_TO = 20_000


def narrow(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of stored entries in 32 bits, where these are enough.

    That is half the memory traffic, and no second version of each kernel to compile.
    """
    if max(len(indices), len(indptr)) > NARROW_UP_TO:
        return indptr, indices
    return indptr.astype(np.int32, copy=False), indices.astype(np.int32, copy=False)


class SparseMatrix(HostMatrix):
    """A symmetric matrix in CSR form; being symmetric, its CSC form is the same three arrays."""

    def __init__(
        self, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, threads: Threads
    ) -> None:
        super().__init__(len(indptr) - 1, data.dtype, threads)
        self.indptr, self.indices = narrow(indptr, indices)
        self.data = data
        self._shares: dict[int, list[Bounds]] = {}
        self._single: SparseMatrix | None = None

    def product_rows(self, V: np.ndarray, out: np.ndarray) -> Callable[[int, int], None]:
        return partial(csr_rows, self.indptr, self.indices, self.data, V, out)

    def chunks(self, width: int) -> list[Bounds]:
        parts = self.threads.parts(2.0 * len(self.data) * width)
        if parts > 1:
            parts *= PARTS_EACH
        if parts not in self._shares:
            self._shares[parts] = balanced_chunks(self.indptr, parts)
        return self._shares[parts]

    def compute_sqnorm(self) -> float:
        wide = (block.astype(np.float64, copy=False) for block in self._pieces(self.data))
        return sum((float(np.vdot(block, block)) for block in wide), start=0.0)

    def _pieces(self, array: np.ndarray) -> Iterator[np.ndarray]:
        for first in range(0, len(array), self.ops.block):
            yield array[first : first + self.ops.block]

    def cost(self, rank: int) -> float:
        return COST_OF_AN_ENTRY * 2.0 * len(self.data) * rank / self.ops.rate

    def columns(self, begin: int, end: int) -> np.ndarray:
        first, last = self.indptr[begin], self.indptr[end]
        block = np.zeros((end - begin, self.shape[0]), self.dtype)
        rows = np.repeat(np.arange(end - begin), np.diff(self.indptr[begin : end + 1]))
        block[rows, self.indices[first:last]] = self.data[first:last]
        return block.T

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float | None:
        return residual_by_columns(self, U, V) if self.shape[0] <= RESIDUAL_UP_TO else None

    def coordinate_sweep(self, U: np.ndarray, gram: np.ndarray) -> np.ndarray:
        from symnmf.kernels.coordinate import sweep_csr

        read_once()
        room = np.empty(4 * U.shape[1])
        sweep_csr(self.indptr, self.indices, self.data, U, gram, room)
        return U

    def values(self) -> Iterator[np.ndarray]:
        yield self.data

    def pattern(self) -> Iterator[np.ndarray]:
        for array in (self.indptr, self.indices):
            yield from (part.astype(np.int64, copy=False) for part in self._pieces(array))


@as_float32.register
def _(X: SparseMatrix) -> SparseMatrix:
    if X.dtype == np.float32:
        return X
    single = X._single
    if single is None or single.threads is not X.threads:  # a copy has its own
        data = X.data.astype(np.float32) if single is None else single.data
        single = X._single = SparseMatrix(X.indptr, X.indices, data, X.threads)
    return single
