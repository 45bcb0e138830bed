"""How many clusters, where the user leaves that open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.nulls_of import clouds_of
from symnmf.cluster.similarities import Building
from symnmf.errors import InputError
from symnmf.membership import edges_of
from symnmf.run.seeds import neighborhood_count
from symnmf.run.start import RandomState
from symnmf.storage import SymmetricArray

if TYPE_CHECKING:
    from symnmf.selection.found import RankSelection

#: The number of clusters that asks for one to be found.
AUTO = "auto"


def count_overlapping(graph: Any) -> int:
    """Return how many separate neighbourhoods a graph has; 0 where it has no edges to look at.

    Communities that overlap are many and small, and hidden pairs say little of their number.
    """
    edges = edges_of(graph)
    return 0 if edges is None else neighborhood_count(edges)


def choose_count(
    graph: Any, data: Any, building: Building, random_state: RandomState
) -> RankSelection:
    """Return how many clusters the similarities ``graph`` of the data have, and why.

    A seed of its own is drawn from, so that the starts are those of a fit with the number given.
    """
    if isinstance(graph, SymmetricArray):
        raise InputError(
            f"{building.spell('n_clusters', AUTO)} needs {building.argument} in memory, as an "
            f"array or a sparse matrix; give the number of clusters."
        )
    if graph.min() < 0:  # what holds nodes together tells how many groups there are
        graph = graph.maximum(0) if sp.issparse(graph) else np.maximum(graph, 0)
    from symnmf.selection.auto import count_clusters  # loads much that other calls do not need

    seed = random_state if isinstance(random_state, int | np.integer) else 0
    draw: Callable[[np.random.Generator], Any] | None = None
    if building.has_points:
        draw = clouds_of(data, building)
    return count_clusters(graph, draw=draw, random_state=int(seed))
