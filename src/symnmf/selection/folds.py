"""Which pairs are held out together: (i, j) and (j, i) never part, the diagonal never goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from symnmf.storage import DenseMatrix, HostMatrix, SparseMatrix

#: Pairs of a dense X that one fold holds out at most.
MOST_PAIRS = 2_000_000

#: Shares of the rates of degrees alone that those of a factor are mixed with; the last is all.
SHARES = (*np.geomspace(1e-4, 0.1, 13).tolist(), *np.linspace(0.15, 1.0, 18).tolist())


@dataclass(frozen=True)
class Fold:
    """Pairs i < j that are held out, their values, and how many pairs each stands for.

    Attributes
    ----------
    rows, columns : ndarray of int
        i and j.
    values : ndarray of float64
        x_ij.
    weights : ndarray of float64
        1 for an edge; for a pair without, of which only some are drawn, their number over those
        drawn.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    weights: np.ndarray

    def fitted(self, U: np.ndarray) -> np.ndarray:
        """Return <u_i, u_j> for every pair."""
        return np.einsum("ij,ij->i", U[self.rows], U[self.columns])

    def error(self, U: np.ndarray) -> float:
        """Return the squared error over the squares of what was held out."""
        misses = np.square(self.values - self.fitted(U))
        size = float(self.weights @ np.square(self.values))
        return float(self.weights @ misses) / size if size > 0 else float(self.weights @ misses)

    def deviance_left(self, U: np.ndarray, *, bernoulli: bool) -> np.ndarray:
        """Return the deviance of the pairs over that of degrees alone, for each of ``SHARES``.

        A factor may give an edge no chance at all, which would cost it everything. So its rates
        are mixed with those of degrees alone, of which the mixture has these shares.
        """
        sums = U.sum(axis=0)
        strength = U @ sums / max(float(np.linalg.norm(sums)), 1e-300)  # the expected degrees
        even = np.maximum(strength[self.rows] * strength[self.columns], 1e-300)
        fitted = self.fitted(U)
        left = np.array(
            [
                self.weights
                @ deviances(self.values, share * even + (1 - share) * fitted, bernoulli=bernoulli)
                for share in SHARES
            ]
        )
        return left / left[-1] if left[-1] > 0 else left

    def auc(self, U: np.ndarray) -> float:
        """Return the chance that an edge is fitted higher than a pair without one."""
        from sklearn.metrics import roc_auc_score

        edges = self.values > 0
        if edges.all() or not edges.any():
            return float("nan")
        return float(roc_auc_score(edges, self.fitted(U)))


def deviances(x: np.ndarray, rate: np.ndarray, *, bernoulli: bool) -> np.ndarray:
    """Return what each entry adds to half the deviance, 0 at the rate that is best for it alone."""
    if not bernoulli:
        return rate - x - np.where(x > 0, x * np.log(rate / np.where(x > 0, x, 1.0)), 0.0)
    between = (x > 0) & (x < 1)
    y = np.where(between, x, 0.5)
    least = np.where(between, -np.log1p(-y) - y * np.log(y / (1.0 - y)), 0.0)
    return rate - np.where(x > 0, x * (np.log(-np.expm1(-rate)) + rate), 0.0) - least


def calibrated(left: np.ndarray) -> np.ndarray:
    """Return the error of each fold and rank with the share that is best for the other folds.

    ``left`` has an axis for the folds, the ranks and the shares. A share that was chosen by the
    very pairs it is judged by would let no rank be worse than one factor.
    """
    others = left.sum(axis=0) - left
    best = others.argmin(axis=2)
    return np.take_along_axis(left, best[..., None], axis=2)[..., 0]


def pair_folds(X: HostMatrix, count: int, rng: np.random.Generator) -> list[Fold]:
    """Cut the pairs i < j of X into ``count`` folds.

    All pairs of a dense X; of a sparse one all edges, and as many pairs without an edge, which
    stand for the others.
    """
    if isinstance(X, SparseMatrix):
        return _graph_folds(X, count, rng)
    assert isinstance(X, DenseMatrix)
    n = X.shape[0]
    total = n * (n - 1) // 2
    per_fold = min(total // count, MOST_PAIRS)
    chosen = rng.permutation(total) if total <= 50_000_000 else rng.choice(total, count * per_fold)
    folds = []
    for part in range(count):
        mine = np.sort(chosen[part * per_fold : (part + 1) * per_fold])
        rows, columns = _pair_of(mine, n)
        values = X.array[rows, columns].astype(np.float64)
        folds.append(Fold(rows, columns, values, np.ones(len(rows))))
    return folds


def _pair_of(number: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return i < j of pairs numbered row by row."""
    ends = np.cumsum(np.arange(n - 1, 0, -1))
    rows = np.searchsorted(ends, number, side="right")
    before = np.concatenate([[0], ends])[rows]
    return rows, (number - before + rows + 1).astype(np.int64)


def _graph_folds(X: SparseMatrix, count: int, rng: np.random.Generator) -> list[Fold]:
    n = X.shape[0]
    rows = np.repeat(np.arange(n), np.diff(X.indptr))
    above = (X.indices > rows) & (X.data != 0)
    rows, columns, values = rows[above], X.indices[above], X.data[above].astype(np.float64)
    order = rng.permutation(len(rows))
    others = n * (n - 1) // 2 - len(rows)
    empty = _pairs_without(X, min(len(rows), others), rng)
    share = others / max(len(empty[0]), 1)
    folds = []
    for part in range(count):
        edges = order[part::count]
        i = np.concatenate([rows[edges], empty[0][part::count]])
        j = np.concatenate([columns[edges], empty[1][part::count]])
        drawn = len(i) - len(edges)
        folds.append(
            Fold(
                i,
                j,
                np.concatenate([values[edges], np.zeros(drawn)]),
                np.concatenate([np.ones(len(edges)), np.full(drawn, share)]),
            )
        )
    return folds


def _pairs_without(
    X: SparseMatrix, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw ``count`` different pairs i < j that have no edge."""
    n = X.shape[0]
    stored = sp.csr_array((X.data != 0, X.indices, X.indptr), shape=X.shape)
    rows = np.repeat(np.arange(n), np.diff(stored.indptr))
    edges = np.unique(rows * n + stored.indices)
    found = np.empty(0, dtype=np.int64)
    total = n * (n - 1) // 2
    if count > total // 4:  # dense enough to list what is left
        i, j = np.triu_indices(n, 1)
        free = np.setdiff1d(i * n + j, edges, assume_unique=True)
        found = rng.permutation(free)[:count]
        return found // n, found % n
    while len(found) < count:
        i, j = rng.integers(n, size=(2, 2 * count + 16))
        drawn = np.minimum(i, j) * n + np.maximum(i, j)
        drawn = drawn[(i != j) & ~np.isin(drawn, edges)]
        found = np.unique(np.concatenate([found, drawn]))
    found = rng.permutation(found)[:count]
    return found // n, found % n
