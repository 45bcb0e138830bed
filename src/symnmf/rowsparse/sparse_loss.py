"""Poisson loss of a row-sparse factor above a fixed background rate.

f(U) = 1/2 ||U^T 1||^2 - sum over edges {i, j} of a_ij log(b + <u_i, u_j>), b the background. An
edge that no column explains costs -log b, so f is finite for every U.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from symnmf.kernels import row_sparse
from symnmf.kernels.products import balanced_chunks
from symnmf.parallel import SMALLEST_SHARE, Bounds, Threads
from symnmf.rowsparse.factor import RowSparse

#: Floating point operations that one edge takes for each place of a row, about.
COST = 6.0


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of one graph: symmetric, with positive entries, no diagonal and sorted indices."""

    A: sp.csr_array
    background: float
    threads: Threads

    @cached_property
    def _chunks(self) -> list[Bounds]:
        affordable = int(COST * self.A.nnz * 4 // SMALLEST_SHARE)
        return balanced_chunks(self.A.indptr, max(1, min(self.threads.count, affordable)))

    @property
    def _graph(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.A.indptr, self.A.indices, self.A.data

    def at(self, U: RowSparse) -> Point:
        """Return f and what its gradient is made of."""
        pull, logs = np.zeros_like(U.values), np.zeros(len(U.counts))
        parts = (U.columns, U.values, U.counts, self.background, pull, logs)
        self.threads.run(
            lambda begin, end: row_sparse.pull_rows(*self._graph, *parts, begin, end), self._chunks
        )
        totals = U.totals
        value = 0.5 * float(totals @ totals) - 0.5 * float(logs.sum())
        return Point(U, pull, totals, value)

    def grown(self, point: Point, most: int) -> tuple[RowSparse, np.ndarray, float]:
        """Return U in a larger support, where it is 0, and what is best for each new entry alone.

        At most so many columns of neighbours enter a row. The last is the square of the residual
        outside of the support.
        """
        U = point.U
        outside = np.zeros(len(U.counts))
        columns, values, fresh = (np.zeros_like(a) for a in (U.columns, U.values, U.values))
        counts = np.zeros_like(U.counts)
        totals = np.where(point.totals > 0, point.totals, np.inf)
        parts = (U.columns, U.values, U.counts, self.background, totals, most)
        out = (columns, values, fresh, counts, outside)
        self.threads.run(
            lambda begin, end: row_sparse.grow_rows(*self._graph, *parts, *out, begin, end),
            self._chunks,
        )
        larger = RowSparse(columns, values, counts, U.rank)
        return larger, fresh, float(outside.sum()) * point.unit**2

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        """f where every edge has its own rate, and where U is zero."""
        a = self.A.data
        own = 0.5 * float(np.sum(a - a * np.log(a)))
        return own, -0.5 * float(a.sum()) * float(np.log(self.background))

    def deviance_left(self, value: float) -> float:
        """Return what is left of the deviance at a value of f: 1 at U = 0, 0 at the least."""
        least, zero = self._extremes
        return (value - least) / (zero - least) if zero > least else 0.0

    def gains(self, U: RowSparse) -> np.ndarray:
        """Return by how much f would rise without each column, the others as they are."""
        logs = row_sparse.column_gains(
            *self._graph, U.columns, U.values, U.counts, self.background, U.rank
        )
        return logs - 0.5 * U.totals**2


@dataclass(frozen=True, eq=False)
class Point:
    """U with the sums sum_j a_ij u_jk / rate_ij of its entries, its column sums and f."""

    U: RowSparse
    pull: np.ndarray
    totals: np.ndarray
    value: float

    @property
    def unit(self) -> float:
        """The root mean square of the entries of U."""
        return float(np.sqrt(np.sum(self.U.values**2) / max(int(self.U.counts.sum()), 1)))

    @property
    def residual(self) -> float:
        """Square of the natural residual on the support, gradients in units of column sums."""
        U = self.U
        return float(
            row_sparse.residual_on(U.columns, U.values, U.counts, self.pull, self.totals, self.unit)
        )

    @property
    def sqnorm(self) -> float:
        """||U||_F^2."""
        return float(np.sum(self.U.values**2))

    def step(self, power: float, least: float) -> RowSparse:
        """Return the next U, see :func:`symnmf.kernels.row_sparse.attribute`."""
        U = self.U
        columns, values, counts = row_sparse.attribute(
            U.columns, U.values, U.counts, self.pull, U.rank, power, least * self.unit
        )
        return RowSparse(columns, values, counts, U.rank)
