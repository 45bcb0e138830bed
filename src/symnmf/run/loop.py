"""The only loop: time, stopping, history, callbacks, interrupts and checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from symnmf import calls
from symnmf.objectives import Measurement
from symnmf.objectives.objective import rounding_level
from symnmf.ops import Factor
from symnmf.run.checkpoint import Checkpoint, SavedRun
from symnmf.run.inspection import Inspection
from symnmf.run.problem import Problem
from symnmf.run.result import Callback, History, Result, Snapshot, Status
from symnmf.run.settings import Settings
from symnmf.state import Point, State

#: Iterations up to which a run that seems to have ended may not have begun.
EARLY = 2

#: Seconds that the first iteration takes for each row and squared rank, about, on one thread.
FIRST_ITERATION = 4e-10

#: Fraction of ``max_time`` by which an iteration may be expected to end late.
LATE = 0.05


@dataclass
class Run:
    """One run of one solver."""

    problem: Problem
    settings: Settings
    callback: Callback | None = None
    checkpoint: Checkpoint | None = None
    had_a_run: bool = False  # its start is where another run ended
    history: History = field(default_factory=History)
    seconds: float = 0.0
    latest_seconds: float = 0.0  # of the last iteration
    start_misfit: float = 0.0
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
                assert self.settings.coupling is not None
                self.state.coupling = self.settings.coupling.start(self.f, self.state)
            self.f.ops.wait()
        self.seconds = self.limits.clock() - began
        self._measure()
        self.start_misfit = math.sqrt(max(2.0 * self.latest.value, 0.0))

    def go_on(self, saved: SavedRun) -> None:
        """Start from a checkpoint."""
        self.state, self.history = saved.state, saved.history
        self.seconds, self.start_misfit = saved.seconds, saved.start_misfit
        if self.history.last_iteration % self.limits.record_every:
            self.history.drop_last()  # it is there since a limit ended the run

    def go_on_from(self, other: Run, U: Factor) -> None:
        """Start from U, where another run has ended, as if both were one."""
        self.history, self.seconds = other.history, other.seconds
        self.latest_seconds, self.start_misfit = other.latest_seconds, other.start_misfit
        self._restart(U, other.state.iteration)

    def iterate(self) -> Status:
        """Iterate until something says stop, and say what."""
        while True:
            limit = self._limit()
            due = self.state.iteration % self.limits.record_every == 0
            if due or limit:
                carried = self.state.U.numbers
                status = self._look(limit)
                if not due:  # without the limit nobody would have looked here
                    self.state.U.numbers = carried
                if status is not None:
                    break
            if self.checkpoint and self.checkpoint.due():
                self._save()
            self._step()
        if self.checkpoint:
            self._save()
        return status

    def _limit(self) -> Status | None:
        """Return what ends the run here, whatever it has come to."""
        limits = self.limits
        if calls.stopped():
            return "stopped"
        if self.state.iteration >= limits.max_iter:
            return "max_iter"
        if limits.max_time is None:
            return "max_time" if calls.out_of_time() else None
        # an iteration is not begun that would, at the pace of the last, end long after the limit
        late = self.latest_seconds - LATE * limits.max_time
        over = self.seconds >= limits.max_time or calls.out_of_time(max(late, 0.0))
        return "max_time" if over else None

    def _step(self) -> None:
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

    def _look(self, limit: Status | None) -> Status | None:
        """Measure and record where the run is; return how it ends, or None if it goes on."""
        self._measure()
        self._record()
        if not math.isfinite(self.latest.error):
            return "diverged"
        if self._converged(may_go_on=limit is None):
            return "converged"
        return "stopped" if calls.stopped() else limit  # by the callback

    def _measure(self) -> None:
        if self.f.sqnorm == 0.0:  # the zero matrix: U = 0 is the answer, and nothing to iterate
            self._become_zero()
            self.state.others.clear()
            self.latest = Measurement(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        else:
            began = self.limits.clock()
            with calls.timed("evaluate"):
                self.latest = self.f.measure(self.state)
            self.latest_seconds += self.limits.clock() - began  # the next one is measured too

    def _become_zero(self) -> None:
        self.state.moved(self.f.ops.zeros(self.state.U.values.shape, self.f.dtype))

    def _record(self) -> None:
        """Write a row of the history, in place of one that there is, and show it once."""
        now, iteration = self.latest, self.state.iteration
        row = (
            iteration,
            self.seconds,
            now.objective,
            now.value,
            now.error,
            self.state.coupling,
            now.consensus,
            now.stationarity,
        )
        if not self.history.record(row) or self.callback is None:
            return
        U, V = (partial(self._seen, point) for point in (self.state.U, self.state.V))
        try:
            if self.callback(Snapshot(*row, _U=U, _V=V)):
                calls.stop()
        except KeyboardInterrupt:
            calls.stop()

    def _shown(self, point: Point, rows: int | None = None) -> np.ndarray:
        """Return a factor, or the first rows of it, on the host."""
        return self.f.ops.get(point.values)[:rows]

    def _seen(self, point: Point) -> np.ndarray:
        """Return the rows of X of a factor, read-only."""
        seen = self._shown(point, self.f.rows).view()
        seen.flags.writeable = False
        return seen

    def _converged(self, *, may_go_on: bool) -> bool:
        """Whether this is the end; where it is a saddle, and there is time, go on from below it."""
        if self.f.sqnorm == 0.0:
            return True
        tol, now, U = self.limits.tol, self.latest, self.state.U
        if tol == 0.0:
            return False
        one_factor = self.state.V is U
        if one_factor and self.inspection.vanishes(U):
            self._become_zero()
            self._measure()
            self._record()
            return True
        at_zero = one_factor and math.isinf(now.stationarity)  # where every method stays
        least = max(tol, rounding_level(self.f.dtype))
        if not at_zero and (now.disagreement > tol or now.stationarity > least):
            return False
        if not at_zero and self.inspection.worst(U) > tol:
            return False
        if not one_factor:
            return True
        begun = self.had_a_run or self.state.iteration > EARLY
        lower = self.inspection.lower(U, begun=begun)
        if lower is not None and may_go_on:
            self._restart(self.f.ops.put(lower), self.state.iteration)
        return lower is None and not at_zero

    def _restart(self, U: Factor, iteration: int) -> None:
        self.state = self.solver.start(self.f, U)
        self.state.iteration = iteration

    def _save(self) -> None:
        assert self.checkpoint is not None
        saved = SavedRun(self.state, self.history, self.seconds, self.start_misfit)
        self.checkpoint.write(saved.arrays(self.f.ops, with_product=not self.solver.has_coupling))

    def result(self, status: Status) -> Result:
        """Return where a run is, that ended like this."""
        misfit = self.state.U.misfit
        if misfit is not None and misfit.doubt > 0.0:
            # carried along by the line searches; the checkpoint goes on with it, a result does not
            self.state.U.misfit = None
            self._measure()
            self._record()
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
