"""How many clusters there are and whether they are real: one test, at one level.

What is found in one part of the data must be seen in the rest. Points of a gap between clusters
are held out (:mod:`symnmf.cluster.separation`), or edges of a network
(:mod:`symnmf.cluster.held_out_edges`). The same chance decides whether there is more than one
cluster, which number ``"auto"`` takes, what word clusters get and what a tree splits; so these
cannot contradict each other. Where no null hypothesis fits the data, the word is "cannot tell".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from symnmf.cluster import held_out_edges, separation
from symnmf.cluster.description import shortest_description
from symnmf.cluster.partition import (
    as_graph,
    between,
    fine_partition,
    halves,
    numbered,
    restricted,
)
from symnmf.run.result import OUTSIDE

CLEAR, WEAK, CHANCE, UNKNOWN = "clear", "weak", "no more than chance", "cannot tell"

#: Chance of a false alarm: of more than one cluster in data that have one.
LEVEL = 0.05

#: Neighbours of a cluster that it is compared with: those it is tied to most for its size.
NEIGHBOURS = 4

#: Nodes up to which groups are read off eigenvectors; larger networks have a fine partition.
SPECTRAL_UP_TO = 5000

DEGREES = "random graphs with the same degrees"
HYPERGRAPHS = "random hypergraphs with the same sizes and degrees"
CLOUD = "one cloud of points with a log-concave density"


@dataclass(frozen=True)
class Judgement:
    """Whether clusters are real.

    Attributes
    ----------
    word : str
        "clear" if every cluster is separate from its neighbours, "weak" if some are not, "no more
        than chance" if the data are not more than one cluster, "cannot tell" where no null
        hypothesis fits the data.
    reason : str
        Why, in one sentence.
    clusters : tuple of str
        The same words, of each cluster; "" for one without rows.
    null : str
        What data without clusters are taken to be; "" where nothing fits.
    p : float
        The chance of more than one cluster where there is one; NaN where there is no test.
    """

    word: str
    reason: str
    clusters: tuple[str, ...]
    null: str = ""
    p: float = float("nan")

    @property
    def doubtful(self) -> bool:
        """Whether a reader should be warned."""
        return self.word in (WEAK, CHANCE)

    def __str__(self) -> str:
        return f"{self.word}: {self.reason}"


@dataclass(frozen=True, eq=False)
class RankSelection:
    """How the number of clusters was chosen.

    Attributes
    ----------
    recommendation : int
        The number of clusters; 1 where the test finds no more than one.
    reason : str
        Why, in one sentence.
    table : dict of str to ndarray
        The numbers that were tried, ``rank``, and what speaks for each.
    labels : ndarray of shape (n,)
        The groups that the number was read off; -1 for a row without similarities.
    """

    recommendation: int
    reason: str
    table: dict[str, np.ndarray] = field(repr=False)
    labels: np.ndarray = field(repr=False)

    def __str__(self) -> str:
        return f"Clusters: {self.recommendation}. {self.reason}"


@dataclass(frozen=True, eq=False)
class Evidence:
    """Data as far as they say how many clusters there are. This class has no test.

    ``why_not`` says why, as a clause; everything that is drawn is drawn from ``seed``.
    """

    similarities: Any = field(repr=False)
    seed: int = 0
    why_not: str = ""
    null = ""
    #: What is found in one part of the data and looked for in the rest.
    seen = ""

    @cached_property
    def graph(self) -> sp.csr_array:
        """The similarities, none negative, without a diagonal."""
        return as_graph(self.similarities)

    @cached_property
    def inside(self) -> np.ndarray:
        """Rows that have similarities; labels below are theirs."""
        return np.flatnonzero(np.diff(self.graph.indptr))

    @cached_property
    def inner(self) -> sp.csr_array:
        """The graph of these rows."""
        return restricted(self.graph, self.inside)

    @cached_property
    def fine(self) -> np.ndarray:
        """A fine partition of them."""
        return fine_partition(self.inner, np.random.default_rng(self.seed))

    def of_all(self, labels: np.ndarray) -> np.ndarray:
        """Return labels of the rows inside as those of all; -1 for one without similarities."""
        every = np.full(self.graph.shape[0], OUTSIDE)
        every[self.inside] = labels
        return every

    def part(self, rows: np.ndarray) -> Self:
        """Return the evidence in some rows alone."""
        return replace(self, similarities=restricted(self.graph, rows))

    @property
    def untested(self) -> str:
        """Why there is no test; "" where there is one."""
        return self.why_not

    @property
    def p(self) -> float:
        """The chance of what is found if there is one cluster; NaN without a test."""
        return float("nan")

    def p_apart(self, one: np.ndarray, other: np.ndarray) -> float:
        """Return the chance of what is found in two clusters, given by rows, if they are one."""
        return self.part(np.sort(np.concatenate([one, other]))).p

    def pairs(self, labels: np.ndarray) -> list[tuple[int, int]]:
        """Return the pairs of clusters that are neighbours, those with the strongest ties first."""
        ties = between(self.inner, labels)
        roots = np.sqrt(np.maximum(ties.sum(axis=1), 1e-300))
        strength = ties / np.outer(roots, roots)
        np.fill_diagonal(strength, 0.0)
        nearest = np.argsort(-strength, axis=1, kind="stable")[:, :NEIGHBOURS]
        found = {
            (min(i, j), max(i, j))
            for i, row in enumerate(nearest.tolist())
            for j in row
            if strength[i, j] > 0.0
        }
        return sorted(found, key=lambda pair: (-strength[pair], pair))

    @property
    def groups(self) -> tuple[np.ndarray, str, dict[str, np.ndarray]]:
        """Labels for as many clusters as there are if there are several; why, and a table."""
        count = int(self.fine.max()) + 1
        reason = f"a fine partition of the graph has {count}"
        if self.untested:
            reason = (
                f"{self.untested}, so no test says how many clusters there are; {reason}, which is "
                f"its granularity"
            )
        else:
            reason = f"{self.compared('more often than')}; {reason}"
        return self.fine, reason, {}

    @cached_property
    def selection(self) -> RankSelection:
        """How many clusters there are."""
        labels = np.zeros(len(self.inside), np.int64)
        table: dict[str, np.ndarray] = {}
        if not len(labels):
            reason = "there are no similarities"
        elif self.p > LEVEL:
            reason = self.compared("about as often as")
        else:
            labels, reason, table = self.groups
        count = int(labels.max(initial=0)) + 1
        table = table or {"rank": np.array([count])}
        reason = f"{reason[0].upper()}{reason[1:]}."
        return RankSelection(count, reason, table, self.of_all(labels))

    def judge(self, labels: np.ndarray, clusters: int) -> Judgement:
        """Return whether clusters are real; rows with the label -1 are in none."""
        filled = np.unique(labels[labels != OUTSIDE])
        words = np.full(clusters, "", dtype=object)
        if self.untested or self.p > LEVEL:
            words[filled] = word = UNKNOWN if self.untested else CHANCE
            reason = self.untested or self.compared("about as often as")
            null = "" if self.untested else self.null
            return Judgement(word, reason, tuple(words), null, self.p)
        words[filled] = CLEAR if len(filled) > 1 else WEAK
        mine = labels[self.inside]
        of_each = [self.inside[mine == number] for number in range(clusters)]
        # rows in no cluster are a group of their own
        for i, j in self.pairs(np.where(mine == OUTSIDE, clusters, mine)):
            if j < clusters and self.p_apart(of_each[i], of_each[j]) > LEVEL:
                words[[i, j]] = WEAK
        poor = int(np.count_nonzero(words == WEAK))
        reason = self.compared("more often than")
        if len(filled) < 2:
            reason += ", but all rows are in one"
        elif poor:
            reason += f", but {poor} of {len(filled)} clusters are not separate from a neighbour"
        return Judgement(WEAK if poor else CLEAR, reason, tuple(words), self.null, self.p)

    def compared(self, how: str) -> str:
        """Return in words what was seen."""
        p = f"p = {self.p:.2g}" if self.p >= 0.001 else "p < 0.001"
        return f"{self.seen} {how} in {self.null} ({p})"


@dataclass(frozen=True, eq=False)
class Network(Evidence):
    """Edges that are there or not; weights are not looked at."""

    null = DEGREES
    seen = "edges that were held out are inside groups found from the others"

    @cached_property
    def edges(self) -> sp.csr_array:
        """The edges between rows inside, each of weight 1."""
        ones = np.ones(self.inner.nnz)
        return sp.csr_array((ones, self.inner.indices, self.inner.indptr), self.inner.shape)

    @cached_property
    def p(self) -> float:
        """The chance of as many held-out edges inside groups."""
        return held_out_edges.p_value(self.edges, np.random.default_rng(self.seed))

    @cached_property
    def untested(self) -> str:
        """Where edges depend on each other beyond groups, nothing is known of them."""
        if self.p > LEVEL:
            return ""
        if held_out_edges.bipartite(self.edges):
            return f"the graph is bipartite, and {self.null} are not"
        rng = np.random.default_rng(self.seed)
        part = held_out_edges.closed(self.edges, self.described[0], rng)
        if part <= held_out_edges.CLOSED:
            return ""
        return (
            f"{part:.0%} of the edges that were held out close triangles or squares that groups do "
            f"not explain, so edges depend on each other and cannot be compared with {self.null}"
        )

    @property
    def groups(self) -> tuple[np.ndarray, str, dict[str, np.ndarray]]:
        """As many as describe the network in the fewest nats, or as a fine partition has."""
        labels, table = self.described
        groups = f"{int(labels.max()) + 1} groups"
        number = f"a fine partition has {groups}"
        if table:
            number = f"{groups} describe the network in the fewest nats"
        if self.untested:
            return labels, f"{number}, but {self.untested}", table
        return labels, f"{self.compared('more often than')}, and {number}", table

    @cached_property
    def described(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Groups, two or more, and how long descriptions with every number of them are."""
        if len(self.inside) > SPECTRAL_UP_TO:
            return fine_partition(self.edges, np.random.default_rng(self.seed)), {}
        labels, lengths = shortest_description(self.edges)
        if not lengths:
            return halves(self.edges).astype(np.int64), {}
        ranks = sorted(lengths)
        nats = np.array([lengths[count] for count in ranks])
        return labels, {"rank": np.array(ranks), "description": nats}


