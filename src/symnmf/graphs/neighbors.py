"""Nearest neighbours of points: scikit-learn's search, or a faster one where it pays.

Distances are those of the differences x - y wherever the search itself rounds more than that.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from symnmf.errors import imported
from symnmf.storage.wrapping import torch_device

if TYPE_CHECKING:
    from symnmf.graphs.filtering import FilteredSearch

Points: TypeAlias = Any  # float64 array, or csr_array in canonical format
Array: TypeAlias = NDArray[Any]
Found: TypeAlias = tuple[Array, Array]  # indices and distances, nearest first

NUMBERS_AT_ONCE = 1 << 18  # gathered rows of one block of distances; 2 MB stay in cache
PAIRS_AT_ONCE = 1 << 24  # of a block of points and their candidates
APPROXIMATE_FROM = 1000  # points below which the exact search is as fast

#: Part of a distance that float32 may get wrong before it is searched for in float64.
DOUBTFUL = 1e-4


class Search:
    """The nearest of some points."""

    def __init__(self, points: Points, n_jobs: int | None = None) -> None:
        self.points, self.n_jobs = points, n_jobs

    @cached_property
    def _filtered(self) -> FilteredSearch | None:
        from symnmf.graphs.filtering import FilteredSearch, filtering_pays

        return FilteredSearch(self.points, self.n_jobs) if filtering_pays(self.points) else None

    def __getstate__(self) -> dict[str, Any]:
        return {"points": self.points, "n_jobs": self.n_jobs}

    def among(self, wanted: int, *, approximate: bool = False, device: Any = None) -> Found:
        """Return indices and distances of the ``wanted`` nearest others of each point.

        There may be fewer points than that. Equal ones are searched for once: a thousand copies of
        one point would be as many ties, and they are to hang together.
        """
        count = self.points.shape[0]
        labels, first = distinct(self.points)
        wanted = max(min(wanted, count - 1), 0)
        if first.size == count:
            return self._among(wanted, approximate, device)
        others = Search(self.points[first], self.n_jobs)
        near = others._among(min(wanted, first.size - 1), approximate, device)
        return with_copies(labels, near, wanted)

    def _among(self, wanted: int, approximate: bool, device: Any) -> Found:
        points, n = self.points, self.points.shape[0]
        if not wanted:
            return np.empty((n, 0), dtype=np.intp), np.empty((n, 0))
        if approximate and n >= max(APPROXIMATE_FROM, 4 * wanted):
            return self._descended(wanted)
        place = None if device is None else torch_device(None, device)
        if place is not None and not sp.issparse(points):
            return _on_device(points, wanted, place)
        if self._filtered is None:
            return self._plainly(None, wanted)

        def again(rows: Array) -> Array:
            return _without_self(self._plainly(points[rows], wanted + 1)[0], rows)

        return _checked(self._filtered.nearest(wanted), points, points, again)

    def of(self, new: Points, wanted: int) -> Found:
        """Return indices and distances of the points that are nearest to each of some new ones."""
        if self._filtered is None:
            return self._plainly(new, wanted)
        found = self._filtered.nearest(wanted, new)
        return _checked(found, new, self.points, lambda rows: self._plainly(new[rows], wanted)[0])

    def _plainly(self, new: Points | None, wanted: int) -> Found:
        """Search with scikit-learn, among the points themselves without new ones."""
        from sklearn.neighbors import NearestNeighbors

        points = self.points
        if not sp.issparse(points):
            # rounding grows with the mean, which distances do not depend on
            centre = points.mean(axis=0)
            points, new = points - centre, None if new is None else new - centre
        finder = NearestNeighbors(n_jobs=self.n_jobs).fit(points)
        distances, indices = finder.kneighbors(new, wanted)
        return indices, distances

    def _descended(self, wanted: int) -> Found:
        """Return neighbours of which pynndescent may have missed some."""
        NNDescent = imported("pynndescent", "approximate", "approximate=True").NNDescent
        points = self.points
        index = NNDescent(points, n_neighbors=wanted + 1, random_state=0, n_jobs=self.n_jobs)
        indices = index.neighbor_graph[0].astype(np.intp)
        indices = _without_self(indices, np.arange(points.shape[0]))
        if (indices < 0).any():  # the descent left some points with too few neighbours
            return self._among(wanted, False, None)
        return _sorted(indices, row_distances(points, points, indices))


def _checked(found: Found, new: Array, points: Array, again: Any) -> Found:
    """Return what a search in float32 found with exact distances; doubtful rows ``again``."""
    indices, rough = found
    distances = row_distances(new, points, indices)
    doubtful = (np.abs(rough - distances) > DOUBTFUL * distances).any(axis=1)
    rows = np.flatnonzero(doubtful)
    if rows.size:
        indices[rows] = again(rows)
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


def _without_self(indices: Array, rows: Array) -> Array:
    """Return one neighbour less of each row: the row itself, or the last where it is not there."""
    itself = indices == rows[:, None]
    itself[~itself.any(axis=1), -1] = True
    return indices[~itself].reshape(len(rows), -1)


def _sorted(indices: Array, distances: Array) -> Found:
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(indices, order, 1), np.take_along_axis(distances, order, 1)


def _on_device(points: Array, wanted: int, place: Any) -> Found:
    """Return neighbours from all distances, block by block on a device of torch."""
    import torch

    there = torch.from_numpy(points - points.mean(axis=0)).to(place)
    squares = there.square().sum(1)
    found = []
    for rows in torch.arange(len(points), device=place).split(max(1, PAIRS_AT_ONCE // len(points))):
        apart = squares - 2 * (there[rows] @ there.T)
        apart[torch.arange(len(rows), device=place), rows] = torch.inf
        found.append(torch.topk(apart, wanted, largest=False).indices)
    indices = torch.cat(found).cpu().numpy()
    return _sorted(indices, row_distances(points, points, indices))


# Copies ---------------------------------------------------------------------------------------


def row_hashes(points: Points) -> list[int]:
    """Return a number for each row, the same for equal rows."""
    if not sp.issparse(points):
        return [hash((row + 0.0).tobytes()) for row in points]  # -0.0 and 0.0 are the same number
    hashes = []
    for begin, end in zip(points.indptr[:-1], points.indptr[1:], strict=True):
        order = np.argsort(points.indices[begin:end])
        columns = points.indices[begin:end][order].astype(np.int64)
        hashes.append(hash(columns.tobytes() + points.data[begin:end][order].tobytes()))
    return hashes


def distinct(points: Points) -> Found:
    """Return a label of each row, equal for equal rows, and the first row that has each label."""
    seen: dict[int, int] = {}
    labels = np.array([seen.setdefault(row, len(seen)) for row in row_hashes(points)], np.intp)
    return labels, np.unique(labels, return_index=True)[1]


def with_copies(labels: Array, near: Found, wanted: int) -> Found:
    """Return neighbours among all points from those among the distinct ones."""
    equal = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    indices = np.empty((labels.size, wanted), dtype=np.intp)
    distances = np.empty((labels.size, wanted))
    for label, (nearest, lengths) in enumerate(zip(*near, strict=True)):
        # a point itself may be one of the copies
        groups = [equal[group][: wanted + 1] for group in (label, *nearest)]
        members, apart = np.concatenate(groups), np.repeat([0.0, *lengths], list(map(len, groups)))
        for row in equal[label]:
            others = np.flatnonzero(members != row)[:wanted]
            indices[row], distances[row] = members[others], apart[others]
    return indices, distances
