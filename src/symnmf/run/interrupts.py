"""Ctrl-C and SIGTERM end a run after the iteration under way, so nothing computed is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from symnmf.calls import Call


@contextmanager
def watching(call: Call, *signals: signal.Signals) -> Iterator[None]:
    """Let the first signal stop the call, and the second one act as it always did.

    A signal that the caller has set to be ignored stays ignored, as in a job under ``nohup`` or in
    the background of a shell. Outside the main thread Python delivers no signals, and nothing is
    changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in before.items():
            # None: a handler that was not installed from Python and cannot be put back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def note(number: int, frame: FrameType | None) -> None:
        call.stopping = True
        restore()

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield
    finally:
        restore()
