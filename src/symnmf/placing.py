"""Where new rows belong: their similarities to the fitted ones, and a row of U for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import graphs
from symnmf.arguments import checked
from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.neighbors import variance
from symnmf.graphs.pairwise import DISTANCES, KERNELS, kernel, nearest_by_distance
from symnmf.graphs.warning import unsaid
from symnmf.storage.indices import check_indices

SCALE_NEIGHBOR = 7
ROWS_AT_ONCE = 2000  # bounds the distances of one block of new rows


def place(similarities: Any, U: np.ndarray) -> np.ndarray:
    """Return the row u >= 0 of each new point that fits its similarities best.

    It minimises ||s - U u||^2, s the point's similarities to the fitted rows: the same least
    squares that every row of U solves in the fit, up to the point's similarity to itself.
    """
    from scipy.optimize import nnls

    cross = np.asarray(similarities @ U, dtype=np.float64)
    gram = U.astype(np.float64).T @ U.astype(np.float64)
    scale = np.trace(gram) / len(gram)
    if not scale > 0:
        return np.zeros_like(cross)
    root = np.linalg.cholesky(gram + 1e-12 * scale * np.eye(len(gram)))
    right = np.linalg.solve(root, cross.T).T
    return np.array([nnls(root.T, row)[0] for row in right]).reshape(cross.shape)


@dataclass(eq=False)
class Neighbourhood:
    """The fitted points with what a new one's similarities to them need.

    Widths and degrees are those of the graph that was fitted, without the new points.
    """

    points: Any
    kind: str
    n_neighbors: int | None
    degrees: np.ndarray
    widths: np.ndarray | None
    gamma: float
    finder: Any
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, points: Any, kind: str, n_neighbors: int | None, options: dict[str, Any]
    ) -> Neighbourhood:
        """Measure the fitted points once."""
        from sklearn.neighbors import NearestNeighbors

        kind = kind.lower().replace("_", "-")
        with unsaid():  # the fit has said it
            A = graphs.build(points, kind, n_neighbors=n_neighbors, normalize=False, **options)
        degrees = np.asarray(A.sum(axis=1)).ravel()
        if kind.replace("-", "_") in (*KERNELS, DISTANCES):
            return cls(points, kind, n_neighbors, degrees, None, 1.0, None, options)
        metric = "cosine" if kind == "cosine" else "euclidean"
        finder = NearestNeighbors(algorithm="brute", metric=metric).fit(points)
        widths = None
        n = points.shape[0]
        if kind == "self-tuning":
            count = min(SCALE_NEIGHBOR, n - 1)
            widths = finder.kneighbors(n_neighbors=count)[0][:, -1]
            widths[widths == 0] = np.median(widths[widths > 0]) if (widths > 0).any() else 1.0
        spread = points.shape[1] * variance(points)
        gamma = 1 / spread if spread > 0 else 1.0
        gamma = options.get("gamma", gamma)
        return cls(points, kind, n_neighbors, degrees, widths, gamma, finder)

    def similarities(self, new: Any) -> sp.csr_array:
        """Return the normalised similarities of new points (rows) to the fitted ones."""
        blocks = [
            self._block(new[begin : begin + ROWS_AT_ONCE])
            for begin in range(0, new.shape[0], ROWS_AT_ONCE)
        ]
        raw = sp.csr_array(sp.vstack(blocks))
        own = np.asarray(raw.sum(axis=1)).ravel()
        left, right = (1 / np.sqrt(np.where(d > 0, d, 1.0)) for d in (own, self.degrees))
        return sp.csr_array(sp.diags_array(left) @ raw @ sp.diags_array(right))

    def _block(self, new: Any) -> sp.csr_array:
        m, n = new.shape[0], self.points.shape[0]
        name = self.kind.replace("-", "_")
        if name in KERNELS:
            return sp.csr_array(kernel(new, name, Y=self.points, **self.options))
        if name == DISTANCES:
            return nearest_by_distance(new, n, self.n_neighbors)
        default = 10 if self.kind == "nearest-neighbors" else n.bit_length()
        k = min(self.n_neighbors or default, n)
        found = max(k, min(SCALE_NEIGHBOR, n))
        if self.kind == "cosine":
            from sklearn.metrics.pairwise import cosine_similarity

            every = np.maximum(cosine_similarity(new, self.points), 0.0)
            index = np.argpartition(-every, k - 1, axis=1)[:, :k]
            weight = np.take_along_axis(every, index, axis=1)
        else:
            distance, index = self.finder.kneighbors(new, found)
            if self.kind == "nearest-neighbors":
                weight = np.ones((m, k))
            elif self.kind == "rbf":
                weight = np.exp(-self.gamma * distance[:, :k] ** 2)
            else:
                assert self.widths is not None
                own = distance[:, found - 1 : found]
                own = np.where(own > 0, own, 1.0)
                scale = own * self.widths[index[:, :k]]
                weight = np.exp(-(distance[:, :k] ** 2) / scale)
            index = index[:, :k]
        rows = np.repeat(np.arange(m), k)
        return sp.csr_array((weight.ravel(), (rows, index.ravel())), shape=(m, n))


class Places:
    """Where new points belong; what that needs is measured at the first call."""

    def __init__(
        self,
        points: Any,
        kind: Any,
        n_neighbors: int | None,
        scaled: Callable[[Any], Any],
        options: dict[str, Any] | None = None,
    ) -> None:
        self.points = points
        self.kind = kind
        self.n_neighbors = n_neighbors
        self.options = options or {}
        self.scaled = scaled  # brings given similarities to the scale of those that were fitted

    def _known(self, new: Any) -> np.ndarray:
        """Return the number of the equal fitted row, -1 if there is none."""
        if not (isinstance(self.points, np.ndarray) or sp.issparse(self.points)):
            return np.full(new.shape[0], -1)
        return self._rows.find(new)

    @cached_property
    def _rows(self) -> KnownRows:
        return KnownRows(self.points)

    @cached_property
    def _neighbourhood(self) -> Neighbourhood:
        return Neighbourhood.of(self.points, self.kind, self.n_neighbors, self.options)

    def of(self, new: Any, U: np.ndarray) -> np.ndarray:
        """Return a row of U for each new point; one equal to a fitted point has that one's."""
        before = self._checked(new)
        rows, fresh = U[before].copy(), before < 0
        if fresh.any():
            rows[fresh] = place(self.scaled(self._similarities(new[fresh])), U)
        return rows

    def labels(self, new: Any, known: np.ndarray, label: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Return the cluster of each new point; one equal to a fitted point has that one's.

        ``known`` are the clusters of the fitted points, and ``label`` finds those of others from
        their similarities.
        """
        before = self._checked(new)
        labels, fresh = known[before].copy(), before < 0
        if fresh.any():
            labels[fresh] = label(self._similarities(new[fresh]))
        return labels

    def _checked(self, new: Any) -> np.ndarray:
        if callable(self.kind):
            raise InputError(
                "affinity is a callable, which gives no similarities of new samples to fitted "
                "ones; use a named kind, or affinity='precomputed' with such similarities."
            )
        return self._known(new)

    def _similarities(self, new: Any) -> Any:
        """Return similarities to the fitted points, on the scale of the graph of these."""
        if self.kind != "precomputed":
            return self._neighbourhood.similarities(new)
        if np.isnan(new.sum()):
            raise InputError(
                "X has NaN entries; fill them in, since a new sample needs its similarities "
                "to all that were fitted."
            )
        return new


class KnownRows:
    """Find rows that were fitted, so that they keep the place they had."""

    def __init__(self, points: Any) -> None:
        self._place: dict[bytes, int] = {}
        for row in range(points.shape[0]):
            self._place.setdefault(_content(points, row), row)

    def find(self, new: Any) -> np.ndarray:
        """Return the number of the equal fitted row, -1 if there is none."""
        found = (self._place.get(_content(new, row), -1) for row in range(new.shape[0]))
        return np.fromiter(found, dtype=np.intp, count=new.shape[0])


def _content(points: Any, row: int) -> bytes:
    if sp.issparse(points):
        part = slice(points.indptr[row], points.indptr[row + 1])
        order = np.argsort(points.indices[part])
        columns = points.indices[part][order].astype(np.int64)
        return columns.tobytes() + points.data[part][order].tobytes()
    return (points[row] + 0.0).tobytes()


@checked()
def top_features(
    X: Any, membership: np.ndarray, names: Any = None, k: int = 10
) -> list[list[tuple[Any, float]]]:
    """Return the columns of X that distinguish each cluster from the rest, the best first.

    The score of a column is m log(m / m'), where m is its mean over the cluster (rows weighted by
    their share) and m' its mean over all other rows. It is large for a column that is common inside
    and rare outside. The score of a column with negative values is m - m', in standard deviations.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The data, such as counts of words or of genes.
    membership : array of shape (n, clusters)
        Shares, as in ``SymNMF.membership_``, or any nonnegative weights.
    names : sequence of length d, optional
        The names of the columns; by default those of the frame, else their numbers.
    k : int, default 10
        How many per cluster; columns that are not more common inside than outside are left out.

    Returns
    -------
    list of list of (name, score), one list per cluster
    """
    if names is None:
        names = getattr(X, "columns", None)
    if sp.issparse(X):
        check_indices(X, "X")
    with said_as_input_errors():
        data = sp.csr_array(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        shares = np.asarray(membership, dtype=np.float64)
    if data.ndim != 2:
        raise InputError(f"X must have rows and columns, got shape {data.shape}.")
    n, d = data.shape
    if shares.ndim != 2 or len(shares) != n:
        raise InputError(f"membership must have a row for each of the {n} of X, not {len(shares)}.")
    if names is not None and (isinstance(names, str) or not hasattr(names, "__len__")):
        raise InputError(f"names must be a sequence with a name for each column, got {names!r}.")
    called = list(range(d)) if names is None else list(names)
    if len(called) != d:
        raise InputError(
            f"names must have one entry for each of the {d} columns of X, got {len(called)}."
        )
    weight = shares.sum(axis=0)
    sums, total = np.asarray(data.T @ shares).T, np.asarray(data.sum(axis=0)).ravel()
    inside = sums / np.where(weight > 0, weight, 1)[:, None]
    rest = np.maximum(n - weight, 1e-12)[:, None]
    outside = (total - sums) / rest
    if data.min() >= 0:
        floor = total / n + 1e-300
        score = inside * np.log(
            (inside + 1e-3 * floor) / (np.maximum(outside, 0) + 1e-3 * floor + 1e-300)
        )
    else:
        spread = np.asarray(data.std(axis=0) if not sp.issparse(data) else np.ones(d))
        score = (inside - outside) / np.where(spread > 0, spread, 1)
    lists = []
    for cluster in range(shares.shape[1]):
        order = np.argsort(-score[cluster], kind="stable")[:k]
        lists.append(
            [(called[j], float(score[cluster, j])) for j in order if score[cluster, j] > 0]
        )
    return lists
