"""One way to choose by data held out: ranks, weights of attributes, layers and signs, sizes.

A value is fitted to what was kept, and asked about what was held out. It replaces another where it
answers clearly better, so what is simpler comes first and stays in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from symnmf import calls
from symnmf.errors import InputError
from symnmf.objectives import Frobenius
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.run.solving import solve
from symnmf.storage.wrapping import in_memory

#: The part of the entries that is held out, the most of them, and how often.
HELD_OUT, MOST_HELD, SPLITS = 0.1, 100_000, 5

#: Standard errors by which held-out data must be predicted better.
CLEARLY = 3.0

#: How far the runs go: what is compared settles long before U does.
TOL, MOST_ITERATIONS = 1e-3, 150

#: How right each answer about held-out data is, in parts that count the same.
Answers = Sequence[np.ndarray]


class Trial(NamedTuple):
    """A value, and the mean of its answers about held-out data."""

    value: Any
    score: float


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen, and what was compared: nothing where the value was given."""

    value: Any
    tried: tuple[Trial, ...] = ()


def choose(
    start: Hashable,
    near: Callable[[Any], Iterable[Any]],
    split: Callable[[np.random.Generator], Callable[[Any], Answers]],
) -> Choice:
    """Go from value to value as long as one near the last predicts held-out data clearly better.

    ``split`` holds data out, and returns what fits a value to the rest and asks it about them.
    """
    rng = np.random.default_rng(0)
    splits = [split(rng) for _ in range(SPLITS)]

    def answers(value: Any) -> Answers:
        asked = [ask(value) for ask in splits]
        return [np.concatenate(parts) for parts in zip(*asked, strict=True)]

    known = {start: answers(start)}
    best = start
    while True:
        for value in near(best):
            if value in known or calls.out_of_time():
                continue
            known[value] = answers(value)
            if _clearly_better(known[value], known[best]):
                best = value
                break
        else:
            return Choice(best, tuple(Trial(value, _mean(of)) for value, of in known.items()))


def _mean(answers: Answers) -> float:
    return float(np.mean([part.mean() for part in answers]))


def _clearly_better(these: Answers, those: Answers) -> bool:
    gains = [one - other for one, other in zip(these, those, strict=True)]
    error = np.sqrt(sum(gain.var() / len(gain) for gain in gains)) / len(gains)
    return bool(np.mean([gain.mean() for gain in gains]) > CLEARLY * error)


def quick_fit(problem: Problem, rank: int, init: Any = "auto") -> Any:
    """Return the result of a run that is exact enough for a comparison."""
    settings = Settings.of(tol=TOL, max_iter=MOST_ITERATIONS, record_every=10)
    return solve(problem, rank, settings, init=init, random_state=0)


def choose_rank(problem: Problem) -> Choice:
    """Choose the number of columns of U by entries of X that a fit of the others predicts."""
    array = in_memory(problem.X)
    if not isinstance(array, np.ndarray) or not isinstance(problem.objective, Frobenius):
        raise InputError(
            "rank='auto' needs a dense X in memory of which every entry counts the same; pass the "
            "number of columns. For the clusters of a graph, symnmf.communities chooses it."
        )
    n = len(array)

    def split(rng: np.random.Generator) -> Callable[[int], Answers]:
        held = np.triu(rng.random((n, n)) < HELD_OUT)
        i, j = np.nonzero(held)
        rest = Problem(array, mask=~(held | held.T), allow_negative=True)

        def answers(rank: int) -> Answers:
            U = quick_fit(rest, rank).U
            return [-((array[i, j] - np.einsum("ij,ij->i", U[i], U[j])) ** 2)]

        return answers

    return choose(1, lambda rank: range(rank + 1, min(rank + 3, n + 1)), split)


# Held-out entries of graphs and tables -------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A matrix without some entries, and places: large ones held out, and some small ones."""

    kept: Any
    present: tuple[np.ndarray, np.ndarray]
    absent: tuple[np.ndarray, np.ndarray]

    def ranked(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return for each present entry the part of absent ones that <left_i, right_j> ranks below.

        Ties count a half, so the mean is the area under the curve (AUC).
        """
        larger, smaller = (
            np.einsum("ij,ij->i", left[i], right[j]) for i, j in (self.present, self.absent)
        )
        if not len(larger) or not len(smaller):
            return np.full(1, 0.5)
        smaller = np.sort(smaller)
        below = np.searchsorted(smaller, larger) + np.searchsorted(smaller, larger, side="right")
        return np.asarray(below / (2.0 * len(smaller)))


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
    # the same rows and columns in other pairs: a hub or a frequent word is as likely among these
    if symmetric:
        turned = rng.random(count) < 0.5
        i, j = np.where(turned, j, i), np.where(turned, i, j)
    other, columns = rng.permutation(i), j
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
