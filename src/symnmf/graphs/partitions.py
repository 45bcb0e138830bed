"""How much of a graph's weight stays inside the clusters of a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.adjacency import degrees
from symnmf.run.result import OUTSIDE
from symnmf.storage import SymmetricArray


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition in numbers, with an entry for each cluster.

    Attributes
    ----------
    sizes : ndarray of int
        Rows in it.
    within : ndarray
        Weight of the edges inside, each counted from both ends.
    volume : ndarray
        Weight of all edges at its rows.
    total : float
        Weight of all edges, from both ends.
    """

    sizes: np.ndarray
    within: np.ndarray
    volume: np.ndarray
    total: float

    @classmethod
    def of(cls, A: Any, labels: np.ndarray, clusters: int) -> Partition:
        """Take sums over a graph; rows with the label -1 are in no cluster."""
        inside = np.flatnonzero(labels != OUTSIDE)
        shape = (len(labels), clusters)
        members = sp.csr_array((np.ones(len(inside)), (inside, labels[inside])), shape=shape)
        if isinstance(A, SymmetricArray):
            thin = np.ascontiguousarray(members.toarray(), dtype=A.dtype)
            product = A.ops.get(A.matmul(A.ops.put(thin)))
        else:
            product = A @ members
        weights = degrees(A)
        within = np.asarray((members.T @ product).diagonal(), dtype=np.float64)
        sizes = np.bincount(labels[inside], minlength=clusters)
        return cls(sizes, within, np.asarray(members.T @ weights), float(weights.sum()))

    @property
    def modularity(self) -> float:
        """Weight inside less what it would be at random with the same degrees; at most 1."""
        if self.total == 0.0:
            return 0.0
        return float((self.within / self.total - (self.volume / self.total) ** 2).sum())

    @property
    def conductance(self) -> np.ndarray:
        """The part of each cluster's weight that leaves it; NaN for one without rows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            leaving = (self.volume - self.within) / np.minimum(
                self.volume, self.total - self.volume
            )
        leaving[~np.isfinite(leaving)] = 0.0  # all there is, so nothing leaves
        return np.where(self.sizes > 0, np.clip(leaving, 0.0, 1.0), np.nan)

    @property
    def leaving(self) -> np.ndarray:
        """The conductance, as a part of what it is on average where edges ignore clusters."""
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = (self.total - self.volume) / self.total
            part = (self.volume - self.within) / (self.volume * chance)
        part[~np.isfinite(part)] = 0.0
        return np.where(self.sizes > 0, part, np.nan)
