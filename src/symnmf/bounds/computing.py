"""The bound of an objective: eigenvalues first, then a search for a better N."""

from __future__ import annotations

import time

import numpy as np

from symnmf.bounds.bound import GLOBAL_TOL, Bound, How
from symnmf.bounds.dual_search import admm
from symnmf.bounds.squares import all_eigenvalues
from symnmf.bounds.target import SUMS, Target

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
        The factor at hand; every search starts from it.
    reached : float
        Its objective.
    max_time : float or None
        Seconds for the search for N; 0 for the eigenvalues of X alone, None for no limit.
    max_steps : int or None
        Steps of that search at most.
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

    def bound(
        value: float, how: How, failure: float = 0.0, steps: int = 0, rounding: float = 0.0
    ) -> Bound:
        exact = reached == 0.0 or own <= rounding
        gap = 0.0 if exact else max((reached - value) / abs(reached), 0.0)
        error = value / unit if plain else np.nan
        seconds = time.perf_counter() - began
        gap = np.nan if how == "none" else gap
        ends = failure, steps, seconds, rounding, tol
        return Bound(value, error, reached, own, gap, rank, how, *ends)

    if target is None:
        return bound(np.nan, "none")
    U = U if target.rows is None else U[target.rows]
    found = target.squares(U)
    # what rounding leaves of an exact fit
    proved = found.failure == 0.0
    noise = (2.0 * SUMS + (found.slack / (2.0 * unit) if proved else 0.0)) if plain else 0.0
    known = bound(target.value(found), "eigenvalues", found.failure, 0, noise)
    until = np.inf if max_time is None else began + max_time
    with np.errstate(over="ignore", invalid="ignore"):
        # a run that diverged says nothing of where prices should be
        astray = not np.isfinite(np.square((U.astype(np.float64) ** 2).sum()))
    settled = known.gap <= tol or time.perf_counter() >= until or max_steps == 0 or astray
    if settled or target.array is None:
        return known
    value, steps = _with_prices(target, U, known, until, max_steps)
    if value > known.value:
        return bound(value, "prices", 0.0, steps, noise)
    return bound(known.value, "eigenvalues", found.failure, steps, noise)


def _with_prices(
    target: Target, U: np.ndarray, known: Bound, until: float, most: int | None
) -> tuple[float, int]:
    """Look for an N >= 0; return the best value, and the steps it took."""
    assert target.array is not None
    A, look = target.array, FIRST_LOOK
    best, evaluation, step = known.value, 0.0, 0
    root = np.sqrt(target.factor)  # of the multiplier, which stands for the rank-r part of A + N
    for step, Y in enumerate(admm(A, U / root), 1):
        late = time.perf_counter() + evaluation >= until or step == most
        if step < look and not late:
            continue
        began = time.perf_counter()
        N = np.maximum(Y - A, 0.0)
        before, best = (
            best,
            max(best, target.value(all_eigenvalues(A + 0.5 * (N + N.T), known.rank))),
        )
        evaluation = time.perf_counter() - began
        left = known.reached - best
        settled = step >= SETTLED_AFTER and best - before <= GAIN * left
        if late or settled or left <= known.tol * abs(known.reached):
            break
        look *= 2
    return best, step
