"""What data without clusters are for each kind of data, and the search that is repeated on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import calls, nulls
from symnmf.fit.nulls_of import Draw, graph_of_points, has_normal, table_of
from symnmf.fit.similarities import Building, Similarities
from symnmf.graphs.adjacency import normalized
from symnmf.graphs.degree_offsets import with_degree_offset
from symnmf.graphs.locality import joins_neighbours
from symnmf.run.multistart import DEFAULT_INIT, Plan
from symnmf.run.settings import Settings
from symnmf.storage import SymmetricArray
from symnmf.verdict import Verdict, judge

#: The search on a draw: loose, since there is nothing to find.
TOL, MOST_ITERATIONS = 1e-2, 30

#: Rows of points, or of an array of similarities, that are judged; of more, so many are drawn.
MOST_ROWS = 2000

#: Columns up to which they are shuffled too: of more, independent ones make a cloud of so many
#: dimensions that anything is more than its clusters.
MOST_COLUMNS = 50

DEGREES = "random graphs with the same degrees"
SHUFFLED = "similarities shuffled beside their degrees"
COLUMNS = "points with the same columns, each shuffled"
NORMAL = "normal points with the same covariances"

LOCAL = (
    "; edges join what is near here, which such graphs do not, so that the shape of the data is "
    "enough for this"
)


class NoTime(Exception):
    """``max_time`` ended a search on data without clusters."""


def verdict_of(
    data: Any, similar: Similarities, building: Building, plan: Plan, labels: np.ndarray, seed: int
) -> Verdict | None:
    """Judge clusters against draws without any; None where that is not possible.

    It is not for one cluster, for data that are not in memory, nor where entries are hidden.
    """
    graph, clusters = similar.graph, int(plan.rank)
    hidden = any(
        building.objective.get(name) is not None for name in ("mask", "weights", "missing")
    )
    if clusters < 2 or hidden or isinstance(graph, SymmetricArray) or building.order != 2:
        return None
    if not np.any(labels >= 0):
        return None
    rng = np.random.default_rng(seed)
    if graph.min() < 0:  # of a signed graph, what ties nodes together
        graph = graph.maximum(0) if sp.issparse(graph) else np.maximum(graph, 0)
    if building.given:
        if not sp.issparse(graph) and len(graph) > MOST_ROWS:
            rows = np.sort(rng.choice(len(graph), MOST_ROWS, replace=False))
            graph, labels = graph[np.ix_(rows, rows)], labels[rows]
        drawn = {DEGREES if sp.issparse(graph) else SHUFFLED: _rewiring(graph)}
    else:
        points = table_of(data)
        if points.shape[0] > MOST_ROWS:
            rows = np.sort(rng.choice(points.shape[0], MOST_ROWS, replace=False))
            points, labels = points[rows], labels[rows]
            graph = graph_of_points(points, lambda given, _: given, building)(rng)
        normal = has_normal(points, building)
        drawn = {}
        if not normal or points.shape[1] <= MOST_COLUMNS:
            drawn[COLUMNS] = graph_of_points(points, nulls.same_marginals, building)
        if normal:
            drawn[NORMAL] = graph_of_points(points, nulls.same_covariance, building)
    small = replace(
        plan,
        settings=Settings.of(tol=TOL, max_iter=MOST_ITERATIONS),
        n_init=1,
        init=DEFAULT_INIT,
        random_state=0,
        basis=None,
        device=None,
        checkpoint=None,
        progress=None,
    )

    def search(null: Any) -> np.ndarray:
        basis = None
        if similar.degree_offset is not None:
            if building.degree_offset is None:  # chosen for each graph, so for this one too
                _, null, basis = with_degree_offset(null, clusters)
            else:
                null = normalized(null, building.degree_offset)
        labels = replace(small, basis=basis).best(null).labels
        if calls.out_of_time():  # it was cut short, so that nothing can be compared with it
            raise NoTime
        return labels

    stored = graph.nnz if sp.issparse(graph) else graph.size
    return judge(
        graph,
        labels,
        clusters,
        nulls=drawn,
        search=search,
        rng=rng,
        size=float(stored * clusters),
        remark=LOCAL if building.given and joins_neighbours(graph) else "",
    )


def _rewiring(graph: Any) -> Draw:
    return lambda rng: nulls.same_degrees(graph, rng)
