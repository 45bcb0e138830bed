"""A rectangular table that goes with X: rows of X by columns of its own, multiplied both ways."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.interchange import is_tensor, to_host
from symnmf.ops import Factor, HostOps, Ops
from symnmf.storage.border import check_range
from symnmf.storage.dtypes import as_array, float_dtype
from symnmf.storage.indices import checked_csr


class Table:
    """An n x m table F, dense or sparse, with its transpose: all that an objective asks of it.

    Parameters
    ----------
    F : ndarray or csr_array
        The table on the host, checked.
    ops : Ops
        Those of X, in this machine's memory or on a GPU.

    Attributes
    ----------
    sqnorm : float
        ||F||_F^2.
    signed : bool
        Whether it has negative entries.
    """

    def __init__(self, F: Any, ops: Any) -> None:
        self.host, self.ops = F, ops
        self.shape: tuple[int, int] = F.shape
        self.dtype: np.dtype = F.dtype
        self.sparse = sp.issparse(F)
        held = self._held
        flat = held.ravel().astype(np.float64, copy=False)
        self.sqnorm = float(np.vdot(flat, flat))
        self.signed = bool(held.min(initial=0.0) < 0)
        self.both = [F, sp.csr_array(F.T) if self.sparse else F.T]
        if not isinstance(ops, HostOps):
            self.both = [ops.put(held) for held in self.both]

    @property
    def _held(self) -> np.ndarray:
        return np.asarray(self.host.data if self.sparse else self.host)

    def times(self, W: Factor) -> Factor:
        """Return F W, with a row for each row of X."""
        return self.ops.product(self.both[0], W)

    def transposed(self, U: Factor) -> Factor:
        """Return F^T U, with a row for each column of the table."""
        return self.ops.product(self.both[1], U)

    def scaled(self, factor: float) -> Self:
        """Return ``factor`` times the table."""
        return type(self)(self.host * self.dtype.type(factor), self.ops)

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


def as_table(F: Any, n: int, dtype: np.dtype, ops: Ops, name: str = "attributes") -> Table:
    """Return a table, checked, in the precision of X and where its factors are.

    ``ops`` are the operations of X; the table goes where they work.
    """
    if isinstance(F, Table):
        return F
    F = to_host(F) if is_tensor(F) else F
    F = F.to_numpy() if hasattr(F, "to_numpy") else F
    F = F if sp.issparse(F) else as_array(F, name)
    if F.ndim != 2 or F.shape[0] != n:
        raise InputError(
            f"{name} must have one row for each of the {n} rows of X, got "
            f"{' x '.join(map(str, F.shape))}."
        )
    if F.shape[1] == 0:
        raise InputError(f"{name} has no columns; pass at least one, or leave it out.")
    float_dtype(F.dtype, name)
    sparse = sp.issparse(F)
    matrix: Any = checked_csr(F, dtype, name) if sparse else np.ascontiguousarray(F, dtype)
    held = matrix.data if sparse else matrix
    if not np.isfinite(held).all():
        raise InputError(f"{name} has NaN or infinite entries; remove or replace them first.")
    if not held.any():
        raise InputError(f"{name} has only zeros; leave it out.")
    check_range(float(np.abs(held).max()), dtype, name)
    if not hasattr(ops, "product"):
        raise InputError(f"{name} needs X in memory or on a GPU.")
    return Table(matrix, ops)
