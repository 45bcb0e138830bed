"""Ctrl-C and SIGTERM during a command: what was computed is still written."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

WATCHED = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM, raised where Ctrl-C raises KeyboardInterrupt."""


class Signals:
    """Which signals have come so far."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._seen: list[int] = []

    def seen(self) -> list[int]:
        """Return the numbers of the signals, the earliest first."""
        try:
            arrived = self._channel.recv(64)
        except BlockingIOError:
            arrived = b""
        self._seen += [number for number in arrived if number in WATCHED]
        return self._seen

    @property
    def first(self) -> int | None:
        """The signal that asked the command to end, if one did."""
        seen = self.seen()
        return seen[0] if seen else None

    def __bool__(self) -> bool:
        return self.first is not None


@contextmanager
def noticing() -> Iterator[Signals]:
    """Note the first signal instead of dying of it; a second one ends the program.

    A solver handles signals itself while it runs and says only that it was stopped, so the
    numbers are read from a socket that the interpreter writes every signal to, whoever handles it.
    """
    read_end, write_end = socket.socketpair()
    read_end.setblocking(False)
    write_end.setblocking(False)
    signals = Signals(read_end)

    def handle(number: int, frame: FrameType | None) -> None:
        if len(signals.seen()) > 1:
            raise SystemExit(128 + signals.seen()[0])
        listening = signal.getsignal(signal.SIGINT)
        if number == signal.SIGTERM and listening not in (handle, signal.SIG_IGN):
            signal.raise_signal(signal.SIGINT)  # what the solver that is running listens to

    # what the shell set to be ignored, such as Ctrl-C for a job in its background, stays so
    heeded = [number for number in WATCHED if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, handle) for number in heeded}
    wakeup = signal.set_wakeup_fd(write_end.fileno(), warn_on_full_buffer=False)
    try:
        yield signals
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        read_end.close()
        write_end.close()


@contextmanager
def raising() -> Iterator[None]:
    """Let SIGTERM raise :class:`Terminated`, for work that keeps what it has done by itself."""

    def handle(number: int, frame: FrameType | None) -> None:
        raise Terminated

    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
