"""Nearest neighbours of points: scikit-learn's search, or a faster one where it pays.

Distances are those of the differences x - y wherever the search itself rounds more than that.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from symnmf.errors import InputError
from symnmf.storage.wrapping import torch_device

Points: TypeAlias = Any  # float64 array, or csr_array in canonical format
Array: TypeAlias = NDArray[Any]
Found: TypeAlias = tuple[Array, Array]  # indices and distances, nearest first

NUMBERS_AT_ONCE = 1 << 18  # gathered rows of one block of distances; 2 MB stay in cache
PAIRS_AT_ONCE = 1 << 24  # of a block of points and their candidates
APPROXIMATE_FROM = 1000  # points below which the exact search is as fast

#: Part of a distance that float32 may get wrong before it is searched for in float64.
DOUBTFUL = 1e-4


def nearest(
    points: Points,
    wanted: int,
    *,
    approximate: bool = False,
    n_jobs: int | None = None,
    device: Any = None,
) -> Found:
    """Return indices and distances, both (n, wanted), of the nearest others of each point.

    Equal points are searched for once: a thousand copies of one point would be as many ties.
    """
    labels, first = distinct(points)
    copies = first.size < labels.size
    some = points[first] if copies else points
    found = _among(some, min(wanted, first.size - 1), approximate, n_jobs, device)
    return with_copies(labels, found, wanted) if copies else found


def nearest_to(new: Points, points: Points, wanted: int, n_jobs: int | None = None) -> Found:
    """Return indices and distances of the points that are nearest to each of some new ones."""
    from symnmf.graphs.filtering import FilteredSearch, filtering_pays

    if sp.issparse(points):
        return _finder(points, n_jobs)(new, wanted)
    centre = points.mean(axis=0)
    points, new = points - centre, new - centre
    if not filtering_pays(points):
        return _finder(points, n_jobs)(new, wanted)
    found = FilteredSearch(points, n_jobs).nearest(wanted, new)
    return _checked(found, new, points, lambda rows: _finder(points, n_jobs)(new[rows], wanted))


def _among(
    points: Points, wanted: int, approximate: bool, n_jobs: int | None, device: Any
) -> Found:
    from symnmf.graphs.filtering import FilteredSearch, filtering_pays

    n = points.shape[0]
    if not wanted:
        return np.empty((n, 0), dtype=np.intp), np.empty((n, 0))
    if approximate and n >= max(APPROXIMATE_FROM, 4 * wanted):
        return _descended(points, wanted, n_jobs)
    if sp.issparse(points):
        return _finder(points, n_jobs)(None, wanted)
    points = points - points.mean(axis=0)  # rounding grows with the mean, which distances lack
    place = None if device is None else torch_device(None, device)
    if place is not None:
        return _on_device(points, wanted, place)
    if not filtering_pays(points):
        return _finder(points, n_jobs)(None, wanted)

    def again(rows: Array) -> Found:
        return _without_self(_finder(points, n_jobs)(points[rows], wanted + 1), rows)

    return _checked(FilteredSearch(points, n_jobs).nearest(wanted), points, points, again)


def _finder(points: Points, n_jobs: int | None) -> Any:
    """Return scikit-learn's search, with indices before distances."""
    from sklearn.neighbors import NearestNeighbors

    finder = NearestNeighbors(n_jobs=n_jobs).fit(points)

    def find(new: Points | None, wanted: int) -> Found:
        distances, indices = finder.kneighbors(new, wanted)
        return indices, distances

    return find


def _checked(found: Found, new: Array, points: Array, again: Any) -> Found:
    """Return what a search in float32 found with exact distances; doubtful rows ``again``."""
    indices, rough = found
    distances = row_distances(new, points, indices)
    doubtful = (np.abs(rough - distances) > DOUBTFUL * distances).any(axis=1)
    rows = np.flatnonzero(doubtful)
    if rows.size:
        indices[rows] = again(rows)[0]
        distances[rows] = row_distances(new[rows], points, indices[rows])
    return _sorted(indices, distances)


