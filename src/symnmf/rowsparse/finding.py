"""From a graph to many communities: seeds, a fit, and the members of each column."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import calls
from symnmf.errors import InputError
from symnmf.parallel import Threads
from symnmf.rowsparse.certificate import SparseCertificate
from symnmf.rowsparse.factor import RowSparse
from symnmf.rowsparse.fitting import RowSparseLikelihood, RowSparseSteps, SparseRun
from symnmf.rowsparse.sparse_loss import Loss, Point
from symnmf.run.checkpoint import Checkpoint
from symnmf.run.interrupts import watching
from symnmf.run.problem import Problem
from symnmf.run.result import OUTSIDE, Callback, Result, Status
from symnmf.run.seeds import Seeds, as_edges, neighborhood_seeds
from symnmf.run.settings import Limits, Settings

#: Entries a row may hold.
WIDTH = 16

#: From so many nodes on "auto" counts neighbourhoods; at most 20 communities would say little.
ROWS_FROM = 5000
#: From so many columns and entries of U on (80 MB) most of them would be zeros.
COLUMNS_FROM, ENTRIES_FROM = 200, 10_000_000

#: A community needs so many members.
LEAST_MEMBERS = 2


@dataclass(frozen=True, eq=False)
class SparseFound:
    """Communities of the graph A read off a row-sparse U, the largest first.

    The columns of the result are in the order of the communities, ``sets`` are their members, and
    the run began with so many ``seeds``.
    """

    A: sp.csr_array
    result: Result
    sets: list[np.ndarray]
    seeds: int

    @cached_property
    def strengths(self) -> sp.csr_array:
        """U in units of the background: a node belongs where it is above 1."""
        return sp.csr_array(self.result.U / np.sqrt(self.result.background))

    @cached_property
    def membership(self) -> sp.csr_array:
        """Shares of the rows of U where a node belongs; nothing is stored elsewhere."""
        shares = self.result.membership.copy()
        shares.data[self.strengths.data <= 1.0] = 0.0
        shares.eliminate_zeros()
        return shares

    @cached_property
    def labels(self) -> np.ndarray:
        """The community of each node in which it is strongest; -1 for a node in none."""
        if not self.sets:
            return np.full(self.A.shape[0], OUTSIDE)
        strongest = np.asarray(self.strengths.max(axis=1).toarray()).ravel()
        return np.where(strongest > 1.0, self.result.labels, OUTSIDE)

    def row(self, edges: sp.csr_array) -> np.ndarray:
        """Return the row of U of a new node with these edges, by expectation-maximisation."""
        U, totals = self.result.U, np.asarray(self.result.U.sum(axis=0)).ravel()
        near = sp.csr_array(U[edges.indices])
        columns = np.unique(near.indices)
        rates = near[:, columns].toarray()
        row = np.full(len(columns), np.sqrt(self.result.background))
        for _ in range(200):
            explained = rates @ row + self.result.background
            row = row * (rates.T @ (edges.data / explained)) / totals[columns]
        whole = np.zeros(U.shape[1])
        whole[columns] = row
        return whole


def find_many(
    A: Any,
    count: int | None,
    *,
    limits: Limits,
    n_jobs: int | None = None,
    callback: Callback | None = None,
    checkpoint: Any = None,
) -> SparseFound:
    """Find ``count`` communities, or as many as the seeds, less those that explain nothing.

    The run ends where one iteration lowers the loss by less than ``tol``, relative to it.
    """
    with calls.opened(limits.max_time) as call:
        with calls.timed("start"):
            A = as_edges(A)
            seeds = neighborhood_seeds(A, count)
        if not seeds.sets:
            raise InputError(
                "G has no node with two edges, so there is no neighbourhood to begin with; pass "
                "row_sparse=False."
            )
        loss = Loss(A, _background(seeds), Threads(n_jobs))
        start = RowSparse.of_sets(seeds.sets, np.sqrt(seeds.density), A.shape[0], WIDTH)
        problem = Problem.around(RowSparseLikelihood(loss, start))
        settings = Settings(RowSparseSteps(), None, limits)
        keeper = None if checkpoint is None else Checkpoint(checkpoint)
        saved = None
        if keeper is not None:
            f = problem.objective
            saved = keeper.resume(problem, WIDTH, settings, {"count": count}, [f])
        run = SparseRun(problem, settings, callback, keeper)
        signals = [signal.SIGINT, *([signal.SIGTERM] if keeper else [])]
        with watching(call, *signals):
            if saved is None:
                run.begin(start.values)
            else:
                run.go_on(saved)
            status = run.iterate()
        with calls.timed("solve"):
            point = run.f.point(run.state)
            U, sets = _read(point.U, loss, prune=count is None)
        result = _result(run, point, U, status).of_call(call)
        return SparseFound(A, result, sets, len(seeds.sets))


def _background(seeds: Seeds) -> float:
    """The rate on the border of a seed, between a thousandth and a half of that inside."""
    inside = float(seeds.density.mean())
    return min(max(seeds.boundary, 1e-3 * inside), 0.5 * inside)


def _read(U: RowSparse, loss: Loss, *, prune: bool) -> tuple[sp.csr_array, list[np.ndarray]]:
    """Return U with its columns by size, and their members.

    A node is a member where its strength exceeds the root of the background rate. Columns with
    fewer than two members are dropped; with ``prune`` also those without which the loss is lower.
    """
    matrix = U.to_csr()
    members = sp.csc_array(matrix > np.sqrt(loss.background))
    sizes = np.diff(members.indptr)
    kept = sizes >= LEAST_MEMBERS
    if prune:
        kept &= loss.gains(U) > 0.0
    columns = np.flatnonzero(kept)
    columns = columns[np.argsort(-sizes[columns], kind="stable")]
    ordered = sp.csr_array(matrix[:, columns])
    ordered.sort_indices()
    sets = np.split(members.indices, members.indptr[1:-1])
    return ordered, [sets[column] for column in columns]


def _result(run: SparseRun, point: Point, U: sp.csr_array, status: Status) -> Result:
    loss, limits = run.f.poisson, run.limits
    size = max(point.sqnorm, 1e-300)
    outside = loss.grown(point, 0)[2]
    objective = run.history["objective"]
    rises = np.diff(objective) > 1e-9 * np.abs(objective[1:])
    certificate = SparseCertificate(
        on_support=float(np.sqrt(point.residual / size)),
        off_support=float(np.sqrt(outside / size)),
        full_rows=int((point.U.counts == point.U.values.shape[1]).sum()),
        monotone=not rises.any(),
        status=status,
        tol=limits.tol,
    )
    return Result(
        U=U,
        V=U,
        value=run.latest.value,
        error=run.latest.error,
        n_iter=run.state.iteration,
        status=status,
        coupling=0.0,
        history=run.history,
        solver=run.solver.name,
        tol=float(limits.tol),
        background=loss.background,
        measured=certificate,
    )


def worth_it(n: int, count: int | str) -> bool:
    """Whether a dense U of n rows would be wasteful: rows are in a few of very many columns."""
    if isinstance(count, str):
        return n >= ROWS_FROM
    return count >= COLUMNS_FROM and n * count >= ENTRIES_FROM
