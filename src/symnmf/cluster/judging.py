"""What data without clusters are for each kind of data, and the search that is repeated on them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import calls, nulls
from symnmf.cluster.nulls_of import Draw, graph_of_points, has_normal, table_of
from symnmf.cluster.similarities import Building, Similarities
from symnmf.graphs.adjacency import normalized
from symnmf.graphs.assigning import reassigned
from symnmf.graphs.degree_offsets import with_degree_offset
from symnmf.graphs.hypergraph import Hypergraph
from symnmf.graphs.locality import joins_neighbours
from symnmf.parallel import one_blas_thread
from symnmf.run.centres import nearest_centres
from symnmf.run.spectral import Basis, leading_subspace
from symnmf.storage import SymmetricArray, as_symmetric
from symnmf.verdict import LARGE, Verdict, judge

#: Rows of points, or of an array of similarities, that are judged: so many are drawn, or so many
#: for each cluster, if there are more.
MOST_ROWS, ROWS_EACH = 1000, 20

#: Entries of the clique graph of a hypergraph that is judged.
MOST_PAIRS = 5_000_000

#: Columns up to which they are shuffled too: of more, independent ones make a cloud of so many
#: dimensions that anything is more than its clusters.
MOST_COLUMNS = 50

#: A search that leaves less than this part of the time there was may have been cut short.
CUT_SHORT = 0.3

DEGREES = "random graphs with the same degrees"
SHUFFLED = "randomly shuffled similarities with about the same row sums"
COLUMNS = "points with the same columns, each shuffled"
HYPERGRAPHS = "random hypergraphs with the same sizes and degrees"
NORMAL = "normal points with the same covariances"

LOCAL = (
    "; this graph joins near neighbours, and any such graph separates better than a random one, so "
    "this alone does not show that there are clusters"
)


class NoTime(Exception):
    """``max_time`` ended a search on data without clusters."""


def verdict_of(
    data: Any,
    similar: Similarities,
    building: Building,
    clusters: int,
    labels: np.ndarray,
    seed: int,
    *,
    by_likelihood: bool,
) -> Verdict | None:
    """Judge clusters against draws without any; None where that is not possible.

    Draws get their labels as the data did.

    It is not where fewer than two clusters have rows, for data that are not in memory, nor where
    entries are hidden.
    """
    graph = similar.graph
    hidden = any(
        building.objective.get(name) is not None for name in ("mask", "weights", "missing")
    )
    if clusters < 2 or hidden or isinstance(graph, SymmetricArray) or building.order != 2:
        return None
    if len(np.unique(labels[labels >= 0])) < 2:  # nothing leaves a lone cluster
        return None
    rng = np.random.default_rng(seed)
    if graph.min() < 0:  # of a signed graph, what ties nodes together
        graph = graph.maximum(0) if sp.issparse(graph) else np.maximum(graph, 0)
    most = max(MOST_ROWS, ROWS_EACH * clusters)
    if similar.hypergraph is not None:
        if similar.graph.nnz > MOST_PAIRS:  # each draw is spelt out as pairs
            return None
        graph = similar.hypergraph.clique_graph()
        drawn = {HYPERGRAPHS: _dealing(similar.hypergraph)}
    elif not building.has_points:
        if not sp.issparse(graph) and len(graph) > most:
            rows = np.sort(rng.choice(len(graph), most, replace=False))
            graph, labels = graph[np.ix_(rows, rows)], labels[rows]
        drawn = {DEGREES if sp.issparse(graph) else SHUFFLED: _rewiring(graph)}
    else:
        points = table_of(data)
        if points.shape[0] > most:
            rows = np.sort(rng.choice(points.shape[0], most, replace=False))
            points, labels = points[rows], labels[rows]
            graph = graph_of_points(points, lambda given, _: given, building)(rng)
        normal = has_normal(points, building)
        drawn = {}
        if not normal or points.shape[1] <= MOST_COLUMNS:
            drawn[COLUMNS] = graph_of_points(points, nulls.same_marginals, building)
        if normal:
            drawn[NORMAL] = graph_of_points(points, nulls.same_covariance, building)
    tau = similar.degree_offset

    def labels_in(null: Any, known: Basis | None = None, *, own: bool = False) -> np.ndarray:
        before = calls.seconds_left()
        with one_blas_thread():
            if own:
                known = with_degree_offset(null, clusters, by_factorization=False).basis
            if known is None:
                scaled = null if tau is None else normalized(null, tau)
                known = leading_subspace(as_symmetric(scaled), clusters)
            labels = nearest_centres(known)
        if by_likelihood:
            labels = reassigned(null, labels, clusters)
        # it may have been cut short, so that nothing can be compared with it
        if calls.out_of_time() or calls.seconds_left() < CUT_SHORT * before:
            raise NoTime
        return labels

    def quick_labels() -> np.ndarray:
        return labels_in(graph, similar.basis if graph is similar.graph else None)

    stored = graph.nnz if sp.issparse(graph) else graph.size
    size = float(stored * clusters)
    # a tau that suits the data need not suit a draw, whose clusters would then be worse
    chosen = tau is not None and building.degree_offset is None and size <= LARGE

    return judge(
        graph,
        labels,
        clusters,
        nulls=drawn,
        search=partial(labels_in, own=chosen),
        quick_labels=quick_labels,
        rng=rng,
        size=size,
        remark=LOCAL
        if not building.has_points and similar.hypergraph is None and joins_neighbours(graph)
        else "",
    )


def _dealing(H: Hypergraph) -> Draw:
    return lambda rng: H.shuffled(rng).clique_graph()


def _rewiring(graph: Any) -> Draw:
    return lambda rng: nulls.same_degrees(graph, rng)
