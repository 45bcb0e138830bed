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
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.cluster import held_out_edges, separation
from symnmf.cluster.description import by_eigenvectors, by_merging
from symnmf.cluster.partition import as_graph, between, fine_partition, members_of, numbered
from symnmf.run.result import OUTSIDE

CLEAR, WEAK, CHANCE, UNKNOWN = "clear", "weak", "no more than chance", "cannot tell"

#: Chance of a false alarm: of more than one cluster in data that have one.
LEVEL = 0.05

#: Neighbours of a cluster that it is compared with: those it is tied to most for its size.
NEIGHBOURS = 4

#: Nodes up to which groups are read off eigenvectors; in larger networks fine groups are merged.
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

    Attributes
    ----------
    similarities : array or csr_array
    seed : int
        For everything that is drawn.
    why_not : str
        Why there is no test, as a clause.
    """

    similarities: Any = field(repr=False)
    seed: int = 0
    why_not: str = ""
    null = ""
    held_out = "edges"

    @cached_property
    def graph(self) -> sp.csr_array:
        """The similarities, none negative, without a diagonal."""
        return as_graph(self.similarities)

    @property
    def untested(self) -> str:
        """Why there is no test; "" where there is one."""
        return self.why_not

    @property
    def p(self) -> float:
        """The chance of what is found if there is one cluster; NaN without a test."""
        return float("nan")

    def p_apart(self, one: np.ndarray, other: np.ndarray) -> float:
        """Return the chance of the gap between two clusters, given by their rows, if it is none."""
        raise NotImplementedError

    @cached_property
    def inside(self) -> np.ndarray:
        """Rows that have similarities."""
        return np.flatnonzero(np.diff(self.graph.indptr))

    @cached_property
    def fine(self) -> np.ndarray:
        """A fine partition of the rows inside."""
        return fine_partition(self._inner, np.random.default_rng(self.seed))

    def of_all(self, labels: np.ndarray) -> np.ndarray:
        """Return labels of the rows inside as those of all; -1 for one without similarities."""
        every = np.full(self.graph.shape[0], OUTSIDE)
        every[self.inside] = labels
        return every

    @cached_property
    def _inner(self) -> sp.csr_array:
        if len(self.inside) == self.graph.shape[0]:
            return self.graph
        return restricted(self.graph, self.inside)

    def part(self, rows: np.ndarray) -> Evidence:
        """Return the evidence in some rows alone."""
        return replace(self, similarities=restricted(self.graph, rows))

    def pairs(self, labels: np.ndarray) -> list[tuple[int, int]]:
        """Return the pairs of clusters that are neighbours, those with the strongest ties first."""
        ties = between(self._inner, labels)
        volume = np.maximum(ties.sum(axis=1), 1e-300)
        strength = ties / np.sqrt(np.outer(volume, volume))
        np.fill_diagonal(strength, 0.0)
        near = np.argsort(-strength, axis=1, kind="stable")[:, :NEIGHBOURS]
        found = {
            (min(i, j), max(i, j))
            for i, row in enumerate(near.tolist())
            for j in row
            if strength[i, j] > 0.0
        }
        return sorted(found, key=lambda pair: (-strength[pair], pair))

    @cached_property
    def selection(self) -> RankSelection:
        """How many clusters there are."""
        if not len(self.inside):
            return self._selected(1, "There are no similarities.", {}, self.fine)
        labels = self.fine
        count = int(labels.max()) + 1
        reason = (
            f"{self.untested[0].upper()}{self.untested[1:]}, so no test says how many clusters "
            f"there are; a fine partition of the graph has {count}, which is its granularity"
        )
        return self._selected(count, f"{reason}.", {}, labels)

    def _selected(
        self, count: int, reason: str, table: dict[str, np.ndarray], labels: np.ndarray
    ) -> RankSelection:
        every = self.of_all(labels if count > 1 else np.zeros_like(labels))
        return RankSelection(count, reason, table or {"rank": np.array([count])}, every)

    def judge(self, labels: np.ndarray, clusters: int) -> Judgement:
        """Return whether clusters are real; rows with the label -1 are in none."""
        sizes = np.bincount(labels[labels != OUTSIDE], minlength=clusters)
        filled = [int(number) for number in np.flatnonzero(sizes)]
        words = dict.fromkeys(range(clusters), "")
        p = self.p
        if self.untested:
            words |= dict.fromkeys(filled, UNKNOWN)
            return Judgement(UNKNOWN, self.untested, tuple(words.values()))
        if p > LEVEL:
            words |= dict.fromkeys(filled, CHANCE)
            return Judgement(CHANCE, self._alike(), tuple(words.values()), self.null, p)
        words |= dict.fromkeys(filled, CLEAR)
        place = np.full(clusters, -1)
        place[filled] = np.arange(len(filled))
        ours = self.inside[labels[self.inside] != OUTSIDE]
        mine = np.full(len(self.inside), len(filled))  # rows outside are a group of their own
        known = labels[self.inside] != OUTSIDE
        mine[known] = place[labels[self.inside][known]]
        for i, j in self.pairs(mine) if len(ours) else []:
            if max(i, j) < len(filled):
                rows = [self.inside[mine == one] for one in (i, j)]
                if self.p_apart(*rows) > LEVEL:
                    words[filled[i]] = words[filled[j]] = WEAK
        poor = [number for number in filled if words[number] != CLEAR]
        reason = self._apart()
        if poor:
            which = f"{len(poor)} of {len(filled)} clusters are" if len(poor) > 1 else "one is"
            reason += f", but {which} not separate from a neighbour"
        word = WEAK if poor or len(filled) < 2 else CLEAR
        if len(filled) < 2:
            reason += ", but all rows are in one"
            words |= dict.fromkeys(filled, WEAK)
        return Judgement(word, reason, tuple(words.values()), self.null, p)

    def _alike(self) -> str:
        return (
            f"{self.held_out} that were held out are inside groups found from the others about as "
            f"often as in {self.null} (p = {self.p:.2g})"
        )

    def _apart(self) -> str:
        return (
            f"{self.held_out} that were held out are inside groups found from the others more "
            f"often than in {self.null} (p = {self.p:.2g})"
        )


@dataclass(frozen=True, eq=False)
class Network(Evidence):
    """Edges that are there or not; weights are not looked at."""

    null = DEGREES

    @cached_property
    def edges(self) -> sp.csr_array:
        """The edges between rows inside, each of weight 1."""
        ones = np.ones(self._inner.nnz)
        return sp.csr_array((ones, self._inner.indices, self._inner.indptr), self._inner.shape)

    @cached_property
    def p(self) -> float:
        """The chance of as many held-out edges inside groups."""
        return held_out_edges.p_value(self.edges, np.random.default_rng(self.seed))

    def p_apart(self, one: np.ndarray, other: np.ndarray) -> float:
        """Return the chance of the groups among the nodes of two clusters if these are one."""
        rows = np.searchsorted(self.inside, np.sort(np.concatenate([one, other])))
        return held_out_edges.p_value(
            restricted(self.edges, rows), np.random.default_rng(self.seed)
        )

    @cached_property
    def untested(self) -> str:
        """Where edges depend on each other beyond groups, nothing is known of them."""
        if self.p > LEVEL:
            return ""
        part = held_out_edges.closed(self.edges, self._numbers[0], np.random.default_rng(self.seed))
        if part <= held_out_edges.CLOSED:
            return ""
        return (
            f"{part:.0%} of the edges that were held out close triangles or squares that groups do "
            f"not explain, so edges depend on each other and cannot be compared with {self.null}"
        )

    @cached_property
    def selection(self) -> RankSelection:
        """How many groups there are: as many as describe the network in the fewest nats."""
        if self.p > LEVEL:
            return self._selected(1, f"{self._alike()}.", {}, self.fine)
        labels, table = self._numbers
        count = int(labels.max()) + 1
        reason = f"{self._apart()}, and {count} groups describe the network in the fewest nats"
        if self.untested:
            reason = f"{count} groups describe the network in the fewest nats, but {self.untested}"
        return self._selected(count, f"{reason[0].upper()}{reason[1:]}.", table, labels)

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The groups of the shortest description with two groups or more, and all lengths."""
        few = len(self.inside) <= SPECTRAL_UP_TO
        found = by_eigenvectors(self.edges) if few else by_merging(self.edges, self.fine)
        if not found.lengths:
            return held_out_edges.halves_of(self.edges), {}
        ranks = sorted(found.lengths)
        nats = np.array([found.lengths[count] for count in ranks])
        return found.labels, {"rank": np.array(ranks), "description": nats}


