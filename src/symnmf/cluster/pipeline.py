"""The one way from data to clusters; every entry point that clusters is a face of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf import calls, graphs
from symnmf.bars import bar, together
from symnmf.cluster.fitted import Fitted
from symnmf.cluster.judgement import LEVEL, Evidence, RankSelection
from symnmf.cluster.judging import count_overlapping, evidence_for
from symnmf.cluster.refining import refined
from symnmf.cluster.similarities import Building, Similarities
from symnmf.errors import InputError
from symnmf.graphs.adjacency import degrees
from symnmf.graphs.assigning import LIKELIHOOD, can_reassign
from symnmf.graphs.attributes import aligned, scale_attributes
from symnmf.graphs.degree_offsets import OFFSETS
from symnmf.graphs.partitions import Partition
from symnmf.interchange import column_names, to_host
from symnmf.objectives.losses import FROBENIUS
from symnmf.options import AUTO
from symnmf.run.multistart import Plan, Search, StartProgress
from symnmf.run.problem import Problem, says
from symnmf.run.result import Callback
from symnmf.run.settings import Settings
from symnmf.run.spectral import SpectralStarts
from symnmf.run.start import RandomState, as_seed
from symnmf.solvers import Solver
from symnmf.storage import SymmetricMatrix
from symnmf.storage.wrapping import in_memory

if TYPE_CHECKING:
    from symnmf.coupling import Coupling
    from symnmf.run.choosing import Choice

#: Part of ``max_time`` for the graph, the starts and the search; labels take the rest.
SEARCH_SHARE = 0.9

#: Part of the modularity that was expected below which clusters have collapsed.
COLLAPSED = 0.7


@dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline(Building):
    """All settings of a clustering, checked when it is made, before data are looked at.

    The parts of the way are data, similarities, :class:`symnmf.Problem`, a search over starts,
    and :class:`Fitted`. The attributes are those of :class:`Building`, the arguments of
    :class:`symnmf.SymNMF` and :func:`symnmf.communities`, and:

    Attributes
    ----------
    labels, must_link, cannot_link : array of shape (n,) or None
        What is known of the rows; see :meth:`symnmf.SymNMF.fit`.
    attributes : array-like, sparse or DataFrame or None
        A table with a row for each row of the data, explained along with them.
    attribute_weight : float or "auto"
        How much it counts; "auto" chooses by held-out entries.
    attribute_scaling : str
        How it is scaled first; see :func:`symnmf.graphs.scale_attributes`.
    attribute_names : list or None
        What its columns are called, where it does not say.
    threshold : float, "background" or None
        The share from which on a row belongs to more than one cluster, or strengths above the
        background; None for one cluster each.
    assign_labels : {"likelihood", "largest"}
        Whether a row goes to the cluster that its similarities make most likely, or to that of its
        largest entry.
    rows : str
        What the rows of the data are called in messages.
    """

    n_clusters: int | str
    labels: Any = None
    must_link: Any = None
    cannot_link: Any = None
    constraint_strength: float = 1.0
    threshold: float | str | None = None
    assign_labels: str = LIKELIHOOD
    loss: str = FROBENIUS
    attributes: Any = None
    attribute_weight: float | str = AUTO
    attribute_scaling: str = "auto"
    attribute_names: list[Any] | None = None
    solver: str | Solver = "auto"
    coupling: str | float | Coupling | None = None
    init: Any = AUTO
    n_init: int = 1
    tol: float = 1e-4
    max_iter: int = 1000
    max_time: float | None = None
    record_every: int = 1
    random_state: RandomState = None
    callback: Callback | None = None
    progress: bool = False
    checkpoint: str | Path | None = None
    rows: str = "samples"
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        count = self.n_clusters
        if self.loss != FROBENIUS:
            self._check_loss()
        self._check_attributes()
        if self.constrained and self.hides:
            raise InputError(
                "missing entries and constraints were both given; leave one of them out."
            )
        if self.automatic and self.hides:
            raise InputError(self._needs_all())
        limits = {name: getattr(self, name) for name in ("tol", "max_iter", "max_time")}
        settings = Settings.of(self.solver, self.coupling, record_every=self.record_every, **limits)
        shared = ("n_init", "init", "random_state", "n_jobs", "device", "checkpoint")
        options = {name: getattr(self, name) for name in shared}
        plan = Plan(1 if self.automatic else int(count), settings, **options)
        object.__setattr__(self, "plan", plan)

    def _needs_all(self) -> str:
        return (
            f"n_clusters={AUTO!r} needs every entry of {self.argument}; give the "
            f"number of clusters."
        )

    def _check_attributes(self) -> None:
        if self.attributes is None:
            return
        for said, refused in (
            ("loss", self.loss != FROBENIUS),
            ("order=3", self.order != 2),
            ("labels", self.constrained),
        ):
            if refused:
                raise InputError(
                    f"attributes cannot be combined with {said}; leave one of them out."
                )

    def _check_loss(self) -> None:
        """Refuse what a likelihood does not have, before any work is done."""
        if self.order == 3:
            raise InputError("loss is for edges, not for triangles; leave it out.")
        for name in ("weights", "missing", "allow_negative", "l1", "ridge"):
            if says(self.objective.get(name)):
                raise InputError(
                    f"{name} cannot be combined with loss={self.loss!r}; leave one out."
                )

    @property
    def automatic(self) -> bool:
        """Whether the number of clusters is still to be found."""
        return isinstance(self.n_clusters, str) and self.n_clusters == AUTO

    @property
    def constrained(self) -> bool:
        """Whether something is known of the rows."""
        return any(told is not None for told in (self.labels, self.must_link, self.cannot_link))

    def fit(self, data: Any, *watchers: StartProgress | None) -> Fitted:
        """Cluster the data, with a bar where one is asked for, and warn of what should be known.

        Watchers are called with the number of a start and its latest snapshot; a true answer ends
        the search with the current result.
        """
        with calls.opened(self.max_time) as call:
            with calls.opened(None if self.max_time is None else SEARCH_SHARE * self.max_time):
                with calls.timed("check"):
                    prepared = self.prepare(data)
                callback = self.callback
                of_each = None if callback is None else lambda _, now: callback(now)
                with bar(self.progress, prepared.plan.starts) as shown:
                    prepared, search = prepared.search(together(shown, of_each, *watchers))
            fitted = prepared.clusters(search)
            fitted.warn()
            return fitted.of_call(call)

    def prepare(self, data: Any) -> Prepared:
        """Return the problem that the data pose, with everything but the search done."""
        read = graphs.hypergraph_of(data, self.weight)
        if read is not None:
            data = read
            self._check_hypergraph()
        n = rows_of(data)
        count = 0 if self.automatic else int(self.n_clusters)
        if n is not None and count > n:
            raise InputError(self._too_many(count, n))
        self._check_told(n, count)
        similar, selection = self.similarities(data, count), None
        evidence = evidence_for(
            data, similar, self, as_seed(self.random_state), attributes=self.attributes is not None
        )
        if not count:
            one = evidence is not None and evidence.p > LEVEL  # which no neighbourhoods change
            if self.threshold is not None and not one:
                count = count_overlapping(similar.graph)
            if not count:
                f = getattr(similar.A, "objective", None)  # of a Problem
                if f is not None and not getattr(f, "base", f).unit_weights:
                    raise InputError(self._needs_all())
                if evidence is None:
                    raise InputError(
                        f"n_clusters={AUTO!r} needs {self.argument} in memory, as an "
                        f"array or a sparse matrix; give the number of clusters."
                    )
                selection = evidence.selection
                count = selection.recommendation
            similar = self.for_count(similar, count)
        if similar.connected and count > similar.connected:
            having = "triangles" if self.order == 3 else "edges"
            raise InputError(self._too_many(count, similar.connected, f" that have {having}"))
        plan = replace(self.plan, rank=count, basis=similar.basis)
        if self.constrained:
            changed = graphs.constrained(
                similar.A,
                self.must_link,
                self.cannot_link,
                self.labels,
                strength=self.constraint_strength,
            )
            similar = replace(similar, A=changed, basis=None, checked=None)
        objective = {**self.objective}
        if self.constrained:
            objective["allow_negative"] = True
        choice = None
        if self.attributes is not None:
            similar, choice, told = self._with_attributes(similar, count)
            objective |= told
            plan = replace(plan, basis=None)
        hides = any(map(says, objective.values()))
        A = similar.A if hides or similar.checked is None else similar.checked
        problem = plan.problem(A, **objective)
        problem.attribute_names = self.attribute_names or column_names(self.attributes)
        if similar.signs is None:
            plan = _from_attraction(plan, problem)
        return Prepared(self, similar, problem, plan, selection, choice, evidence)

    def _with_attributes(
        self, similar: Similarities, count: int
    ) -> tuple[Similarities, Choice, dict[str, Any]]:
        """Return the similarities, the weight of the attributes and what the Problem is told."""
        if isinstance(similar.A, Problem):
            raise InputError(
                f"{self.argument} is a Problem, which knows its attributes; say them when it is "
                f"made."
            )
        from symnmf.cluster.joint import OFFSETS, AttributeWeight, choose_weight
        from symnmf.run.choosing import Choice

        table = aligned(self.attributes, similar.names, "attributes")
        F = scale_attributes(table, self.attribute_scaling)
        n = similar.graph.shape[0]
        if F.shape[0] != n:
            raise InputError(
                f"attributes must have one row for each of the {n} {self.rows} of "
                f"{self.argument}, got {F.shape[0]}."
            )
        if self.components != "all":  # what is left out has no attributes either
            inside = sp.diags_array((degrees(similar.graph) > 0).astype(np.float64))
            F = inside @ F
        tau = similar.degree_offset
        weight = self.attribute_weight
        if isinstance(weight, str):
            free = tau is not None and self.degree_offset is None
            offsets = [tau, *OFFSETS] if free else [tau]
            choice = choose_weight(similar.graph, F, count, offsets, self.n_jobs)
            if choice.value.degree_offset != tau:
                similar = self.normalised_by(similar, float(choice.value.degree_offset or 0.0))
        else:
            choice = Choice(AttributeWeight(float(weight), tau))
        return similar, choice, {"attributes": F, "attribute_weight": choice.value.weight}

    def _check_hypergraph(self) -> None:
        if self.loss == "bernoulli":
            raise InputError(
                f"loss={self.loss!r} is for edges and {self.argument} is a "
                f"hypergraph; use loss='poisson'."
            )
        if self.constrained:
            raise InputError(
                f"constraints are for graphs and points, and {self.argument} is a hypergraph; "
                f"pass its clique graph, {self.argument}.clique_graph()."
            )

    def _check_told(self, n: int | None, count: int) -> None:
        if n is None or not self.constrained:
            return
        from symnmf.graphs.constraints import groups_of, known_classes

        if self.labels is not None:
            known_classes(self.labels, n, count or None)
        for name in ("must_link", "cannot_link"):
            if getattr(self, name) is not None:
                groups_of(getattr(self, name), n, name)

    def _too_many(self, count: int, most: int, which: str = "") -> str:
        rows = self.rows.removesuffix("s") if most == 1 else self.rows
        return (
            f"n_clusters={count!r} is more than the {most} {rows} of {self.argument}"
            f"{which}; choose at most n_clusters={most!r}."
        )

    def advice(self, similar: Similarities) -> str:
        """Return what to try where clusters are hardly any."""
        if not self.precomputed:
            return "try another affinity or n_neighbors, or fewer clusters"
        first = "raise degree_offset"
        if similar.degree_offset is None:
            first = "pass normalize=True"
        return f"{first}, or components='largest'"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A clustering of which only the search is left to do."""

    pipeline: Pipeline
    similarities: Similarities
    problem: Problem
    plan: Plan
    selection: RankSelection | None = None
    choice: Choice | None = None
    evidence: Evidence | None = None

    def search(self, watcher: StartProgress | None = None) -> tuple[Prepared, Search]:
        """Run the starts, and refine the best by a likelihood where one is asked for.

        Either may pose another problem, which is returned with what was found.
        """
        search = replace(self.plan, progress=watcher).search(self.problem)
        if (other := self._with_larger_offset(search)) is not None:
            return other.search(watcher)
        if self.pipeline.loss == FROBENIUS:
            return self, search
        search, similar, problem = refined(
            search,
            self.similarities,
            self.pipeline.loss,
            self.plan.settings.limits,
            n_jobs=self.pipeline.n_jobs,
            objective=self.pipeline.objective,
        )
        return replace(self, similarities=similar, problem=problem), search

    def _with_larger_offset(self, search: Search) -> Prepared | None:
        """Return the same with more added to degrees, if the clusters have collapsed all the same.

        What is added was chosen by a quick factorization, of a contracted graph if it is large, and
        the whole one may end elsewhere.
        """
        similar, pipeline = self.similarities, self.pipeline
        larger = [tau for tau in OFFSETS if tau > (similar.degree_offset or 0.0)]
        fixed = pipeline.constrained or pipeline.hides or pipeline.checkpoint is not None
        stopped = search.best.status == "stopped" or calls.out_of_time()
        if similar.expected is None or not larger or stopped or fixed or self.choice is not None:
            return None
        clusters = int(self.plan.rank)
        labels = to_host(search.best.labels)
        found = Partition.of(similar.graph, labels, clusters).modularity
        if found > COLLAPSED * similar.expected:
            return None
        again = pipeline.normalised_by(similar, larger[0])
        given = again.A if again.checked is None else again.checked
        return replace(
            self,
            similarities=replace(again, expected=similar.expected, hypergraph=similar.hypergraph),
            problem=self.plan.problem(given, **pipeline.objective),
            plan=replace(self.plan, basis=None),
        )

    def clusters(self, search: Search) -> Fitted:
        """Assign rows to clusters and number these."""
        pipeline = self.pipeline
        classes = None if pipeline.labels is None else np.asarray(pipeline.labels)
        return Fitted.of(
            search,
            classes,
            similarities=self.similarities,
            problem=self.problem,
            limits=self.plan.settings.limits,
            starts=self.plan.starts,
            advice=pipeline.advice(self.similarities),
            threshold=pipeline.threshold,
            selection=self.selection,
            attribute_weight=self.choice,
            objective=pipeline.objective,
            evidence=self.evidence,
            by_likelihood=self._by_likelihood,
        )

    @property
    def _by_likelihood(self) -> bool:
        """Whether similarities alone, all of them, say where a row belongs."""
        pipeline, similar = self.pipeline, self.similarities
        others = pipeline.constrained or pipeline.hides or pipeline.order != 2
        others |= self.choice is not None or similar.hypergraph is not None
        if pipeline.assign_labels != LIKELIHOOD or pipeline.threshold is not None or others:
            return False
        weighted = not self.problem.objective.unit_weights
        given = isinstance(similar.A, Problem) and weighted
        return pipeline.loss == FROBENIUS and not given and can_reassign(similar.graph)


def rows_of(data: Any) -> Any:
    """Return how many rows the data have, or None where they must be read to tell."""
    shape = getattr(data.X if isinstance(data, Problem) else data, "shape", None)
    return int(shape[0]) if isinstance(shape, tuple) and shape else None


def _from_attraction(plan: Plan, problem: Problem) -> Plan:
    """Start from the eigenvectors of what is positive in X, where eigenvectors are asked for.

    Pairs that are to be apart say little about where their ends belong, and are noise there.
    """
    A = in_memory(problem.X)
    if not (plan.from_eigenvectors and problem.X.signed and A is not problem.X):
        return plan
    attracting: Any = plan.problem(A.maximum(0) if sp.issparse(A) else np.maximum(A, 0)).X
    starts = SpectralStarts()

    def attraction(X: SymmetricMatrix, rank: int, random_state: np.random.Generator) -> np.ndarray:
        return starts.prepare(attracting, rank).start(X, random_state)

    return replace(plan, init=attraction)
