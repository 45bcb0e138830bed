"""A rectangular table that goes with X: rows of X by columns of its own, multiplied both ways."""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.interchange import is_tensor, to_host
from symnmf.kernels.products import balanced_chunks, csr_rows
from symnmf.ops import Factor, Ops
from symnmf.parallel import Threads
from symnmf.storage.border import check_range
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.indices import check_indices

#: Numbers in a block of the residual that is formed at a time.
BLOCK_SIZE = 262_144


class Table(ABC):
    """An n x m table F: all that an objective asks of it.

    Parameters
    ----------
    F : ndarray or csr_array
        The table on the host, checked.

    Attributes
    ----------
    sqnorm : float
        ||F||_F^2.
    signed : bool
        Whether it has negative entries.
    """

    def __init__(self, F: Any) -> None:
        self.host = F
        self.shape: tuple[int, int] = F.shape
        self.dtype: np.dtype = F.dtype
        self.sparse = sp.issparse(F)
        held = self._held
        flat = held.ravel().astype(np.float64, copy=False)
        self.sqnorm = float(np.vdot(flat, flat))
        self.signed = bool(held.min(initial=0.0) < 0)

    @property
    def _held(self) -> np.ndarray:
        return np.asarray(self.host.data if self.sparse else self.host)

    @abstractmethod
    def times(self, W: Factor) -> Factor:
        """Return F W, with a row for each row of X."""

    @abstractmethod
    def transposed(self, U: Factor) -> Factor:
        """Return F^T U, with a row for each column of the table."""

    @abstractmethod
    def residual_sqnorm(self, U: Factor, W: Factor) -> float:
        """Return ||F - U W^T||_F^2 from the entries."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return ``factor`` times the table."""

    def largest(self) -> float:
        """Return the largest entry in size."""
        return float(np.abs(self._held).max(initial=0.0))

    def flops(self, rank: int) -> float:
        """Return the floating point operations of both products."""
        return 4.0 * self._held.size * rank

    def digest(self) -> str:
        """Return a fingerprint of all there is to it."""
        F = self.host
        digest = hashlib.blake2b(f"{self.shape} {self.dtype} table".encode(), digest_size=16)
        for part in (F.indptr, F.indices, F.data) if self.sparse else (F,):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def with_threads(self, threads: Threads) -> Self:
        """Return it for use on these threads of the host."""
        return self

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield rows from the first to the last, dense and a few at a time, with their number."""
        rows = max(1, BLOCK_SIZE // self.shape[1])
        for first in range(0, self.shape[0], rows):
            part = self.host[first : first + rows]
            yield first, np.asarray(part.toarray() if self.sparse else part, dtype=np.float64)


class HostTable(Table):
    """A table in this machine's memory, dense or in CSR form.

    The sparse one is kept with its transpose, so that both products go row by row.
    """

    def __init__(self, F: Any, threads: Threads) -> None:
        super().__init__(F)
        self.threads = threads
        self.both = (F, sp.csr_array(F.T)) if self.sparse else (F, F.T)

    def _product(self, which: int, V: np.ndarray) -> np.ndarray:
        matrix = self.both[which]
        rows, width = matrix.shape[0], V.shape[1]
        out = np.empty((rows, width), self.dtype)
        if self.sparse:
            bounds = balanced_chunks(matrix.indptr, self.threads.parts(2.0 * matrix.nnz * width))

            def task(begin: int, end: int) -> None:
                csr_rows(matrix.indptr, matrix.indices, matrix.data, V, out, begin, end)
        else:
            bounds = self.threads.split(rows, 2.0 * matrix.shape[1] * width / 3.0)

            def task(begin: int, end: int) -> None:
                np.matmul(matrix[begin:end], V, out=out[begin:end])

        self.threads.run(task, bounds)
        return out

    def times(self, W: np.ndarray) -> np.ndarray:
        return self._product(0, W)

    def transposed(self, U: np.ndarray) -> np.ndarray:
        return self._product(1, U)

    def residual_sqnorm(self, U: np.ndarray, W: np.ndarray) -> float:
        total = 0.0
        for first, block in self.blocks():
            gap = block - U[first : first + len(block)].astype(np.float64, copy=False) @ W.T
            total += float(np.vdot(gap, gap))
        return total

    def scaled(self, factor: float) -> HostTable:
        return HostTable(self.host * self.dtype.type(factor), self.threads)

    def with_threads(self, threads: Threads) -> HostTable:
        other = copy.copy(self)
        other.threads = threads
        return other


def as_table(F: Any, n: int, dtype: np.dtype, ops: Ops, name: str = "attributes") -> Table:
    """Return a table, checked, in the precision of X and where its factors are.

    ``ops`` are the operations of X; the table goes where they work.
    """
    if isinstance(F, Table):
        return F
    F = _array(F, name)
    if F.ndim != 2 or F.shape[0] != n:
        raise InputError(
            f"{name} must have one row for each of the {n} rows of X, got "
            f"{' x '.join(map(str, F.shape))}."
        )
    if F.shape[1] == 0:
        raise InputError(f"{name} has no columns; pass at least one, or leave it out.")
    float_dtype(F.dtype, name)
    matrix: Any = sp.csr_array(F, dtype=dtype) if sp.issparse(F) else np.ascontiguousarray(F, dtype)
    held = matrix.data if sp.issparse(matrix) else matrix
    if not np.isfinite(held).all():
        raise InputError(f"{name} has NaN or infinite entries; remove or replace them first.")
    if not held.any():
        raise InputError(f"{name} has only zeros; leave it out.")
    check_range(float(np.abs(held).max()), dtype, name)
    if sp.issparse(matrix):
        matrix.sum_duplicates()
        matrix.sort_indices()
    device = getattr(ops, "device", None)
    if device is not None:
        from symnmf.storage.torch_table import TorchTable

        return TorchTable.of(matrix, ops)
    threads = getattr(ops, "threads", None)
    if threads is None:
        raise InputError(f"{name} needs X in memory or on a GPU, not spread over workers.")
    return HostTable(matrix, threads)


def _array(F: Any, name: str) -> Any:
    if sp.issparse(F):
        check_indices(F, name)
        return F
    if is_tensor(F):
        F = to_host(F)
    if hasattr(F, "to_numpy"):
        F = F.to_numpy()
    try:
        return np.asarray(F)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} cannot be read as a table: {error}.") from error
