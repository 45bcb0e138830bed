"""Whether clusters are more than what the same search finds in data without any."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from symnmf.graphs.partitions import Partition
from symnmf.nulls import upper_limit

CLEAR, WEAK, CHANCE = "clear", "weak", "no more than chance"

#: Chance with which clusters of data without any are called weak or clear. Three measures,
#: modularity, conductance and nats saved, are asked after a few draws and after more, and each time
#: gets a sixth of it.
LEVEL, TIMES = 0.02, 6

#: Clusters are weak where more than this part of the weight that leaves chance clusters leaves
#: them too. Of block models with equal groups at that part, about nine rows in ten are right.
WEAK_FROM = 0.8

#: Draws without clusters: one, which does for clusters that are plainly more, then a few, and more
#: only where these leave it open. Small graphs differ much from draw to draw, and cost little: up
#: to so many stored entries times clusters, there are the most draws.
LOOKS, SMALL = (1, 4, 12, 40), 2e4

#: Logarithm of the conductance by which clusters have to be ahead of a single draw, or part of its
#: modularity. Points spread evenly over a square and cut in two differ most from draw to draw: one
#: standard deviation is 0.24 there.
FAR = 0.85

#: Standard deviations above the mean of a few draws below which more draws are not worth it.
HOPELESS = 1.0

#: Stored entries times clusters from which on one draw has to do, and what then counts as more.
LARGE, MARGIN = 2e7, 0.05

#: Clusters of draws up to which their spread is not known.
FEW_CLUSTERS = 5

#: Conductances below this are as good as 0.
NOTHING = 1e-3

#: Share of the rows in one cluster from which on clusters are lopsided.
TOO_MUCH = 0.8

#: Nats for each row that clusters have to save to be clear where they are lopsided or draws have a
#: higher modularity. A small group beside a large one saves 0.3 to 1, and thin tails that hang on a
#: graph by an edge save 0.03 at most. Cliques that do save 0.2, since they are small groups.
SAVED = 0.1

#: Where no more than this leaves the clusters, of the data and of the draws alike, they do not tell
#: one from the other: one column of numbers can be cut anywhere at that price.
CLEAN = 0.01

#: What a mean conductance is, after its percentage.
LEAVES = "of a cluster's edge weight leads out of it"

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
        The mean fraction of a cluster's weight that leaves it, here and in data without clusters.
        Such data get a quick search; its conductance is lowered by as much as the full search
        lowers it on the data here.
    modularity, null_modularity : float
        The modularity, here and in data without clusters.
    null : str
        How data without clusters are drawn.
    draws : int
        How many of them were drawn and clustered.
    seconds : float
        How long that took; it is not part of the time of the fit.
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
    #: What a full search would leave of their conductance, from what it leaves of the data's.
    rest: float = 1.0

    @property
    def modularity(self) -> np.ndarray:
        return np.array([one.modularity for one in self.found])

    @property
    def conductance(self) -> np.ndarray:
        return np.array([_mean_conductance(one) for one in self.found])

    def passed_by(self, here: Partition, margin: float) -> bool:
        """Whether modularity or conductance is better than in the first draw by a margin."""
        there = self.found[0]
        higher = here.modularity > (1.0 + margin) * max(there.modularity, 0.0)
        return higher or _closed(here) > _closed(there) + margin

    def passed_at_once_by(self, here: Partition) -> bool:
        """Whether any of the three is better by what counts where one draw has to do."""
        least = (1.0 + MARGIN) * max(self.found[0].saving, 0.0)
        return self.passed_by(here, MARGIN) or here.saving > least

    def beaten_by(self, here: Partition) -> bool:
        """Whether one of the measures is beyond what draws of this null have."""
        level = LEVEL / TIMES
        return any(mine > upper_limit(drawn, level) for mine, drawn in self._measures(here))

    def out_of_reach_of(self, here: Partition) -> bool:
        """Whether all are so common among the draws that more of them would not change that."""
        return all(
            mine < drawn.mean() + HOPELESS * drawn.std(ddof=1)
            for mine, drawn in self._measures(here)
        )

    def _measures(self, here: Partition) -> list[tuple[float, np.ndarray]]:
        """Return what is compared, higher is better, here and in the draws."""
        return [
            (measure(here), np.array([measure(one) for one in self.found]))
            for measure in (lambda one: one.modularity, _closed, lambda one: one.saving)
        ]

    @property
    def leaving(self) -> np.ndarray:
        """The mean conductance in each draw, as a full search would have it."""
        return self.rest * self.conductance

    def words(self, here: Partition, *, more: bool) -> tuple[str, ...]:
        """Return the word for each cluster, from all clusters of the draws taken together.

        ``more`` says that all clusters together are beyond chance. One of them alone that is not,
        but closed better than those of draws usually are, is then weak: it is part of the evidence.
        """
        drawn = self.rest * np.concatenate([one.leaving for one in self.found])
        drawn = -np.log(drawn[np.isfinite(drawn)] + NOTHING)
        typical = float(np.exp(-drawn.mean()))
        # a few clusters do not tell how much they differ
        limit = upper_limit(drawn, LEVEL) if len(drawn) > FEW_CLUSTERS else drawn.mean() + FAR

        def word(leaving: float) -> str:
            if np.isnan(leaving):
                return ""
            if -np.log(leaving + NOTHING) <= limit:
                return WEAK if more and leaving <= WEAK_FROM * typical else CHANCE
            return WEAK if leaving > WEAK_FROM * typical else CLEAR

        return tuple(word(float(leaving)) for leaving in here.leaving)


def judge(
    graph: Any,
    labels: np.ndarray,
    clusters: int,
    *,
    nulls: Mapping[str, Draw],
    search: Callable[[Any], np.ndarray],
    quick_labels: Callable[[], np.ndarray],
    rng: np.random.Generator,
    size: float = 0.0,
    remark: str = "",
) -> Verdict | None:
    """Compare clusters with those of data without any; None where that does not tell.

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
        Finds as many clusters in them, quickly, and returns the labels.
    quick_labels : callable
        Returns the labels that the same search finds in ``graph``.
    rng : Generator
    size : float
        Stored entries times clusters; if there are many, one draw has to do.
    remark : str
        Something that the reader has to know to understand the word.
    """
    began = time.perf_counter()
    here = Partition.of(graph, labels, clusters)
    drawn = {name: _Null(name, []) for name in nulls}
    rest, large, plain = 1.0, size > LARGE, False
    for count in LOOKS[:1] if large else LOOKS if size <= SMALL else LOOKS[:-1]:
        for name, draw in nulls.items():
            found = drawn[name].found
            while len(found) < count:
                null = draw(rng)
                found.append(Partition.of(null, search(null), clusters))
        if count == 1:
            beaten = {name: one.passed_by(here, FAR) for name, one in drawn.items()}
            plain = all(beaten.values())
            if plain and (
                large or all(word in (CLEAR, "") for word in _best(drawn).words(here, more=True))
            ):
                break
            if plain:  # of all together; single clusters need to know how much those of draws vary
                continue
            # what draws are given is a quick search, and more care alone is not to count
            quick = Partition.of(graph, quick_labels(), clusters)
            mine, care = _mean_conductance(here), _mean_conductance(quick)
            rest = min(max(mine, NOTHING) / max(care, NOTHING), 1.0)
            if large:
                beaten = {
                    name: one.passed_at_once_by(here) and one.passed_at_once_by(quick)
                    for name, one in drawn.items()
                }
            continue
        if plain:
            break
        beaten = {name: one.beaten_by(here) and one.beaten_by(quick) for name, one in drawn.items()}
        ahead = [drawn[name] for name, more in beaten.items() if not more]
        far = any(one.out_of_reach_of(here) or one.out_of_reach_of(quick) for one in ahead)
        if far or not ahead:
            break
    # the null that explains most: one that is not beaten, else the one with the best clusters
    hardest = _best({name: one for name, one in drawn.items() if not beaten[name]} or drawn)
    hardest = _Null(hardest.name, hardest.found, rest)
    mine, null = _mean_conductance(here), float(hardest.leaving.mean())
    more = all(beaten.values())
    if not more and max(mine, null) < CLEAN:
        return None
    word, reason = _judged(here, hardest, more=more)
    return Verdict(
        word,
        reason + remark,
        hardest.words(here, more=more),
        mine,
        null,
        here.modularity,
        float(hardest.modularity.mean()),
        hardest.name,
        sum(len(one.found) for one in drawn.values()),
        time.perf_counter() - began,
    )


def _best(drawn: Mapping[str, _Null]) -> _Null:
    return min(drawn.values(), key=lambda one: float(one.conductance.mean()))


def _judged(here: Partition, null: _Null, *, more: bool) -> tuple[str, str]:
    """Return the word for all clusters together, and the reason."""
    leaves = _mean_conductance(here)
    if not more:
        return CHANCE, _alike(leaves, null)
    # small clusters have a higher conductance than halves, so sizes are allowed for
    sized = (
        float(np.nanmean(here.leaving)),
        null.rest * np.array([np.nanmean(one.leaving) for one in null.found]),
    )
    word = _less(*sized)
    if word == CLEAR and (why := _hardly_divided(here, null)):
        return WEAK, why
    said, (mine, drawn) = LEAVES, (leaves, null.leaving)
    if _less(mine, drawn) != word or mine >= drawn.mean():
        said = (
            "of the edge weight that chance leads out of clusters of such sizes leads out of these"
        )
        mine, drawn = sized
    less = "close to" if word == WEAK else "against"
    return word, f"{mine:.0%} {said} on average, {less} {drawn.mean():.0%} in {null.name}"


def _hardly_divided(here: Partition, null: _Null) -> str:
    """Say what is wrong with clusters that are cut off cleanly and yet divide next to nothing."""
    typical, rows = float(null.modularity.mean()), int(here.sizes.sum())
    largest = here.sizes.max() / rows
    if here.saving >= SAVED * rows or (largest <= TOO_MUCH and here.modularity >= typical):
        return ""
    return (
        f"little leaves the clusters, but one holds {largest:.0%} of the rows; the modularity is "
        f"{here.modularity:.2f}, and {max(typical, 0.0):.2f} in {null.name}"
    )


def _alike(mine: float, null: _Null) -> str:
    """Say that what leaves clusters is what leaves those of the draws, or too close to tell."""
    lower, upper = float(null.leaving.min()), float(null.leaving.max())
    like = "as in"
    if mine < lower:
        like = "too close to"
    elif mine > upper:
        like = "no less than in"
    leaves = f"{mine:.0%} {LEAVES} on average"
    return f"{leaves}, {like} {null.name} ({lower:.0%} to {upper:.0%})"


def _less(mine: float, drawn: np.ndarray) -> str:
    return WEAK if mine > WEAK_FROM * drawn.mean() else CLEAR


def _closed(partition: Partition) -> float:
    """Minus the logarithm of the conductance, which draws have more or less normal."""
    return float(-np.log(_mean_conductance(partition) + NOTHING))


def _mean_conductance(partition: Partition) -> float:
    values = partition.conductance
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
