"""Quality of clusters without known classes, which a certificate does not measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from symnmf.cluster.judgement import CHANCE, CLEAR, UNKNOWN, Judgement
from symnmf.errors import InputError
from symnmf.graphs.adjacency import attraction
from symnmf.graphs.partitions import Partition
from symnmf.run.multistart import Search
from symnmf.storage import SymmetricArray

#: A cluster is tiny below this part of an equal share of the rows, and below this many: what chance
#: leaves of a cluster, two rows and the edge between them, is none.
TINY_SHARE, TINY = 0.02, 3

#: The verdict where nobody could ask for one.
UNJUDGED = Judgement(UNKNOWN, "the data are not in memory", ())


class QualityWarning(UserWarning):
    """The factorization succeeded, but its clusters are weak, lopsided or no more than chance."""


@dataclass(frozen=True)
class Quality:
    """Measures of a clustering that need no known classes.

    Attributes
    ----------
    asked : int
        The number of clusters that was requested.
    sizes : tuple of int
        The number of rows in each cluster.
    outside : int
        The number of rows in no cluster (label -1): rows without similarities, or outside the
        chosen component.
    modularity : float
        Weight inside clusters minus its expectation in random graphs with the same degrees; at
        most 1.
    conductance : tuple of float
        For each cluster, the fraction of its weight that leaves it: 0 for a component, close to 1
        for no cluster at all. NaN for a cluster without members.
    errors : tuple of float
        The error of every start that ran to its end.
    agreement : float
        Mean adjusted mutual information between the labels of the best start and those of the
        other starts; NaN with one start.
    verdict : Judgement
        Whether the clusters are real, of all and of each: "clear", "weak", "no more than chance",
        or "cannot tell"; with the reason, the null hypothesis and the p-value.
    """

    asked: int
    sizes: tuple[int, ...]
    outside: int
    modularity: float
    conductance: tuple[float, ...]
    errors: tuple[float, ...]
    agreement: float
    verdict: Judgement = UNJUDGED
    _bound: Callable[[], float] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def gap(self) -> float:
        """The largest fraction by which the error of any other U could be lower.

        0 for a global minimum. NaN if no bound is known, and for more than 50 000 rows, where
        :meth:`symnmf.Result.bound` computes it. It is computed on first access, because it may
        take longer than the fit.
        """
        return float("nan") if self._bound is None else self._bound()

    def __getstate__(self) -> dict[str, Any]:
        _ = self.gap  # what it is computed from is not kept
        return {**self.__dict__, "_bound": None}

    @property
    def clusters(self) -> int:
        """The number of clusters with members."""
        return sum(size > 0 for size in self.sizes)

    @property
    def largest(self) -> float:
        """The share of the largest cluster among all rows in clusters."""
        return max(self.sizes) / max(sum(self.sizes), 1)

    @property
    def lopsided(self) -> str | None:
        """A message if some clusters are empty or tiny, or one holds most of the rows, else None.

        Clusters are tiny with less than a fiftieth of an equal share of the rows, or fewer than 3.
        """
        faults = uneven(self.sizes, self.asked)
        limit = max(TINY, TINY_SHARE * sum(self.sizes) / self.asked)
        if tiny := sum(0 < size < limit for size in self.sizes):
            faults.append(f"{tiny} of {self.clusters} have fewer than {np.ceil(limit):.0f} rows")
        return "; ".join(faults) or None

    @property
    def word(self) -> str:
        """The word of the verdict, which is never a bare "clear" beside one huge cluster."""
        uneven_too = self.verdict.word == CLEAR and uneven(self.sizes, self.asked)
        return f"{self.verdict.word}, but lopsided" if uneven_too else self.verdict.word

    @property
    def warning(self) -> str | None:
        """What is wrong with the clusters, in one sentence; None where nothing is plain."""
        faults = [] if self.lopsided is None else [self.lopsided]
        if self.verdict.doubtful:
            none = self.asked == 1 and self.verdict.word == CHANCE
            found = "no clusters were found" if none else f"the clusters are {self.verdict.word}"
            faults.insert(0, f"{found}: {self.verdict.reason}")
        return "; ".join(faults) or None

    def __str__(self) -> str:
        parts = [
            f"{self.clusters} cluster{'s' * (self.clusters > 1)} of {size_range(self.sizes)}"
            if self.clusters
            else "no cluster",
            f"modularity {plain(self.modularity)}",
            f"conductance up to {plain(np.nanmax(self.conductance))}" if self.clusters else "",
        ]
        from symnmf.bounds.bound import GLOBAL_TOL, percent

        if self.gap <= GLOBAL_TOL:
            parts.append("no other U fits X better")
        elif np.isfinite(self.gap):
            parts.append(f"no other U fits X better by more than {percent(self.gap)}")
        if len(self.errors) > 1:
            parts.append(
                f"errors of the starts {min(self.errors):.6g} to {max(self.errors):.6g}, "
                f"agreement {plain(self.agreement)}"
            )
        return "; ".join(part for part in parts if part)


def uneven(sizes: Sequence[int], asked: int) -> list[str]:
    """Say whether clusters are empty, and whether one holds most of the rows."""
    filled, faults = sum(size > 0 for size in sizes), []
    if filled < asked:
        faults.append(f"only {filled} of the {asked} clusters asked for have rows")
    largest = max(sizes) / max(sum(sizes), 1)
    if asked > 1 and largest > 0.5 * (1.0 + 1.0 / asked):  # halfway from an equal share to all
        faults.append(f"one cluster holds {largest:.1%} of the rows")
    return faults


def plain(value: float, digits: int = 3) -> str:
    """Return a number without a negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}"


