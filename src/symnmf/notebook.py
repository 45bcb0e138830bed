"""HTML that objects show of themselves in a notebook: a line of words and a table, escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

LONGEST = 300
_TABLE = "border-collapse:collapse;margin:0.3em 0;font-size:90%"
_CELL = "padding:0.15em 0.8em 0.15em 0;text-align:left;vertical-align:top"


def shown(value: Any) -> str:
    """A value as text for HTML: cut where it is long, without what markup is made of."""
    text = str(value)
    return escape(text if len(text) <= LONGEST else text[:LONGEST] + "…")


def card(title: str, note: str, rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """A title, a sentence, and a table with an optional head; everything is escaped."""
    top = "".join(f'<th scope="col" style="{_CELL}">{shown(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal">{shown(first)}</th>'
        + "".join(f'<td style="{_CELL}">{shown(cell)}</td>' for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    table = f'<table style="{_TABLE}">' + (f"<thead><tr>{top}</tr></thead>" if top else "")
    words = f"<div>{shown(note)}</div>" if note else ""
    return f"<div><strong>{shown(title)}</strong>{words}{table}<tbody>{body}</tbody></table></div>"
