"""The same way from data to similarities, for data that have no clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import graphs, nulls
from symnmf.cluster.similarities import Building
from symnmf.graphs.warning import unsaid

Draw = Callable[[np.random.Generator], Any]

#: Affinities for which distances relative to each other are all that matters.
BY_DISTANCE = ("self-tuning", "nearest_neighbors")


def clouds_of(data: Any, building: Building) -> Draw:
    """Return what draws the graph of one cloud of points like those of the data.

    It has their means and covariances, or only their columns where the table is sparse or wide or
    its affinity asks for more than distances.
    """
    points = table_of(data)
    normal = has_normal(points, building)
    return graph_of_points(
        points, nulls.same_covariance if normal else nulls.same_marginals, building
    )


def has_normal(points: Any, building: Building) -> bool:
    """Whether normal points with the same covariances can stand for the data."""
    return building.affinity in BY_DISTANCE and nulls.has_covariance(points)


def graph_of_points(points: Any, null: Callable[..., Any], building: Building) -> Draw:
    """Return what draws points without clusters and builds their graph, without its warnings."""

    def draw(rng: np.random.Generator) -> Any:
        with unsaid():  # of components and copies among points nobody has
            return graphs.build(
                null(points, rng),
                building.affinity,
                n_neighbors=building.n_neighbors,
                n_jobs=building.n_jobs,
                device=building.device,
                n_clusters=points.shape[0],
                **building.kernel_options,
            )

    return draw


def table_of(data: Any) -> Any:
    """Return points as a sparse matrix or an array in memory."""
    return data if sp.issparse(data) else np.asarray(data, dtype=np.float64)
