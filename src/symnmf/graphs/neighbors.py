"""Exact (or asked-for approximate) nearest neighbours, in bounded memory.

The fast search (``|x|^2 + |y|^2 - 2 x.y``) only proposes candidates; their distances are computed
again from the differences ``x - y``, equal distances are ordered by index, and a point whose
candidates could still miss a neighbour within the search's rounding error is searched again more
widely.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from symnmf.errors import InputError
from symnmf.storage.wrapping import torch_device

Points: TypeAlias = Any  # float64 array, or csr_array in canonical format
Array: TypeAlias = NDArray[Any]

SPARE_CANDIDATES = 8  # enough that ties and rounding rarely force a second search
PAIRS_AT_ONCE = 1 << 20  # bounds the candidate arrays of one search
NUMBERS_AT_ONCE = 1 << 18  # gathered rows of one block of exact distances; 2 MB stay in cache
TREE_DIMENSION = 15  # above it a k-d tree visits nearly every point anyway
APPROXIMATE_FROM = 1000  # below it the exact search is as fast
FEW = 1000  # points whose distances are all formed at once
FILTERED_FROM = 4000  # points from which ruling pairs out first pays
FILTERED_DIMENSIONS = range(32, 4097)  # of points; beyond, their principal components cost too much

#: Error of rough squared distances, from the norms of points and the distances searched.
Noise: TypeAlias = Callable[[Array, Array], Array]


def norms(points: Points) -> Array:
    return np.sqrt(row_dots(points, points)).astype(np.float64, copy=False)


def row_dots(a: Points, b: Points) -> Array:
    if sp.issparse(a):
        return np.asarray(a.multiply(b).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", a, b, dtype=np.float64)


def row_distances(a: Points, b: Points) -> Array:
    return norms(a - b)


def variance(points: Points) -> float:
    if not sp.issparse(points):
        return float(points.var())
    size = points.shape[0] * points.shape[1]
    return float((points.data**2).sum() / size - (points.data.sum() / size) ** 2)


def over_pairs(
    points: Points, left: Array, right: Array, measure: Callable[[Points, Points], Array]
) -> Array:
    """``measure`` of the row pairs (left, right), in blocks of bounded memory."""
    width = points.nnz / points.shape[0] if sp.issparse(points) else points.shape[1]
    step = max(1, int(NUMBERS_AT_ONCE / max(1, width)))
    result = np.empty(left.size)
    for start in range(0, left.size, step):
        block = slice(start, start + step)
        pair = (points[left[block]], points[right[block]])
        if points.dtype != np.float64:  # rows of a file that holds float32
            pair = (pair[0].astype(np.float64), pair[1].astype(np.float64))
        result[block] = measure(*pair)
    return result


def nearest(
    points: Points,
    wanted: int,
    approximate: bool,
    n_jobs: int | None,
    beyond: float = np.inf,
    device: Any = None,
) -> tuple[Array, Array]:
    """Indices and distances, both (n, wanted), of each point's nearest others, nearest first.

    Equal distances are ordered by index.  Neighbours at squared distances above ``beyond`` are
    of no interest and may be any.  The search runs over the distinct points only: a thousand
    copies of one point would otherwise be a thousand ties that every search has to resolve.
    """
    labels, first = distinct(points)
    search = approximate_search if approximate else exact_search
    if device is not None and wanted and not approximate and not sp.issparse(points):
        search = _on_device(device) or search
    if first.size == labels.size:
        return search(points, wanted, n_jobs, beyond)
    near = search(points[first], min(wanted, first.size - 1), n_jobs, beyond)
    return with_copies(labels, near, wanted)


def _on_device(device: Any) -> Any:
    """Return the search on a device of torch's, None where that is this machine's memory."""
    place = torch_device(None, device)
    if place is None:
        return None
    from symnmf.graphs.device_search import device_search

    return lambda points, wanted, n_jobs, beyond: device_search(points, wanted, place)


def distinct(points: Points) -> tuple[Array, Array]:
    """Label of each row, equal for identical rows, and the first row that has each label."""
    seen: dict[bytes, int] = {}
    labels = np.empty(points.shape[0], dtype=np.intp)
    for i in range(labels.size):
        if sp.issparse(points):
            row = slice(points.indptr[i], points.indptr[i + 1])
            content = points.indices[row].tobytes() + points.data[row].tobytes()
        else:
            content = (points[i] + 0.0).tobytes()  # -0.0 and 0.0 are the same number
        labels[i] = seen.setdefault(hashlib.blake2b(content, digest_size=16).digest(), len(seen))
    return labels, np.unique(labels, return_index=True)[1]


def with_copies(labels: Array, near: tuple[Array, Array], wanted: int) -> tuple[Array, Array]:
    """Neighbours among all points from those among the distinct ones."""
    n, distinct = labels.size, near[0].shape[0]
    groups = np.hstack([np.arange(distinct)[:, None], near[0]])
    lengths = np.hstack([np.zeros((distinct, 1)), near[1]])
    members, counts = np.argsort(labels, kind="stable"), np.bincount(labels)
    starts = np.cumsum(counts) - counts
    useful = np.minimum(counts, wanted + 1)  # a point itself may be one of them
    indices, distances = np.empty((n, wanted), dtype=np.intp), np.empty((n, wanted))
    step = max(1, PAIRS_AT_ONCE // (wanted + 1) ** 2)
    for start in range(0, n, step):
        batch = np.arange(start, min(n, start + step))
        group = groups[labels[batch]]
        repeats = useful[group].ravel()
        total = repeats.sum()
        within = np.arange(total) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        member = members[np.repeat(starts[group].ravel(), repeats) + within]
        length = np.repeat(lengths[labels[batch]].ravel(), repeats)
        row = np.repeat(np.repeat(batch, group.shape[1]), repeats)
        other = member != row
        member, length, row = member[other], length[other], row[other]
        order = np.lexsort((member, length, row))
        per_row = np.bincount(row - start, minlength=batch.size)
        rank = np.arange(row.size) - np.repeat(np.cumsum(per_row) - per_row, per_row)
        kept = order[rank < wanted]
        indices[batch] = member[kept].reshape(-1, wanted)
        distances[batch] = length[kept].reshape(-1, wanted)
    return indices, distances


def closest(points: Points, rows: Array, candidates: Array, wanted: int) -> tuple[Array, Array]:
    """The ``wanted`` candidates nearest to each row by exact distance, then index."""
    candidates = np.sort(candidates, axis=1)
    left = np.repeat(rows, candidates.shape[1])
    exact = over_pairs(points, left, candidates.ravel(), row_distances)
    exact[left == candidates.ravel()] = np.inf
    exact[candidates.ravel() < 0] = np.inf
    exact = exact.reshape(candidates.shape)
    order = np.argsort(exact, axis=1, kind="stable")[:, :wanted]
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(exact, order, 1)


class _Settled:
    """Neighbours as far as they are certain, for a search that proposes candidates."""

    def __init__(self, points: Points, wanted: int, beyond: float) -> None:
        n = points.shape[0]
        self.points, self.wanted, self.beyond = points, wanted, beyond
        self.indices, self.distances = np.empty((n, wanted), dtype=np.intp), np.empty((n, wanted))
        self.dense = not sp.issparse(points)
        # Distances do not see the mean, but the rounding error of the fast formula grows with it.
        self.centred = points - points.mean(axis=0) if self.dense else points
        self.offset, self.radius = norms(points), norms(self.centred)

    def take(self, rows: Array, rough: Array, candidates: Array, noise: Noise) -> Array:
        """Take in what candidates settle; return the rows that could still miss a neighbour."""
        found, exact = closest(self.points, rows, candidates, self.wanted)
        # A neighbour that was not proposed lies within reach, so its norm is at most
        # radius + reach; that bounds the error of its rough squared distance.
        reach = exact[:, -1]
        error = noise(self.radius[rows], reach)
        if self.dense:
            error += 8 * np.finfo(np.float64).eps * (2 * self.offset[rows] + reach) * reach
        sure = rough[:, -1] ** 2 > np.minimum(reach**2 + error, self.beyond)
        sure |= candidates.shape[1] >= len(self.indices) - 1
        self.indices[rows[sure]], self.distances[rows[sure]] = found[sure], exact[sure]
        return rows[~sure]


def _in_blocks(rows: Array, width: int) -> list[Array]:
    return np.array_split(rows, -(-rows.size * width // PAIRS_AT_ONCE))


def exact_search(
    points: Points, wanted: int, n_jobs: int | None, beyond: float
) -> tuple[Array, Array]:
    n, columns = points.shape
    settled = _Settled(points, wanted, beyond)
    pending, width = np.arange(n if wanted else 0), min(wanted + SPARE_CANDIDATES, n - 1)
    many = n >= max(FILTERED_FROM, 5 * columns) and columns in FILTERED_DIMENSIONS
    if pending.size and settled.dense and many:
        from symnmf.graphs.filtering import FilteredSearch

        search = FilteredSearch(settled.centred, n_jobs)
        rough, candidates = search.nearest(width)
        blocks = _in_blocks(pending, width)
        left = [settled.take(rows, rough[rows], candidates[rows], search.noise) for rows in blocks]
        pending = np.concatenate(left)
    if pending.size:
        _search_plainly(settled, pending, width, n_jobs)
    return settled.indices, settled.distances


def _search_plainly(settled: _Settled, pending: Array, width: int, n_jobs: int | None) -> None:
    """Compare all pairs, with more candidates for rows that fewer do not settle."""
    points, dense = settled.centred, settled.dense
    n, columns = points.shape
    find = _all_pairs(points) if dense and n <= FEW else _by_scikit_learn(points, n_jobs)
    terms = columns if dense else int(np.diff(points.indptr).max(initial=0))

    def noise(radius: Array, reach: Array) -> Array:
        return 4 * np.finfo(np.float64).eps * (terms + 8) * (2 * radius + reach) ** 2

    while pending.size:
        undecided = []
        for rows in _in_blocks(pending, width):
            rough, candidates = find(points[rows], width + 1)
            undecided.append(settled.take(rows, rough, candidates, noise))
        pending, width = np.concatenate(undecided), min(4 * width, n - 1)


def _all_pairs(points: Array) -> Callable[[Array, int], tuple[Array, Array]]:
    """Return a search for the nearest of few points; for these, other libraries load longer."""
    squares = row_dots(points, points)

    def find(new: Array, count: int) -> tuple[Array, Array]:
        rough = row_dots(new, new)[:, None] + squares - 2 * (new @ points.T)
        nearest = np.argpartition(rough, count - 1, axis=1)[:, :count]
        return np.sqrt(np.maximum(np.take_along_axis(rough, nearest, 1), 0.0)), nearest

    return find


def _by_scikit_learn(points: Points, n_jobs: int | None) -> Any:
    from sklearn.neighbors import NearestNeighbors

    tree = not sp.issparse(points) and points.shape[1] <= TREE_DIMENSION
    finder = NearestNeighbors(algorithm="kd_tree" if tree else "brute", n_jobs=n_jobs)
    return finder.fit(points).kneighbors


def _at_hand(points: Points) -> Points:
    """Return points in memory and in float64, as the exact search needs them."""
    return points if sp.issparse(points) else np.asarray(points, dtype=np.float64)


def approximate_search(
    points: Points, wanted: int, n_jobs: int | None, beyond: float
) -> tuple[Array, Array]:
    n = points.shape[0]
    try:
        from pynndescent import NNDescent
    except ImportError:
        raise InputError(
            "approximate=True needs pynndescent: pip install 'symnmf[approximate]'."
        ) from None
    if n < max(APPROXIMATE_FROM, 4 * wanted):
        return exact_search(_at_hand(points), wanted, n_jobs, beyond)
    plain = points if sp.issparse(points) else np.asarray(points)  # not the map that it may be
    index = NNDescent(plain, n_neighbors=wanted + 1, random_state=0, n_jobs=n_jobs)
    candidates = index.neighbor_graph[0].astype(np.intp)
    indices, distances = closest(points, np.arange(n), candidates, wanted)
    if np.isinf(distances).any():  # the descent left some points with too few neighbours
        return exact_search(_at_hand(points), wanted, n_jobs, beyond)
    return indices, distances
