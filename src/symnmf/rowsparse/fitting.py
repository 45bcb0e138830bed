"""The run of a row-sparse factor: steps, growth, stopping, history, interrupts and checkpoints.

This is a loop of its own. The one of ``run/loop.py`` iterates on a dense n x r array through
products with X and r x r matrices; with r in the tens of thousands neither can be formed, and the
support of U, which here changes on the way, is part of the state.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symnmf import calls
from symnmf.rowsparse.factor import RowSparse
from symnmf.rowsparse.saving import SavedSparseRun, SparseCheckpoint
from symnmf.rowsparse.sparse_loss import Loss, Point
from symnmf.run.interrupts import Interrupt, watching
from symnmf.run.result import History, Snapshot, Status
from symnmf.run.settings import Limits

#: Iterations between two growths of the support.
GROW_EVERY = 8
#: Columns that may enter a row at once.
GROW_BY = 2
#: An entry below this part of the root mean square has left the support.
LEAST = 1e-6
#: How far a step may go beyond that of expectation-maximisation; below 2, where it may diverge.
FURTHEST = 1.9


@dataclass
class SparseRun:
    """One run on one graph.

    Attributes
    ----------
    loss : Loss
    limits : Limits
    callback : callable or None
    checkpoint : SparseCheckpoint or None
    """

    loss: Loss
    limits: Limits
    callback: Callable[[Snapshot], Any] | None = None
    checkpoint: SparseCheckpoint | None = None
    history: History = field(default_factory=History)
    seconds: float = 0.0
    iteration: int = 0
    power: float = 1.0
    outside: float = float("inf")
    before: float = float("inf")  # f at the latest growth
    decrease: float = float("inf")  # of f in one iteration, relative, since then
    point: Point = field(init=False)

    def run(self, U: RowSparse) -> Status:
        """Iterate from U, or from the checkpoint, until something says stop."""
        saved = self.checkpoint.saved if self.checkpoint else None
        if saved is not None:
            U, self.history = saved.U, saved.history
            self.iteration, self.seconds = saved.iteration, saved.seconds
            self.power, self.outside = saved.power, saved.outside
            self.before, self.decrease = saved.before, saved.decrease
        began = self.limits.clock()
        self.point = self.loss.at(U)
        self.seconds += self.limits.clock() - began
        signals = [signal.SIGINT, *([signal.SIGTERM] if self.checkpoint else [])]
        with watching(*signals) as interrupt:
            status = self._loop(interrupt, fresh=saved is None)
        if self.checkpoint:
            self._save()
        return status

    def _loop(self, interrupt: Interrupt, *, fresh: bool) -> Status:
        stopped = self._record() if fresh else False
        while True:
            status = self._status(stopped or bool(interrupt))
            if status is not None:
                return status
            began = self.limits.clock()
            self._iterate()
            self.seconds += self.limits.clock() - began
            due = self.iteration % self.limits.record_every == 0
            stopped = self._record() if due or interrupt or self._at_limit() else False
            if self.checkpoint and self.checkpoint.due():
                self._save()

    def _iterate(self) -> None:
        self.iteration += 1
        if self.iteration % GROW_EVERY == 0:
            self._grow()
            per_step = (self.before - self.point.value) / GROW_EVERY
            self.decrease = per_step / max(abs(self.point.value), 1e-300)
            self.before = self.point.value
            return
        ahead = self.loss.at(self.point.step(self.power, LEAST))
        if ahead.value > self.point.value and self.power > 1.0:
            self.power = 1.0
            ahead = self.loss.at(self.point.step(1.0, LEAST))
        else:
            self.power = min(1.0 + 1.3 * (self.power - 1.0) + 0.1, FURTHEST)
        self.point = ahead

    def _grow(self) -> None:
        """Widen the support; rows grow at the same time, so the new entries are tried in part."""
        growth, self.outside = self.loss.grown(self.point, GROW_BY)
        if growth is None:
            return
        fraction = 0.5
        for _ in range(12):
            ahead = self.loss.at(growth.at(fraction))
            if ahead.value <= self.point.value:
                self.point = ahead
                self.power = 1.0
                return
            fraction /= 4.0

    @property
    def stationarity(self) -> float:
        """Natural residual on and off the support over ||U||_F; infinite before the first growth.

        The part off the support is that of the latest growth.
        """
        size = self.point.sqnorm
        if size == 0.0:
            return 0.0
        return float(np.sqrt((self.point.residual + self.outside) / size))

    @property
    def error(self) -> float:
        """The part of the deviance that is left, see :class:`SparseResult`."""
        return self.loss.deviance_left(self.point.value)

    def _record(self) -> bool:
        value = self.point.value
        row = (self.iteration, self.seconds, value, value, self.error, 0.0, 0.0, self.stationarity)
        self.history.append(row)
        if self.callback is None:
            return False
        matrix = self.point.U.to_csr
        try:
            return bool(self.callback(Snapshot(*row, _U=matrix, _V=matrix)))
        except KeyboardInterrupt:
            return True

    def _at_limit(self) -> bool:
        seconds = self.limits.max_time
        timed = seconds is not None and self.seconds >= seconds
        return self.iteration >= self.limits.max_iter or timed or calls.out_of_time()

    def _status(self, stopped: bool) -> Status | None:
        tol = self.limits.tol
        if self.point.sqnorm == 0.0 or (tol > 0.0 and self.decrease <= tol):
            return "converged"
        if stopped:
            return "stopped"
        if self.iteration >= self.limits.max_iter:
            return "max_iter"
        return "max_time" if self._at_limit() else None

    def _save(self) -> None:
        assert self.checkpoint is not None
        self.checkpoint.write(
            SavedSparseRun(
                self.point.U,
                self.history,
                self.iteration,
                self.seconds,
                self.power,
                self.outside,
                self.before,
                self.decrease,
            )
        )
