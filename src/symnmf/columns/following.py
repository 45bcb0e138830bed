"""The columns of U through time: one X after another, each run from where the last one ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from symnmf.arguments import checked
from symnmf.cluster.fitted import in_order
from symnmf.columns.matching import checked_options, checked_rows, cosines, matched
from symnmf.errors import InputError
from symnmf.interchange import to_host
from symnmf.run.loop import solve, warn_unless_converged
from symnmf.run.multistart import DEFAULT_INIT, DEFAULT_STARTS, Plan
from symnmf.run.problem import Problem
from symnmf.run.result import OUTSIDE, Result, cluster_labels
from symnmf.run.settings import Settings
from symnmf.run.start import RandomState
from symnmf.solvers import Solver
from symnmf.storage import SymmetricMatrix

#: What a start has of the mean entry where the last U is zero, so that a row may join a column.
FLOOR = 0.01

#: By which part of itself the value of a fresh start must be lower to be taken.
CLEARLY = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class Following:
    """Factors through time: column k of each U continues column k of the previous one.

    Attributes
    ----------
    results : tuple of Result
        One for each X.
    labels : ndarray of shape (times, n)
        The column of the largest entry of each row; -1 for a row of zeros.
    kept : ndarray of shape (times - 1, r)
        The cosine of each column with the column it continues; low if it became another column.
    restarted : ndarray of shape (times,)
        Whether the run from a fresh start was used because it was clearly better than the warm one.
    names : list
        The names of the times.
    """

    results: tuple[Result, ...]
    labels: np.ndarray
    kept: np.ndarray
    restarted: np.ndarray
    names: list[Any]

    @property
    def factors(self) -> list[np.ndarray]:
        """U of each time."""
        return [np.asarray(to_host(result.U)) for result in self.results]

    @cached_property
    def flows(self) -> np.ndarray:
        """How many rows went from each column to each, an array (times - 1, r + 1, r + 1).

        The last place stands for rows in no column.
        """
        r = self.results[0].U.shape[1]
        places = np.where(self.labels == OUTSIDE, r, self.labels)
        counts = np.zeros((len(places) - 1, r + 1, r + 1), dtype=np.int64)
        for t in range(len(counts)):
            np.add.at(counts[t], (places[t], places[t + 1]), 1)
        return counts

    @checked(time=("whole",))
    def movers(self, time: int) -> np.ndarray:
        """Return the rows whose column at ``time`` is not the one they had before."""
        if not 1 <= time < len(self.labels):
            raise InputError(f"time must be from 1 to {len(self.labels) - 1}, got {time!r}.")
        return np.flatnonzero(self.labels[time] != self.labels[time - 1])

    def __repr__(self) -> str:
        n, r = self.results[0].U.shape
        moved = np.mean(self.labels[1:] != self.labels[:-1]) if len(self.labels) > 1 else 0.0
        fresh = int(self.restarted.sum())
        anew = f", {fresh} fresh start{'s' if fresh > 1 else ''}" if fresh else ""
        return (
            f"Following({n} rows, {r} columns, {len(self.results)} times; {moved:.1%} of the rows "
            f"move from one time to the next{anew})"
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the rows as rivers between columns, from time to time."""
        from symnmf.columns.drawing import river

        return river(self, ax)


@checked(matrices=("matrices",))
def follow(
    matrices: Iterable[Any],
    rank: int,
    *,
    names: Sequence[Any] | None = None,
    n_init: int = DEFAULT_STARTS,
    solver: str | Solver = "auto",
    init: Any = DEFAULT_INIT,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_time: float | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    device: Any = None,
    **problem: Any,
) -> Following:
    """Factorize X_1, X_2, ... one after the other, and follow the columns of U.

    The first X is factorized from ``n_init`` starts. Every later run starts from the previous U,
    so labels do not jump between minima that are equally good. There is also a run from a fresh
    start, since a warm start cannot leave a minimum that has become poor; it is used if its value
    is lower by more than 1%. Columns are then matched to the previous ones so that the sum of
    cosines is largest.

    Parameters
    ----------
    matrices : sequence of X
        Each as for :func:`symnmf.factorize`, all with the same rows. A row of zeros is an absent
        row.
    rank : int
        Columns of U.
    names : sequence or None
        The names of the times; by default 0, 1, ...
    n_init, init
        The starts of the first X; later there is one fresh start each.
    solver, tol, max_iter, random_state, n_jobs, device
        As for :func:`symnmf.factorize`.
    max_time : float or None
        Seconds for each X.
    **problem
        What :class:`symnmf.Problem` takes besides X: ``mask``, ``weights``, ``l1``, ``loss``, ...

    Returns
    -------
    Following

    Examples
    --------
    >>> import numpy as np, symnmf
    >>> B = np.kron(np.eye(2), np.ones((6, 1)))
    >>> later = B.copy()
    >>> later[5] = [0, 1]  # one row moves
    >>> found = symnmf.follow([B @ B.T, later @ later.T], 2, random_state=0)
    >>> found.movers(1)
    array([5])
    """
    checked_options(problem, "follow")
    settings = Settings.of(solver, tol=tol, max_iter=max_iter, max_time=max_time)
    options = {"random_state": random_state, "n_jobs": n_jobs, "device": device}
    plan = Plan(rank, settings, n_init=n_init, init=init, **options)
    single = Plan(rank, settings, n_init=1, init=init, **options)
    given = list(matrices)
    if len(given) < 2:
        raise InputError(f"matrices must hold two or more, to follow columns, got {len(given)}.")
    called = list(range(len(given))) if names is None else list(names)
    if len(called) != len(given):
        raise InputError(f"names must name the {len(given)} matrices, got {len(called)}.")
    problems = [plan.problem(X, **problem).for_rank(rank) for X in given]
    if not all(isinstance(one.X, SymmetricMatrix) for one in problems):
        raise InputError("matrices holds a tensor; follow is for matrices.")
    checked_rows(problems)
    results, restarted, kept = [plan.search(problems[0]).best], [False], []
    for later in problems[1:]:
        result, fresh = _next(later, results[-1], settings, single)
        last, U = (np.asarray(to_host(one.U), dtype=np.float64) for one in (results[-1], result))
        order = matched(last, U)
        kept.append(cosines(last, U)[np.arange(rank), order])
        results.append(in_order(result, order))
        restarted.append(fresh)
    for result in results:
        warn_unless_converged(result, settings.limits)
    return Following(
        results=tuple(results),
        labels=np.array([cluster_labels(to_host(result.U)) for result in results]),
        kept=np.array(kept),
        restarted=np.array(restarted),
        names=called,
    )


def _next(problem: Problem, last: Result, settings: Settings, single: Plan) -> tuple[Result, bool]:
    """Return the run from the last U or a fresh one, and whether it is fresh."""
    U = np.asarray(to_host(last.U), dtype=np.float64)
    warm = solve(problem, U.shape[1], settings, init=np.maximum(U, FLOOR * U.mean()))
    warm = warm.as_given(problem.given)
    fresh = single.search(problem).best
    better = warm.value - fresh.value > CLEARLY * abs(warm.value)
    return (fresh, True) if better else (warm, False)
