"""What the reader should know of a graph that is usable all the same."""

from __future__ import annotations

from symnmf import errors


class GraphWarning(UserWarning):
    """The graph is finite and usable, but the data had something the reader should know of."""


def warn(message: str) -> None:
    """Warn of a graph at the reader's line."""
    errors.warn(message, GraphWarning)