def assess(A: Any, labels: np.ndarray, search: Search, verdict: Judgement = UNJUDGED) -> Quality:
    """Judge labels by the graph A they came from and by the search that found them."""
    asked = search.best.U.shape[1]
    found = Partition.of(A if isinstance(A, SymmetricArray) else attraction(A), labels, asked)
    kept = int(np.argmin(np.nan_to_num(search.errors, nan=np.inf)))
    others = [result.labels for i, result in enumerate(search.finished) if i != kept]
    return Quality(
        asked,
        tuple(found.sizes.tolist()),
        len(labels) - int(found.sizes.sum()),
        found.modularity,
        tuple(found.conductance.tolist()),
        tuple(search.errors.tolist()),
        _agreement(labels, others),
        verdict,
        lambda: search.gap,
    )


def _agreement(labels: np.ndarray, others: Sequence[np.ndarray]) -> float:
    """Return the mean adjusted mutual information between labels and the others."""
    if not others:
        return float("nan")
    from sklearn.metrics import adjusted_mutual_info_score

    return float(np.mean([adjusted_mutual_info_score(labels, other) for other in others]))


def modularity_scorer(model: Any, X: Any, y: Any = None) -> float:
    """Modularity of the labels that a fitted model predicts, for ``GridSearchCV(scoring=...)``.

    The labels of ``model.predict(X)`` are scored on the self-tuning graph of X, which is the same
    for every setting, so that different affinities and numbers of neighbours can be compared. No
    classes are needed.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from symnmf import SymNMF, modularity_scorer
    >>> search = GridSearchCV(
    ...     SymNMF(random_state=0), {"n_clusters": [2, 3]}, scoring=modularity_scorer
    ... )
    """
    if not callable(getattr(model, "predict", None)):
        raise InputError(
            f"model must be a fitted clusterer with predict, got {type(model).__name__}."
        )
    labels = np.asarray(model.predict(X))
    from symnmf.graphs import build

    A = build(X, normalize=False)
    return Partition.of(A, labels, int(labels.max(initial=0)) + 1).modularity


def size_range(sizes: Sequence[int]) -> str:
    """Return how large the clusters are, in words; empty ones do not count."""
    filled = [int(size) for size in sizes if size]
    least, most = min(filled), max(filled)
    if least < most:
        return f"{least} to {most}"
    return f"{least} each" if len(filled) > 1 else str(least)
