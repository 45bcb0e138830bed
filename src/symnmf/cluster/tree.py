"""Clusters within clusters: each cluster is clustered again while the test finds more than one."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.cluster.judgement import Evidence
from symnmf.cluster.judging import evidence_for
from symnmf.cluster.partition import (
    fine_partition,
    labels_by_size,
    merges,
    numbered,
    restricted,
)
from symnmf.cluster.similarities import similarities
from symnmf.cluster.task import PRECOMPUTED, Task
from symnmf.errors import InputError
from symnmf.kinds import NONE, whole
from symnmf.options import AUTO
from symnmf.run.problem import Problem
from symnmf.run.result import OUTSIDE
from symnmf.run.start import RandomState, as_seed


@dataclass(frozen=True, eq=False)
class Branch:
    """A cluster of a tree.

    Attributes
    ----------
    level : int
        0 for all rows, and one more than that of the cluster it is a part of.
    parent : int
        The number of that cluster; -1 for all rows.
    rows : ndarray of int
    reason : str
        Why it was split; "" for a leaf.
    """

    level: int
    parent: int
    rows: np.ndarray = field(repr=False)
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """What :func:`symnmf.hierarchy` found.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The leaf of each row, numbered from the largest to the smallest; -1 for a row without
        similarities.
    branches : list of Branch
        All clusters: 0 has all rows, and parts come after what they are parts of.
    graph : csr_array
        The similarities.
    names : list or None
        The names of the rows, if the data have names.
    """

    labels: np.ndarray
    branches: list[Branch]
    graph: sp.csr_array = field(repr=False)
    names: list[Any] | None = field(default=None, repr=False)

    @property
    def n_clusters(self) -> int:
        """How many leaves there are."""
        return int(self.labels.max(initial=OUTSIDE)) + 1

    def table(self) -> Iterator[tuple[int, int, int, Hashable]]:
        """Yield (level, cluster, parent, node) for every cluster and each of its nodes."""
        for number, branch in enumerate(self.branches):
            for row in branch.rows.tolist():
                name = row if self.names is None else self.names[row]
                yield branch.level, number, branch.parent, name

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return labels with ``n_clusters`` clusters: leaves are merged as in ``linkage``.

        They are numbered from the largest to the smallest; -1 for a row without similarities.
        """
        check("n_clusters", n_clusters, (whole(1),))
        if n_clusters > max(self.n_clusters, 1):
            raise InputError(
                f"n_clusters must be at most the {self.n_clusters} leaves of the tree, got "
                f"{n_clusters}."
            )
        labels = self.labels.copy()
        merged = self.linkage[: self.n_clusters - int(n_clusters), :2].astype(int)
        for step, pair in enumerate(merged):
            labels[np.isin(labels, pair)] = self.n_clusters + step
        return labels_by_size(labels)[0]

    @cached_property
    def linkage(self) -> np.ndarray:
        """The tree over its leaves as ``scipy.cluster.hierarchy`` writes one.

        Parts of a cluster are merged in pairs, those first whose merging costs least modularity.
        Heights are the modularity that is lost, and never less than below.
        """
        total = max(float(self.graph.sum()), 1e-300)
        parts: dict[int, list[int]] = {}
        for number, branch in enumerate(self.branches):
            parts.setdefault(branch.parent, []).append(number)
        leaves, place = self.n_clusters, np.zeros(len(self.labels), np.int64)
        joins: list[tuple[int, int]] = []
        height, size = [0.0] * leaves, [1] * leaves
        node = [0] * len(self.branches)  # the leaf or the join that a cluster is
        for number in reversed(range(len(self.branches))):
            rows = self.branches[number].rows
            if number not in parts:
                node[number] = int(self.labels[rows[0]]) if len(rows) else OUTSIDE
                continue
            nodes = [node[part] for part in parts[number]]
            for group, part in enumerate(parts[number]):
                place[self.branches[part].rows] = group
            for kept, joined, added, _ in merges(restricted(self.graph, rows), place[rows]):
                left, right = nodes[kept], nodes[joined]
                nodes[kept] = leaves + len(joins)
                joins.append((left, right))
                height.append(max(-added / total, height[left], height[right]))
                size.append(size[left] + size[right])
            node[number] = nodes[0]
        order = np.argsort(height[leaves:], kind="stable")  # a join comes after those it joins
        named = np.r_[np.arange(leaves), leaves + np.argsort(order)].astype(int)
        table = [
            [*sorted(named[list(joins[join])]), height[leaves + join], size[leaves + join]]
            for join in order
        ]
        return np.array(table, dtype=np.float64).reshape(-1, 4)

    def __str__(self) -> str:
        count = self.n_clusters
        levels = max((branch.level for branch in self.branches), default=0)
        lines = [
            f"{count} cluster{'s' * (count != 1)} in a tree of {levels} level{'s' * (levels != 1)}"
        ]
        for branch in islice(self._from(0), 20):
            lines.append(f"{'  ' * branch.level}{len(branch.rows)} rows")
        return "\n".join(lines)

    def _from(self, number: int) -> Iterator[Branch]:
        """Yield a cluster, and then each of its parts with what is in it."""
        yield self.branches[number]
        for part, branch in enumerate(self.branches):
            if branch.parent == number:
                yield from self._from(part)


