"""T as a NumPy array in memory (or mapped from a file)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from symnmf.parallel import Threads
from symnmf.storage.host import BLOCK_SIZE
from symnmf.storage.tensor import SymmetricTensor, distinct


class DenseTensor(SymmetricTensor):
    """A symmetric C-contiguous array of three or four dimensions.

    A few slices T[i] are worked on at a time, so a product needs little memory, and comes out the
    same for every number of threads.
    """

    def __init__(self, T: np.ndarray, threads: Threads, *, repeats_observed: bool = True) -> None:
        super().__init__(T.shape[0], T.ndim, T.dtype, repeats_observed, threads)
        self.array = T if repeats_observed else _without_repeats(T)

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return self.contract([V] * (self.order - 1))

    def contract(self, factors: Sequence[np.ndarray]) -> np.ndarray:
        n, r = factors[0].shape
        out = np.empty((n, r), self.dtype)

        def rows(begin: int, end: int) -> None:
            part = (self.array[begin:end].reshape(-1, n) @ factors[-1]).reshape(
                end - begin, *self.shape[2:], r
            )
            for factor in reversed(factors[:-1]):
                part = np.einsum("...jr,jr->...r", part, factor)
            out[begin:end] = part

        self._each(rows, r)
        return out

    def compute_sqnorm(self) -> float:
        blocks = (self.array[i].astype(np.float64, copy=False) for i in range(self.shape[0]))
        return sum((float(np.vdot(block, block)) for block in blocks), start=0.0)

    def contracted(self, vectors: Sequence[np.ndarray]) -> np.ndarray:
        part = self.array
        for vector in vectors:
            part = part @ vector.astype(self.dtype, copy=False)
        return part

    def threads_for(self, rank: int) -> int:
        n = self.shape[0]
        return len(self.threads.split(n, 2.0 * n ** (self.order - 1) * rank))

    def slice(self, i: int) -> np.ndarray:
        return self.array[i]

    def values(self) -> Iterator[np.ndarray]:
        yield from self.array

    def _each(self, task: Callable[[int, int], None], width: int) -> None:
        """Run ``task`` on ranges of rows; the ranges do not depend on the number of threads."""
        n = self.shape[0]
        rows = max(1, BLOCK_SIZE // (n ** (self.order - 2) * width))

        def ranges(begin: int, end: int) -> None:
            for first in range(begin * rows, min(end * rows, n), rows):
                task(first, min(first + rows, n))

        cost = 2.0 * rows * n ** (self.order - 1) * width
        self.threads.run(ranges, self.threads.split(-(-n // rows), cost))


def _without_repeats(T: np.ndarray) -> np.ndarray:
    """Return T with zeros where an index is repeated, so that products leave these entries out."""
    kept = np.zeros_like(T)
    for i in range(T.shape[0]):
        np.copyto(kept[i], T[i], where=distinct(T.shape[0], T.ndim, i))
    return kept
