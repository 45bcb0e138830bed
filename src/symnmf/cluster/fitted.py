"""What a search came to, as clusters: their numbers, members and quality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.calls import Call
from symnmf.cluster.judgement import Evidence, RankSelection
from symnmf.cluster.outside import with_connected_rows
from symnmf.cluster.partition import labels_by_size
from symnmf.cluster.quality import UNJUDGED, Quality, assess
from symnmf.cluster.similarities import Similarities
from symnmf.cluster.task import Task
from symnmf.graphs.adjacency import attraction
from symnmf.graphs.assigning import Assigning, reassigned
from symnmf.interchange import as_given, to_host
from symnmf.membership import BACKGROUND, agreeing, background_strengths, members_of
from symnmf.run.multistart import Search
from symnmf.run.problem import Problem
from symnmf.run.result import OUTSIDE, Result, cluster_labels, membership_shares
from symnmf.run.start import RandomState
from symnmf.storage import SymmetricArray, SymmetricMatrix


@dataclass(frozen=True, eq=False)
class Fitted:
    """Clusters of some data, and all that is known of them.

    The columns of the best start are in the order of the clusters, and labels are -1 for none.
    ``shared_by`` is the share from which on a row belongs to more than one cluster, or the rule of
    :mod:`symnmf.membership`; ``objective`` what the problem was given besides X. The problem is not
    kept in a pickle.
    """

    similarities: Similarities
    problem: Problem | None
    search: Search
    labels: Any
    by_likelihood: bool = False
    shared_by: float | str | None = None
    objective: Mapping[str, Any] = field(default_factory=dict)
    selection: RankSelection | None = None
    evidence: Evidence | None = None

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
        return agreeing(U, self.labels) if self.by_likelihood else U

    @property
    def embedding(self) -> Any:
        """The same, as arrays were given."""
        return as_given(self.U, self.result.U)

    @cached_property
    def strengths(self) -> np.ndarray | None:
        """U in units of the background: above 1 where a row belongs; None without a background.

        There is none for triangles, with negative similarities, and where the graph is not in
        memory.
        """
        return _strengths(self.U, self.result, self.similarities)

    @cached_property
    def members(self) -> np.ndarray:
        """Which clusters each row belongs to, an array of bool with a column for each."""
        known = self.strengths if self.shared_by == BACKGROUND else None
        return members_of(self.U, self.shared_by, known)

    @cached_property
    def membership(self) -> np.ndarray:
        """Shares of the rows of U in the clusters that they belong to, and zeros elsewhere.

        A row sums to less than 1 where part of it lies in others. Where every row has one label, it
        may all the same have shares in several clusters, by the rule for those that overlap; that
        of its label is the largest.
        """
        members = self.members
        if self.shared_by is None:
            members = members | members_of(self.U, BACKGROUND, self.strengths)
        return as_given(membership_shares(self.U) * members, self.result.U)

    @property
    def probabilities(self) -> np.ndarray:
        """The share of each row of U in the row's own cluster; 0 for a row in none."""
        labels = to_host(self.labels)
        own = membership_shares(self.U)[np.arange(len(labels)), labels]
        return as_given(np.where(labels != OUTSIDE, own, 0.0), self.result.U)

    @property
    def sizes(self) -> np.ndarray:
        """How many rows each cluster has."""
        return np.asarray(self.members.sum(axis=0))

    @property
    def sets(self) -> list[np.ndarray]:
        """The members of each cluster that has any; these are the first ones."""
        columns = sp.csc_array(self.members)
        return [rows for rows in np.split(columns.indices, columns.indptr[1:-1]) if rows.size]

    @property
    def listed(self) -> dict[str, list[str]]:
        """The clusters of each row and its strengths in them, as text; empty without overlap."""
        if self.shared_by is None:
            return {}
        known = self.strengths if self.shared_by == BACKGROUND else None
        inside = np.where(self.members, 1.0 if known is None else known, 0.0)
        return lists_of(sp.csr_array(inside), known is not None)

    @property
    def names(self) -> list[Any]:
        """What the rows are called; their numbers where they have no names."""
        names = self.similarities.names
        return list(range(len(self.labels))) if names is None else names

    def labels_of(self, similarities: Any) -> np.ndarray:
        """Return the clusters of new rows from their similarities to the fitted ones.

        Similarities are on the scale of the graph.
        """
        if not self.by_likelihood:
            return np.asarray(cluster_labels(self.rows_of(similarities)))
        known = Assigning(attraction(self.similarities.graph), self.result.U.shape[1])
        return known.new(attraction(similarities), to_host(self.labels))

    def rows_of(self, similarities: Any) -> np.ndarray:
        """Return the rows of U of new rows with these similarities to the fitted ones."""
        from symnmf.placing import place

        rows = place(self.similarities.scaled_rows(similarities), self.U)
        return agreeing(rows, self.labels_of(similarities)) if self.by_likelihood else rows

    @cached_property
    def quality(self) -> Quality:
        """How the clusters look, and whether they are real; computed when it is first read."""
        verdict = UNJUDGED
        if self.evidence is not None:
            verdict = self.evidence.judge(to_host(self.labels), self.result.U.shape[1])
        return assess(self.similarities.graph, to_host(self.labels), self.search, verdict)

    @cached_property
    def certificate(self) -> Any:
        """What the theorems say of the run."""
        problem = self.problem or Problem.of(self.similarities.A, **self.objective)
        return self.result.certificate(problem)

    def of_call(self, call: Call) -> Fitted:
        """Return the clusters with the seconds of a whole call."""
        return replace(self, search=replace(self.search, best=self.search.best.of_call(call)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "problem": None}


def fitted_of(
    task: Task,
    search: Search,
    similar: Similarities,
    problem: Problem,
    by_likelihood: bool,
    selection: RankSelection | None,
    evidence: Evidence | None,
) -> Fitted:
    """Assign rows to clusters and number these.

    Clusters are numbered by their size, the largest first and equal ones by their first member; or
    as known classes are numbered, if there are any.
    """
    shared_by = task.shared_by
    best = with_connected_rows(search.best, similar.A, similar.graph)
    labels, clusters = to_host(best.labels), best.U.shape[1]
    if by_likelihood:
        signs = similar.choices.get("negative_weight")
        weight = 0.0 if signs is None else signs.value
        labels = reassigned(similar.graph, labels, clusters, negative_weight=weight)
    ordered, order = labels_by_size(labels, clusters)
    if shared_by is not None:
        U = to_host(best.U)
        members = members_of(U, shared_by, _strengths(U, best, similar))
        order = _by_size(members)
    if task.labels is not None:
        from symnmf.graphs.constraints import numbered_by_class

        best = in_order(best, order)
        order = numbered_by_class(best.U, np.asarray(task.labels))
    best = in_order(best, order)
    if not by_likelihood:
        ordered = best.labels
    if shared_by is not None:
        ordered = np.where(members[:, order].any(axis=1), to_host(ordered), OUTSIDE)
    return Fitted(
        similar,
        problem,
        replace(search, best=best),
        as_given(ordered, best.U) if by_likelihood else ordered,
        by_likelihood,
        shared_by,
        similar.objective(task),
        selection,
        evidence,
    )


def lists_of(inside: sp.csr_array, with_strengths: bool) -> dict[str, list[str]]:
    """Return the clusters of each row, and its strengths in them, as text."""
    ends = inside.indptr[1:-1]
    lists = {
        "all_clusters": [" ".join(map(str, row.tolist())) for row in np.split(inside.indices, ends)]
    }
    if with_strengths:
        strengths = np.split(inside.data, ends)
        lists["strengths"] = [" ".join(f"{s:.4g}" for s in row) for row in strengths]
    return lists


def _by_size(belongs: np.ndarray) -> np.ndarray:
    """Return the order of the clusters: the largest first, equal ones by their first member."""
    first = np.where(belongs.any(axis=0), belongs.argmax(axis=0), len(belongs))
    return np.lexsort((first, -belongs.sum(axis=0)))


def in_order(result: Result, order: np.ndarray) -> Result:
    """Return the result with its columns in this order."""

    def ordered(factor: np.ndarray) -> np.ndarray:
        return np.take(factor, order, axis=1)  # in C order, which indexing would not give

    U = ordered(result.U)  # factors may be large, so V is not copied where it is the same
    V = U if result.V is result.U else ordered(result.V)
    below = None if result.attached is None else result.attached.in_order(order)
    return replace(result, U=U, V=V, others=tuple(map(ordered, result.others)), attached=below)


def _strengths(U: np.ndarray, result: Result, similar: Similarities) -> np.ndarray | None:
    """Return U in units of the background; None where the graph has none."""
    X = similar.X
    if isinstance(X, SymmetricArray) and not isinstance(X, SymmetricMatrix):
        return None
    problem = result.problem
    # a likelihood of hyperedges says what part of U they speak for
    explained = None if problem is None else getattr(problem.objective, "explained", None)
    if explained is not None:
        U = explained(U)
    return background_strengths(U, similar.graph, similar.roots)
