"""Many communities of a large graph: when U is row-sparse, and what that leaves of the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf import errors, graphs
from symnmf.bars import bar, together
from symnmf.cluster.judgement import UNKNOWN, Judgement
from symnmf.cluster.pipeline import Pipeline
from symnmf.cluster.quality import Quality, assess
from symnmf.errors import InputError
from symnmf.graphs.components import restrict
from symnmf.membership import BACKGROUND
from symnmf.objectives.losses import FROBENIUS
from symnmf.options import AUTO
from symnmf.run.multistart import Search
from symnmf.run.problem import Problem, says
from symnmf.run.result import Callback, cluster_labels
from symnmf.run.settings import Limits
from symnmf.run.solving import warn_unless_converged
from symnmf.storage import SymmetricArray
from symnmf.storage.wrapping import is_storage

if TYPE_CHECKING:
    from symnmf.rowsparse.finding import SparseFound

#: Why so many communities are not judged.
MANY = "communities that overlap share edges, and no null is known for that"


@dataclass(frozen=True, kw_only=True, eq=False)
class SparsePipeline:
    """The settings of a search for many communities.

    Attributes
    ----------
    n_clusters : int or "auto"
    wanted : bool or None
        Whether U is to be row-sparse; None where that is to be decided by the sizes.
    others : mapping
        Settings that a row-sparse U does not have, by name; None and False where they are not set.
    """

    n_clusters: int | str
    wanted: bool | None
    weight: str | None = "weight"
    components: str = "all"
    limits: Limits = field(default_factory=Limits)
    n_jobs: int | None = None
    callback: Callback | None = None
    progress: bool = False
    checkpoint: Any = None
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def beside(cls, pipeline: Pipeline, wanted: bool | None) -> SparsePipeline:
        """Return the same settings for a row-sparse U, and remember those that it does not have."""
        others = {
            "order": pipeline.order != 2,
            "threshold": pipeline.threshold not in (None, BACKGROUND),
            "normalize": pipeline.order == 2 and pipeline.normalize is False,
            "init": not (isinstance(pipeline.init, str) and pipeline.init == AUTO),
            "solver": pipeline.solver != "auto",
            "coupling": pipeline.coupling is not None,
            "device": pipeline.device is not None,
            "loss": pipeline.loss != FROBENIUS,
            "attributes": pipeline.attributes is not None,
        }
        for name, value in pipeline.objective.items():
            others[name] = says(value)
        return cls(
            n_clusters=pipeline.n_clusters,
            wanted=wanted,
            weight=pipeline.weight,
            components=pipeline.components,
            limits=pipeline.plan.settings.limits,
            n_jobs=pipeline.n_jobs,
            callback=pipeline.callback,
            progress=pipeline.progress,
            checkpoint=pipeline.checkpoint,
            others=others,
        )

    def __post_init__(self) -> None:
        if self.wanted is not None and not isinstance(self.wanted, bool | np.bool_):
            raise InputError(f"row_sparse must be True, False or None, got {self.wanted!r}.")
        if self.wanted and self._set:
            raise InputError(
                f"{self._set[0]} cannot be combined with "
                f"row_sparse=True, where rows of U hold few entries and the loss "
                f"is Poisson; leave one of them out."
            )

    @property
    def _set(self) -> list[str]:
        return [name for name, value in self.others.items() if value is not None and value]

    def applies(self, G: Any) -> bool:
        """Whether U will be row-sparse: it was asked for, or a dense one would be wasteful."""
        if self.wanted is not None or self._set:
            return bool(self.wanted)
        if isinstance(G, Problem | SymmetricArray) or is_storage(G):
            return False
        known = isinstance(self.n_clusters, int | np.integer) or self.n_clusters == "auto"
        from symnmf.rowsparse.finding import worth_it

        return known and worth_it(_nodes(G), self.n_clusters)

    def fit(self, G: Any) -> SparseFitted:
        """Find the communities, and say what should be known."""
        A, names = graphs.from_graph(G, weight=self.weight)
        count = None if self.n_clusters == "auto" else int(self.n_clusters)
        n = A.shape[0]
        if count is not None and not 1 <= count <= n:
            raise InputError(
                f"n_clusters={count} is not between 1 and the {n} nodes of G; choose another."
            )
        A = restrict(A, self.components, n, "")
        if self.wanted is None:
            size = f"{n} x {count}" if count else f"{n} rows and an unknown number of columns"
            errors.warn(
                f"a dense U of {size} would be mostly zeros, so U is row-sparse and fitted by the "
                f"Poisson loss; row_sparse=True says that this is meant, "
                f"row_sparse=False makes U dense.",
                UserWarning,
            )
        told = self.callback
        watched = None if told is None else (lambda _, now: told(now))
        with bar(bool(self.progress), 1) as shown:
            watcher = together(shown, watched)
            from symnmf.rowsparse.finding import find_many  # loads kernels that few calls need

            found = find_many(
                A,
                count,
                limits=self.limits,
                n_jobs=self.n_jobs,
                callback=None if watcher is None else (lambda now: watcher(0, now)),
                checkpoint=self.checkpoint,
            )
        if count is not None and len(found.sets) < count:
            errors.warn(
                f"only {len(found.sets)} of the {count} communities asked for have members; the "
                f"graph has {found.seeds} separate neighbourhoods to begin with.",
                UserWarning,
            )
        warn_unless_converged(found.result, self.limits)
        return SparseFitted(found, list(names))


@dataclass(frozen=True, eq=False)
class SparseFitted:
    """What :class:`Fitted` is for a dense U."""

    found: SparseFound
    names: list[Any]
    seed: Any = None
    threshold: str = BACKGROUND
    degree_offset: float = 0.0

    @property
    def result(self) -> Any:
        """The factorization; its columns are in the order of the communities."""
        return self.found.result

    @property
    def labels(self) -> np.ndarray:
        """The community of each node in which it is strongest; -1 for none."""
        return self.found.labels

    @property
    def sets(self) -> list[np.ndarray]:
        """The members of each community."""
        return self.found.sets

    @property
    def strengths(self) -> sp.csr_array:
        """U in units of the background, sparse."""
        return self.found.strengths

    @property
    def membership(self) -> sp.csr_array:
        """Shares of the rows of U in the communities that they belong to, sparse."""
        return self.found.membership

    @property
    def listed(self) -> dict[str, list[str]]:
        """The communities of each node and its strengths in them, as text."""
        inside = sp.csr_array(self.strengths, copy=True)
        inside.data[inside.data <= 1.0] = 0.0
        inside.eliminate_zeros()
        inside.sort_indices()
        ends = inside.indptr[1:-1]
        numbers, strengths = np.split(inside.indices, ends), np.split(inside.data, ends)
        return {
            "all_clusters": [" ".join(map(str, row.tolist())) for row in numbers],
            "strengths": [" ".join(f"{s:.4g}" for s in row) for row in strengths],
        }

    @property
    def certificate(self) -> Any:
        """Whether U is stationary, on its support and off it."""
        return self.result.certificate()

    @cached_property
    def quality(self) -> Quality:
        """How the communities look."""
        search = Search(self.result, (self.result,), 1, self.seed)
        told = Judgement(UNKNOWN, MANY, (UNKNOWN,) * self.result.U.shape[1])
        return assess(self.found.A, self.labels, search, told)

    def rows_of(self, edges: sp.csr_array) -> np.ndarray:
        """Return the row of U of a new node, as an array of one row."""
        return self.found.row(edges)[None]

    def labels_of(self, edges: sp.csr_array) -> np.ndarray:
        """Return the community of a new node in which it is strongest, -1 for none."""
        return cluster_labels(self.rows_of(edges))


def _nodes(G: Any) -> int:
    """How many nodes a graph has, without reading its edges; 0 where that is not plain."""
    shape = getattr(G, "shape", None)
    if isinstance(shape, tuple) and shape:
        return int(shape[0])
    for name in ("number_of_nodes", "vcount"):
        if hasattr(G, name):
            return int(getattr(G, name)())
    return 0
