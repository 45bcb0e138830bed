r"""Likelihoods of counts and of edges: x_ij is drawn at the rate <u_i, u_j>.

With m = <u_i, u_j> the loss is half of

    sum_ij m_ij - x_ij l(m_ij),    l(m) = log m (Poisson) or log(e^m - 1) (Bernoulli),

each pair twice. The second is that of an edge where a Poisson count is at least one, the model of
BigCLAM. The first sum is ||U^T 1||^2, so a sparse X costs O(nnz r) and no zero is ever looked at.
Degrees are in the model: X needs no normalisation.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.kernels.likelihood import likelihood_rows, newton_sweep
from symnmf.objectives.objective import (
    LEAST_SIZE,
    REFERENCE_SHARE,
    Objective,
)
from symnmf.objectives.observing import observed_part
from symnmf.ops import Factor
from symnmf.state import Point, Sums
from symnmf.storage import DenseMatrix, SparseMatrix, SymmetricArray, as_symmetric
from symnmf.storage.wrapping import in_memory


class Likelihood(Objective):
    """Minus the logarithm of the likelihood of X, up to a constant.

    Parameters
    ----------
    storage : SparseMatrix
        X >= 0; between 0 and 1 for ``bernoulli``.
    bernoulli : bool
        Whether entries are edges, not counts.
    hidden : csr_array or None
        1 where an entry was not observed, 0 elsewhere; symmetric.
    """

    default_solver: ClassVar[str] = "row-newton"
    homogeneous = False

    def __init__(
        self, storage: SparseMatrix, *, bernoulli: bool = False, hidden: sp.csr_array | None = None
    ) -> None:
        super().__init__(storage)
        self.bernoulli, self.hidden = bernoulli, hidden

    def describe(self) -> str:
        name = "log(exp<u_i, u_j> - 1)" if self.bernoulli else "log <u_i, u_j>"
        return f"1/2 sum_ij <u_i, u_j> - x_ij {name}"

    def digest(self) -> str:
        digest = hashlib.blake2b(digest_size=8)
        for part in () if self.hidden is None else (self.hidden.indptr, self.hidden.indices):
            digest.update(np.asarray(part, np.int64).tobytes())
        loss = "bernoulli" if self.bernoulli else "poisson"
        return f"{self.storage.digest()} {loss} {digest.hexdigest()}"

    # --- f at a point

    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        """Return sum_j x_ij l'(m_ij) u_j, which balances :meth:`expected` where U is critical."""
        X, values = self.storage, np.ascontiguousarray(U.values)
        pull, logs = np.empty_like(values), np.empty(len(values))
        X.threads.run(
            lambda begin, end: likelihood_rows(
                X.indptr, X.indices, X.data, values, self.bernoulli, pull, logs, begin, end
            ),
            X.chunks(2 * values.shape[1]),
        )
        fit = float(logs.sum())
        size = float(np.vdot(values, self.expected(values)))
        return pull, (size - fit, fit, size)

    def expected(self, U: np.ndarray) -> np.ndarray:
        """Return sum_j w_ij u_j over what was observed: how much of each column a row would see."""
        sums = np.broadcast_to(U.sum(axis=0, dtype=np.float64), U.shape)
        return sums if self.hidden is None else sums - self.hidden @ U

    def sums(self, U: Point, product: Factor) -> Sums:
        known = self.product_and_sums(U)[1]
        assert known is not None
        return known

    def misfit(self, U: Point) -> float:
        """Return twice f without what is added."""
        return U.sums(self)[0]

    def relative(self, misfit: float) -> float:
        """Return what is left of the deviance."""
        least, spread = self._deviances
        return (misfit - least) / spread

    @cached_property
    def _deviances(self) -> tuple[float, float]:
        """Twice f where all is explained, and how much more it is where only degrees explain X.

        Where these explain all of it, the unit is the sum of all counts.
        """
        least, counted = self._least()
        left = self.misfit(Point(self.ops, self._of_degrees())) - least
        rounding = 1e3 * float(np.finfo(self.dtype).eps) * counted
        return least, left if left > rounding else counted

    def _least(self) -> tuple[float, float]:
        """Return twice f where every entry has a rate of its own, and the sum of all counts."""
        x = self.storage.data.astype(np.float64)
        # for edges: at m -> infinity for x = 1, and where m (1 - x) = ... in between
        return 0.0 if self.bernoulli else float(np.sum(x - x * np.log(x))), float(x.sum())

    def _of_degrees(self) -> np.ndarray:
        """Return the U of one column that explains X by its degrees alone."""
        X = self.storage
        rows = np.repeat(np.arange(self.shape[0]), np.diff(X.indptr))
        degrees = np.bincount(rows, X.data, minlength=self.shape[0])
        return (degrees / np.sqrt(degrees.sum() or 1.0))[:, None].astype(self.dtype)

    def improved(self, U: Point, power: float) -> np.ndarray:
        """Return the step of expectation-maximisation, taken ``power`` times as far.

        Where everything was observed that step is exact, u_ik = N_ik / sqrt(N_k) with N_ik the
        part of row i that column k explains (Ball, Karrer and Newman 2011); else it is that of a
        majorant, u_ik (N_ik / (u_ik expected_ik))^(1/2). f never rises with a ``power`` of 1.
        """
        values, pull = np.asarray(U.values, np.float64), np.asarray(U.product(self), np.float64)
        if self.hidden is None:
            totals = np.sqrt(np.einsum("ik,ik->k", values, pull))
            ratio = pull / np.where(totals > 0, totals, 1.0)
        else:
            expected = self.expected(values)
            ratio = np.sqrt(pull / np.where(expected > 0, expected, 1.0))
        moved = values * (ratio if power == 1.0 else ratio**power)
        return moved.astype(self.dtype)

    def swept(self, U: Point) -> np.ndarray:
        """Return U after one Newton step for each row in turn; f never rises."""
        X = self.storage
        moved = np.array(U.values, dtype=np.float64, order="C")
        n = len(moved)
        hidden = sp.csr_array((n, n)) if self.hidden is None else self.hidden
        own = hidden.diagonal() != 0
        newton_sweep(
            X.indptr, X.indices, X.data, moved, self.bernoulli, hidden.indptr, hidden.indices, own
        )
        return moved.astype(self.dtype)

    @cached_property
    def has_diagonal(self) -> bool:
        """Whether X has entries on its diagonal, which make rows problems that are not convex."""
        X = self.storage
        rows = np.repeat(np.arange(self.shape[0]), np.diff(X.indptr))
        return bool((rows == X.indices).any())

    def best_multiple(self, U: Point) -> float:
        """Return s with as much expected of s U as there is, the best one for counts."""
        size = float(np.vdot(U.values, self.expected(np.asarray(U.values))))
        total = float(np.sum(self.storage.data, dtype=np.float64))
        return float(np.sqrt(total / size)) if size > 0 else 1.0

    def stationarity(self, U: Point) -> float:
        """Natural residual with gradients in units of what is expected, over ||U||_F / 10."""
        values, pull = np.asarray(U.values, np.float64), np.asarray(U.product(self), np.float64)
        size = float(np.linalg.norm(values))
        if size < LEAST_SIZE:
            return np.inf
        expected = self.expected(values)
        unit = size / np.sqrt(values.size)
        slope = unit * (1.0 - pull / np.where(expected > 0, expected, np.inf))
        return float(np.linalg.norm(np.minimum(values, slope)) / (REFERENCE_SHARE * size))

    #: there is no quadratic to split, or to follow a line on
    split_step: Any = None
    split_misfit = coupling_bound = split_gradients = split_curvature = split_step
    product_at = along = advance = split_step


