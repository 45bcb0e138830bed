"""How much a table of attributes counts beside a graph: what predicts held-out entries of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from symnmf import calls
from symnmf.errors import InputError
from symnmf.graphs.adjacency import normalized
from symnmf.objectives.attributed import Attributed
from symnmf.run.loop import solve
from symnmf.run.multistart import SPECTRAL
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.settings import Settings
from symnmf.run.start import RandomState, as_generator

#: The weight that is tried first, the factor to the next ones, and a finer one at the end.
FIRST, FACTOR, FINE = 10.0**-0.5, 10.0**0.5, 10.0**0.25

#: The least weight and the largest; beyond them the table, or the graph, has no say.
LEAST, MOST = 0.01, 100.0

#: Weights in a row that may bring nothing before no further one is tried.
PATIENCE = 2

#: The part of the links and of the table's entries that is held out, the most of each, and how
#: often that is done.
HELD_OUT, MOST_HELD, SPLITS = 0.1, 100_000, 2

#: How far the runs go: what is compared settles long before U does.
TOL, MOST_ITERATIONS = 1e-3, 150

#: Offsets of degrees that are compared beside the one that suits the graph alone. Attributes hold
#: small components to the others, so that less of it may do.
OFFSETS = (0.25, 1.0)


class Tried(NamedTuple):
    """How well held-out entries were predicted with one weight.

    ``links`` and ``attributes`` are the chances that a link that was held out is ranked above a
    pair without one, and an entry of the table that was held out above one that is 0.
    """

    degree_offset: float | None
    weight: float
    links: float
    attributes: float

    @property
    def score(self) -> float:
        """Their sum, which is largest where neither is explained at the cost of the other."""
        return self.links + self.attributes


@dataclass(frozen=True, eq=False)
class AttributeWeight:
    """The weight of a table of attributes, and how it was chosen.

    Attributes
    ----------
    weight : float
        ``attribute_weight`` of :class:`symnmf.Problem`.
    degree_offset : float or None
        tau in mean degrees, which is chosen along with it; None where nothing is normalised.
    tried : tuple of Tried
        What was compared; empty where the weight was given.
    """

    weight: float
    degree_offset: float | None = None
    tried: tuple[Tried, ...] = ()


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A matrix with some entries taken out, and entries to rank.

    Attributes
    ----------
    kept : ndarray or csr_array
        The matrix without them.
    present, absent : tuple of two ndarray
        Rows and columns of entries held out that are large, and of some that are small.
    """

    kept: Any
    present: tuple[np.ndarray, np.ndarray]
    absent: tuple[np.ndarray, np.ndarray]

    def ranked(self, left: np.ndarray, right: np.ndarray) -> float:
        """Return the chance that <left_i, right_j> ranks a present entry above an absent one."""
        model = [np.einsum("ij,ij->i", left[i], right[j]) for i, j in (self.present, self.absent)]
        return ranked_above(*model)


def ranked_above(larger: np.ndarray, smaller: np.ndarray) -> float:
    """Return the part of all pairs in which the first is larger (AUC); ties count a half."""
    if not len(larger) or not len(smaller):
        return 0.5
    ranks = rankdata(np.concatenate([larger, smaller]))[: len(larger)]
    return float((ranks.mean() - 0.5 * (len(larger) + 1)) / len(smaller))


def hold_out(M: Any, rng: np.random.Generator, *, symmetric: bool) -> HeldOut:
    """Take entries out of a graph or a table.

    Of a sparse one, stored entries are taken out and ranked against as many others that are 0. Of a
    full one, entries are replaced by what the sums of their row and column say, and those above
    that are ranked against those below.
    """
    sparse = sp.csr_array(M)
    full = sparse.nnz > 0.5 * M.shape[0] * M.shape[1]
    return _from_full(M, rng, symmetric) if full else _from_sparse(sparse, rng, symmetric)


def _from_sparse(M: sp.csr_array, rng: np.random.Generator, symmetric: bool) -> HeldOut:
    entries = (sp.triu(M, 1) if symmetric else M).tocoo()
    above = np.flatnonzero(entries.data > 0)
    count = min(max(int(HELD_OUT * len(above)), 1), MOST_HELD, len(above))
    taken = rng.choice(above, count, replace=False)
    i, j = entries.row[taken], entries.col[taken]
    marked = sp.csr_array((np.ones(count), (i, j)), shape=M.shape)
    if symmetric:
        marked = marked + marked.T
    kept = sp.csr_array(M - M.multiply(marked))
    # of a table the same columns, so that a frequent word is as likely among these
    columns = rng.integers(0, M.shape[0], count) if symmetric else j
    other = rng.integers(0, M.shape[0], count)
    found = M[other, columns] if count else np.empty(0)  # SciPy takes no empty list of places
    absent = np.asarray(found).ravel() == 0
    absent &= (other != columns) | (not symmetric)
    return HeldOut(kept, (i, j), (other[absent], columns[absent]))


