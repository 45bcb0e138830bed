r"""What is bounded: an objective as a constant and a matrix whose eigenvalues limit it.

Every objective here has, for every U >= 0 with r columns and every symmetric N >= 0,

    objective(U)  >=  1/2 (constant - factor sum_{i<=r} [lambda_i(A + N)]_+^2),

and a :class:`Target` is the constant, the factor and A:

Frobenius
    ||X||^2, 1 and X. With a ridge and links, 1/2 tr(U^T Q U), A = X - Q / 2. An l1 term is
    nonnegative and is left out.
weights w >= c > 0
    A = c X + Y with any symmetric Y, the factor 1 / c and the constant
    c ||X||^2 + 2 <Y, X> - sum y^2 / (w - c); Y = (w - c) (X - U U^T) is the best one at U.
hidden entries
    Only a block of rows whose pairs are all observed says anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.bounds.squares import EPS, Squares, all_eigenvalues, by_factoring, by_sampling
from symnmf.storage import DenseMatrix, LowRank, SparseMatrix, SymmetricMatrix

#: Up to this n the matrix is formed as an array: eigenvalues are proved, and N may be any matrix.
DENSE_UP_TO = 5000

#: Up to this n a matrix whose entries cannot be read is formed by its products with the identity.
FORMED_UP_TO = 1000

#: Rounding of the sums that the bound is the difference of, relative to them.
SUMS = 1e-13


@dataclass(frozen=True, eq=False)
class Target:
    """A bound in waiting; see the module.

    Attributes
    ----------
    n : int
        Rows of A.
    multiply : callable
        A times an n x k float64 array.
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
        A small matrix with the nonzero eigenvalues of A, where there is one.
    nonnegative : bool
        Whether the objective is never negative.
    rows : ndarray or None
        The rows of U that A speaks of; None for all.
    """

    n: int
    multiply: Callable[[np.ndarray], np.ndarray]
    size: float
    constant: float
    unit: float
    rounding: float
    factor: float = 1.0
    array: Callable[[], np.ndarray] | None = None
    core: np.ndarray | None = None
    nonnegative: bool = True
    rows: np.ndarray | None = None

    def value(self, squares: Squares) -> float:
        """Return the bound on the objective, less what the sums may be off by rounding."""
        sum_ = self.factor * squares.total
        bound = 0.5 * (self.constant - sum_ - SUMS * (abs(self.constant) + sum_))
        return max(bound, 0.0) if self.nonnegative else bound

    def squares(self, rank: int, start: np.ndarray | None = None) -> Squares:
        """Return the sum for N = 0: proved where A can be formed, else by sampling."""
        if self.core is not None:
            return all_eigenvalues(self.core, rank, self.n)
        if self.array is not None:
            return by_factoring(self.array(), rank, self.multiply, start)
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
        )

    def plus(self, change: Callable[[np.ndarray], np.ndarray], size: float) -> Target:
        """Return the target for A + N, given how N multiplies and ||N||_F."""
        own = self.multiply
        return replace(
            self,
            multiply=lambda V: own(V) + change(V),
            size=self.size + size,
            rounding=self.rounding + self.n * EPS * size,
            array=None,
            core=None,
        )


def frobenius(X: SymmetricMatrix, *, ridge: float = 0.0, links: Any = None) -> Target:
    """Return the target of 1/2 ||X - U U^T||^2 + ridge/2 ||U||^2 + 1/2 tr(U^T Q U), Q = ``links``.

    An l1 term may be added to that: the bound is the same.
    """
    n, X = X.shape[0], _wider(X)
    half = None if links is None else sp.csr_array(0.5 * links)
    shift = 0.5 * ridge
    eps = float(np.finfo(X.dtype).eps)

    def multiply(V: np.ndarray) -> np.ndarray:
        tall = X.ops.put(np.ascontiguousarray(V, dtype=X.dtype))
        image = np.array(X.ops.get(X.matmul(tall)), dtype=np.float64)
        if shift:
            image -= shift * V
        return image if half is None else image - half @ V

    formed = _formed(X)

    def array() -> np.ndarray:
        assert formed is not None
        A = formed()
        A.flat[:: n + 1] -= shift
        return A if half is None else A - half.toarray()

    core = X.core() if isinstance(X, LowRank) and half is None else None
    if core is not None:
        core.flat[:: len(core) + 1] -= shift
    extra = shift * np.sqrt(n) + (0.0 if half is None else float(np.linalg.norm(half.data)))
    size = X.norm + extra
    # sums of n terms: n eps at worst, and sqrt(n) eps as they come
    grown = n if X.dtype == np.float64 else np.sqrt(n)
    return Target(
        n,
        multiply,
        size,
        X.sqnorm,
        0.5 * X.sqnorm,
        grown * eps * size,
        array=None if formed is None else array,
        core=core,
        nonnegative=half is None or bool(half.data.min(initial=0.0) >= 0.0),
    )


def weighted(X: np.ndarray, W: np.ndarray, U: np.ndarray) -> Target | None:
    """Return the target of 1/2 sum w (x - m)^2, M = U U^T, near U; None where there is none.

    X, W and U are arrays. Rows with hidden entries (w = 0) are left out one after another, those
    with most of them first, until none is left; what the rest says holds for the whole.
    """
    unit = 0.5 * float(np.vdot(W, np.where(W > 0.0, X, 0.0) ** 2))
    rows = observed_block(W > 0.0)
    if len(rows) == 0:
        return None
    X, W, U = X[np.ix_(rows, rows)], W[np.ix_(rows, rows)], U[rows]
    least = float(W.min())
    over = W - least
    Y = over * (X - U @ U.T)
    spent = float(np.vdot(Y, X - U @ U.T))  # y^2 / (w - c), and 0 where w = c
    A = least * X + Y
    A = 0.5 * (A + A.T)
    size, n = float(np.linalg.norm(A)), len(A)
    return Target(
        n,
        lambda V: A @ V,
        size,
        least * float(np.vdot(X, X)) + 2.0 * float(np.vdot(Y, X)) - spent,
        unit,
        n * EPS * size,
        factor=1.0 / least,
        array=A.copy,
        rows=rows,
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
