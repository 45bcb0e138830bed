"""Progress on stderr: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from symnmf.run.loop import Snapshot

Found = TypeVar("Found")

REFRESH = 0.1  # seconds between two looks at a bar
LOG_EVERY = 10.0  # seconds between two lines of a log


@dataclass
class Forecast:
    """How far several starts are, each by its way down to the tolerance or to a limit of its own.

    A start's residual falls by a steady factor per iteration once it has settled, so the
    iterations still to come follow from the second half of those done.
    """

    starts: int
    tol: float
    max_iter: int
    max_time: float | None = None
    paths: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    done: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.done = [0.0] * self.starts

    def see(self, start: int, now: Snapshot) -> None:
        """Take in the latest snapshot of one start."""
        path = self.paths.setdefault(start, [])
        path.append((now.iteration, math.log(max(now.stationarity, 1e-300))))
        shares = [now.iteration / self.max_iter if self.max_iter else 1.0]
        if self.max_time:
            shares.append(now.seconds / self.max_time)
        if self.tol > 0:
            left = self._iterations_left(path)
            shares.append(now.iteration / (now.iteration + left) if now.iteration else 0.0)
        # a forecast may fall back, a bar should not
        self.done[start] = min(1.0, max(*shares, self.done[start]))

    def _iterations_left(self, path: list[tuple[int, float]]) -> float:
        iteration, level = path[-1]
        earlier, before = path[len(path) // 2]
        if level <= math.log(self.tol):
            return 0.0
        if iteration == earlier or level >= before:
            return math.inf
        return (level - math.log(self.tol)) * (iteration - earlier) / (before - level)

    @property
    def share(self) -> float:
        """The part of all the work that is done, from 0 to 1."""
        return sum(self.done) / self.starts

    def seconds_left(self, elapsed: float) -> float | None:
        """Return an estimate, once there is something to go by."""
        return elapsed * (1 - self.share) / self.share if self.share > 1e-5 else None


def words(seconds: float | None) -> str:
    """Return a duration as a person would say it."""
    if seconds is None:
        return "?"
    if seconds < 1:
        return "a second"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Watcher:
    """Shows the snapshots of a run; call it with the number of the start and the snapshot."""

    def __init__(self, forecast: Forecast, bar: Any | None) -> None:
        self.forecast = forecast
        self.bar = bar
        self.task = bar.add_task("", total=1.0, state="") if bar else None
        self.begun = time.monotonic()
        self.shown = self.begun

    def __call__(self, start: int, now: Snapshot) -> None:
        self.forecast.see(start, now)
        clock = time.monotonic()
        if clock - self.shown < (REFRESH if self.bar else LOG_EVERY):
            return
        self.shown = clock
        state = self._state(start, now, self.forecast.seconds_left(clock - self.begun))
        if self.bar:
            self.bar.update(self.task, completed=self.forecast.share, state=state)
        else:
            typer.echo(state, err=True)

    def _state(self, start: int, now: Snapshot, left: float | None) -> str:
        which = f"start {start + 1}/{self.forecast.starts} " if self.forecast.starts > 1 else ""
        split = f" λ {now.coupling:.3g} ‖U-V‖ {now.consensus:.1e}" if now.coupling > 0 else ""
        about = f" about {words(left)} left" if left is not None else ""
        return f"{which}iteration {now.iteration} error {now.error:.4g}{split}{about}"


@contextmanager
def watching(forecast: Forecast, *, quiet: bool) -> Iterator[Watcher | None]:
    """Show progress inside a ``with`` block, or nothing where it is not wanted."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with progress_bar() as bar:
            yield Watcher(forecast, bar)
    else:
        yield Watcher(forecast, None)


def progress_bar() -> Any:
    """Return a bar on stderr that goes when it is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    # the numbers come from the solver and the words from here, so no markup has to be escaped
    columns = (BarColumn(bar_width=20), TextColumn("{task.fields[state]}", markup=False))
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def step(message: str, *, quiet: bool) -> Iterator[None]:
    """Show a spinner while something without measurable progress goes on."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(message):
        yield


def watched(
    run: Callable[[Callable[[int, Any], bool]], Found],
    forecast: Forecast,
    signals: Any,
    quiet: bool,
) -> Found:
    """Call ``run`` with what it is to tell of each start's latest snapshot, and whether to end."""
    with watching(forecast, quiet=quiet) as watcher:

        def progress(start: int, now: Any) -> bool:
            if watcher:
                watcher(start, now)
            return bool(signals)

        return run(progress)
