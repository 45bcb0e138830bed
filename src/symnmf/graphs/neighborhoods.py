"""Points, their nearest neighbours, and one kernel for how similar two of them are.

The similarities of new points to those of a graph come from the same search and the same kernel.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.adjacency import csr, divided
from symnmf.graphs.neighbors import Array, Points, Search
from symnmf.graphs.warning import warn

#: Kinds of similarity: exp(-|x - y|^2 / (s_x s_y)), 1, exp(-gamma |x - y|^2), and the cosine.
SELF_TUNING, BINARY, RBF, COSINE = KINDS = ("self-tuning", "nearest_neighbors", "rbf", "cosine")

FAINT = 1e-10  # cosine similarities below it count as none: rounding cannot tell them from 0

#: The neighbour whose distance is the width s of a point (Zelnik-Manor and Perona 2005).
SCALE_NEIGHBOR = 7

#: Times the usual number of neighbours that rows of a sparse table have at most.
SPARSE_TIMES = 4


class Neighborhoods:
    """The nearest neighbours of points, and their similarities.

    ``graph`` has those of all pairs in which one is a neighbour of the other, ``degrees`` are their
    sums, and ``reach`` is the distance of the two neighbours that are farthest apart.
    """

    def __init__(
        self,
        points: Points,
        kind: str,
        n_neighbors: int,
        *,
        gamma: float = 1.0,
        approximate: bool = False,
        n_jobs: int | None = None,
        device: Any = None,
    ) -> None:
        self.kind, self.gamma, self.k, n = kind, gamma, n_neighbors, points.shape[0]
        # a row of zeros has no direction
        self.used = np.flatnonzero(_lengths(points)) if kind == COSINE else np.arange(n)
        points = self._prepared(points)
        self.search = Search(points if self.used.size == n else points[self.used], n_jobs)
        indices, distances = self.search.among(self._read, approximate=approximate, device=device)
        low, high, length = _union(indices[:, :n_neighbors], distances[:, :n_neighbors])
        self.reach = float(length.max(initial=0.0))
        self.widths = self._widths(distances)
        self._widen(low, high, length)
        weight = self._weights(length, self.widths[low], self.widths[high])
        low, high = self.used[low], self.used[high]
        ends = np.concatenate([low, high]), np.concatenate([high, low])
        self.graph = csr(n, *ends, np.concatenate([weight, weight]))
        self.degrees = np.asarray(self.graph.sum(axis=1)).ravel()

    @property
    def _read(self) -> int:
        """How many neighbours are searched for: the width of a point is read from the 7th."""
        return max(self.k, SCALE_NEIGHBOR) if self.kind == SELF_TUNING else self.k

    def _prepared(self, points: Points) -> Points:
        """Return the points between which distances are taken: for the cosine, of length 1."""
        if self.kind != COSINE:
            return points
        lengths = _lengths(points)
        scale = 1 / np.where(lengths > 0, lengths, 1.0)
        if sp.issparse(points):
            return sp.csr_array(sp.diags_array(scale) @ points)
        return points * scale[:, None]

    def _widths(self, distances: Array) -> Array:
        if self.kind != SELF_TUNING or not distances.shape[1]:
            return np.ones(len(distances))
        return distances[:, min(SCALE_NEIGHBOR, distances.shape[1]) - 1].copy()

    def _widen(self, low: Array, high: Array, length: Array) -> None:
        """Give points whose width is 0, among copies of themselves, their least other distance."""
        flat = self.widths == 0
        if not flat.any():
            return
        warn(
            f"{np.count_nonzero(flat)} of {len(flat)} points are identical to at least "
            f"{min(SCALE_NEIGHBOR, len(flat) - 1)} others, so their scale sigma is 0 and their "
            f"smallest positive neighbour distance replaces it: consider dropping duplicates."
        )
        smallest, away = np.full(len(flat), np.inf), length > 0
        for ends in (low[away], high[away]):
            np.minimum.at(smallest, ends, length[away])
        self.widths[flat] = np.where(np.isinf(smallest), 1.0, smallest)[flat]

    def _weights(self, length: Array, one: Array, other: Array) -> Array:
        """Return similarities at some distances, of points with these widths."""
        if self.kind == SELF_TUNING:
            with np.errstate(over="ignore"):  # exp(-inf) = 0 is the right similarity
                return np.asarray(np.exp(-(length / one) * (length / other)))
        if self.kind == RBF:
            return np.asarray(np.exp(-self.gamma * length**2))
        if self.kind == COSINE:
            cosine = 1 - length**2 / 2
            return np.where(cosine < FAINT, 0.0, cosine)
        return np.ones(length.shape)

    def similarities(self, new: Points) -> sp.csr_array:
        """Return the normalised similarities of new points to those of the graph.

        One that is farther from all of them than any two neighbours are from each other has none.
        """
        shape = new.shape[0], len(self.degrees)
        wanted = min(self._read, self.used.size)
        if not wanted:
            return sp.csr_array(shape)
        indices, distances = self.search.of(self._prepared(new), wanted)
        own = self._widths(distances)
        own[own == 0] = 1.0
        k = min(self.k, wanted)
        indices, distances = indices[:, :k], distances[:, :k]
        weight = self._weights(distances, own[:, None], self.widths[indices])
        weight[distances[:, 0] > self.reach] = 0.0
        if self.kind == COSINE:
            weight[_lengths(new) == 0] = 0.0
        rows = np.repeat(np.arange(shape[0]), k)
        raw = sp.csr_array((weight.ravel(), (rows, self.used[indices].ravel())), shape=shape)
        raw.eliminate_zeros()
        return divided(raw, np.sqrt(self.degrees))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "graph": None}  # new points need what it was made of


def usual_neighbors(points: Points) -> int:
    """Return how many neighbours a point has by default: floor(log2 n) + 1.

    Rows of a sparse table, such as texts, share few columns with any other, and only many of them
    together tell what a row is about. There it is the root of n, up to four times as many.
    """
    n = int(points.shape[0])
    usual = n.bit_length()
    return min(max(usual, isqrt(n)), SPARSE_TIMES * usual) if sp.issparse(points) else usual


def _lengths(points: Points) -> Array:
    if sp.issparse(points):
        return np.sqrt(np.asarray(points.multiply(points).sum(axis=1)).ravel())
    return np.sqrt(np.einsum("ij,ij->i", points, points))


def _union(indices: Array, distances: Array) -> tuple[Array, Array, Array]:
    """Each pair (low < high) in which one is a neighbour of the other, once, with its distance."""
    n, k = indices.shape
    one, other = np.repeat(np.arange(n), k), indices.ravel()
    keys = np.minimum(one, other) * n + np.maximum(one, other)
    keys, first = np.unique(keys, return_index=True)
    return keys // max(n, 1), keys % max(n, 1), distances.ravel()[first]
