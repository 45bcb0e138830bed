"""The one way from data to clusters; every entry point that clusters is a face of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import calls, graphs
from symnmf.bars import Watcher, watched
from symnmf.cluster.fitted import Fitted, fitted_of
from symnmf.cluster.judgement import LEVEL, Evidence, RankSelection
from symnmf.cluster.judging import evidence_for
from symnmf.cluster.quality import QualityWarning, uneven
from symnmf.cluster.refining import refined
from symnmf.cluster.similarities import Similarities, for_count, normalised, similarities
from symnmf.cluster.task import Task
from symnmf.errors import InputError, warn
from symnmf.graphs.adjacency import attraction, degrees
from symnmf.graphs.assigning import LIKELIHOOD, can_reassign
from symnmf.graphs.attributes import aligned, scale_attributes
from symnmf.interchange import column_names
from symnmf.membership import BACKGROUND, edges_of
from symnmf.objectives.losses import FROBENIUS
from symnmf.run.multistart import Plan
from symnmf.run.problem import Problem
from symnmf.run.seeds import neighborhood_count
from symnmf.run.solving import warn_unless_converged
from symnmf.run.spectral import SpectralStarts
from symnmf.run.start import as_seed
from symnmf.storage import SymmetricMatrix
from symnmf.storage.wrapping import in_memory

#: Part of ``max_time`` for the graph, the starts and the search; labels take the rest.
SEARCH_SHARE = 0.9


def find_clusters(task: Task, data: Any, *watchers: Watcher | None) -> Fitted:
    """Cluster the data, with a bar where one is asked for, and warn of what should be known.

    Watchers are called with the number of a start and its latest snapshot; a true answer ends the
    search with the current result.
    """
    with calls.opened(task.max_time) as call:
        with calls.opened(None if task.max_time is None else SEARCH_SHARE * task.max_time):
            with calls.timed("check"):
                similar, count, evidence, selection = _look_at(task, data)
                similar, problem, plan = _pose(task, similar, count)
            with watched(task.progress, plan.starts, task.callback, *watchers) as watcher:
                search = replace(plan, progress=watcher).search(problem)
            if task.loss != FROBENIUS:
                search, similar, problem = refined(task, search, similar)
        by_likelihood = _by_likelihood(task, similar, problem)
        fitted = fitted_of(task, search, similar, problem, by_likelihood, selection, evidence)
        _warn(fitted, task)
        return fitted.of_call(call)


def _look_at(
    task: Task, data: Any
) -> tuple[Similarities, int, Evidence | None, RankSelection | None]:
    """Return the similarities, the number of clusters to look for, and what says how many."""
    count = 0 if task.automatic else int(task.n_clusters)
    _check_rows(task, data, count)
    similar, selection = similarities(task, data, count), None
    of_what = "triangles" if task.order == 3 else "edges"
    connected = similar.connected
    if not connected:
        raise InputError(f"{task.argument} has no {of_what}, so there is nothing to cluster.")
    evidence = evidence_for(data, similar, task, as_seed(task.random_state))
    if task.automatic:
        f = getattr(similar.X, "objective", None)  # of a Problem
        if evidence is None or (f is not None and not getattr(f, "base", f).unit_weights):
            raise InputError(
                f"n_clusters='auto' needs every entry of {task.argument} in memory, as an array or "
                f"a sparse matrix; give the number of clusters."
            )
        if task.shared_by is not None and not evidence.p > LEVEL:
            # communities that overlap are many and small, and gaps say little of their number
            edges = edges_of(similar.graph)
            count = 0 if edges is None else neighborhood_count(edges)
        if not count:  # one, or one that no neighbourhoods change
            selection = evidence.selection
            count = selection.recommendation
        similar = for_count(task, similar, count)
    if count > connected:
        raise InputError(_too_many(task, count, connected, f" that have {of_what}"))
    return similar, count, evidence, selection


def _check_rows(task: Task, data: Any, count: int) -> None:
    """Refuse more clusters than rows, and what is known of other rows, before any work is done."""
    shape = getattr(data.X if isinstance(data, Problem) else data, "shape", ())
    if not shape:
        return
    n = int(shape[0])
    if count > n > 0:
        raise InputError(_too_many(task, count, n))
    if task.constrained:
        from symnmf.graphs.constraints import groups_of, known_classes

        if task.labels is not None:
            known_classes(task.labels, n, count or None)
        for name in ("must_link", "cannot_link"):
            if getattr(task, name) is not None:
                groups_of(getattr(task, name), n, name)


def _too_many(task: Task, count: int, most: int, which: str = "") -> str:
    rows = task.rows.removesuffix("s") if most == 1 else task.rows
    return (
        f"n_clusters={count!r} is more than the {most} {rows} of {task.argument}{which}; choose at "
        f"most n_clusters={most!r}."
    )


def _pose(task: Task, similar: Similarities, count: int) -> tuple[Similarities, Problem, Plan]:
    """Return the problem of so many clusters, and how to search; everything but the search."""
    objective = similar.objective(task)
    X = similar.A if objective else similar.X
    if task.constrained:
        pairs = (task.must_link, task.cannot_link, task.labels)
        X = graphs.constrained(similar.A, *pairs)
        similar = replace(similar, X=X, basis=None)
        objective["allow_negative"] = True
    if task.attributes is not None:
        similar, objective = _with_attributes(task, similar, count)
        X = similar.A
    plan = replace(task.plan, rank=count, basis=similar.basis)
    problem = plan.problem(X, **objective)
    problem.attribute_names = column_names(task.attributes)
    if "negative_weight" not in similar.choices:
        plan = _from_attraction(plan, problem)
    return similar, problem, plan


def _with_attributes(
    task: Task, similar: Similarities, count: int
) -> tuple[Similarities, dict[str, Any]]:
    """Return the similarities, and what the Problem of them beside a table is given."""
    from symnmf.cluster.joint import OFFSETS, AttributeWeight, choose_weight
    from symnmf.run.choosing import Choice

    table = aligned(task.attributes, similar.names)
    F = scale_attributes(table, task.attribute_scaling)
    n = similar.graph.shape[0]
    if F.shape[0] != n:
        raise InputError(
            f"attributes must have one row for each of the {n} {task.rows} of {task.argument}, got "
            f"{F.shape[0]}."
        )
    if task.components != "all":  # what is left out has no attributes either
        F = sp.diags_array((degrees(similar.graph) > 0).astype(np.float64)) @ F
    tau, weight = similar.degree_offset, task.attribute_weight
    if isinstance(weight, str):
        offsets = [tau, *OFFSETS] if tau is not None and task.degree_offset is None else [tau]
        choice = choose_weight(similar.graph, F, count, offsets, task.n_jobs)
        if choice.value.degree_offset != tau:
            similar = normalised(task, similar, count, choice.value.degree_offset)
    else:
        choice = Choice(AttributeWeight(float(weight), tau))
    choices = {**similar.choices, "attribute_weight": choice}
    given = {"attributes": F, "attribute_weight": choice.value.weight}
    similar = replace(similar, basis=None, choices=choices)
    return similar, similar.objective(task) | given


def _from_attraction(plan: Plan, problem: Problem) -> Plan:
    """Start from the eigenvectors of what is positive in X, where eigenvectors are asked for.

    Pairs that are to be apart say little about where their ends belong, and are noise there.
    """
    A = in_memory(problem.X)
    if not (plan.from_eigenvectors and problem.X.signed and A is not problem.X):
        return plan
    attracting: Any = plan.problem(attraction(A)).X
    starts = SpectralStarts()

    def start(X: SymmetricMatrix, rank: int, random_state: np.random.Generator) -> np.ndarray:
        return starts.prepare(attracting, rank).start(X, random_state)

    return replace(plan, init=start)


def _by_likelihood(task: Task, similar: Similarities, problem: Problem) -> bool:
    """Whether similarities alone, all of them, say where a row belongs."""
    others = task.constrained or task.hides or task.order != 2 or task.attributes is not None
    others |= similar.hypergraph is not None or task.loss != FROBENIUS
    if task.assign_labels != LIKELIHOOD or task.shared_by is not None or others:
        return False
    weighted = isinstance(similar.X, Problem) and not problem.objective.unit_weights
    return not weighted and can_reassign(similar.graph)


def _warn(fitted: Fitted, task: Task) -> None:
    """Warn of a run that ended early, and of clusters that are empty or hold nearly all."""
    warn_unless_converged(fitted.result, task.plan.settings.limits, task.plan.starts)
    sizes = fitted.sizes.tolist()
    faults = uneven(sizes, fitted.result.U.shape[1])
    if faults and np.count_nonzero(sizes) > 1:
        faults.append(_advice(task, fitted.similarities))
    if fitted.selection is not None and fitted.selection.recommendation == 1:
        reason = fitted.selection.reason
        faults.insert(0, f"no clusters were found: {reason[0].lower()}{reason[1:]}".rstrip("."))
    if faults:
        warn(f"{'; '.join(faults)}.", QualityWarning)
    if fitted.shared_by == BACKGROUND and fitted.strengths is not None:
        linked = degrees(fitted.similarities.graph) > 0
        left = int(np.count_nonzero(linked & ~fitted.members.any(axis=1)))
        if left:
            warn(
                f"{left} of {np.count_nonzero(linked)} nodes with edges are in no community: the "
                f"density of the graph explains their edges as well; threshold=0.25 puts every "
                f"node into the community of its largest share at least.",
                QualityWarning,
            )


def _advice(task: Task, similar: Similarities) -> str:
    """Return what to try where clusters are hardly any."""
    if not task.precomputed:
        return "try another affinity or n_neighbors, or fewer clusters"
    first = "pass normalize=True" if similar.degree_offset is None else "raise degree_offset"
    return f"{first}, or components='largest'"
