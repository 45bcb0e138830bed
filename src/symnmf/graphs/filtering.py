"""The nearest of many points in many dimensions, filtered by a bound from few of them.

The leading principal components hold most of what keeps points apart. With y the first p
coordinates of a centred point x and s = |x - its part in them|,

    |x_i - x_j|^2 >= |x_i|^2 + |x_j|^2 - 2 (<y_i, y_j> + s_i s_j),

and that is a product of matrices with p + 1 columns. Only pairs whose bound is below the farthest
neighbour found so far are looked at in all coordinates. Points are visited from near to far, so
that this happens early.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symnmf.kernels.candidates import STEP, keep_nearest
from symnmf.parallel import Threads, one_blas_thread

Array = NDArray[Any]

#: Part of the variance that the bound sees: less lets more pairs through, more costs more flops.
SEEN = 0.9
SAMPLE = 2000  # points that the principal components are taken from
ROWS, COLUMNS = 256, 1024  # of a block of bounds, 1 MB
SORTED_BY, LEAF = 16, 64  # components by which points are sorted, and points that are no more


class FilteredSearch:
    """The nearest neighbours of each of ``points`` among the others, in float32.

    Parameters
    ----------
    points : array of shape (n, d)
        Centred.
    n_jobs : int or None
        Threads.
    """

    def __init__(self, points: Array, n_jobs: int | None) -> None:
        self.threads = Threads(n_jobs)
        # in units in which no square overflows or vanishes in float32
        self.unit = float(np.abs(points).max()) or 1.0
        self.order, self.points, self.seen = self._rotated(points)
        self.squares = np.einsum("ij,ij->i", self.points, self.points)
        leading, rest = np.split(self.points, [self.seen], axis=1)
        length = np.sqrt(np.einsum("ij,ij->i", rest, rest))
        self.bounding = np.column_stack([leading, length])
        self.halves = self.squares / 2
        self.terms = points.shape[1] + 8

    def _rotated(self, points: Array) -> tuple[Array, Array, int]:
        """Return the order of the points, and them in it along principal components, in float32."""
        n, d = points.shape
        single = (points / self.unit).astype(np.float32)
        sample = single[np.random.default_rng(0).choice(n, min(SAMPLE, n), replace=False)]
        rotated = np.zeros((n, -(-d // STEP) * STEP), np.float32)
        with one_blas_thread():
            values, axes = np.linalg.eigh(sample.T.astype(np.float64) @ sample)
            values, axes = np.maximum(values[::-1], 0.0), axes[:, ::-1].astype(np.float32)
            order = np.arange(n)
            _sort(single @ axes[:, :SORTED_BY], order)
            single = single[order]
            self.threads.run(
                lambda begin, end: np.matmul(single[begin:end], axes, out=rotated[begin:end, :d]),
                self.threads.split(n, 2.0 * d * d),
            )
        share = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
        return order, rotated, min(d, int(np.searchsorted(share, SEEN)) + 1)

    def noise(self, radius: Array, reach: Array) -> Array:
        """Return what rounding may change of the squared distances found within ``reach``."""
        eps = float(np.finfo(np.float32).eps)
        return 4 * eps * self.terms * reach * (2 * radius + 2 * reach)

    def nearest(self, width: int) -> tuple[Array, Array]:
        """Return distances and indices of the ``width`` nearest of each point, nearest first."""
        n = len(self.points)
        found = np.full((n, width), -1, np.int64)
        squares = np.full((n, width), np.inf, np.float32)
        edges = np.arange(0, n, COLUMNS)
        centres = np.add.reduceat(self.points, edges) / np.diff([*edges, n])[:, None]
        radius = np.sqrt(self.squares)
        eps = np.finfo(np.float32).eps

        def task(begin: int, end: int) -> None:
            for row in range(begin, end, ROWS):
                rows = slice(row, min(row + ROWS, end))
                own = self.bounding[rows]
                away = ((centres - self.points[rows].mean(axis=0)) ** 2).sum(axis=1)
                for block in np.argsort(away, kind="stable"):
                    columns = slice(edges[block], min(edges[block] + COLUMNS, n))
                    reach = np.sqrt(np.minimum(squares[rows, -1], 1e30))
                    slack[rows] = 4 * eps * self.terms * (2 * radius[rows] + reach) ** 2
                    keep_nearest(
                        own @ self.bounding[columns].T, self.points, self.halves, slack,
                        row, columns.start, found, squares,
                    )  # fmt: skip

        slack = np.zeros(n, np.float32)
        with one_blas_thread():
            self.threads.run(task, self.threads.split(n, 2.0 * n * self.bounding.shape[1]))
        indices, distances = np.empty_like(found), np.empty((n, width))
        indices[self.order] = self.order[found]
        distances[self.order] = np.sqrt(squares.astype(np.float64)) * self.unit
        return distances, indices


def _sort(leading: Array, order: Array) -> None:
    """Bring points near each other together, in place: halves along the widest axis."""
    if len(order) <= LEAF:
        return
    part = leading[order]
    axis = int(np.argmax(part.max(axis=0) - part.min(axis=0)))
    middle = len(order) // 2
    order[:] = order[np.argpartition(part[:, axis], middle)]
    _sort(leading, order[:middle])
    _sort(leading, order[middle:])
