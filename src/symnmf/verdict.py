"""Whether clusters are more than what the same search finds where there are none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from symnmf.graphs.partitions import Partition
from symnmf.nulls import upper_limit

CLEAR, WEAK, CHANCE = "clear", "weak", "no more than chance"

#: Chance with which clusters of data without any are called weak or clear. Two measures are asked,
#: modularity and conductance, after a few draws and after more, and each time gets a quarter of it.
LEVEL, TIMES = 0.02, 4

#: Clusters are weak where more than this part of the weight that leaves chance clusters leaves
#: them too. Of block models with equal groups at that part, about nine rows in ten are right.
WEAK_FROM = 0.8

#: Draws without clusters: first a few, which do for clusters that are plainly more, else more.
FEW, MORE = 3, 10

#: Stored entries times clusters from which on one draw has to do, and what then counts as more.
LARGE, MARGIN = 2e7, 0.05

#: Conductances below this are as good as 0.
NOTHING = 1e-3

Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Verdict:
    """Whether clusters are real.

    Attributes
    ----------
    word : str
        "clear", "weak" or "no more than chance".
    reason : str
        Why, in one sentence.
    clusters : tuple of str
        The same words, of each cluster; "" for one without rows.
    conductance, null_conductance : float
        The part of a cluster's weight that leaves it, on average, here and without clusters.
    modularity, null_modularity : float
        Likewise.
    null : str
        What data without clusters are here.
    draws : int
        How often they were drawn and clustered.
    seconds : float
        How long that took, which is not part of the fit's own time.
    """

    word: str
    reason: str
    clusters: tuple[str, ...]
    conductance: float
    null_conductance: float
    modularity: float
    null_modularity: float
    null: str
    draws: int
    seconds: float

    @classmethod
    def of_none(cls, reason: str) -> Verdict:
        """Return the verdict where a search for the number of clusters found none."""
        clause = f"{reason[0].lower()}{reason[1:]}".rstrip(".")
        unknown = float("nan")
        return cls(CHANCE, clause, (CHANCE,), unknown, unknown, unknown, unknown, "", 0, 0.0)

    @property
    def doubtful(self) -> bool:
        """Whether a reader should be warned."""
        return self.word != CLEAR

    def __str__(self) -> str:
        return f"{self.word}: {self.reason}"


@dataclass(frozen=True, eq=False)
class _Null:
    """What clusters of draws without clusters are like."""

    name: str
    found: list[Partition]

    @property
    def modularity(self) -> np.ndarray:
        return np.array([one.modularity for one in self.found])

    @property
    def conductance(self) -> np.ndarray:
        return np.array([_mean_conductance(one) for one in self.found])

    def beaten_by(self, here: Partition) -> bool:
        """Whether modularity or conductance is beyond what draws of this null have."""
        closed = -np.log(self.conductance + NOTHING)
        mine = -np.log(_mean_conductance(here) + NOTHING)
        if len(self.found) == 1:
            higher = here.modularity > (1 + MARGIN) * max(float(self.modularity[0]), 0.0)
            return bool(higher or mine > closed[0] + MARGIN)
        return bool(
            here.modularity > upper_limit(self.modularity, LEVEL / TIMES)
            or mine > upper_limit(closed, LEVEL / TIMES)
        )

    def words(self, here: Partition) -> tuple[str, ...]:
        """Return the word for each cluster, from all clusters of the draws taken together."""
        drawn = np.concatenate([one.leaving for one in self.found])
        drawn = -np.log(drawn[np.isfinite(drawn)] + NOTHING)
        limit = upper_limit(drawn, LEVEL) if len(drawn) > 1 else float(drawn[0]) + MARGIN
        typical = float(np.exp(-drawn.mean()))

        def word(leaving: float) -> str:
            if np.isnan(leaving):
                return ""
            if -np.log(leaving + NOTHING) <= limit:
                return CHANCE
            return WEAK if leaving > WEAK_FROM * typical else CLEAR

        return tuple(word(float(leaving)) for leaving in here.leaving)


def judge(
    graph: Any,
    labels: np.ndarray,
    clusters: int,
    *,
    nulls: Mapping[str, Draw],
    search: Callable[[Any], np.ndarray],
    rng: np.random.Generator,
    size: float = 0.0,
    remark: str = "",
) -> Verdict:
    """Compare clusters with those of data without any.

    Parameters
    ----------
    graph : array or csr_array
        The similarities that clusters are judged by, none negative.
    labels : ndarray of shape (n,)
    clusters : int
        How many were looked for.
    nulls : mapping of str to callable
        By name: draws similarities without clusters from a generator. Clusters have to be more
        than those of each.
    search : callable
        Finds as many clusters in them, and returns the labels.
    rng : Generator
    size : float
        Stored entries times clusters; where there are many, one draw has to do.
    remark : str
        Something that the reader has to know to understand the word.
    """
    began = time.perf_counter()
    here = Partition.of(graph, labels, clusters)
    # what draws are given is a quick search, and more care alone is not to count as clusters
    alike = (here, Partition.of(graph, search(graph), clusters))
    drawn = {name: _Null(name, []) for name in nulls}
    few = 1 if size > LARGE else FEW
    for count in (few, few if few == 1 else MORE):
        for name, draw in nulls.items():
            found = drawn[name].found
            while len(found) < count:
                null = draw(rng)
                found.append(Partition.of(null, search(null), clusters))
        beaten = {name: all(map(one.beaten_by, alike)) for name, one in drawn.items()}
        if all(beaten.values()):
            break
    # the null that explains most: one that is not beaten, else the one with the best clusters
    hardest = min(drawn.values(), key=lambda one: (beaten[one.name], one.conductance.mean()))
    word = _word(here, hardest, more=all(beaten.values()))
    mine, null = _mean_conductance(here), float(hardest.conductance.mean())
    return Verdict(
        word,
        _reason(word, mine, hardest) + remark,
        hardest.words(here),
        mine,
        null,
        here.modularity,
        float(hardest.modularity.mean()),
        hardest.name,
        sum(len(one.found) for one in drawn.values()),
        time.perf_counter() - began,
    )


def _word(here: Partition, null: _Null, *, more: bool) -> str:
    if not more:
        return CHANCE
    return WEAK if _mean_conductance(here) > WEAK_FROM * null.conductance.mean() else CLEAR


def _reason(word: str, mine: float, null: _Null) -> str:
    leaves = f"{mine:.0%} of the weight at a cluster leaves it on average"
    drawn = null.conductance
    if word == CHANCE:
        return f"{leaves}, as in {null.name} ({drawn.min():.0%} to {drawn.max():.0%})"
    less = "not much less than" if word == WEAK else "against"
    return f"{leaves}, {less} {drawn.mean():.0%} in {null.name}"


def _mean_conductance(partition: Partition) -> float:
    values = partition.conductance
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
