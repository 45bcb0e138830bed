"""How much of a graph's weight stays inside the clusters of a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.adjacency import degrees
from symnmf.run.result import OUTSIDE
from symnmf.storage import SymmetricArray

#: Part of the whole weight up to which what lies outside of a cluster is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition in numbers: of each cluster its rows, the weight inside, and that at its rows.

    ``total`` is the weight of all edges, and ``entries`` their number, 0 where it is not known;
    edges are counted from both ends.
    """

    sizes: np.ndarray
    within: np.ndarray
    volume: np.ndarray
    total: float
    entries: int = 0

    @classmethod
    def of(cls, A: Any, labels: np.ndarray, clusters: int) -> Partition:
        """Take sums over a graph; rows with the label -1 are in no cluster."""
        inside = labels != OUTSIDE
        weights = degrees(A)
        sizes = np.bincount(labels[inside], minlength=clusters)
        volume = np.bincount(labels[inside], weights[inside], minlength=clusters)
        entries = A.nnz if sp.issparse(A) else A.size if isinstance(A, np.ndarray) else 0
        own = weight_inside(A, labels, clusters)
        within = np.bincount(labels[inside], own[inside], minlength=clusters)
        return cls(sizes, within, volume, float(weights.sum()), entries)

    @property
    def modularity(self) -> float:
        """Weight inside less what it would be at random with the same degrees; at most 1."""
        if self.total == 0.0:
            return 0.0
        return float((self.within / self.total - (self.volume / self.total) ** 2).sum())

    @property
    def conductance(self) -> np.ndarray:
        """The part of each cluster's weight that leaves it; NaN for one without rows."""
        smaller = np.minimum(self.volume, self.total - self.volume)
        with np.errstate(divide="ignore", invalid="ignore"):
            leaving = (self.volume - self.within) / smaller
        leaving[smaller <= ROUNDING * self.total] = 0.0  # all there is, so nothing leaves
        return np.where(self.sizes > 0, np.clip(leaving, 0.0, 1.0), np.nan)

    @property
    def gain(self) -> float:
        """Nats that clusters save in describing the edges: a log-likelihood ratio.

        The model knows how many edges are inside each cluster that has more than by chance, and how
        many there are besides; weights count in units of their mean.
        """
        if self.total == 0.0:
            return 0.0
        within, chance = self.within / self.total, (self.volume / self.total) ** 2
        more = within > chance
        parts = np.append(within[more], max(1.0 - within[more].sum(), 0.0))
        expected = np.append(chance[more], max(1.0 - chance[more].sum(), 0.0))
        some = (parts > 0.0) & (expected > 0.0)
        gained = float((parts[some] * np.log(parts[some] / expected[some])).sum())
        return 0.5 * self.entries * gained


def weight_inside(A: Any, labels: np.ndarray, clusters: int) -> np.ndarray:
    """Return the weight of each row to its own cluster, 0 for a row in none."""
    if sp.issparse(A):
        row = np.repeat(np.arange(len(labels)), np.diff(A.indptr))
        kept = (labels[row] == labels[A.indices]) & (labels[row] != OUTSIDE)
        return np.bincount(row[kept], A.data[kept], minlength=len(labels))
    members = np.zeros((len(labels), clusters), A.dtype)
    inside = np.flatnonzero(labels != OUTSIDE)
    members[inside, labels[inside]] = 1
    if isinstance(A, SymmetricArray):
        product = A.ops.get(A.matmul(A.ops.put(members)))
    else:
        product = A @ members
    own = np.zeros(len(labels))
    own[inside] = product[inside, labels[inside]]
    return own