@checked()
def hierarchy(
    X: Any,
    *,
    affinity: Any = PRECOMPUTED,
    n_neighbors: int | None = None,
    weight: str | None = "weight",
    max_cluster_size: int | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Hierarchy:
    """Cluster a graph or points, and each cluster again while it is more than one.

    The test is that of ``n_clusters="auto"``, asked of each cluster alone: where it finds one, the
    cluster is a leaf. Where there is no test, a fine partition of the graph is the only level.

    Parameters
    ----------
    X : graph, sparse matrix or array
        A graph as for :func:`symnmf.communities`, or points, one per row, with an ``affinity``.
    affinity : str or callable, default "precomputed"
        As in :class:`symnmf.SymNMF`.
    n_neighbors, weight, n_jobs
        As in :class:`symnmf.SymNMF` and :func:`symnmf.communities`.
    max_cluster_size : int or None
        If given, size alone decides: clusters with more rows are split by a fine partition if
        it has several parts. It is fast, and what a summary of a large graph by parts needs.
    random_state : int, Generator, RandomState or None
        For the edges and points that are held out.

    Returns
    -------
    Hierarchy
        ``labels`` of the leaves, ``table()`` of all levels, ``cut(k)`` for labels with fewer
        clusters, ``linkage`` for SciPy and its ``dendrogram``.

    Examples
    --------
    >>> import networkx, symnmf
    >>> tree = symnmf.hierarchy(networkx.connected_caveman_graph(4, 8), random_state=0)
    >>> tree.n_clusters
    4
    """
    check("max_cluster_size", max_cluster_size, (whole(2), NONE))
    if isinstance(X, Problem):
        X.must_be_plain("hierarchy")
    task = Task(
        n_clusters=AUTO, affinity=affinity, n_neighbors=n_neighbors, weight=weight, n_jobs=n_jobs
    )
    similar = similarities(task, X)
    evidence = evidence_for(X, similar, task, as_seed(random_state))
    if evidence is None:
        raise InputError("X must be in memory, as an array or a sparse matrix, to be split.")
    branches: list[Branch] = []
    waiting = deque([(evidence.inside, -1, 0)])
    while waiting:
        rows, parent, level = waiting.popleft()
        groups, reason = _parts(evidence, rows, max_cluster_size)
        branches.append(Branch(level, parent, rows, reason))
        if reason:
            for group in range(int(groups.max()) + 1):
                waiting.append((rows[groups == group], len(branches) - 1, level + 1))
    labels = np.full(evidence.graph.shape[0], OUTSIDE)
    for number, branch in enumerate(branches):
        if not branch.reason:
            labels[branch.rows] = number
    return Hierarchy(labels_by_size(labels)[0], branches, evidence.graph, similar.names)


def _parts(evidence: Evidence, rows: np.ndarray, limit: int | None) -> tuple[np.ndarray, str]:
    """Return the parts of a cluster, and why it has some; "" where it has none."""
    one = np.zeros(len(rows), np.int64)
    if limit is not None:
        if len(rows) <= limit:
            return one, ""
        rng = np.random.default_rng(evidence.seed)
        groups = fine_partition(restricted(evidence.graph, rows), rng)
        reason = f"more than {limit} rows"
    elif len(rows) == len(evidence.inside):
        groups, reason = evidence.selection.labels[rows], evidence.selection.reason
    else:
        part = evidence.part(rows)
        if evidence.untested or part.untested:
            return one, ""
        groups, reason = part.selection.labels, part.selection.reason
    # a row whose ties all lead elsewhere stays with the largest part
    groups = numbered(np.where(groups == OUTSIDE, 0, groups))
    return (groups, reason) if groups.max(initial=0) > 0 else (one, "")
