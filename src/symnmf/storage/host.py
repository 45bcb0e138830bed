"""X in the memory of this machine."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator

import numpy as np

from symnmf.calls import read_once
from symnmf.ops import HostOps
from symnmf.parallel import Bounds, Threads
from symnmf.storage.symmetric import SymmetricArray, SymmetricMatrix, fingerprint


class HostArray(SymmetricArray):
    """An array in this machine's memory: its values can be read block by block."""

    ops: HostOps

    @property
    def threads(self) -> Threads:
        """The pool that every row-wise operation uses."""
        return self.ops.threads

    @abstractmethod
    def values(self) -> Iterator[np.ndarray]:
        """Yield the stored values, block by block."""

    def pattern(self) -> Iterator[np.ndarray]:
        """Yield what says where the values are, for a fingerprint; nothing for a full array."""
        return iter(())

    def compute_largest(self) -> float:
        ends = ((block.max(initial=0.0), -block.min(initial=0.0)) for block in self.values())
        return max((float(max(pair)) for pair in ends), default=0.0)

    def digest(self) -> str:
        return fingerprint(self, itertools.chain(self.pattern(), self.values()))


class HostMatrix(HostArray, SymmetricMatrix):
    """A matrix whose products are computed row by row on this machine's threads."""

    def __init__(self, n: int, dtype: np.dtype, threads: Threads) -> None:
        super().__init__(n, dtype, HostOps(threads))

    @abstractmethod
    def product_rows(self, V: np.ndarray, out: np.ndarray) -> Callable[[int, int], None]:
        """Return what writes rows from one number to another of ``X @ V`` to those of ``out``."""

    @abstractmethod
    def chunks(self, width: int) -> list[Bounds]:
        """Share the rows of a product with ``width`` columns out over the threads."""

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        read_once()
        V = np.ascontiguousarray(V, self.dtype)
        result = np.empty(V.shape, self.dtype) if out is None else out
        self.threads.run(self.product_rows(V, result), self.chunks(V.shape[1]))
        return result
