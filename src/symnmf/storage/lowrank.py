"""X given by thin factors, X = B C B^T: multiplied in O(nkr), never formed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from symnmf.calls import read_once
from symnmf.errors import InputError
from symnmf.ops import Factor, HostOps, Ops
from symnmf.parallel import Threads
from symnmf.storage.border import check_range
from symnmf.storage.dtypes import as_array, float_dtype
from symnmf.storage.symmetric import SymmetricMatrix, fingerprint

#: Rows of the thin factors that are worked on at a time, in units of their columns.
BLOCK_ROWS = 16


class ThinFactors(SymmetricMatrix):
    """B C B^T with a tall factor B, wherever its operations are."""

    def __init__(self, B: Factor, C: np.ndarray, ops: Ops) -> None:
        super().__init__(B.shape[0], ops.dtype(B), ops)
        self.B, self.C = B, C

    def _coefficients(self, V: Factor) -> np.ndarray:
        """Return C B^T V, k x r, summed in float64."""
        return np.asarray(self.C @ self.ops.cross(self.B, V))

    def matmul(self, V: Factor, out: Factor | None = None) -> Factor:
        read_once()
        return self.ops.times(self.B, self._coefficients(V))

    def cost(self, rank: int) -> float:
        return 4.0 * self.shape[0] * self.B.shape[1] * rank / self.ops.rate

    def columns(self, begin: int, end: int) -> Factor:
        right = self.ops.get(self.B[begin:end]).astype(np.float64).T
        return self.ops.times(self.B, self.C @ right)

    def compute_sqnorm(self) -> float:
        core = self.ops.gram(self.B) @ self.C
        return float(np.sum(core * core.T))

    def compute_largest(self) -> float:
        r"""Return the largest b_i, with :math:`|x_{ij}| \le \max(b_i, b_j)`, without forming X.

        With C = W D W^T these are the diagonal entries of ``B W |D| W^T B^T``, which is positive
        semidefinite; where C is so too, they are the diagonal of X and the bound is attained.
        """
        values, vectors = np.linalg.eigh(self.C)
        sizes = np.abs(values)
        return max(
            float(((block @ vectors) ** 2 @ sizes).max()) for block in _blocks(self.ops.get(self.B))
        )

    def digest(self) -> str:
        return fingerprint(self, [self.ops.get(self.B), self.C])


class LowRank(ThinFactors):
    r"""The n x n matrix :math:`X = B C B^\top`, or :math:`B B^\top`, kept as its factors.

    For embeddings B whose inner products are the similarities, and for the k leading eigenpairs
    of a matrix too large to hold. A product with r columns costs 2nkr twice over, memory is that
    of B, and norms and residuals come from k x k algebra without losing digits.

    Parameters
    ----------
    B : array-like of shape (n, k)
        Finite. float32 and float64 are kept and are the precision of the run.
    C : array-like of shape (k, k) or None
        Symmetric, finite; None for the identity.

    Notes
    -----
    X >= 0 is assumed and not checked, because a check would need all n^2 entries. It holds if B
    and C are nonnegative. The problem is still well posed if some entries are negative, as in a
    truncated eigendecomposition: U U^T then fits them by 0. Only the multiplicative methods need
    X >= 0.

    Examples
    --------
    >>> import numpy as np, symnmf
    >>> B = np.random.default_rng(0).random((500, 8))
    >>> X = symnmf.storage.LowRank(B)
    >>> result = symnmf.factorize(X, 8, solver="hals-newton", random_state=0)
    >>> result.U.shape
    (500, 8)
    """

    ops: HostOps

    def __init__(self, B: Any, C: Any = None) -> None:
        rows = _finite_matrix(B, "B")
        n, k = rows.shape
        if n == 0 or k == 0:
            raise InputError(f"B is empty ({n} x {k}); pass at least one row and one column.")
        core = np.eye(k) if C is None else _finite_matrix(C, "C").astype(np.float64)
        if core.shape != (k, k):
            raise InputError(
                f"C must be {k} x {k} to go with the {k} column(s) of B, got "
                f"{core.shape[0]} x {core.shape[1]}."
            )
        asymmetry, largest = float(np.abs(core - core.T).max()), float(np.abs(core).max())
        if asymmetry > 1e-10 * largest:
            raise InputError(
                f"C is not symmetric: entries differ from their mirror image by up to "
                f"{asymmetry:.6g} (the largest entry is {largest:.6g}); pass (C + C.T) / 2 if that "
                f"is what you mean."
            )
        super().__init__(rows, 0.5 * (core + core.T), HostOps(Threads()))
        with np.errstate(over="ignore", invalid="ignore"):
            check_range(self.largest(), self.dtype, "B C B^T")

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        read_once()
        V = np.ascontiguousarray(V, self.dtype)
        return self.ops.times(self.B, self._coefficients(V), out)

    def core(self) -> np.ndarray:
        """Return a small matrix with the eigenvalues of X, but for zeros."""
        R = _triangle(self.B)
        return np.asarray(R @ self.C @ R.T)

    def compute_sqnorm(self) -> float:
        core = self.core()
        return float(np.vdot(core, core))

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float:
        r"""Return :math:`\|B C B^\top - U V^\top\|_F^2`, exact down to rounding of X.

        With [B U V] = Q [R_B R_U R_V] it is :math:`\|R_B C R_B^\top - R_U R_V^\top\|_F^2`.
        """
        read_once()
        k, r = self.B.shape[1], U.shape[1]
        R = _triangle(self.B, U) if V is U else _triangle(self.B, U, V)
        core = R[:, :k] @ self.C @ R[:, :k].T - R[:, k : k + r] @ R[:, -r:].T
        return float(np.vdot(core, core))


def _finite_matrix(X: Any, name: str) -> np.ndarray:
    array = as_array(X, name)
    if array.ndim != 2:
        raise InputError(f"{name} must be two-dimensional, got {array.ndim} dimension(s).")
    array = np.ascontiguousarray(array, dtype=float_dtype(array.dtype, name))
    if not np.isfinite(array).all():
        raise InputError(f"{name} has NaN or infinite entries; remove or replace them first.")
    return array


def _blocks(*factors: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the factors side by side, a few rows at a time."""
    rows = BLOCK_ROWS * max(16, sum(factor.shape[1] for factor in factors))
    for first in range(0, factors[0].shape[0], rows):
        yield np.hstack([factor[first : first + rows] for factor in factors], dtype=np.float64)


def _triangle(*factors: np.ndarray) -> np.ndarray:
    """Return R of the QR decomposition of the factors side by side."""
    R = np.zeros((0, sum(factor.shape[1] for factor in factors)))
    for block in _blocks(*factors):
        R = np.asarray(np.linalg.qr(np.vstack([R, block]), mode="r"))
    return R
