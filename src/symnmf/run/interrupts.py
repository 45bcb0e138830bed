"""Ctrl-C and SIGTERM end a run after the iteration under way, so nothing computed is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Which signal came, if any."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def watching(*signals: signal.Signals) -> Iterator[Interrupt]:
    """Note the first signal instead of dying of it; the second one acts as it always did.

    A signal that the caller has set to be ignored stays ignored, as in a job under ``nohup`` or in
    the background of a shell. Outside the main thread Python delivers no signals, and nothing is
    changed.
    """
    seen = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    handlers = {number: signal.getsignal(number) for number in signals}
    before = {number: was for number, was in handlers.items() if was is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            # None: a handler that was not installed from Python and cannot be put back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def note(number: int, frame: FrameType | None) -> None:
        seen.signal = number
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield seen
    finally:
        restore()
