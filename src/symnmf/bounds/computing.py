"""The bound of an objective: eigenvalues first, then a search for a better N."""

from __future__ import annotations

import time

import numpy as np

from symnmf.bounds.bound import GLOBAL_TOL, Bound, How
from symnmf.bounds.dual_search import admm
from symnmf.bounds.squares import ALL_UP_TO, by_factoring
from symnmf.bounds.target import DENSE_UP_TO, SUMS, Target

FIRST_LOOK = 10  # steps after which N is tried for the first time, and then each time doubled
SETTLED_AFTER = 80  # steps from which on the search may end by itself
GAIN = 0.02  # of the gap: where the last doubling brought less, the search ends


def best_bound(
    target: Target | None,
    U: np.ndarray,
    reached: float,
    *,
    max_time: float | None = 10.0,
    max_steps: int | None = None,
    quick: bool = False,
    tol: float = GLOBAL_TOL,
    plain: bool = True,
    reached_error: float | None = None,
) -> Bound:
    """Bound the objective behind ``target`` from below; see :class:`Bound`.

    Parameters
    ----------
    target : Target or None
        None where no bound is known.
    U : ndarray
        The factor at hand; a search for N starts from it.
    reached : float
        Its objective.
    max_time : float or None
        Seconds for the search for N; 0 for the eigenvalues of X alone, None for no limit.
    max_steps : int or None
        Steps of that search at most.
    quick : bool
        Take the eigenvalues of all but small matrices by sampling, in a small part of the time.
    tol : float
        The gap that is small enough.
    plain : bool
        Whether the objective is the misfit alone, so that the bound is one on E.
    reached_error : float or None
        Its E; None where that is the objective over half the squared norm of the data.
    """
    began, rank = time.perf_counter(), U.shape[1]
    unit = 1.0 if target is None or target.unit == 0.0 else target.unit
    own = reached / unit if reached_error is None else reached_error

    def told(value: float, how: How, failure: float, steps: int, slack: float) -> Bound:
        exact = reached == 0.0 or own <= slack
        gap = 0.0 if exact else max((reached - value) / abs(reached), 0.0)
        return Bound(
            value,
            value / unit if plain else float("nan"),
            reached,
            own,
            gap if how != "none" else float("nan"),
            rank,
            how,
            failure,
            steps,
            time.perf_counter() - began,
            slack,
            tol,
        )

    if target is None:
        return told(float("nan"), "none", 0.0, 0, 0.0)
    U = U if target.rows is None else U[target.rows]
    squares = target.sampled if quick and target.n > ALL_UP_TO else target.squares
    found = squares(rank, U)
    # what rounding leaves of an exact fit
    noise = 2.0 * SUMS + (found.slack / (2.0 * unit) if found.failure == 0.0 else 0.0)
    if not plain:
        noise = 0.0
    bound = told(target.value(found), "eigenvalues", found.failure, 0, noise)
    seconds = np.inf if max_time is None else max_time - (time.perf_counter() - began)
    with np.errstate(over="ignore", invalid="ignore"):
        astray = not np.isfinite(np.square((U.astype(np.float64) ** 2).sum()))
    # a run that diverged says nothing of where prices should be
    if bound.gap <= tol or seconds <= 0.0 or max_steps == 0 or astray:
        return bound
    if target.array is None or target.n > DENSE_UP_TO:
        return bound
    value, steps = _with_prices(target, U, reached, bound, (seconds, max_steps), tol)
    if not value > bound.value:
        return told(bound.value, "eigenvalues", bound.failure, steps, noise)
    return told(value, "prices", 0.0, steps, noise)


def _with_prices(
    target: Target,
    U: np.ndarray,
    reached: float,
    known: Bound,
    limits: tuple[float, int | None],
    tol: float,
) -> tuple[float, int]:
    """Look for an N >= 0; return the best value, and the steps it took."""
    assert target.array is not None
    A, rank = target.array(), U.shape[1]
    seconds, most = limits
    until, look = time.perf_counter() + seconds, FIRST_LOOK
    best, before, evaluation = known.value, known.value, 0.0
    step = 0
    root = np.sqrt(target.factor)  # of the multiplier, which stands for the rank-r part of A + N
    for step, Y in enumerate(admm(A, U / root), 1):
        late = time.perf_counter() + evaluation >= until or step == most
        if step < look and not late:
            continue
        began = time.perf_counter()
        raised = np.maximum(Y - A.astype(Y.dtype), 0.0).astype(np.float64)
        raised += raised.T
        raised *= 0.5
        raised += A
        before, best = best, max(best, target.value(by_factoring(raised, rank, start=U)))
        evaluation = time.perf_counter() - began
        left = reached - best
        settled = step >= SETTLED_AFTER and best - before <= GAIN * left
        if late or settled or left <= tol * abs(reached):
            break
        look *= 2
    return best, step
