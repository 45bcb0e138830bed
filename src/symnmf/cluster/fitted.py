"""What a search came to, as clusters: their numbers, members and quality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf.calls import Call
from symnmf.cluster.judgement import Evidence, RankSelection
from symnmf.cluster.outside import with_connected_rows
from symnmf.cluster.partition import labels_by_size
from symnmf.cluster.quality import UNJUDGED, Quality, QualityWarning, assess
from symnmf.cluster.similarities import Similarities
from symnmf.errors import warn
from symnmf.graphs.adjacency import degrees
from symnmf.graphs.assigning import new_labels, reassigned
from symnmf.interchange import as_given, to_host
from symnmf.membership import (
    BACKGROUND,
    agreeing,
    background_strengths,
    members_of,
    shares_of,
)
from symnmf.run.multistart import Search
from symnmf.run.problem import Problem
from symnmf.run.result import OUTSIDE, Result, cluster_labels
from symnmf.run.settings import Limits
from symnmf.run.solving import warn_unless_converged
from symnmf.run.start import RandomState
from symnmf.storage import SymmetricArray, SymmetricMatrix

if TYPE_CHECKING:
    from symnmf.run.choosing import Choice


def by_size(belongs: np.ndarray) -> np.ndarray:
    """Return the order of the clusters: the largest first, equal ones by their first member."""
    first = np.where(belongs.any(axis=0), belongs.argmax(axis=0), len(belongs))
    return np.lexsort((first, -belongs.sum(axis=0)))


def one_each(labels: np.ndarray, clusters: int) -> np.ndarray:
    """Return labels as an array of bool with a column for each cluster."""
    belongs = np.zeros((len(labels), clusters), dtype=bool)
    inside = np.flatnonzero(labels != OUTSIDE)
    belongs[inside, labels[inside]] = True
    return belongs


def in_order(result: Result, order: np.ndarray) -> Result:
    """Return the result with its columns in this order."""

    def ordered(factor: np.ndarray) -> np.ndarray:
        return np.take(factor, order, axis=1)  # in C order, which indexing would not give

    U = ordered(result.U)  # factors may be large, so V is not copied where it is the same
    V = U if result.V is result.U else ordered(result.V)
    below = None if result.attached is None else result.attached.in_order(order)
    return replace(result, U=U, V=V, others=tuple(map(ordered, result.others)), attached=below)


def strengths_of(U: np.ndarray, result: Result, similarities: Similarities) -> np.ndarray | None:
    """U in units of the background; None where the graph has none."""
    A = similarities.A
    if isinstance(A, SymmetricArray) and not isinstance(A, SymmetricMatrix):
        return None
    problem = result.problem
    # a likelihood of hyperedges says what part of U they speak for
    explained = None if problem is None else getattr(problem.objective, "explained", None)
    if explained is not None:
        U = explained(U)
    return background_strengths(U, similarities.graph, similarities.roots)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Clusters of some data, and all that is known of them.

    Clusters are numbered by their size, the largest first and equal ones by their first member; or
    as known classes are numbered, if there are any.

    Attributes
    ----------
    similarities : Similarities
        What was factorized, and what it was made of.
    problem : Problem
        The same, as the search was given it.
    search : Search
        What the starts came to; the columns of its best are in the order of the clusters.
    limits : Limits
    starts : int
        Starts that were asked for.
    advice : str
        What to try where the clusters are hardly any.
    threshold : float, "background" or None
        The share from which on a row belongs to more than one cluster, or the rule of
        :mod:`symnmf.membership`.
    selection : object
        How the number of clusters was found, where it was not given.
    attribute_weight : Choice or None
        How much a table of attributes counted, and how that was chosen.
    objective : mapping
        What the problem was told besides X.
    evidence : Evidence or None
        What says whether the clusters are real; None for data that are not in memory.
    assigned : ndarray or None
        The cluster of each row by its similarities; None where that is the column of its largest
        entry.
    """

    similarities: Similarities
    problem: Problem | None
    search: Search
    limits: Limits
    starts: int
    advice: str
    threshold: float | str | None = None
    selection: RankSelection | None = None
    attribute_weight: Choice | None = None
    objective: Mapping[str, Any] = field(default_factory=dict)
    evidence: Evidence | None = None
    assigned: np.ndarray | None = None

    @classmethod
    def of(
        cls, search: Search, classes: np.ndarray | None, *, by_likelihood: bool, **others: Any
    ) -> Fitted:
        """Assign rows to clusters and number these."""
        similar, threshold = others["similarities"], others.get("threshold")
        best = with_connected_rows(search.best, similar.A, similar.graph)
        labels = None
        if by_likelihood:
            clusters = best.U.shape[1]
            signs = 0.0 if similar.signs is None else similar.signs.value
            labels = reassigned(
                similar.graph, to_host(best.labels), clusters, negative_weight=signs
            )
            labels, order = labels_by_size(labels, clusters)
        else:
            U = to_host(best.U)
            strengths = strengths_of(U, best, similar) if threshold == BACKGROUND else None
            order = by_size(members_of(U, threshold, strengths))
        if classes is not None:
            best, order = in_order(best, order), np.arange(len(order))
            from symnmf.graphs.constraints import numbered_by_class

            order = numbered_by_class(best.U, classes)
        return cls(search=replace(search, best=in_order(best, order)), assigned=labels, **others)

    @property
    def result(self) -> Result:
        """The start that was kept."""
        return self.search.best

    @property
    def seed(self) -> RandomState:
        """What all starts came from."""
        return self.search.seed

    @cached_property
    def U(self) -> np.ndarray:
        """The factor on the host, with the largest entry of each row in its cluster."""
        U = to_host(self.result.U)
        return U if self.assigned is None else agreeing(U, self.assigned)

    @property
    def embedding(self) -> Any:
        """The same, as arrays were given."""
        return self.result.U if self.assigned is None else as_given(self.U, self.result.U)

    @cached_property
    def labels(self) -> np.ndarray:
        """The cluster of each row; -1 for none."""
        if self.assigned is not None:
            return as_given(self.assigned, self.result.U)
        labels = self.result.labels
        if self.threshold is None:
            return labels
        return np.where(self.members.any(axis=1), labels, OUTSIDE)

    @cached_property
    def strengths(self) -> np.ndarray | None:
        """U in units of the background: above 1 where a row belongs; None without a background.

        There is none for triangles, with negative similarities, and where the graph is not in
        memory.
        """
        return strengths_of(self.U, self.result, self.similarities)

    @cached_property
    def members(self) -> np.ndarray:
        """Which clusters each row belongs to, an array of bool with a column for each."""
        if self.assigned is not None:
            return one_each(self.assigned, self.result.U.shape[1])
        strengths = self.strengths if self.threshold == BACKGROUND else None
        return members_of(self.U, self.threshold, strengths)

    @cached_property
    def membership(self) -> np.ndarray:
        """Shares of the rows of U in the clusters that they belong to, and zeros elsewhere.

        Where every row has one label, it may all the same have shares in several clusters, by the
        rule for those that overlap; that of its label is the largest.
        """
        members = self.members
        if self.threshold is None:
            members = members | members_of(self.U, BACKGROUND, self.strengths)
        return as_given(shares_of(self.U, members), self.result.U)

    @property
    def probabilities(self) -> np.ndarray:
        """The share of each row of U in the row's own cluster; 0 for a row in none."""
        labels = to_host(self.labels)
        inside = labels != OUTSIDE
        total = self.U.sum(axis=1)
        own = np.where(inside, self.U[np.arange(len(labels)), labels], 0.0)
        return as_given(
            np.divide(own, total, out=np.zeros_like(own), where=total > 0), self.result.U
        )

    @property
    def sets(self) -> list[np.ndarray]:
        """The members of each cluster that has any; these are the first ones."""
        if self.assigned is None:
            columns = [np.flatnonzero(column) for column in self.members.T]
        else:
            order = np.argsort(self.assigned, kind="stable")[np.sum(self.assigned == OUTSIDE) :]
            columns = np.split(order, np.cumsum(self.sizes)[:-1])
        return [rows for rows in columns if rows.size]

    @property
    def listed(self) -> dict[str, list[str]]:
        """The clusters of each row and its strengths in them, as text; empty without overlap."""
        if self.threshold is None:
            return {}
        inside = [np.flatnonzero(row) for row in self.members]
        lists = {"all_clusters": [" ".join(map(str, row.tolist())) for row in inside]}
        strengths = self.strengths if self.threshold == BACKGROUND else None
        if strengths is not None:
            pairs = zip(strengths, inside, strict=True)
            lists["strengths"] = [" ".join(f"{s:.4g}" for s in row[mine]) for row, mine in pairs]
        return lists

    @property
    def names(self) -> list[Any]:
        """What the rows are called; their numbers where they have no names."""
        names = self.similarities.names
        return list(range(len(self.labels))) if names is None else names

    @property
    def degree_offset(self) -> float:
        """tau in mean degrees."""
        return float(self.similarities.degree_offset or 0.0)

    def labels_of(self, similarities: Any) -> np.ndarray:
        """Return the clusters of new rows from their similarities to the fitted ones.

        Similarities are on the scale of the graph.
        """
        if self.assigned is None:
            return np.asarray(cluster_labels(self.rows_of(similarities)))
        graph, clusters = self.similarities.graph, self.result.U.shape[1]
        return new_labels(graph, self.assigned, similarities, clusters)

    def rows_of(self, similarities: Any) -> np.ndarray:
        """Return the rows of U of new rows with these similarities to the fitted ones."""
        from symnmf.placing import place

        rows = place(self.similarities.scaled_rows(similarities), self.U)
        return rows if self.assigned is None else agreeing(rows, self.labels_of(similarities))

    @cached_property
    def quality(self) -> Quality:
        """How the clusters look, and whether they are real; computed when it is first read."""
        verdict = UNJUDGED
        if self.evidence is not None:
            verdict = self.evidence.judge(to_host(self.labels), self.result.U.shape[1])
        return assess(self.similarities.graph, self.labels, self.search, verdict)

    @cached_property
    def certificate(self) -> Any:
        """What the theorems say of the run."""
        problem = self.problem
        if problem is None:  # not kept in a pickle
            problem = Problem.of(self.similarities.A, **self.objective)
        return self.result.certificate(problem)

    def warn(self) -> None:
        """Warn of a run that ended early, and of clusters that are empty or hold nearly all."""
        warn_unless_converged(self.result, self.limits, self.starts)
        sizes, asked = self.sizes, self.result.U.shape[1]
        faults = []
        if self.selection is not None and self.selection.recommendation == 1:
            reason = self.selection.reason
            faults.append(f"no clusters were found: {reason[0].lower()}{reason[1:]}".rstrip("."))
        if (filled := np.count_nonzero(sizes)) < asked:
            faults.append(f"only {filled} of the {asked} clusters asked for have rows")
        largest = sizes.max() / max(sizes.sum(), 1)
        if asked > 1 and largest > 0.5 * (1.0 + 1.0 / asked):
            faults.append(f"one cluster holds {largest:.1%} of the rows")
        if faults and filled > 1:
            faults.append(self.advice)
        if faults:
            warn(f"{'; '.join(faults)}.", QualityWarning)
        if self.threshold == BACKGROUND and self.strengths is not None:
            linked = degrees(self.similarities.graph) > 0
            left = int(np.count_nonzero(linked & ~self.members.any(axis=1)))
            if left:
                warn(
                    f"{left} of {np.count_nonzero(linked)} nodes with edges are in no community: "
                    f"the density of the graph explains their edges as well; threshold=0.25 puts "
                    f"every node into the community of its largest share at least.",
                    QualityWarning,
                )

    @property
    def sizes(self) -> np.ndarray:
        """How many rows each cluster has."""
        if self.assigned is None:
            return np.asarray(self.members.sum(axis=0))
        inside = self.assigned[self.assigned != OUTSIDE]
        return np.bincount(inside, minlength=self.result.U.shape[1])

    def of_call(self, call: Call) -> Fitted:
        """Return the clusters with the seconds of a whole call."""
        return replace(self, search=replace(self.search, best=self.search.best.of_call(call)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "problem": None}
