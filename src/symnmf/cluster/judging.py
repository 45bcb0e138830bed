"""What data say of the number of their clusters, for each kind of data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.judgement import Evidence, evidence_of
from symnmf.cluster.similarities import Similarities
from symnmf.cluster.task import Task
from symnmf.run.problem import Problem
from symnmf.storage import SymmetricArray


def evidence_for(data: Any, similar: Similarities, task: Task, seed: int) -> Evidence | None:
    """Return the evidence in some data; None where their similarities are not in memory.

    A seed of its own is drawn from, so that the starts are those of a fit with the number given.
    """
    graph = similar.graph
    if isinstance(graph, SymmetricArray):
        return None
    points = None
    if task.has_points:
        points = data if sp.issparse(data) else np.asarray(data, dtype=np.float64)
    elif task.points is not None:
        points = task.points
    return evidence_of(
        graph,
        points=points,
        incidence=None if similar.hypergraph is None else similar.hypergraph.incidence,
        seed=seed,
        why_not=_why_not(similar, task, points),
    )


def _why_not(similar: Similarities, task: Task, points: Any) -> str:
    """Return why no null hypothesis fits such data, or nothing."""
    f = similar.X.objective if isinstance(similar.X, Problem) else None
    if task.hides or (f is not None and not getattr(f, "base", f).unit_weights):
        return "entries are hidden or count less than others"
    if task.attributes is not None:
        return "attributes decide too, and no null covers edges and attributes"
    if "layer_weights" in similar.choices:
        return "layers of the same rows depend on each other"
    if points is None and not sp.issparse(similar.graph):
        return "the similarities of all pairs are given, and no null is known for them"
    return ""