@dataclass(frozen=True, eq=False)
class Hyperedges(Evidence):
    """Hyperedges, of which ``similarities`` are the clique graph."""

    incidence: Any = field(default=None, repr=False)
    null = HYPERGRAPHS
    held_out = "hyperedges"

    @cached_property
    def p(self) -> float:
        """The chance of as many pairs of held-out hyperedges inside groups."""
        rng = np.random.default_rng(self.seed)
        return held_out_edges.p_of_hyperedges(self.incidence, rng)

    def p_apart(self, one: np.ndarray, other: np.ndarray) -> float:
        """Return the same of the nodes of two clusters."""
        return self._among(np.sort(np.concatenate([one, other]))).p

    def part(self, rows: np.ndarray) -> Hyperedges:
        """Return the evidence in some nodes alone."""
        return self._among(rows)

    def _among(self, rows: np.ndarray) -> Hyperedges:
        inside = sp.csr_array(self.incidence[:, rows])
        several = sp.csr_array(inside[np.diff(inside.indptr) > 1])
        return replace(self, similarities=restricted(self.graph, rows), incidence=several)

    @cached_property
    def selection(self) -> RankSelection:
        """How many groups there are: those of a fine partition, if there are any."""
        if self.p > LEVEL:
            return self._selected(1, f"{self._alike()}.", {}, self.fine)
        count = int(self.fine.max()) + 1
        reason = f"{self._apart()}; a fine partition of the clique graph has {count}"
        return self._selected(count, f"{reason[0].upper()}{reason[1:]}.", {}, self.fine)


