"""What the reader should know of a graph that is usable all the same."""

from __future__ import annotations

from symnmf import errors


class GraphWarning(UserWarning):
    """The graph is usable, but you should know something about the data."""


def warn(message: str) -> None:
    """Warn of a graph at the reader's line."""
    errors.warn(message, GraphWarning)