def _from_full(M: Any, rng: np.random.Generator, symmetric: bool) -> HeldOut:
    array = np.array(M.toarray() if sp.issparse(M) else M, dtype=np.float64)
    n, m = array.shape
    count = min(max(int(HELD_OUT * array.size), 1), MOST_HELD)
    i, j = rng.integers(0, n, count), rng.integers(0, m, count)
    if symmetric:
        i, j = i[i != j], j[i != j]
    total = array.sum()
    usual = array.sum(axis=1)[i] * array.sum(axis=0)[j] / (total if total != 0 else 1.0)
    above = array[i, j] > usual
    array[i, j] = usual
    if symmetric:
        array[j, i] = usual
    return HeldOut(array, (i[above], j[above]), (i[~above], j[~above]))


class Split:
    """A graph and a table with entries held out, and how well a fit of the rest predicts them."""

    def __init__(self, graph: Any, F: Any, rng: np.random.Generator) -> None:
        self.links = hold_out(graph, rng, symmetric=True)
        self.table = hold_out(F, rng, symmetric=False)

    def scores(
        self, offset: float | None, weight: float, clusters: int, start: Result | None, n_jobs: Any
    ) -> tuple[Result, np.ndarray]:
        """Fit what was kept, from where another weight ended; return the fit and its two scores."""
        A = self.links.kept
        problem = Problem(
            A if offset is None else normalized(A, offset),
            attributes=self.table.kept,
            attribute_weight=weight,
            allow_negative=True,
            n_jobs=n_jobs,
        )
        init: Any = SPECTRAL
        if start is not None:
            assert isinstance(problem.objective, Attributed)
            init = problem.objective.stacked(start.U, start.W)
        settings = Settings.of(tol=TOL, max_iter=MOST_ITERATIONS, record_every=10)
        found = solve(problem, clusters, settings, init=init, random_state=0)
        U, W = found.U, found.W
        assert W is not None
        return found, np.array([self.links.ranked(U, U), self.table.ranked(U, W)])


def choose_weight(
    graph: Any,
    F: Any,
    clusters: int,
    offsets: Sequence[float | None],
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> AttributeWeight:
    """Choose the weight of a table beside a graph, and tau, by held-out entries of both.

    No labels are looked at. ``offsets`` are those to choose from; None for a graph that is not
    normalised.
    """
    if not (isinstance(graph, np.ndarray) or sp.issparse(graph)):
        raise InputError(
            "attribute_weight='auto' needs the graph in memory, as an array or a sparse matrix; "
            "pass a number, such as attribute_weight=0.3."
        )
    seed = int(random_state) if isinstance(random_state, int | np.integer) else 0
    rng = as_generator(seed)
    splits = [Split(graph, F, rng) for _ in range(SPLITS)]
    tried: list[Tried] = []

    def attempt(
        offset: float | None, weight: float, starts: Sequence[Result | None]
    ) -> tuple[Tried, list[Result]]:
        found = [
            split.scores(offset, weight, clusters, start, n_jobs)
            for split, start in zip(splits, starts, strict=True)
        ]
        both = np.mean([scores for _, scores in found], axis=0)
        tried.append(Tried(offset, weight, float(both[0]), float(both[1])))
        return tried[-1], [result for result, _ in found]

    best: Tried | None = None
    kept: list[Result] = []
    for offset in offsets:
        if best is not None and calls.out_of_time():
            break
        first, ends = attempt(offset, FIRST, [None] * SPLITS)
        top, tops = first, ends
        for factor in (1.0 / FACTOR, FACTOR):
            weight, at, in_vain = FIRST * factor, ends, 0
            while LEAST <= 1.001 * weight <= 1.002 * MOST and in_vain < PATIENCE:
                now, at = attempt(offset, weight, at)
                in_vain = 0 if now.score > top.score else in_vain + 1
                if now.score > top.score:
                    top, tops = now, at
                weight *= factor
        if best is None or top.score > best.score:
            best, kept = top, tops
    assert best is not None
    near = [attempt(best.degree_offset, best.weight * by, kept)[0] for by in (1.0 / FINE, FINE)]
    best = max((best, *near), key=lambda one: one.score)
    return AttributeWeight(best.weight, best.degree_offset, tuple(tried))
