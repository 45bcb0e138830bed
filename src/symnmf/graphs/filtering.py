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
FROM, DIMENSIONS = 4000, range(32, 4097)  # points and columns for which it pays
ROWS, COLUMNS = 256, 1024  # of a block of bounds, 1 MB
SORTED_BY, LEAF = 16, 64  # components by which points are sorted, and points that are no more


def filtering_pays(points: Array) -> bool:
    """Whether there are enough dense points, of enough and not too many columns."""
    n, columns = points.shape
    return isinstance(points, np.ndarray) and n >= max(FROM, 5 * columns) and columns in DIMENSIONS


class FilteredSearch:
    """The nearest of some points, in float32."""

    def __init__(self, points: Array, n_jobs: int | None) -> None:
        self.threads = Threads(n_jobs)
        self.centre = points.mean(axis=0)
        # in units in which no square overflows or vanishes in float32
        ends = points.max(axis=0) - self.centre, self.centre - points.min(axis=0)
        self.unit = float(np.max(ends)) or 1.0
        single = self._single(points)
        n, d = single.shape
        sample = single[np.random.default_rng(0).choice(n, min(SAMPLE, n), replace=False)]
        with one_blas_thread():
            values, axes = np.linalg.eigh(sample.T.astype(np.float64) @ sample)
        values, self.axes = np.maximum(values[::-1], 0.0), axes[:, ::-1].astype(np.float32)
        share = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
        self.seen = min(d, int(np.searchsorted(share, SEEN)) + 1)
        self.fitted = self._side(single)

    def _single(self, points: Array) -> Array:
        return ((points - self.centre) / self.unit).astype(np.float32)

    def _side(self, single: Array) -> _Side:
        """Sort points and turn them along the principal components."""
        n, d = single.shape
        rotated = np.zeros((n, -(-d // STEP) * STEP), np.float32)
        order = np.arange(n)
        with one_blas_thread():
            _sort(single @ self.axes[:, :SORTED_BY], order)
            single = single[order]
            self.threads.run(
                lambda begin, end: np.matmul(
                    single[begin:end], self.axes, out=rotated[begin:end, :d]
                ),
                self.threads.split(n, 2.0 * d * d),
            )
        return _Side(order, rotated, self.seen)

    def nearest(self, width: int, new: Array | None = None) -> tuple[Array, Array]:
        """Return indices and distances of the ``width`` nearest of each point, nearest first.

        Without ``new`` these are the others of each of the points.
        """
        ours = self.fitted
        own = ours if new is None else self._side(self._single(new))
        n, count = len(ours.points), len(own.points)
        found = np.full((count, width), -1, np.int64)
        squares = np.full((count, width), np.inf, np.float32)
        edges = np.arange(0, n, COLUMNS)
        centres = np.add.reduceat(ours.points, edges) / np.diff([*edges, n])[:, None]
        radius = np.sqrt(2.0 * own.halves)
        eps = np.finfo(np.float32).eps
        terms = ours.points.shape[1] + 8

        def task(begin: int, end: int) -> None:
            for row in range(begin, end, ROWS):
                rows = slice(row, min(row + ROWS, end))
                away = ((centres - own.points[rows].mean(axis=0)) ** 2).sum(axis=1)
                for block in np.argsort(away, kind="stable"):
                    columns = slice(edges[block], min(edges[block] + COLUMNS, n))
                    reach = np.sqrt(np.minimum(squares[rows, -1], 1e30))
                    slack[rows] = 4 * eps * terms * (2 * radius[rows] + reach) ** 2
                    keep_nearest(
                        own.bounding[rows] @ ours.bounding[columns].T, own.points, ours.points,
                        own.halves, ours.halves, slack, row, columns.start, new is None,
                        found, squares,
                    )  # fmt: skip

        slack = np.zeros(count, np.float32)
        with one_blas_thread():
            self.threads.run(task, self.threads.split(count, 2.0 * n * ours.bounding.shape[1]))
        indices, distances = np.empty_like(found), np.empty((count, width))
        indices[own.order] = ours.order[found]
        distances[own.order] = np.sqrt(squares.astype(np.float64)) * self.unit
        return indices, distances


class _Side:
    """Points in the order that they are looked at, with what bounds their inner products."""

    def __init__(self, order: Array, points: Array, seen: int) -> None:
        self.order, self.points = order, points
        self.halves = np.einsum("ij,ij->i", points, points) / 2
        leading, rest = np.split(points, [seen], axis=1)
        length = np.sqrt(np.einsum("ij,ij->i", rest, rest))
        self.bounding = np.column_stack([leading, length])


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