@dataclass(frozen=True, eq=False)
class Points(Evidence):
    """Points behind a graph of their similarities."""

    table: Any = field(default=None, repr=False)
    null = CLOUD

    @cached_property
    def points(self) -> np.ndarray:
        """The points in their leading directions."""
        return separation.coordinates(self.table)

    def part(self, rows: np.ndarray) -> Evidence:
        """Return the evidence in some rows alone."""
        return replace(self, similarities=restricted(self.graph, rows), table=self.points[rows])

    def p_apart(self, one: np.ndarray, other: np.ndarray) -> float:
        """Return the chance of the gap between two clusters if they are one cloud."""
        if min(len(one), len(other)) < separation.FEWEST:
            return 1.0
        return separation.p_apart(self.points, one, other)

    def pairs(self, labels: np.ndarray) -> list[tuple[int, int]]:
        """Return neighbours; one of a cluster without ties is that with the nearest centre."""
        found = super().pairs(labels)
        count = int(labels.max()) + 1
        tied = {one for pair in found for one in pair}
        if count > 1 and len(tied) < count:
            X = self.points[self.inside]
            members = members_of(labels)
            centres = (members.T @ X) / np.maximum(np.bincount(labels), 1)[:, None]
            for one in sorted(set(range(count)) - tied):
                away = np.linalg.norm(centres - centres[one], axis=1)
                away[one] = np.inf
                other = int(np.argmin(away))
                found.append((min(one, other), max(one, other)))
        return list(dict.fromkeys(found))

    def _p_one(self, rows: np.ndarray) -> float:
        """Return the chance of a gap that is found and seen in some rows, if there is none."""
        rows = np.sort(rows)
        return separation.p_one(self.points[rows], restricted(self.graph, rows))

    @cached_property
    def _merged(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Fine clusters, of which those that are least separate were merged one after another."""
        labels, known = self.fine, {}
        ranks: list[int] = []
        chances: list[float] = []
        while (count := int(labels.max(initial=0)) + 1) > 1:
            sizes = np.bincount(labels)
            first = np.unique(labels, return_index=True)[1]
            worst, pair = 0.0, (-1, -1)
            for i, j in self.pairs(labels):
                key = (*sorted((int(first[i]), int(first[j]))), int(sizes[i] + sizes[j]))
                if key not in known:
                    rows = [self.inside[labels == one] for one in (i, j)]
                    known[key] = self.p_apart(*rows)
                if known[key] > worst:
                    worst, pair = known[key], (i, j)
            ranks.append(count)
            chances.append(worst)
            if worst <= LEVEL:
                break
            labels = numbered(np.where(labels == pair[1], pair[0], labels))
        return labels, {"rank": np.array(ranks), "p": np.array(chances)}

    @cached_property
    def _whole(self) -> dict[int, float]:
        """The chance of a gap inside each cluster that was merged of several."""
        labels = self._merged[0]
        several = [
            number
            for number in range(int(labels.max(initial=-1)) + 1)
            if len(np.unique(self.fine[labels == number])) > 1
        ]
        return {number: self._p_one(self.inside[labels == number]) for number in several}

    @cached_property
    def p(self) -> float:
        """The chance of the widest gap, between two clusters or inside one, times their number."""
        labels = self._merged[0]
        chances = list(self._whole.values())
        for i, j in self.pairs(labels) if len(labels) else []:
            chances.append(self._p_one(self.inside[(labels == i) | (labels == j)]))
        return min(1.0, len(chances) * min(chances)) if chances else 1.0

    @cached_property
    def selection(self) -> RankSelection:
        """How many clusters there are: as many as are separate from all their neighbours.

        Where one of them was merged of several and is not one cloud, there are gaps that no two of
        its parts show: it is cut into halves until these are, and the number is a granularity.
        """
        labels, table = self._merged
        if self.p > LEVEL:
            return self._selected(1, f"{self._alike()}.", table, labels)
        separate, cut = int(labels.max()) + 1, []
        for number, chance in self._whole.items():
            if chance <= LEVEL:
                rows = np.flatnonzero(labels == number)
                for part in self._clouds(rows)[1:]:
                    labels = labels.copy()
                    labels[part] = labels.max() + 1
                cut.append(number)
        if labels.max() == 0:
            labels = self.fine
        count = int(labels.max()) + 1
        reason = f"{self._apart()}; {separate} clusters are separate"
        if cut:
            reason += (
                f", and {len(cut)} of them {'are' if len(cut) > 1 else 'is'} more than one cloud "
                f"without a border that shows, so {count} is a granularity that no test decides"
            )
        return self._selected(count, f"{reason[0].upper()}{reason[1:]}.", table, labels)

    def _clouds(self, rows: np.ndarray) -> list[np.ndarray]:
        """Cut rows into halves until each is one cloud."""
        if self._p_one(self.inside[rows]) > LEVEL:
            return [rows]
        right = separation.halves(restricted(self.graph, self.inside[rows]))
        if min(right.sum(), (~right).sum()) < separation.FEWEST:
            return [rows]
        return self._clouds(rows[~right]) + self._clouds(rows[right])

    def _alike(self) -> str:
        return f"no gap is seen in points that were held out: they may be {self.null}"

    def _apart(self) -> str:
        return (
            f"the gaps between clusters are seen in points that were held out, which {self.null} "
            f"has no more often than {LEVEL:.0%}"
        )


def restricted(graph: sp.csr_array, rows: np.ndarray) -> sp.csr_array:
    """Return the graph of some rows."""
    part = sp.csr_array(graph[rows][:, rows])
    part.sort_indices()
    return part


def evidence_of(
    graph: Any,
    *,
    points: Any = None,
    incidence: sp.csr_array | None = None,
    seed: int = 0,
    why_not: str = "",
) -> Evidence:
    """Return what data say of the number of clusters.

    Parameters
    ----------
    graph : array or csr_array
        Similarities; of a signed graph the positive ones count.
    points : table or None
        The points that they were made of.
    incidence : csr_array or None
        Hyperedges by nodes, whose clique graph they are.
    seed : int
    why_not : str
        Why there can be no test, where that is known.
    """
    if why_not:
        return Evidence(graph, seed, why_not)
    if incidence is not None:
        return Hyperedges(graph, seed, incidence=incidence)
    return Network(graph, seed) if points is None else Points(graph, seed, table=points)
