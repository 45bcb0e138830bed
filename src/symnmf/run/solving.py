"""One run, from its start or its checkpoint to its result."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np

from symnmf import calls, errors
from symnmf.objectives import Objective
from symnmf.objectives.objective import rounding_level
from symnmf.parallel import one_blas_thread
from symnmf.run.checkpoint import Checkpoint
from symnmf.run.inspection import grown_rows
from symnmf.run.interrupts import watching
from symnmf.run.loop import Run
from symnmf.run.problem import Problem
from symnmf.run.result import Callback, Result
from symnmf.run.settings import Limits, Settings
from symnmf.run.start import (
    SKETCH,
    RandomState,
    as_start,
    named_start,
    origin_of,
    starting_point,
)
from symnmf.storage.border import in_range

#: Entries of U up to which float32 would save little: they stay in a cache.
IN_CACHE = 2**22
#: The same where the tolerance is one that float32 reaches, so that nothing is left to do after.
LOOSE_FROM = 2**12

FLOAT32 = np.dtype(np.float32)


def solve(
    problem: Problem,
    rank: int,
    settings: Settings,
    *,
    init: str | Any = "scaled-random",
    random_state: RandomState = None,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Do one run, without warnings."""
    problem = problem.for_rank(rank, warn=False)
    settings = settings.checked(problem.objective)
    f, init = problem.objective, as_start(init)
    if isinstance(init, str):
        init = named_start(init, f, rank, at_random=settings.solver.starts_at_random)
    signals = [signal.SIGINT, *([signal.SIGTERM] if checkpoint else [])]
    limit = settings.limits.max_time
    with calls.opened(limit) as call, one_blas_thread(), watching(call, *signals):
        narrow = None if settings.solver.starts_at_random else _in_float32(f)
        readers = [f] if narrow is None else [f, narrow]
        saved = None
        if checkpoint is not None:
            origin = origin_of(init, random_state)
            saved = checkpoint.resume(problem, rank, settings, origin, readers)
        had_a_run = isinstance(init, str) and init == SKETCH
        run = Run(problem, settings, callback, checkpoint, had_a_run)
        if saved is None:
            with calls.timed("start"):
                U0 = f.ops.put(starting_point(f, rank, init, random_state))
            first = narrow if _pays(f, rank, settings.limits.tol) else None
        else:
            first = narrow if saved.dtype != f.dtype else None
        if first is not None:
            # a start of its own: what float32 says of X, from where the run goes on
            before = Run(Problem.around(first), settings, callback, checkpoint, had_a_run)
            if saved is None:
                before.begin(f.ops.cast(U0, FLOAT32))
            else:
                before.go_on(saved)
            if before.iterate() != "converged":
                run.checkpoint = None  # the run is not over, and would go on in float32
            run.go_on_from(before, f.ops.cast(before.state.U.values, f.dtype))
            del before
        elif saved is None:
            run.begin(U0)
        else:
            run.go_on(saved)
        return run.result(run.iterate()).of_call(call)


def _in_float32(f: Objective) -> Objective | None:
    """Return f in float32, where that is cheap to have and holds the entries of X."""
    if f.dtype == FLOAT32 or not in_range(f.largest(), FLOAT32):
        return None
    return f.as_float32


def _pays(f: Objective, rank: int, tol: float) -> bool:
    """Whether a run of so many columns should begin in float32."""
    entries = f.shape[0] * rank
    return entries > (LOOSE_FROM if tol > rounding_level(FLOAT32) else IN_CACHE)


def warn_unless_converged(result: Result, limits: Limits, starts: int = 1) -> None:
    """Say in one sentence that the best of so many starts ended early, where it should be known."""
    _warn_of_growth(result)
    name = result.solver if starts == 1 else f"the best of {starts} starts of {result.solver}"
    limit = result.status
    limited = limit == "max_time" or (limit == "max_iter" and limits.max_iter > 0)
    if limited and limits.tol > 0.0:
        reached = result.history["stationarity"][-1]
        # the norm of X may hide a component, and a saddle is stationary
        missing = "; the certificate says what is missing" if reached <= limits.tol else ""
        errors.warn(
            f"{name} did not converge in {result.n_iter} iterations (stationarity {reached:.2g}, "
            f"tol {limits.tol:.2g}{missing}); raise {limit} or tol.",
            errors.ConvergenceWarning,
        )
    elif limit == "diverged":
        errors.warn(
            f"{name} diverged after {result.n_iter} iterations; use another solver or init.",
            errors.ConvergenceWarning,
        )


def _warn_of_growth(result: Result) -> None:
    """Say that rows of U have grown away, where hidden entries let them."""
    problem = result.problem
    if problem is None or problem.objective.unit_weights:
        return
    U = result.factors[0]
    if not np.isfinite(U).all():
        return
    rows = grown_rows(problem.objective, U)
    if len(rows):
        errors.warn(
            f"{len(rows)} row(s) of U grow without limit (row {rows[0]} first), since entries of X "
            f"are hidden there and nothing holds them; add ridge=, or observe the diagonal.",
            errors.ConvergenceWarning,
        )
