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

import numpy as np
import scipy.sparse as sp

from symnmf.bounds.squares import (
    EPS,
    HOST,
    Multiply,
    Squares,
    all_eigenvalues,
    by_factoring,
    by_sampling,
)
from symnmf.ops import Factor, Ops
from symnmf.storage import DenseMatrix, LowRank, SparseMatrix, SymmetricMatrix

#: Up to this n the matrix is formed as an array: eigenvalues are proved, and N may be any matrix.
DENSE_UP_TO = 5000

#: Up to this n a matrix whose entries cannot be read is formed by its products with the identity.
FORMED_UP_TO = 1000

#: Rounding of the sums that the bound is the difference of, relative to them.
SUMS = 1e-13

#: Rounding of B C B^T with k columns, over k eps ||B||^2 ||C||: about 1 was seen.
FORMING = 10.0


@dataclass(frozen=True, eq=False)
class Target:
    """A bound in waiting; see the module.

    Attributes
    ----------
    n : int
        Rows of A.
    multiply : callable
        A times an n x k factor in float64.
    size : float
        ||A||_F or more.
    constant, factor : float
        What the bound is made of.
    unit : float
        What the objective is divided by to give E: half the squared norm of the data.
    rounding : float
        How far a product with a unit vector may be off.
    array : callable or None
        Returns A as a float64 array of its own, where that is affordable.
    core : ndarray or None
        A small matrix with the nonzero eigenvalues of A, if there is one.
    nonnegative : bool
        Whether the objective is never negative.
    rows : ndarray or None
        The rows of U that A covers; None for all.
    blur : float
        How far A and its norm may be off since A was formed from factors.
    l1 : float
        The weight of the sum of the entries of U, where that is added.
    ops : Ops
        The operations on what ``multiply`` takes and gives.
    """

    n: int
    multiply: Multiply
    size: float
    constant: float
    unit: float
    rounding: float
    factor: float = 1.0
    array: Callable[[], np.ndarray] | None = None
    core: np.ndarray | None = None
    nonnegative: bool = True
    rows: np.ndarray | None = None
    blur: float = 0.0
    l1: float = 0.0
    ops: Ops = HOST

    def value(self, squares: Squares) -> float:
        """Return the bound on the objective, less what the sums may be off by rounding."""
        size = np.sqrt(squares.total)
        explained = explained_at_a_price(squares.raised, self.l1 / np.sqrt(self.factor))
        # by no more than that does it change where A does by the blur
        sum_ = self.factor * (explained + 2.0 * self.blur * (size + self.blur))
        constant = self.constant - 2.0 * self.blur * np.sqrt(abs(self.constant))
        bound = float(0.5 * (constant - sum_ - SUMS * (abs(constant) + sum_)))
        return max(bound, 0.0) if self.nonnegative else bound

    def squares(self, rank: int, start: np.ndarray | None = None) -> Squares:
        """Return the sum for N = 0: proved where A can be formed, else by sampling."""
        if self.core is not None:
            return all_eigenvalues(self.core, rank, self.n)
        if self.array is not None:
            # residuals from products in float32 would prove nothing
            precise = self.rounding <= self.n * EPS * self.size
            return by_factoring(self.array(), rank, self.multiply if precise else None, start)
        return self.sampled(rank, start)

    def sampled(self, rank: int, start: np.ndarray | None = None) -> Squares:
        """Return the sum for N = 0 from some tens of products, except with a small probability."""
        if self.n <= 2 * rank and self.array is not None:
            return all_eigenvalues(self.array(), rank)
        return by_sampling(
            self.multiply,
            self.n,
            rank,
            self.size,
            self.rounding,
            constant=self.constant / self.factor,
            start=start,
            ops=self.ops,
        )


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
    n, X = X.shape[0], _wider(X)
    shift = np.full(n, 0.5 * np.asarray(ridge, dtype=np.float64))
    shifted = bool(shift.any())
    eps = float(np.finfo(X.dtype).eps)

    def multiply(V: Factor) -> Factor:
        ops, wide = X.ops, np.dtype(np.float64)
        tall = ops.cast(V, X.dtype)
        parts = [(-0.5, ops.cast(link.matmul(tall), wide)) for link in links]
        if shifted:
            parts.append((-1.0, ops.weigh_rows(V, shift)))
        image = ops.cast(X.matmul(tall), wide)
        return ops.combine((1.0, image), *parts) if parts else image

    forming = [_formed(matrix) for matrix in (X, *links)]

    def array() -> np.ndarray:
        own, *others = (form() for form in forming if form is not None)
        own.flat[:: n + 1] -= shift
        for other in others:
            own -= 0.5 * other
        return own

    core = None
    if isinstance(X, LowRank) and not links and shift.min() == shift.max():
        core = X.core()
        core.flat[:: len(core) + 1] -= shift[0]
    blur = 0.0
    if isinstance(X, LowRank):
        blur = FORMING * len(X.C) * EPS * float(np.linalg.norm(X.B) ** 2 * np.linalg.norm(X.C))
    size = X.norm + float(np.linalg.norm(shift)) + 0.5 * sum(link.norm for link in links)
    # sums of n terms: n eps at worst, and sqrt(n) eps as they come
    grown = n if X.dtype == np.float64 else np.sqrt(n)
    return Target(
        n,
        multiply,
        size,
        X.sqnorm,
        0.5 * X.sqnorm,
        grown * eps * size,
        array=None if None in forming else array,
        core=core,
        nonnegative=not any(link.signed for link in links),
        blur=blur,
        l1=l1,
        ops=X.ops,
    )


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
    n = len(X)
    unit = 0.5 * float(np.vdot(W, np.where(W > 0.0, X, 0.0) ** 2))
    rows = observed_block(W > 0.0)
    signed = any(link.signed for link in links)
    if len(rows) <= U.shape[1] or (signed and len(rows) < n):
        return None
    added = np.diag(np.broadcast_to(0.5 * np.asarray(ridge, dtype=np.float64), (n,))).copy()
    for link in links:
        form = _formed(link)
        if form is None:
            return None
        added += 0.5 * form()
    X, W, added = (full[np.ix_(rows, rows)] for full in (X, W, added))
    misfit = X - U[rows] @ U[rows].T
    least = float(W.min())
    Y = (W - least) * misfit
    A = least * X + Y - added
    A = 0.5 * (A + A.T)
    size = float(np.linalg.norm(A))
    # sum y^2 / (w - c), and 0 where w = c, is <Y, misfit>
    constant = least * float(np.vdot(X, X)) + 2.0 * float(np.vdot(Y, X)) - float(np.vdot(Y, misfit))
    return Target(
        len(rows),
        lambda V: A @ V,
        size,
        constant,
        unit,
        n * EPS * size,
        factor=1.0 / least,
        array=A.copy,
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


def _wider(X: SymmetricMatrix) -> SymmetricMatrix:
    """Return a sparse X in float64; others as they are."""
    if isinstance(X, SparseMatrix) and X.dtype != np.float64:
        return SparseMatrix(X.indptr, X.indices, X.data.astype(np.float64), X.threads)
    return X


def _formed(X: SymmetricMatrix) -> Callable[[], np.ndarray] | None:
    """Return what forms X as a float64 array, or None where that would cost too much."""
    n = X.shape[0]
    if n > DENSE_UP_TO:
        return None
    if isinstance(X, DenseMatrix):
        return lambda: X.array.astype(np.float64)
    if isinstance(X, SparseMatrix):
        return lambda: sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape).toarray()
    if isinstance(X, LowRank):
        return lambda: X.B.astype(np.float64) @ X.C @ X.B.astype(np.float64).T
    if n > FORMED_UP_TO or getattr(X, "products", "float32") != "float32":
        return None

    def by_products() -> np.ndarray:
        # a product with a column of the identity rounds nothing
        tall = X.ops.put(np.eye(n, dtype=X.dtype))
        return np.array(X.ops.get(X.matmul(tall)), dtype=np.float64)

    return by_products