def row_distances(new: Points, points: Points, indices: Array) -> Array:
    """Return the distances of new points to those of the points that ``indices`` names."""
    distances = np.empty(indices.shape)
    width = points.nnz / points.shape[0] if sp.issparse(points) else points.shape[1]
    step = max(1, int(NUMBERS_AT_ONCE / max(1.0, width * indices.shape[1])))
    for begin in range(0, len(indices), step):
        block = slice(begin, begin + step)
        count = len(indices[block])
        left = new[np.repeat(np.arange(begin, begin + count), indices.shape[1])]
        away = left - points[indices[block].ravel()]
        if sp.issparse(away):
            squares = np.asarray(away.multiply(away).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", away, away)
        distances[block] = np.sqrt(squares).reshape(count, -1)
    return distances


def _without_self(found: Found, rows: Array) -> Found:
    """Return one neighbour less of each row: the row itself, or the last where it is not there."""
    indices, distances = found
    itself = indices == rows[:, None]
    itself[~itself.any(axis=1), -1] = True
    shape = (len(rows), indices.shape[1] - 1)
    return indices[~itself].reshape(shape), distances[~itself].reshape(shape)


def _descended(points: Points, wanted: int, n_jobs: int | None) -> Found:
    """Return neighbours of which pynndescent may have missed some."""
    try:
        from pynndescent import NNDescent
    except ImportError:
        raise InputError(
            "approximate=True needs pynndescent: pip install 'symnmf[approximate]'."
        ) from None
    index = NNDescent(points, n_neighbors=wanted + 1, random_state=0, n_jobs=n_jobs)
    indices = index.neighbor_graph[0].astype(np.intp)
    found = _without_self((indices, indices), np.arange(points.shape[0]))[0]
    if (found < 0).any():  # the descent left some points with too few neighbours
        return _among(points, wanted, False, n_jobs, None)
    return _sorted(found, row_distances(points, points, found))


def _sorted(indices: Array, distances: Array) -> Found:
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(indices, order, 1), np.take_along_axis(distances, order, 1)


def _on_device(points: Array, wanted: int, place: Any) -> Found:
    """Return neighbours from all distances, block by block on a device of torch."""
    import torch

    there = torch.from_numpy(points).to(place)
    squares = there.square().sum(1)
    found = []
    for rows in torch.arange(len(points), device=place).split(max(1, PAIRS_AT_ONCE // len(points))):
        apart = squares - 2 * (there[rows] @ there.T)
        apart[torch.arange(len(rows), device=place), rows] = torch.inf
        found.append(torch.topk(apart, wanted, largest=False).indices)
    indices = torch.cat(found).cpu().numpy()
    return _sorted(indices, row_distances(points, points, indices))


# Copies ---------------------------------------------------------------------------------------


def row_content(points: Points, row: int) -> bytes:
    """Return bytes that are the same for equal rows."""
    if sp.issparse(points):
        part = slice(points.indptr[row], points.indptr[row + 1])
        order = np.argsort(points.indices[part])
        columns = points.indices[part][order].astype(np.int64)
        return bytes(columns.tobytes() + points.data[part][order].tobytes())
    return bytes((points[row] + 0.0).tobytes())  # -0.0 and 0.0 are the same number


def distinct(points: Points) -> Found:
    """Return a label of each row, equal for equal rows, and the first row that has each label."""
    seen: dict[int, int] = {}
    labels = np.empty(points.shape[0], dtype=np.intp)
    for row in range(labels.size):
        labels[row] = seen.setdefault(hash(row_content(points, row)), len(seen))
    return labels, np.unique(labels, return_index=True)[1]


def with_copies(labels: Array, near: Found, wanted: int) -> Found:
    """Return neighbours among all points from those among the distinct ones."""
    order, counts = np.argsort(labels, kind="stable"), np.bincount(labels)
    begins = np.cumsum(counts) - counts
    most = np.arange(min(int(counts.max()), wanted + 1))  # a point itself may be one of them
    places = np.minimum(begins[:, None] + most, labels.size - 1)
    copies = np.where(most < counts[:, None], order[places], -1)
    groups = np.column_stack([np.arange(counts.size), near[0]])
    lengths = np.column_stack([np.zeros(counts.size), near[1]])
    indices = np.empty((labels.size, wanted), dtype=np.intp)
    distances = np.empty((labels.size, wanted))
    step = max(1, PAIRS_AT_ONCE // (groups.shape[1] * most.size))
    for begin in range(0, labels.size, step):
        rows = np.arange(begin, min(begin + step, labels.size))
        members = copies[groups[labels[rows]]].reshape(rows.size, -1)
        length = np.repeat(lengths[labels[rows]], most.size, axis=1)
        length[(members < 0) | (members == rows[:, None])] = np.inf
        first = np.argsort(length, axis=1, kind="stable")[:, :wanted]
        indices[rows] = np.take_along_axis(members, first, 1)
        distances[rows] = np.take_along_axis(length, first, 1)
    return indices, distances
