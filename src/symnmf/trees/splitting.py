"""Splitting by two until nothing is left to split: :func:`hierarchy`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from symnmf import nulls
from symnmf.arguments import checked
from symnmf.cluster.nulls_of import clouds_of
from symnmf.cluster.similarities import PRECOMPUTED, Building
from symnmf.errors import InputError
from symnmf.graphs.adjacency import degrees as degrees_of
from symnmf.graphs.adjacency import normalized
from symnmf.graphs.locality import joins_neighbours
from symnmf.graphs.partitions import Partition
from symnmf.naming import lookup
from symnmf.parallel import one_blas_thread
from symnmf.run.multistart import Plan
from symnmf.run.problem import Problem
from symnmf.run.result import OUTSIDE
from symnmf.run.settings import Settings
from symnmf.run.start import RandomState
from symnmf.selection import auto
from symnmf.selection.description import description_length
from symnmf.selection.found import RankSelection
from symnmf.storage import SymmetricArray
from symnmf.trees.refining import refined
from symnmf.trees.tree import Hierarchy, Split, numbered

#: When a network is not split further.
MODULARITY, BY_CHANCE = "modularity", "chance"
UNTIL = (MODULARITY, BY_CHANCE)

#: Rows that a part needs at least.
LEAST = 3

#: The rank-2 factorization of a split: loose, since only two labels are read off it.
TOL, MOST_ITERATIONS = 1e-2, 30

#: Random graphs that a part is compared with, and how many do if it has very many edges: their
#: eigenvalues hardly differ. A part that is below one of the first few is not split.
DRAWS, FEW_DRAWS, MANY = 10, 3, 50_000

#: Part by which a second eigenvalue above that of a single random graph is above all of them. Their
#: standard deviation is 4% of the mean with 60 rows, 2% with 200 and 0.6% with 1000.
FAR_AHEAD = 0.25


@dataclass(frozen=True, eq=False)
class _Judge:
    """Whether a part of a graph is to be split, and how."""

    drop: float | None
    local: bool
    by_modularity: bool
    rng: np.random.Generator
    plan: Plan

    def split(
        self, A: Any, degrees: np.ndarray, total: float, *, whole: bool
    ) -> tuple[np.ndarray, str] | None:
        """Return which rows of a part go to the right, and why; None where it stays as it is.

        ``degrees`` are those in the whole graph, ``total`` their sum; ``whole`` says that the part
        is a component of the graph, which was not split yet.
        """
        n = A.shape[0]
        if n < 2 * LEAST:
            return None
        parts, part = connected_components(A, directed=False)
        if parts > 1:
            largest = part == np.bincount(part).argmax()
            return ~largest, "the parts are not connected"
        if self.local:
            reason: str | None = "the modularity rises, and edges join what is near"
        else:
            reason = self._of_network(A) if self.drop is None else self._of_points(A)
        if reason is None:
            return None
        right = self._halves(A, degrees, total)
        if min(right.sum(), n - right.sum()) < LEAST:
            return None
        if self.by_modularity and gained(A, right, degrees, total) <= 0.0:
            return None
        # the first split may be too weak for a description to tell, and the eigenvalue decides
        if self.drop is None and not self.local and not whole and not _pays(A, right):
            return None
        return right, reason

    def _halves(self, A: Any, degrees: np.ndarray, total: float) -> np.ndarray:
        scaled = normalized(A, 0.0 if self.local or self.drop is not None else auto.OFFSET)
        halves = np.maximum(self.plan.best(scaled).labels, 0)
        if self.drop is None:
            halves = refined(A, halves, degrees, total)
        return np.asarray(halves == 1)

    def _of_network(self, A: Any) -> str | None:
        """Compare the second eigenvalue with random graphs of the same degrees."""
        second, drawn = _second(A), list[float]()
        while len(drawn) < (FEW_DRAWS if A.nnz > MANY else DRAWS):
            drawn.append(_second(nulls.same_degrees(A, self.rng)))
            if len(drawn) == 1 and second > (1.0 + FAR_AHEAD) * drawn[0]:
                break
            if len(drawn) == FEW_DRAWS and second <= max(drawn):
                return None
        if len(drawn) > 1 and second <= nulls.upper_limit(drawn, auto.LEVEL):
            return None
        return (
            f"the second eigenvalue is {second:.3f}, against {np.mean(drawn):.3f} in random graphs "
            f"with the same degrees"
        )

    def _of_points(self, A: Any) -> str | None:
        """Compare the second eigenvalue with where those of the whole graph drop."""
        second = float(auto.leading(normalized(A), 2).values[1])
        if self.drop is None or second <= self.drop:
            return None
        return (
            f"the second eigenvalue is {second:.3f}, above {self.drop:.3f}, where those of all drop"
        )


def _second(A: Any) -> float:
    """Return the second eigenvalue of a graph whose degrees are offset and divided out."""
    return float(auto.leading(normalized(A, auto.OFFSET), 2).values[1])


def _pays(A: Any, right: np.ndarray) -> bool:
    """Whether the halves describe a network in fewer nats than the whole does."""
    edges = A / A.data.mean()
    whole = description_length(edges, np.zeros(A.shape[0], dtype=int))
    return description_length(edges, right.astype(int)) < whole


@checked(max_clusters=("whole", "none"))
def hierarchy(
    X: Any,
    *,
    affinity: Any = PRECOMPUTED,
    n_neighbors: int | None = None,
    weight: str | None = "weight",
    max_clusters: int | None = None,
    until: str = MODULARITY,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Hierarchy:
    """Split a graph or points into two, repeatedly, until no cluster should be split further.

    Each split is a rank-2 factorization. A network is split while its second eigenvalue is above
    those of random graphs with the same degrees, the modularity rises (see ``until``) and, after
    the first split, two groups describe it in fewer nats than one. Points are split while the
    second eigenvalue of their graph is above the drop in the eigenvalues of the whole graph; a
    single cloud of points has no such drop, see ``SymNMF(n_clusters="auto")``. A neighbour graph
    without its points is split while the modularity rises, because there is nothing to compare it
    with. Components are split off first. At the end, rows of a graph move to the leaf where they
    increase the modularity most, since an early split may have separated rows that belong together.

    Parameters
    ----------
    X : graph, sparse matrix or array
        A graph as for :func:`symnmf.communities`, or points, one per row, with an ``affinity``.
    affinity : str or callable, default "precomputed"
        As in :class:`symnmf.SymNMF`.
    n_neighbors, weight, n_jobs
        As in :class:`symnmf.SymNMF` and :func:`symnmf.communities`.
    max_clusters : int or None
        The largest number of leaves; the largest clusters are split first.
    until : {"modularity", "chance"}
        When to stop splitting a network: when the modularity of all leaves no longer rises, or
        only when a part has no more structure than random graphs. "chance" finds groups within
        groups that are small parts of the whole graph, and on real networks hundreds of leaves.
    random_state : int, Generator, RandomState or None
        For the random data without clusters.

    Returns
    -------
    Hierarchy
        ``labels`` of the leaves, ``cut(k)`` for labels with fewer clusters, ``splits``,
        ``linkage`` for SciPy, ``plot()``.

    Examples
    --------
    >>> import networkx, symnmf
    >>> tree = symnmf.hierarchy(networkx.connected_caveman_graph(4, 8), random_state=0)
    >>> tree.n_clusters
    4
    """
    if max_clusters is not None and max_clusters < 1:
        raise InputError(f"max_clusters must be at least 1, or None, got {max_clusters!r}.")
    lookup(until, dict.fromkeys(UNTIL, until), "until")
    if isinstance(X, Problem):
        X.must_be_plain("hierarchy")
    building = Building(affinity=affinity, n_neighbors=n_neighbors, weight=weight, n_jobs=n_jobs)
    similar = building.similarities(X, 0)
    if isinstance(similar.graph, SymmetricArray):
        raise InputError("X must be in memory, as an array or a sparse matrix, to be split.")
    graph = sp.csr_array(similar.graph)
    rng = np.random.default_rng(random_state if isinstance(random_state, int) else 0)
    drop = None
    if not building.precomputed:
        draw = clouds_of(X, building)
        drop = _drop(auto.count_clusters(graph, draw=draw, neighbours=True, random_state=rng))
    local = building.precomputed and joins_neighbours(graph)
    judge = _Judge(
        drop,
        local,
        drop is None and (local or until == MODULARITY),
        rng,
        Plan(
            2,
            Settings.of(tol=TOL, max_iter=MOST_ITERATIONS),
            n_init=1,
            random_state=0,
            n_jobs=n_jobs,
        ),
    )
    with one_blas_thread():
        return _grown(graph, judge, max_clusters or graph.shape[0], similar.names)


def _drop(found: RankSelection) -> float:
    """Return the value between the last eigenvalue of a cluster and the next."""
    count, values = int(found.recommendation or 1), found.table["eigenvalue"]
    return float("inf") if count == 1 else float(values[count - 1] + values[count]) / 2


def gained(A: Any, right: np.ndarray, degrees: np.ndarray, total: float) -> float:
    """Return the modularity that cutting a part in two adds; ``degrees`` are of the whole graph."""
    halves = Partition.of(A, right.astype(int), 2)
    between = float((halves.volume - halves.within).sum())
    volumes = float(degrees[right].sum() * degrees[~right].sum())
    return float(2.0 * volumes / total**2 - between / total)


def _grown(graph: sp.csr_array, judge: _Judge, most: int, names: list[Any] | None) -> Hierarchy:
    parts = np.where(np.diff(graph.indptr) > 0, 0, OUTSIDE)
    _, component = connected_components(graph, directed=False)
    sizes = np.bincount(component)
    splits: dict[int, Split] = {}
    above, total, weights = {0: 1.0}, float(graph.sum()), degrees_of(graph)
    waiting = deque([0] if (parts == 0).any() else [])
    while waiting and len(splits) + 1 < most:
        node = waiting.popleft()
        rows = np.flatnonzero(parts == node)
        A = sp.csr_array(graph[rows][:, rows]) if len(rows) < len(parts) else graph
        found = judge.split(A, weights[rows], total, whole=len(rows) == sizes[component[rows[0]]])
        if found is None:
            continue
        right, reason = found
        left_count = len(rows) - int(right.sum())
        if left_count < len(rows) - left_count:
            right = ~right
        strength = min(max(gained(A, right, weights[rows], total), 0.0), above[node])
        one, other = 2 * len(splits) + 1, 2 * len(splits) + 2
        splits[node] = Split(one, other, strength, reason)
        parts[rows[~right]], parts[rows[right]] = one, other
        above[one] = above[other] = strength
        waiting.extend([one, other])
        waiting = deque(sorted(waiting, key=lambda name: -int(np.sum(parts == name))))
    if judge.by_modularity and len(splits) > 1:
        parts = _settled(graph, parts, weights, total)
    return Hierarchy(numbered(parts), splits, parts, names)


def _settled(
    graph: sp.csr_array, parts: np.ndarray, weights: np.ndarray, total: float
) -> np.ndarray:
    """Move rows between leaves: a cut that was made early may have parted what belongs together."""
    inside = parts != OUTSIDE
    leaves, labels = np.unique(parts[inside], return_inverse=True)
    codes = np.full(len(parts), OUTSIDE)
    codes[inside] = labels
    codes = refined(graph, codes, weights, total)
    return np.where(inside, leaves[codes], OUTSIDE)
