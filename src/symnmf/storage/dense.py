"""X as a NumPy array in memory (or mapped from a file)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from symnmf.kernels.dense_products import NARROW, times_rows
from symnmf.parallel import Bounds, Threads
from symnmf.storage.host import HostMatrix
from symnmf.storage.symmetric import Square, residual_by_columns, square_parts

#: Rows of the squares that X is looked at in: a few of them fit into the cache.
PART_SIDE = 512


#: Bytes a second that one thread reads from memory.
MEMORY_BYTES = 5e9


class DenseMatrix(HostMatrix):
    """A symmetric array with its rows one after the other, as they are in the transpose if not."""

    def __init__(self, X: np.ndarray, threads: Threads) -> None:
        super().__init__(X.shape[0], X.dtype, threads)
        self.array = X if X.flags.c_contiguous else X.T

    def product_rows(self, V: np.ndarray, out: np.ndarray) -> Callable[[int, int], Any]:
        if V.shape[1] <= NARROW and self.array.flags.c_contiguous:
            return partial(times_rows, self.array, V, out)
        return lambda begin, end: np.matmul(self.array[begin:end], V, out=out[begin:end])

    def chunks(self, width: int) -> list[Bounds]:
        n = self.shape[0]
        # a third of the flops: they run three times as fast as those of other passes, so a second
        # thread pays later
        return self.threads.split(n, 2.0 * n * width / 3.0)

    def cost(self, rank: int) -> float:
        return max(super().cost(rank), self.array.nbytes / MEMORY_BYTES)

    def compute_sqnorm(self) -> float:
        def task(begin: int, end: int) -> float:
            blocks = (rows.astype(np.float64, copy=False) for rows in self._blocks(begin, end))
            return sum(float(np.vdot(block, block)) for block in blocks)

        n = self.shape[0]
        return sum(self.threads.run(task, self.threads.split(n, 2.0 * n)))

    def columns(self, begin: int, end: int) -> np.ndarray:
        return self.array[begin:end].T

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float | None:
        return residual_by_columns(self, U, V)

    def parts(self) -> Iterator[tuple[Square, np.ndarray]]:
        for square in square_parts(self.shape[0], PART_SIDE):
            yield square, self.array[square.top : square.bottom, square.left : square.right]

    def values(self) -> Iterator[np.ndarray]:
        yield from self._blocks(0, self.shape[0])

    def _blocks(self, begin: int, end: int) -> Iterator[np.ndarray]:
        """Yield some rows, a few at a time."""
        rows = max(1, self.ops.block // self.shape[0])
        for first in range(begin, end, rows):
            yield self.array[first : min(first + rows, end)]
