"""X with a table beside it and below it: [[X, F], [F^T, 0]]."""

from __future__ import annotations

import copy
import hashlib
from typing import Self

import numpy as np

from symnmf.ops import Factor
from symnmf.parallel import Threads
from symnmf.storage.symmetric import SymmetricMatrix
from symnmf.storage.table import Table


class Bordered(SymmetricMatrix):
    """The symmetric matrix of X and a table F, for products, spectra and starts.

    The lower right block is not data: it is 0 here, and the objective leaves it out. So is X where
    it is not ``whole``.
    """

    def __init__(self, X: SymmetricMatrix, F: Table, whole: bool = True) -> None:
        super().__init__(X.shape[0] + F.shape[1], X.dtype, X.ops)
        self.inner, self.table, self.whole = X, F, whole
        self.signed = X.signed or F.signed

    def matmul(self, V: Factor, out: Factor | None = None) -> Factor:
        n = self.inner.shape[0]
        product = self.ops.empty(V) if out is None else out
        product[:n] = self.table.times(V[n:])
        if self.whole:
            product[:n] += self.inner.matmul(V[:n])
        product[n:] = self.table.transposed(V[:n])
        return product

    def compute_sqnorm(self) -> float:
        return (self.inner.sqnorm if self.whole else 0.0) + 2.0 * self.table.sqnorm

    def compute_largest(self) -> float:
        return max(self.inner.largest(), self.table.largest())

    def digest(self) -> str:
        both = f"{self.inner.digest()} {self.table.digest()}"
        return hashlib.blake2b(both.encode(), digest_size=16).hexdigest()

    def with_threads(self, threads: Threads) -> Self:
        other = copy.copy(self)
        other.inner = self.inner.with_threads(threads)
        other.ops = other.inner.ops
        return other

    def cost(self, rank: int) -> float:
        return self.inner.cost(rank) + self.table.flops(rank) / self.ops.rate

    def values_at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.inner.values_at(rows, columns)
