"""Many communities of a large graph: when U is row-sparse, and what a search for them comes to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import errors, graphs
from symnmf.bars import watched
from symnmf.cluster.fitted import lists_of
from symnmf.cluster.judgement import UNKNOWN, Judgement
from symnmf.cluster.quality import Quality, assess
from symnmf.cluster.task import Task
from symnmf.errors import InputError
from symnmf.graphs.components import restrict
from symnmf.membership import BACKGROUND
from symnmf.rowsparse.finding import SparseFound, find_many, worth_it
from symnmf.run.multistart import Search
from symnmf.run.problem import Problem
from symnmf.run.result import cluster_labels
from symnmf.run.solving import warn_unless_converged
from symnmf.storage import SymmetricArray
from symnmf.storage.wrapping import is_storage

#: Why so many communities are not judged.
MANY = "communities that overlap share edges, and no null is known for that"


def is_row_sparse(task: Task, G: Any) -> bool:
    """Whether U is to be row-sparse: it was asked for, or a dense one would be wasteful."""
    if task.row_sparse:
        task.refuse_with("row_sparse=True")
        return True
    if task.row_sparse is not None or not task.overlapping:
        return False
    if isinstance(G, Problem | SymmetricArray) or is_storage(G):
        return False
    try:
        task.refuse_with("row_sparse=True")
    except InputError:
        return False
    return hasattr(G, "shape") and worth_it(int(G.shape[0]), task.n_clusters)


def fit_row_sparse(task: Task, G: Any) -> SparseFitted:
    """Find the communities, and say what should be known."""
    A, names = graphs.from_graph(G, weight=task.weight)
    count = None if task.automatic else int(task.n_clusters)
    n = A.shape[0]
    if count is not None and count > n:
        raise InputError(f"n_clusters={count} is more than the {n} nodes of G; choose fewer.")
    if task.row_sparse is None:
        size = f"{n} x {count}" if count else f"{n} rows and an unknown number of columns"
        errors.warn(
            f"a dense U of {size} would be mostly zeros, so U is row-sparse and fitted by the "
            f"Poisson loss; row_sparse=True says that this is meant, row_sparse=False makes U "
            f"dense.",
            UserWarning,
        )
    limits = task.plan.settings.limits
    with watched(task.progress, 1, task.callback) as watcher:
        found = find_many(
            restrict(A, task.components),
            count,
            limits=limits,
            n_jobs=task.n_jobs,
            callback=None if watcher is None else (lambda now: watcher(0, now)),
            checkpoint=task.checkpoint,
        )
    if count is not None and len(found.sets) < count:
        errors.warn(
            f"only {len(found.sets)} of the {count} communities asked for have members; the graph "
            f"has {found.seeds} separate neighbourhoods to begin with.",
            UserWarning,
        )
    warn_unless_converged(found.result, limits)
    return SparseFitted(found.A, found.result, found.sets, found.seeds, list(names))


@dataclass(frozen=True, eq=False)
class SparseFitted(SparseFound):
    """What :class:`Fitted` is for a dense U."""

    names: list[Any]
    seed: Any = None
    shared_by: str = BACKGROUND
    selection: None = None

    @property
    def listed(self) -> dict[str, list[str]]:
        """The communities of each node and its strengths in them, as text."""
        inside = sp.csr_array(self.strengths, copy=True)
        inside.data[inside.data <= 1.0] = 0.0
        inside.eliminate_zeros()
        inside.sort_indices()
        return lists_of(inside, True)

    @property
    def certificate(self) -> Any:
        """Whether U is stationary, on its support and off it."""
        return self.result.certificate()

    @cached_property
    def quality(self) -> Quality:
        """How the communities look."""
        search = Search(self.result, (self.result,), self.seed)
        untested = Judgement(UNKNOWN, MANY, (UNKNOWN,) * self.result.U.shape[1])
        return assess(self.A, self.labels, search, untested)

    def rows_of(self, edges: sp.csr_array) -> np.ndarray:
        """Return the row of U of a new node, as an array of one row."""
        return self.row(edges)[None]

    def labels_of(self, edges: sp.csr_array) -> np.ndarray:
        """Return the community of a new node in which it is strongest, -1 for none."""
        return cluster_labels(self.rows_of(edges))
