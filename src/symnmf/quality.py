"""How good clusters look without known classes: what a certificate does not speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.agreement import adjusted_mutual_information
from symnmf.errors import warn
from symnmf.graphs import self_tuning
from symnmf.graphs.adjacency import degrees
from symnmf.run.multistart import Search
from symnmf.run.result import OUTSIDE
from symnmf.storage import SymmetricArray

#: Share of the rows in one cluster from which on a reader is warned.
TOO_MUCH = 0.9


class QualityWarning(UserWarning):
    """The factorization is what was asked for, but its clusters are hardly clusters."""


@dataclass(frozen=True)
class Quality:
    """Clusters in numbers.

    Attributes
    ----------
    asked : int
        How many clusters were asked for.
    sizes : tuple of int
        Rows in each of them.
    outside : int
        Rows in none (label -1): no similarity to others, or outside the component chosen.
    modularity : float
        Weight inside clusters less what it would be at random with the same degrees; at most 1.
    conductance : tuple of float
        Of each cluster, the part of its weight that leaves it: 0 for a component, near 1 for no
        cluster at all. NaN for one without members.
    errors : tuple of float
        The error of every start that ran to its end.
    starts : int
        Starts that were begun; those that were seen to end above the best were given up.
    agreement : float
        Mean adjusted mutual information between the labels kept and those of the other starts;
        NaN with one start.
    explained : float
        What the error leaves, as a part of what the leading eigenvectors leave: no U of this rank
        has more than 1. NaN where they were not computed.
    """

    asked: int
    sizes: tuple[int, ...]
    outside: int
    modularity: float
    conductance: tuple[float, ...]
    errors: tuple[float, ...]
    starts: int
    agreement: float
    explained: float

    @property
    def clusters(self) -> int:
        """How many clusters have members."""
        return sum(size > 0 for size in self.sizes)

    @property
    def largest(self) -> float:
        """The share of the largest cluster among the rows that are in one."""
        return max(self.sizes) / max(sum(self.sizes), 1)

    @property
    def warning(self) -> str | None:
        """What is wrong with the clusters, in one sentence; None where nothing is plain."""
        faults = []
        if self.clusters < self.asked:
            faults.append(f"only {self.clusters} of the {self.asked} clusters asked for have rows")
        if self.asked > 1 and self.largest > TOO_MUCH:
            faults.append(f"one cluster holds {self.largest:.1%} of the rows")
        return " and ".join(faults) or None

    def __str__(self) -> str:
        parts = [
            f"{self.clusters} clusters of {min(s for s in self.sizes if s)} to {max(self.sizes)}"
            if self.clusters
            else "no cluster",
            f"modularity {plain(self.modularity)}",
            f"conductance up to {plain(np.nanmax(self.conductance))}" if self.clusters else "",
        ]
        if len(self.errors) > 1:
            parts.append(
                f"errors of the starts {min(self.errors):.6g} to {max(self.errors):.6g}, "
                f"agreement {plain(self.agreement)}"
            )
        return "; ".join(part for part in parts if part)


def plain(value: float, digits: int = 3) -> str:
    """Return a number without a negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def assess(A: Any, labels: np.ndarray, search: Search) -> Quality:
    """Judge labels by the graph A they came from and by the search that found them."""
    asked = search.best.U.shape[1]
    stored = isinstance(A, SymmetricArray)
    if not stored and A.min() < 0:  # of a signed graph, what ties nodes together
        A = A.maximum(0) if sp.issparse(A) else np.maximum(A, 0)
    members, sizes = _members(labels, asked)
    modularity, within, volume, total = _modularity(A, members)
    with np.errstate(divide="ignore", invalid="ignore"):
        leaving = (volume - within) / np.minimum(volume, total - volume)
    leaving[(sizes > 0) & ~np.isfinite(leaving)] = 0.0  # all there is, so nothing leaves
    kept = int(np.argmin(np.nan_to_num(search.errors, nan=np.inf)))
    others = [result.labels for i, result in enumerate(search.finished) if i != kept]
    # labels start at -1, for rows in no cluster
    scores = [adjusted_mutual_information(labels + 1, other + 1, asked + 1) for other in others]
    left = 1.0 - search.bound
    return Quality(
        asked,
        tuple(sizes.tolist()),
        len(labels) - int(sizes.sum()),
        modularity,
        tuple(np.where(sizes > 0, np.clip(leaving, 0.0, 1.0), np.nan).tolist()),
        tuple(search.errors.tolist()),
        search.begun,
        float(np.mean(scores)) if scores else float("nan"),
        float((1.0 - search.best.error) / left) if left > 0 else float("nan"),
    )


def _members(labels: np.ndarray, clusters: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows by cluster as a 0/1 matrix, and the sizes of the clusters."""
    inside = np.flatnonzero(labels != OUTSIDE)
    shape = (len(labels), clusters)
    members = sp.csr_array((np.ones(len(inside)), (inside, labels[inside])), shape=shape)
    return members, np.bincount(labels[inside], minlength=clusters)


def _modularity(A: Any, members: sp.csr_array) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Modularity, the weight inside each cluster, its volume, and the volume of all."""
    if isinstance(A, SymmetricArray):
        thin = np.ascontiguousarray(members.toarray(), dtype=A.dtype)
        product = A.ops.get(A.matmul(A.ops.put(thin)))
    else:
        product = A @ members
    weights = degrees(A)
    within = np.asarray((members.T @ product).diagonal(), dtype=np.float64)
    volume, total = np.asarray(members.T @ weights), float(weights.sum())
    if total == 0.0:
        return 0.0, within, volume, total
    return float((within / total - (volume / total) ** 2).sum()), within, volume, total


def modularity_scorer(model: Any, X: Any, y: Any = None) -> float:
    """Modularity of the labels a fitted clusterer gives to X, for ``GridSearchCV(scoring=...)``.

    The labels of ``model.predict(X)`` are judged on the self-tuning graph of X, the same for every
    setting, so that affinities and numbers of neighbours can be compared; no classes are needed.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from symnmf import SymNMF, modularity_scorer
    >>> search = GridSearchCV(
    ...     SymNMF(random_state=0), {"n_clusters": [2, 3]}, scoring=modularity_scorer
    ... )
    """
    labels = np.asarray(model.predict(X))
    A = self_tuning(X, normalize=False, n_clusters=len(labels))
    members, _ = _members(labels, int(labels.max(initial=0)) + 1)
    return _modularity(A, members)[0]


def warn_of(quality: Quality, advice: str) -> None:
    """Say at the reader's line what is wrong with the clusters, where something is."""
    if quality.warning and sum(quality.sizes):
        warn(f"{quality.warning}; {advice}.", QualityWarning)
