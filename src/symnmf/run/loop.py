"""The only loop: time, stopping, history, callbacks, interrupts and checkpoints."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from symnmf import calls, errors
from symnmf.errors import InputError
from symnmf.objectives import Frobenius, Measurement, Objective
from symnmf.objectives.objective import rounding_level
from symnmf.ops import Factor
from symnmf.parallel import one_blas_thread
from symnmf.run.checkpoint import Checkpoint, Checkpointing, SavedRun
from symnmf.run.confirming import belongs
from symnmf.run.hasty import hasty_start
from symnmf.run.inspection import Inspection, grown_rows
from symnmf.run.interrupts import Interrupt, watching
from symnmf.run.levels import LEVELS, start_by_levels
from symnmf.run.problem import Problem
from symnmf.run.result import History, Result, Status
from symnmf.run.settings import Limits, Settings
from symnmf.run.sketch import Sketch
from symnmf.run.spectral import affordable, spectral_start
from symnmf.run.start import (
    AUTO,
    SKETCH,
    STARTS,
    RandomState,
    as_start,
    chosen_start,
    origin_of,
    random_start,
    scaled_random_start,
    starting_point,
)
from symnmf.state import Point, State
from symnmf.storage import SymmetricMatrix

Callback = Callable[["Snapshot"], Any]

#: The tolerance of a run on a sketch, in that of the run on X, and its least value. What the
#: sketch leaves out of X makes a tighter one pointless: MISSED times ||X - sketch||_F / ||X||_F,
#: which is of the order of the stationarity on X at the end.
SKETCH_TOL, LEAST_SKETCH_TOL = 2.0, 1e-4
MISSED = 0.003

#: Iterations after which runs on a smaller problem are looked at, and the part of the time left
#: that each of them may take.
LOOKS, SPENT_BEFORE = 5, 0.2

#: Starts that are the end of a run themselves, which has left saddles behind.
RUN_BEFORE = (SKETCH, LEVELS)

#: Starts that need no matrix.
AT_RANDOM = (random_start, scaled_random_start)

#: Iterations up to which a run that seems to have ended may not have begun.
EARLY = 2

#: Where a run on a contracted X ends before its steps are used up.
LEVEL_TOL = 1e-4

#: Seconds that the first iteration takes for each row and squared rank, about, on one thread.
FIRST_ITERATION = 4e-9

#: Entries of U up to which a run that ends in float32 is looked at in the precision of X.
WIDENED_UP_TO = 2**22

#: Fraction of ``max_time`` by which an iteration may be expected to end late.
LATE = 0.1


@dataclass(frozen=True)
class Snapshot:
    """The argument of a callback: the latest row of the history, and read-only factors."""

    iteration: int
    seconds: float
    objective: float
    value: float
    error: float
    coupling: float
    consensus: float
    stationarity: float
    _U: Callable[[], np.ndarray] = field(repr=False)
    _V: Callable[[], np.ndarray] = field(repr=False)

    @property
    def U(self) -> np.ndarray:
        """The factor, as a read-only view that the next iteration overwrites."""
        return _read_only(self._U())

    @property
    def V(self) -> np.ndarray:
        """The second factor, likewise."""
        return _read_only(self._V())


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def solve(
    problem: Problem,
    rank: int,
    settings: Settings,
    *,
    init: str | Any = "scaled-random",
    random_state: RandomState = None,
    callback: Callback | None = None,
    checkpointing: Checkpointing | None = None,
) -> Result:
    """Do one run, from its start or its checkpoint to its end, without warnings."""
    problem = problem.for_rank(rank, warn=False)
    settings = settings.checked(problem.objective)
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function of one snapshot, got {callback!r}.")
    f = problem.objective
    init = as_start(init)
    if isinstance(init, str) and init == AUTO:
        init = chosen_start(f, rank, at_random=settings.solver.starts_at_random)
    elif isinstance(init, str) and not (
        isinstance(f.storage, SymmetricMatrix) or STARTS[init] in AT_RANDOM
    ):
        raise InputError(
            f"init={init!r} is for matrices; use 'scaled-random', 'random' or an array."
        )
    with calls.opened(settings.limits.max_time) as call, one_blas_thread():
        origin = partial(origin_of, init, random_state)
        keeper, saved = (checkpointing or Checkpointing()).open(problem, rank, settings, origin)
        run = Run(problem, settings, callback, keeper)
        run.had_a_run = isinstance(init, str) and init in RUN_BEFORE
        signals = [signal.SIGINT, *([signal.SIGTERM] if keeper else [])]
        with watching(*signals) as interrupt:
            call.stopped = lambda: bool(interrupt)
            if saved is None:
                with calls.timed("start"):
                    if isinstance(init, str) and init == SKETCH:
                        tol = SKETCH_TOL * settings.limits.tol
                        U0 = sketch_start(f, rank, random_state, tol)
                    else:
                        U0 = starting_point(f, rank, init, random_state)
                    U0 = f.ops.put(U0)
                run.begin(U0)
            else:
                run.go_on(saved)
            return run.loop(interrupt).of_call(call)


def sketch_start(
    f: Objective, rank: int, random_state: RandomState, tol: float = 0.0
) -> np.ndarray:
    """Return the end of a run on a sketch of X, or a spectral start if X has no sketch.

    ``tol`` is that of the run on the sketch, which is raised where the sketch misses much of X.
    """
    if not affordable(f.shape[0], rank):
        return hasty_start(f.storage, rank)
    sketch = Sketch.of(f.storage, rank)
    if sketch is None:
        return spectral_start(f, rank, random_state)
    missed = np.sqrt(max(1.0 - sketch.X.sqnorm / f.sqnorm, 0.0)) if f.sqnorm > 0.0 else 0.0
    tol = max(tol, LEAST_SKETCH_TOL, MISSED * float(missed))
    with calls.opened(apart=True):  # readings of the sketch are not of X
        U = improved(sketch.X, sketch.basis.start(sketch.X, None), tol=tol).astype(f.dtype)
    return (f.best_multiple(Point(f.ops, f.ops.put(U))) * U).astype(f.dtype)


STARTS[SKETCH] = sketch_start


def improved(
    X: SymmetricMatrix, U: np.ndarray, *, tol: float, steps: int = Limits.max_iter
) -> np.ndarray:
    """Return U after at most so many iterations on X, which are not part of the call's own run.

    They take at most a part of the time that the call has left.
    """
    settings = Settings.of("auto", tol=tol, max_iter=steps, record_every=LOOKS)
    left = calls.seconds_left()
    limit = SPENT_BEFORE * max(left, 0.0) if np.isfinite(left) else None
    with calls.opened(limit, apart=True):  # its readings are not of the X of the call
        run = Run(Problem.around(Frobenius(X)), settings)
        run.begin(X.ops.put(np.ascontiguousarray(U, dtype=X.dtype)))
        run.loop(Interrupt())
    return np.asarray(X.ops.get(run.state.U.values), dtype=X.dtype)


def levels_start(f: Objective, rank: int, random_state: RandomState) -> np.ndarray:
    """Where runs on ever less contracted versions of a sparse X lead."""
    if not affordable(f.shape[0], rank):
        return hasty_start(f.storage, rank)
    with calls.opened(apart=True):  # readings of smaller versions are not of X
        return start_by_levels(f, rank, partial(improved, tol=LEVEL_TOL))


STARTS[LEVELS] = levels_start


@dataclass
class Run:
    """One run of one solver."""

    problem: Problem
    settings: Settings
    callback: Callback | None = None
    checkpoint: Checkpoint | None = None
    history: History = field(default_factory=History)
    seconds: float = 0.0
    latest_seconds: float = 0.0  # of the last iteration
    start_misfit: float = 0.0
    unscheduled: int = 0  # the iteration of a last row that only a limit put into the history
    had_a_run: bool = False  # its start is where a run on a smaller problem ended
    unrounded: Factor | None = None  # the start, as long as only its float32 is in use
    state: State = field(init=False)
    latest: Measurement = field(init=False)

    def __post_init__(self) -> None:
        self.solver, self.limits = self.settings.solver, self.settings.limits
        self.f = self.problem.objective
        self.inspection = Inspection(self.f)

    def begin(self, U0: Factor) -> None:
        """Start from U_0 = V_0."""
        n, r = U0.shape
        threads = getattr(self.f.ops, "threads", None)
        if threads is not None:  # not known yet, and with a thousand columns it takes minutes
            self.latest_seconds = n * r * r * FIRST_ITERATION / threads.count
        began = self.limits.clock()
        with calls.timed("solve"):
            self.state = self.solver.start(self.f, U0)
            if self.solver.has_coupling and self.f.sqnorm > 0.0:
                schedule = self.settings.coupling
                assert schedule is not None
                self.state.coupling = schedule.start(self.f, self.state)
            self.f.ops.wait()
        self.seconds = self.limits.clock() - began
        self.unrounded = U0 if self._narrow else None
        self._measure()
        self.start_misfit = math.sqrt(max(2.0 * self.latest.value, 0.0))

    def go_on(self, saved: SavedRun) -> None:
        """Start from a checkpoint."""
        self.state, self.history = saved.state, saved.history
        self.seconds, self.start_misfit = saved.seconds, saved.start_misfit
        f = self.f.in_precision(self.f.ops.dtype(self.state.U.values))
        carried = self.state.U.numbers
        if self.f.sqnorm > 0.0 and not belongs(f, self.state):
            path = "the checkpoint" if self.checkpoint is None else str(self.checkpoint.path)
            raise InputError(
                f"{path} holds products that are not those of its U and this X; it was changed "
                f"since symnmf wrote it, so start afresh."
            )
        self._measure()
        self.state.U.numbers = carried  # the uninterrupted run has not looked here
        last = self.history["iteration"][-1]
        if last == self.state.iteration and last % self.limits.record_every:
            self.unscheduled = last  # a limit ended the run there

    def loop(self, interrupt: Interrupt) -> Result:
        """Iterate until something says stop."""
        stopped = False
        if not len(self.history):
            stopped = self._record()
        status = self._status(stopped or bool(interrupt))
        while status is None:
            self._iterate()
            due = self.state.iteration % self.limits.record_every == 0
            if due or self._at_limit() or interrupt:
                carried = self.state.U.numbers
                self._measure()
                if not due:  # without the limit nobody would have looked here
                    self.state.U.numbers = carried
                stopped = self._record()
                status = self._status(stopped or bool(interrupt))
            if self.checkpoint and self.checkpoint.due():
                self._save()
        if self.checkpoint:
            self._save()
        # after the checkpoint, from which the run would go on with what it carries
        self._settle()
        if self._narrow and status != "diverged" and self._widens:
            self._widen()
        return self._result(status)

    def _iterate(self) -> None:
        self.unrounded = None
        if self.unscheduled:
            self.history.drop_last()
            self.unscheduled = 0
        began = self.limits.clock()
        with calls.timed("solve"):
            if self.solver.has_coupling and self.state.iteration > 0:
                assert self.settings.coupling is not None
                self.state.coupling = self.settings.coupling.next(self.f, self.state)
            self.solver.step(self.f, self.state)
            self.state.iteration += 1
            self.f.ops.wait()
        self.latest_seconds = self.limits.clock() - began
        self.seconds += self.latest_seconds

    def _measure(self) -> None:
        if self.f.sqnorm == 0.0:  # the zero matrix: U = 0 is the answer, and nothing to iterate
            self.state.moved(self.f.ops.zeros(self.state.U.values.shape, self.f.dtype))
            self.state.others.clear()
            self.latest = Measurement(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        else:
            with calls.timed("evaluate"):
                f = self.f.in_precision(self.f.ops.dtype(self.state.U.values))
                self.latest = f.measure(self.state)

    def _settle(self) -> None:
        """Form the last misfit from X itself where it was carried along by the line searches."""
        misfit = self.state.U.misfit
        if misfit is None or misfit.doubt == 0.0:
            return
        self.state.U.misfit = None
        self._measure_again()

    def _measure_again(self) -> None:
        """Measure what the last row of the history is about once more."""
        self._measure()
        self.history.amend(
            error=self.latest.error,
            value=self.latest.value,
            objective=self.latest.objective,
            stationarity=self.latest.stationarity,
        )

    def _record(self) -> bool:
        """Add a row to the history, show it to the callback, return whether to stop."""
        now = self.latest
        row = (
            self.state.iteration,
            self.seconds,
            now.objective,
            now.value,
            now.error,
            self.state.coupling,
            now.consensus,
            now.stationarity,
        )
        self.history.append(row)
        if self.callback is None:
            return False
        n = self.f.rows
        U, V = (partial(self._shown, point, n) for point in (self.state.U, self.state.V))
        try:
            return bool(self.callback(Snapshot(*row, _U=U, _V=V)))
        except KeyboardInterrupt:
            return True

    def _shown(self, point: Point, rows: int | None = None) -> np.ndarray:
        """Return a factor, or the first rows of it, on the host."""
        values = self.f.ops.get(point.values)[:rows]  # in float32, perhaps, while the run is
        return values.astype(self.f.dtype, copy=False)

    def _at_limit(self) -> bool:
        limits = self.limits
        if self.state.iteration >= limits.max_iter:
            return True
        if limits.max_time is None:
            return calls.out_of_time()
        # an iteration is not begun that would, at the pace of the last, end long after the limit
        late = self.latest_seconds - LATE * limits.max_time
        return self.seconds >= limits.max_time or calls.out_of_time(max(late, 0.0))

    def _status(self, stopped: bool) -> Status | None:
        now = self.latest
        if not math.isfinite(now.error):
            return "diverged"
        if self._converged(now):
            return "converged"
        if stopped:
            return "stopped"
        if self.state.iteration >= self.limits.max_iter:
            return "max_iter"
        if self._at_limit():
            return "max_time"
        return None

    def _converged(self, now: Measurement) -> bool:
        if self.f.sqnorm == 0.0:
            return True
        tol = self.limits.tol
        if tol == 0.0:
            return False
        if self._one_factor and self.inspection.vanishes(self.state.U):
            self.state.moved(self.f.ops.zeros(self.state.U.values.shape, self.f.dtype))
            self._measure()
            return True
        if now.disagreement > tol:
            return False
        if now.stationarity > max(tol, rounding_level(self.f.dtype)):
            return False
        return self.solver.settled(self.state) and self._passes(tol)

    @property
    def _narrow(self) -> bool:
        """Whether the run is in float32 on an X in float64."""
        return self.f.ops.dtype(self.state.U.values) != self.f.dtype

    @property
    def _widens(self) -> bool:
        """Whether a run that ends in float32 is measured in the precision of X."""
        return self.state.iteration == 0 or math.prod(self.state.U.values.shape) <= WIDENED_UP_TO

    def _widen(self) -> None:
        """Take U in the precision of X, or the start that it was rounded from, and measure it."""
        self.solver.widen(self.f, self.state)
        if self.unrounded is not None:
            self.state.moved(self.unrounded)
        self._measure_again()

    @property
    def _one_factor(self) -> bool:
        return self.state.V is self.state.U

    def _passes(self, tol: float) -> bool:
        """Look at a stationary point once more; where it is a saddle, go on from below it."""
        if self._narrow:
            if not self._widens:
                return True
            self._widen()
            if self.latest.stationarity > max(tol, rounding_level(self.f.dtype)):
                return False
        U, ops = self.state.U, self.f.ops
        if self.inspection.worst(U) > tol:
            return False
        if not self._one_factor:
            return True
        lower = self.inspection.lower(U, begun=self.had_a_run or self.state.iteration > EARLY)
        if lower is None:
            return True
        if not self._at_limit():
            iteration = self.state.iteration
            self.state = self.solver.start(self.f, ops.put(lower))
            self.state.iteration = iteration
        return False

    def _save(self) -> None:
        assert self.checkpoint is not None
        self.checkpoint.write(
            SavedRun(self.state, self.history, self.seconds, self.start_misfit),
            self.f.ops,
            with_product=not self.solver.has_coupling,
        )

    def _result(self, status: Status) -> Result:
        whole = self._shown(self.state.U)
        split = self.state.V is not self.state.U
        other = self._shown(self.state.V) if split else whole
        n = self.f.rows
        U = whole[:n]
        return Result(
            U=U,
            V=other[:n] if split else U,
            attached=self.problem.attached(whole[n:], other[n:]),
            others=tuple(self._shown(point) for point in self.state.others),
            value=self.latest.value,
            error=self.latest.error,
            n_iter=self.state.iteration,
            status=status,
            coupling=self.state.coupling,
            history=self.history,
            solver=self.solver.name,
            tol=float(self.limits.tol),
            start_misfit=self.start_misfit,
            problem=self.problem,
        )


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
