"""Clusters by a likelihood: the search is over squares, and its best is where that begins.

From random starts a likelihood ends in poor maxima; from the U of the normalised graph, brought
back to the units of the graph, it refines what squares have found.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from symnmf.cluster.similarities import Similarities
from symnmf.cluster.task import Task
from symnmf.errors import InputError
from symnmf.interchange import to_host
from symnmf.run.multistart import Search
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.run.solving import solve
from symnmf.storage import SymmetricArray


def refined(
    task: Task, search: Search, similar: Similarities
) -> tuple[Search, Similarities, Problem]:
    """Return the search with its best refined by a likelihood of the graph as it was given."""
    if similar.hypergraph is not None:
        problem = similar.hypergraph.problem(n_jobs=task.n_jobs)
    else:
        if isinstance(similar.graph, SymmetricArray):
            raise InputError(
                f"loss={task.loss!r} needs the graph in memory, as an array or a sparse matrix."
            )
        problem = Problem(similar.graph, loss=task.loss, n_jobs=task.n_jobs, **task.objective)
    roots = 1.0 if similar.roots is None else similar.roots[:, None]
    start = np.asarray(to_host(search.best.U), dtype=np.float64) * roots
    rank, limits = start.shape[1], task.plan.settings.limits
    settings = Settings.of(tol=limits.tol, max_iter=limits.max_iter, max_time=limits.max_time)
    result = solve(problem.for_rank(rank), rank, settings, init=start)
    if search.best.status == "stopped":
        result = replace(result, status="stopped")
    plain = replace(similar, X=similar.graph, roots=None, degree_offset=None, basis=None)
    found = replace(search, best=result, finished=(result,), bound=float("nan"))
    return found, plain, problem
