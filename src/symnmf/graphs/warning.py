"""What the reader should know of a graph that is usable all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from symnmf import errors

_unsaid = ContextVar("_unsaid", default=False)


class GraphWarning(UserWarning):
    """The graph is usable, but you should know something about the data."""


def warn(message: str) -> None:
    """Warn of a graph at the reader's line."""
    if not _unsaid.get():
        errors.warn(message, GraphWarning)


@contextmanager
def unsaid() -> Iterator[None]:
    """Build a graph without a word, in this thread; the filters of warnings are all threads'."""
    before = _unsaid.set(True)
    try:
        yield
    finally:
        _unsaid.reset(before)
