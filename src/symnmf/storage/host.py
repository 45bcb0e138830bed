"""X in the memory of this machine: rows, chunks of them, and threads."""

from __future__ import annotations

import copy
import hashlib
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Self

import numpy as np

from symnmf.calls import read_once
from symnmf.ops import HostOps, RowSolver
from symnmf.ops.host import row_kernel
from symnmf.parallel import Bounds, Threads
from symnmf.storage.symmetric import Square, SymmetricArray, SymmetricMatrix

#: Rows multiplied and then solved while they are still in cache.
FUSED_ROWS = 2048

#: Numbers in a block of dense rows that is formed at a time (2 MB).
BLOCK_SIZE = 262_144


def fingerprint(X: SymmetricArray, parts: Iterable[np.ndarray]) -> str:
    """Return a digest of all there is to X; how it is cut into ``parts`` does not matter."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{X.shape} {X.dtype}".encode())
    for block in parts:
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


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

    def largest(self) -> float:
        if not self.signed:
            return max((float(block.max(initial=0.0)) for block in self.values()), default=0.0)
        return max((float(np.abs(block).max(initial=0.0)) for block in self.values()), default=0.0)

    def digest(self) -> str:
        return fingerprint(self, itertools.chain(self.pattern(), self.values()))

    def with_threads(self, threads: Threads) -> Self:
        other = copy.copy(self)  # the caller's own keeps its threads
        other.ops = HostOps(threads)
        return other


class HostMatrix(HostArray, SymmetricMatrix):
    """A matrix whose products are computed row by row on this machine's threads.

    Subclasses say how rows of ``X @ V`` and of ``X - U V^T`` are computed; the rest follows.
    """

    def __init__(self, n: int, dtype: np.dtype, threads: Threads) -> None:
        super().__init__(n, dtype, HostOps(threads))

    @abstractmethod
    def product_rows(self, V: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
        """Write rows ``begin..end`` of ``X @ V`` to the same rows of ``out``."""

    @abstractmethod
    def chunks(self, width: int) -> list[Bounds]:
        """Share the rows of a product with ``width`` columns out over the threads."""

    @abstractmethod
    def residual_rows(self, U: np.ndarray, V: np.ndarray, begin: int, end: int) -> np.ndarray:
        """Return rows ``begin..end`` of X - U V^T as a dense float64 block."""

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        read_once()
        V = np.ascontiguousarray(V, self.dtype)
        result = np.empty(V.shape, self.dtype) if out is None else out
        if not self.share_product(V, result):
            self.threads.run(
                lambda begin, end: self.product_rows(V, result, begin, end), self.chunks(V.shape[1])
            )
        return result

    def share_product(self, V: np.ndarray, out: np.ndarray) -> bool:
        """Write X @ V by threads that wait in compiled code; return False where none are used."""
        return False

    def update(
        self,
        rows: RowSolver,
        factor: np.ndarray,
        other: np.ndarray,
        gram: Callable[[], np.ndarray],
        coupling: float,
        out: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Minimise over ``factor``, in place: each thread multiplies a few rows and solves them."""
        read_once()
        product = np.empty(factor.shape, self.dtype) if out is None else out
        solve, curvature = row_kernel(rows), gram()

        def task(begin: int, end: int) -> None:
            for first in range(begin, end, FUSED_ROWS):
                last = min(first + FUSED_ROWS, end)
                self.product_rows(other, product, first, last)
                solve(factor, product, other, curvature, coupling, first, last)

        self.threads.run(task, self.chunks(factor.shape[1]))
        return factor, product

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float | None:
        read_once()
        n = self.shape[0]
        rows = max(1, BLOCK_SIZE // n)

        def task(begin: int, end: int) -> float:
            total = 0.0
            for first in range(begin, end, rows):
                block = self.residual_rows(U, V, first, min(first + rows, end))
                total += float(np.vdot(block, block))
            return total

        return sum(self.threads.run(task, self.threads.split(n, 2.0 * n * U.shape[1])))

    def low_rank(self, B: np.ndarray, C: np.ndarray) -> SymmetricMatrix:
        from symnmf.storage.lowrank import LowRank

        return LowRank(B, C).with_threads(self.threads)

    def parts(self) -> Iterator[tuple[Square, np.ndarray]]:
        n, nothing = self.shape[0], np.zeros((self.shape[0], 1), self.dtype)
        rows = max(1, BLOCK_SIZE // n)
        for top in range(0, n, rows):
            bottom = min(top + rows, n)
            block = self.residual_rows(nothing, nothing, top, bottom).astype(self.dtype, copy=False)
            yield Square(top, bottom, top, bottom), block[:, top:bottom]
            if bottom < n:
                yield Square(top, bottom, bottom, n), block[:, bottom:]

    def residual(self, U: np.ndarray) -> np.ndarray:
        """Return X - U U^T as an n x n array."""
        return self.residual_rows(U, U, 0, self.shape[0])

    def threads_for(self, rank: int) -> int:
        return len(self.chunks(rank))
