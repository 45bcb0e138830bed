"""Points, their nearest neighbours, and one kernel for how similar two of them are.

The similarities of new points to those of a graph come from the same search and the same kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.assembling import csr
from symnmf.graphs.neighbors import Array, Points, Search
from symnmf.graphs.warning import warn

FAINT = 1e-10  # cosine similarities below it count as none: rounding cannot tell them from 0

#: The neighbour whose distance is the width of a point (Zelnik-Manor and Perona 2005).
SCALE_NEIGHBOR = 7

#: Times the usual number of neighbours that rows of a sparse table have at most.
SPARSE_TIMES = 4


class Kernel:
    """Similarity 1 for every neighbour; others compute it from distances and widths."""

    #: Neighbours whose distances the width of a point is read from.
    reads = 0

    def prepared(self, points: Points) -> Points:
        """Return the points between which distances are taken."""
        return points

    def widths(self, distances: Array) -> Array:
        """Return a width for each point, from the distances of its nearest neighbours."""
        return np.ones(len(distances))

    def weights(self, length: Array, one: Array, other: Array) -> Array:
        """Return similarities at some distances, of points with these widths."""
        return np.ones(length.shape)


@dataclass(frozen=True)
class Gaussian(Kernel):
    """exp(-gamma |x - y|^2)."""

    gamma: float

    def weights(self, length: Array, one: Array, other: Array) -> Array:
        return np.asarray(np.exp(-self.gamma * length**2))


class SelfTuning(Kernel):
    """exp(-|x - y|^2 / (sigma_x sigma_y)), sigma the distance of the 7th neighbour."""

    reads = SCALE_NEIGHBOR

    def widths(self, distances: Array) -> Array:
        if not distances.shape[1]:
            return np.ones(len(distances))
        return distances[:, min(SCALE_NEIGHBOR, distances.shape[1]) - 1].copy()

    def weights(self, length: Array, one: Array, other: Array) -> Array:
        with np.errstate(over="ignore"):  # exp(-inf) = 0 is the right similarity
            return np.asarray(np.exp(-(length / one) * (length / other)))


class Cosine(Kernel):
    """The cosine of the angle; on rows of length 1 it is 1 - |x - y|^2 / 2."""

    def prepared(self, points: Points) -> Points:
        lengths = _lengths(points)
        scale = 1 / np.where(lengths > 0, lengths, 1.0)
        if sp.issparse(points):
            return sp.csr_array(sp.diags_array(scale) @ points)
        return points * scale[:, None]

    def weights(self, length: Array, one: Array, other: Array) -> Array:
        found = 1 - length**2 / 2
        found[found < FAINT] = 0
        return np.asarray(found)


class Neighborhoods:
    """The nearest neighbours of points, and their similarities.

    Attributes
    ----------
    widths : ndarray of shape (n,)
    reach : float
        The distance of the two neighbours that are farthest apart.
    degrees : ndarray of shape (n,)
        Sums of the similarities, once :meth:`graph` was called.
    """

    def __init__(
        self,
        points: Points,
        kernel: Kernel,
        n_neighbors: int,
        *,
        approximate: bool = False,
        n_jobs: int | None = None,
        device: Any = None,
    ) -> None:
        self.kernel, self.k, n = kernel, n_neighbors, points.shape[0]
        # a row of zeros has no direction
        self.used = np.flatnonzero(_lengths(points)) if isinstance(kernel, Cosine) else np.arange(n)
        points = kernel.prepared(points)
        self.search = Search(points if self.used.size == n else points[self.used], n_jobs)
        wanted = min(max(n_neighbors, kernel.reads), max(self.used.size - 1, 0))
        indices, distances = np.empty((0, 0), np.intp), np.empty((0, 0))
        if self.used.size:
            indices, distances = self.search.among(wanted, approximate=approximate, device=device)
        low, high, self._length = _union(indices[:, :n_neighbors], distances[:, :n_neighbors])
        self._low, self._high = low, high
        self.reach = float(self._length.max(initial=0.0))
        self.widths = kernel.widths(distances)
        self._widen()
        self.degrees = np.zeros(n)

    def _widen(self) -> None:
        """Give points whose width is 0, among copies of themselves, their least other distance."""
        flat = self.widths == 0
        if not flat.any():
            return
        warn(
            f"{np.count_nonzero(flat)} of {len(flat)} points are identical to at least "
            f"{min(SCALE_NEIGHBOR, len(flat) - 1)} others, so their scale sigma is 0 and their "
            f"smallest positive neighbour distance replaces it: consider dropping duplicates."
        )
        smallest = np.full(len(flat), np.inf)
        away = self._length > 0
        for ends in (self._low[away], self._high[away]):
            np.minimum.at(smallest, ends, self._length[away])
        self.widths[flat] = np.where(np.isinf(smallest), 1.0, smallest)[flat]

    def graph(self) -> sp.csr_array:
        """Return the similarities of all pairs in which one is a neighbour of the other."""
        low, high, widths = self._low, self._high, self.widths
        weight = self.kernel.weights(self._length, widths[low], widths[high])
        del self._low, self._high, self._length  # only the graph needed them
        low, high = self.used[low], self.used[high]
        ends = np.concatenate([low, high]), np.concatenate([high, low])
        A = csr(len(self.degrees), *ends, np.concatenate([weight, weight]))
        self.degrees = np.asarray(A.sum(axis=1)).ravel()
        return A

    def similarities(self, new: Points) -> sp.csr_array:
        """Return the normalised similarities of new points to those of the graph.

        One that is farther from all of them than any two neighbours are from each other has none.
        """
        kernel, used = self.kernel, self.used
        wanted = min(max(self.k, kernel.reads), used.size)
        shape = new.shape[0], len(self.degrees)
        if not wanted:
            return sp.csr_array(shape)
        indices, distances = self.search.of(kernel.prepared(new), wanted)
        own = kernel.widths(distances)
        own[own == 0] = 1.0
        k = min(self.k, wanted)
        indices, distances = indices[:, :k], distances[:, :k]
        weight = kernel.weights(distances, own[:, None], self.widths[indices])
        weight[distances[:, 0] > self.reach] = 0.0
        if isinstance(kernel, Cosine):
            weight[_lengths(new) == 0] = 0.0
        rows = np.repeat(np.arange(shape[0]), k)
        raw = sp.csr_array((weight.ravel(), (rows, used[indices].ravel())), shape=shape)
        raw.eliminate_zeros()
        return scaled_by_degrees(raw, self.degrees)


def scaled_by_degrees(rows: sp.csr_array, degrees: Array) -> sp.csr_array:
    """Return similarities of new rows divided by the roots of both degrees."""
    own = np.asarray(rows.sum(axis=1)).ravel()
    left, right = (1 / np.sqrt(np.where(d > 0, d, 1.0)) for d in (own, degrees))
    return sp.csr_array(sp.diags_array(left) @ rows @ sp.diags_array(right))


def usual_neighbors(points: Points) -> int:
    """Return how many neighbours a point has by default: floor(log2 n) + 1.

    Rows of a sparse table, such as texts, share few columns with any other, and only many of them
    together tell what a row is about. There it is the root of n, up to four times as many.
    """
    n = int(points.shape[0])
    usual = n.bit_length()
    return min(max(usual, isqrt(n)), SPARSE_TIMES * usual) if sp.issparse(points) else usual


def variance(points: Points) -> float:
    """Return the variance of all entries."""
    if not sp.issparse(points):
        return float(points.var())
    size = points.shape[0] * points.shape[1]
    return float((points.data**2).sum() / size - (points.data.sum() / size) ** 2)


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