@dataclass(frozen=True, eq=False)
class Hyperedges(Evidence):
    """Hyperedges, of which ``similarities`` are the clique graph."""

    incidence: Any = field(default=None, repr=False)
    null = HYPERGRAPHS
    seen = "pairs in hyperedges that were held out are inside groups found from the others"

    @cached_property
    def p(self) -> float:
        """The chance of as many pairs of held-out hyperedges inside groups."""
        rng = np.random.default_rng(self.seed)
        return held_out_edges.p_of_hyperedges(self.incidence, rng)

    def part(self, rows: np.ndarray) -> Self:
        """Return the evidence in some nodes alone."""
        incidence = sp.csr_array(self.incidence[:, rows])
        several = sp.csr_array(incidence[np.diff(incidence.indptr) > 1])
        return replace(super().part(rows), incidence=several)


@dataclass(frozen=True, eq=False)
class Points(Evidence):
    """Points behind a graph of their similarities."""

    table: Any = field(default=None, repr=False)
    null = CLOUD
    seen = "gaps between clusters are seen in points that were held out"

    @cached_property
    def points(self) -> np.ndarray:
        """The points in their leading directions."""
        return separation.coordinates(self.table)

    def part(self, rows: np.ndarray) -> Self:
        """Return the evidence in some rows alone."""
        return replace(super().part(rows), table=self.points[rows])

    def p_apart(self, one: np.ndarray, other: np.ndarray) -> float:
        """Return the chance of the gap between two clusters if they are one cloud."""
        return separation.p_apart(self.points, one, other)

    def pairs(self, labels: np.ndarray) -> list[tuple[int, int]]:
        """Return neighbours; that of a cluster without ties is the one with the nearest centre."""
        found = super().pairs(labels)
        numbers, X = np.unique(labels), self.points[self.inside]
        centres = np.array([X[labels == one].mean(axis=0) for one in numbers])
        alone = set(numbers.tolist()).difference(*found) if len(numbers) > 1 else set()
        for one in sorted(alone):
            away = np.linalg.norm(centres - centres[numbers == one], axis=1)
            away[numbers == one] = np.inf
            other = int(numbers[np.argmin(away)])
            found.append((min(one, other), max(one, other)))
        return list(dict.fromkeys(found))

    def _p_one(self, inner: np.ndarray) -> float:
        """Return the chance of a gap that is found and seen in some rows, if there is none."""
        rows = self.inside[inner]
        return separation.p_one(self.points[rows], restricted(self.graph, rows))

    @cached_property
    def _merged(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Fine clusters, of which those that are least separate were merged one after another."""
        labels, steps = self.fine, []
        known: dict[tuple[int, int], float] = {}
        while pairs := self.pairs(labels):
            for pair in pairs:
                if pair not in known:
                    known[pair] = self.p_apart(*(self.inside[labels == one] for one in pair))
            least = max(pairs, key=lambda pair: known[pair])
            steps.append((len(np.unique(labels)), known[least]))
            if known[least] <= LEVEL:
                break
            labels = np.where(labels == least[1], least[0], labels)
            known = {pair: p for pair, p in known.items() if not {*pair} & {*least}}
        ranks, chances = np.array(steps).reshape(-1, 2).T
        return numbered(labels), {"rank": ranks.astype(int), "p": chances}

    @cached_property
    def _gaps_inside(self) -> dict[int, float]:
        """The chance of a gap inside each cluster that was merged of several."""
        labels = self._merged[0]
        several = [one for one in np.unique(labels) if np.ptp(self.fine[labels == one]) > 0]
        return {int(one): self._p_one(np.flatnonzero(labels == one)) for one in several}

    @cached_property
    def p(self) -> float:
        """The chance of the widest gap, between two clusters or inside one, times their number."""
        labels = self._merged[0]
        chances = list(self._gaps_inside.values())
        for pair in self.pairs(labels):
            chances.append(self._p_one(np.flatnonzero(np.isin(labels, pair))))
        return min(1.0, len(chances) * min(chances, default=1.0)) if chances else 1.0

    @property
    def groups(self) -> tuple[np.ndarray, str, dict[str, np.ndarray]]:
        """As many as are separate from all their neighbours.

        Where one of them was merged of several and is not one cloud, there are gaps that no two of
        its parts show: it is cut into halves until these are, and the number is a granularity.
        """
        labels, table = self._merged
        separate = int(labels.max()) + 1
        cut = [one for one, chance in self._gaps_inside.items() if chance <= LEVEL]
        for one in cut:
            for part in self._clouds(np.flatnonzero(labels == one))[1:]:
                labels = labels.copy()
                labels[part] = labels.max() + 1
        if labels.max() == 0:
            labels = self.fine
        reason = f"{self.compared('more often than')}; {separate} clusters are separate"
        if cut:
            reason += (
                f", and {len(cut)} of them {'are' if len(cut) > 1 else 'is'} more than one cloud "
                f"without a border that shows, so {int(labels.max()) + 1} is a granularity that no "
                f"test decides"
            )
        return labels, reason, table

    def _clouds(self, inner: np.ndarray) -> list[np.ndarray]:
        """Cut rows into halves until each is one cloud."""
        if self._p_one(inner) > LEVEL:
            return [inner]
        right = halves(restricted(self.inner, inner), 0.0)
        if min(right.sum(), (~right).sum()) < separation.FEWEST:
            return [inner]
        return self._clouds(inner[~right]) + self._clouds(inner[right])


def evidence_of(
    graph: Any,
    *,
    points: Any = None,
    incidence: sp.csr_array | None = None,
    seed: int = 0,
    why_not: str = "",
) -> Evidence:
    """Return what similarities say, with the points or the hyperedges that they were made of."""
    if why_not:
        return Evidence(graph, seed, why_not)
    if incidence is not None:
        return Hyperedges(graph, seed, incidence=incidence)
    return Network(graph, seed) if points is None else Points(graph, seed, table=points)
