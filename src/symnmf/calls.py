"""What one call takes: seconds by part, readings of X, and the moment by which it must return.

A call is opened where a user's call begins, and everything that works for it in the same context
finds it here. So a product deep inside a start can be counted, and a start can see that time is
up, without handing a record through every function on the way.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

PARTS = ("check", "start", "solve", "evaluate")


@dataclass(frozen=True)
class Seconds:
    """The wall-clock seconds of a call, in total and by part.

    Attributes
    ----------
    total : float
        From the call to its return, including compilation. It also includes time that is in no
        part below: callbacks, checkpoints, copies of the factors.
    check : float
        Checking X, moving it to its device and scanning it once; for the estimator and
        ``communities`` also building the graph.
    start : float
        Computing U_0, including eigenvectors or the run on a sketch of X.
    solve : float
        Iterations; the ``seconds`` of the history.
    evaluate : float
        Computing error, objective and stationarity for the history.

    Notes
    -----
    If several starts run at the same time, their parts add up to more than the total.
    """

    total: float
    check: float = 0.0
    start: float = 0.0
    solve: float = 0.0
    evaluate: float = 0.0


class Call:
    """One call while it runs: it should return ``max_time`` seconds from now.

    The deadline of the call that it is made by, ``outer``, holds here too.
    """

    def __init__(self, max_time: float | None = None, outer: Call | None = None) -> None:
        self.began = time.perf_counter()
        own = float("inf") if max_time is None else self.began + max_time
        self.deadline: float = own if outer is None else min(own, outer.deadline)
        #: set where the user asks this call to stop
        self.stopping = False
        self.passes = 0
        self._outer = outer
        self._parts = dict.fromkeys(PARTS, 0.0)
        self._adding = threading.Lock()

    @property
    def stopped(self) -> bool:
        """Whether the user has asked it, or the call around it, to stop."""
        return self.stopping or (self._outer is not None and self._outer.stopped)

    @property
    def seconds(self) -> Seconds:
        """What it has taken so far."""
        return Seconds(time.perf_counter() - self.began, **self._parts)

    def add(self, passes: int, parts: dict[str, float]) -> None:
        """Add readings of X, and seconds to parts."""
        with self._adding:
            self.passes += passes
            for part, seconds in parts.items():
                self._parts[part] += seconds


_current: ContextVar[Call | None] = ContextVar("symnmf_call", default=None)
_part: ContextVar[str | None] = ContextVar("symnmf_part", default=None)


@contextlib.contextmanager
def opened(max_time: float | None = None, *, apart: bool = False) -> Iterator[Call]:
    """Open a call; what it takes is added to the one around it, unless it is ``apart``."""
    outer = _current.get()
    call = Call(max_time, outer)
    before = _current.set(call)
    inside = _part.set(None)
    try:
        yield call
    finally:
        _part.reset(inside)
        _current.reset(before)
        if outer is not None and not apart:
            outer.add(call.passes, call._parts)


class timed:
    """Count the seconds of a ``with`` block to a part; inside another part they stay with that.

    A class, since every iteration enters two of them and a generator takes three times as long.
    """

    __slots__ = ("_began", "_call", "_inside", "_name")

    def __init__(self, part: str) -> None:
        self._name = part

    def __enter__(self) -> None:
        self._call = None if _part.get() is not None else _current.get()
        if self._call is not None:
            self._inside = _part.set(self._name)
            self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        if self._call is not None:
            self._call.add(0, {self._name: time.perf_counter() - self._began})
            _part.reset(self._inside)


def read_once() -> None:
    """Count one reading of X."""
    call = _current.get()
    if call is not None:
        call.add(1, {})


def seconds_left() -> float:
    """Return the seconds until the call should return; infinite where nothing bounds it."""
    call = _current.get()
    return float("inf") if call is None else call.deadline - time.perf_counter()


def out_of_time(needed: float = 0.0) -> bool:
    """Whether fewer seconds are left than something would need, or the user wants it to stop."""
    call = _current.get()
    if call is None:
        return False
    return call.stopped or call.deadline - time.perf_counter() <= needed


def stop() -> None:
    """Let the present call stop: the user wishes it."""
    call = _current.get()
    if call is not None:
        call.stopping = True


def stopped() -> bool:
    """Whether the user wants the present call to stop."""
    call = _current.get()
    return call is not None and call.stopped


def in_this_call(task: Callable[P, T]) -> Callable[P, T]:
    """Return a task that works for the present call in whatever thread it runs."""
    context = copy_context()

    def run(*args: P.args, **options: P.kwargs) -> T:
        # a context is entered by one thread at a time, so every run has a copy
        return context.copy().run(task, *args, **options)

    return run