def likelihood_of(
    X: Any,
    loss: str,
    *,
    mask: Any = None,
    missing: str | None = None,
    ignore_diagonal: bool = False,
    n_jobs: int | None = None,
) -> Likelihood:
    """Return the likelihood of what was observed of a matrix, or say why it has none."""
    W = None
    if mask is not None or missing is not None:
        if missing == "unstored":
            raise InputError(
                f"missing='unstored' cannot be combined with loss={loss!r}, where unstored entries "
                f"are 0; pass a mask instead."
            )
        X = in_memory(X) if isinstance(X, SymmetricArray) else X
        if isinstance(X, SymmetricArray):
            raise _not_in_memory(X, loss)
        X, W = observed_part(X, mask, "mask", missing)
    stored = _stored(as_symmetric(X, n_jobs=n_jobs), loss)
    largest = float(stored.data.max(initial=0.0))
    if loss == "bernoulli" and largest > 1:
        raise InputError(
            f"loss='bernoulli' is for edges, entries from 0 to 1, and X has {largest:.6g}; use "
            f"loss='poisson', or (X > 0)."
        )
    n, hidden = stored.shape[0], None
    if W is not None:
        hidden = sp.csr_array((W.toarray() if sp.issparse(W) else W) == 0, dtype=np.float64)
    if ignore_diagonal:
        diagonal = sp.csr_array(sp.eye_array(n))
        hidden = diagonal if hidden is None else sp.csr_array(hidden.maximum(diagonal))
    return _without(stored, loss, hidden)


def _not_in_memory(X: Any, loss: str) -> InputError:
    return InputError(
        f"loss={loss!r} needs X in memory, as a sparse matrix or an array, not as "
        f"{type(X).__name__}."
    )


def _stored(X: Any, loss: str) -> SparseMatrix:
    """X with its entries in sparse form."""
    if isinstance(X, SparseMatrix):
        return X
    if not isinstance(X, DenseMatrix):
        raise _not_in_memory(X, loss)
    A = sp.csr_array(X.array)
    return SparseMatrix(A.indptr, A.indices, A.data, X.threads)


def _without(X: SparseMatrix, loss: str, hidden: sp.csr_array | None) -> Likelihood:
    """Return the likelihood of X with nothing stored where entries are hidden or zero."""
    if hidden is not None or not X.data.all():
        A = sp.csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        A = A if hidden is None else sp.csr_array(A - A.multiply(hidden))
        A.eliminate_zeros()
        A.sort_indices()
        X = SparseMatrix(A.indptr, A.indices, A.data, X.threads)
    return Likelihood(X, bernoulli=loss == "bernoulli", hidden=hidden)
