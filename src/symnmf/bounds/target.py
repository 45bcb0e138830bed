r"""What is bounded: an objective as a constant and a matrix whose eigenvalues limit it.

Every objective here has, for every U >= 0 with r columns and every symmetric N >= 0,

    objective(U)  >=  1/2 (constant - factor sum_{i<=r} [lambda_i(A + N)]_+^2),

and a :class:`Target` is the constant, the factor and A:

Frobenius
    ||X||^2, 1 and X. With a ridge and links, 1/2 tr(U^T Q U), A = X - Q / 2.
weights w >= c > 0
    A = c X + Y with any symmetric Y, the factor 1 / c and the constant
    c ||X||^2 + 2 <Y, X> - sum y^2 / (w - c); Y = (w - c) (X - U U^T) is the best one at U.
hidden entries
    Only a block of rows whose pairs are all observed says anything.

Where l1 times the sum of the entries of U is added, that is at least l1 times the root of the trace
of U U^T. So the sum of the squares becomes twice the largest sum of lambda_i z_i - z_i^2 / 2 less
l1 (factor sum z_i)^(1/2) / factor over z >= 0, which is convex in the eigenvalues too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from symnmf.bounds.squares import Squares, all_eigenvalues, by_sampling
from symnmf.ops import Factor
from symnmf.storage import SparseMatrix, SymmetricArray, SymmetricMatrix
from symnmf.storage.wrapping import in_memory

#: Up to this n the matrix is formed as an array: eigenvalues are proved, and N may be any matrix.
FORMED_UP_TO = 1500

#: Rounding of the sums that the bound is the difference of, relative to them.
SUMS = 1e-13


@dataclass(frozen=True, eq=False)
class Target:
    """A bound in waiting; see the module.

    ``array`` is A; where that is too large, ``sample`` takes a rank and a factor to begin with and
    bounds the sum for N = 0. ``unit`` is what the objective is divided by to give E, half the
    squared norm of the data; it is never negative where ``nonnegative``. A covers ``rows`` of U,
    None for all. ``l1`` is the weight of the sum of the entries of U.
    """

    constant: float
    unit: float
    array: np.ndarray | None = None
    sample: Callable[[int, np.ndarray], Squares] | None = None
    factor: float = 1.0
    nonnegative: bool = True
    rows: np.ndarray | None = None
    l1: float = 0.0

    def value(self, squares: Squares) -> float:
        """Return the bound on the objective, less what the sums may be off by rounding."""
        sum_ = self.factor * explained_at_a_price(squares.raised, self.l1 / np.sqrt(self.factor))
        bound = 0.5 * (self.constant - sum_ - SUMS * (abs(self.constant) + sum_))
        return max(bound, 0.0) if self.nonnegative else bound

    def squares(self, U: np.ndarray) -> Squares:
        """Return the sum for N = 0: proved where A is at hand, else by sampling from U on."""
        if self.array is not None:
            return all_eigenvalues(self.array, U.shape[1])
        assert self.sample is not None
        return self.sample(U.shape[1], U)


def explained_at_a_price(values: np.ndarray, price: float) -> float:
    """Return max over z >= 0 of 2 <values, z> - ||z||^2 - 2 price (sum z)^(1/2).

    With a price of 0 it is the sum of the positive squares. For a given sum t of z, z is what the
    values are above a level, so where the first k of them are, the root of t is a zero of
    s^3 - S_k s + price k / 2, S_k their sum.
    """
    values = np.sort(np.maximum(values, 0.0))[::-1]
    if price == 0.0:
        return float(np.sum(values**2))
    best = 0.0
    for k, total in enumerate(np.cumsum(values), 1):
        for root in np.roots([1.0, 0.0, -total, 0.5 * price * k]):
            if abs(root.imag) > 1e-6 * abs(root) or root.real <= 0.0:
                continue
            z = np.maximum(values - (total - root.real**2) / k, 0.0)
            best = max(best, 2.0 * values @ z - z @ z - 2.0 * price * np.sqrt(z.sum()))
    return float(best)


def frobenius(
    X: SymmetricMatrix,
    *,
    ridge: float | np.ndarray = 0.0,
    links: tuple[SymmetricMatrix, ...] = (),
    l1: float = 0.0,
) -> Target:
    """Return the target of 1/2 ||X - U U^T||^2 + 1/2 sum_i a_i ||u_i||^2 + 1/2 tr(U^T Q U).

    ``ridge`` is a, for all rows or for each; ``links`` are matrices that add up to Q. ``l1`` times
    the sum of the entries of U may be added to that.
    """
    n = X.shape[0]
    target = partial(
        Target,
        X.sqnorm,
        0.5 * X.sqnorm,
        nonnegative=not any(link.signed for link in links),
        l1=l1,
    )
    if n <= FORMED_UP_TO:
        return target(_formed(X) - _half(ridge, links, n))
    shift = np.full(n, 0.5 * np.asarray(ridge, dtype=np.float64))
    if isinstance(X, SparseMatrix) and X.dtype != np.float64:
        X = SparseMatrix(X.indptr, X.indices, X.data.astype(np.float64), X.threads)

    def multiply(V: Factor) -> Factor:
        ops, wide = X.ops, np.dtype(np.float64)
        tall = ops.cast(V, X.dtype)
        parts = [(-0.5, ops.cast(link.matmul(tall), wide)) for link in links]
        if shift.any():
            parts.append((-1.0, ops.weigh_rows(V, shift)))
        return ops.combine((1.0, ops.cast(X.matmul(tall), wide)), *parts)

    size = X.norm + float(np.linalg.norm(shift)) + 0.5 * sum(link.norm for link in links)
    # sums of n terms: n eps at worst, and sqrt(n) eps as they come
    grown = n if X.dtype == np.float64 else np.sqrt(n)
    rounding = grown * float(np.finfo(X.dtype).eps) * size

    def sample(rank: int, U: np.ndarray) -> Squares:
        return by_sampling(multiply, n, rank, size, rounding, constant=X.sqnorm, start=U, ops=X.ops)

    return target(sample=sample)


def weighted(
    X: np.ndarray,
    W: np.ndarray,
    U: np.ndarray,
    *,
    ridge: float | np.ndarray = 0.0,
    links: tuple[SymmetricMatrix, ...] = (),
    l1: float = 0.0,
) -> Target | None:
    """Return the target of 1/2 sum w (x - m)^2, M = U U^T, near U; None if there is none.

    X, W and U are arrays; ``ridge`` and ``links`` are as for :func:`frobenius`. Rows with hidden
    entries (w = 0) are left out one after another, those with most of them first, until none is
    left; what the rest says holds for the whole.
    """
    unit = 0.5 * float(np.vdot(W, np.where(W > 0.0, X, 0.0) ** 2))
    rows = observed_block(W > 0.0)
    signed = any(link.signed for link in links)
    if len(rows) <= U.shape[1] or (signed and len(rows) < len(X)):
        return None
    added = _half(ridge, links, len(X))
    X, W, added = (full[np.ix_(rows, rows)] for full in (X, W, added))
    misfit = X - U[rows] @ U[rows].T
    least = float(W.min())
    Y = (W - least) * misfit
    A = least * X + Y - added
    # sum y^2 / (w - c), and 0 where w = c, is <Y, misfit>
    constant = least * float(np.vdot(X, X)) + 2.0 * float(np.vdot(Y, X)) - float(np.vdot(Y, misfit))
    return Target(
        constant,
        unit,
        0.5 * (A + A.T),
        factor=1.0 / least,
        nonnegative=not signed,
        rows=rows,
        l1=l1,
    )


def observed_block(observed: np.ndarray) -> np.ndarray:
    """Return rows whose pairs are all observed, as many as leaving out the worst one leaves."""
    hidden = ~observed
    rows = np.flatnonzero(~hidden.diagonal())
    hidden = hidden[np.ix_(rows, rows)]
    counts = hidden.sum(axis=1)
    kept = np.ones(len(rows), dtype=bool)
    while counts.max(initial=0) > 0:
        worst = int(np.argmax(counts))
        kept[worst] = False
        counts -= hidden[worst]
        counts[worst] = 0
        hidden[:, worst] = False
    return rows[kept]


def _formed(X: SymmetricMatrix) -> np.ndarray:
    """Return X as a float64 array."""
    held = in_memory(X)
    if isinstance(held, SymmetricArray):
        # a product with a column of the identity rounds nothing
        held = X.ops.get(X.matmul(X.ops.put(np.eye(X.shape[0], dtype=X.dtype))))
    return np.asarray(held.toarray() if sp.issparse(held) else held, dtype=np.float64)


def _half(ridge: float | np.ndarray, links: tuple[SymmetricMatrix, ...], n: int) -> np.ndarray:
    """Return Q / 2 as an array."""
    shift = np.diag(np.full(n, 0.5 * np.asarray(ridge, dtype=np.float64)))
    return sum((0.5 * _formed(link) for link in links), start=shift)
