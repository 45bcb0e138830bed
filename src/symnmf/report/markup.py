"""Tables, sections and the frame of a page, as text that has been escaped."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from symnmf.cluster.quality import plain

LONGEST_CELL = 200

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src \
{style_hash}; script-src {script_hash}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style></head>
<body><main><h1><bdi>{title}</bdi></h1>
{body}
</main>
<script>{script}</script></body></html>
"""

#: Cells are names (text, or whole numbers that sort as such), or numbers and the text for them.
Cell = str | int | tuple[float, str]


def short(value: Any, most: int = LONGEST_CELL) -> str:
    """Return a string from data without control characters (tabs become spaces), cut to size."""
    text = str(value)
    text = text if len(text) <= most else text[: most - 1] + "…"
    return "".join(
        " " if c.isspace() else "�" if unicodedata.category(c) in ("Cc", "Cs") else c for c in text
    )


def text(value: Any) -> str:
    """Return anything as HTML text; <bdi> keeps right-to-left marks inside it."""
    return f"<bdi>{escape(short(value))}</bdi>"


def number_cell(value: float) -> tuple[float, str]:
    return value, plain(value)


def name_cell(name: Any) -> Cell:
    value = name.item() if isinstance(name, np.generic) else name
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cell(cell: Cell) -> str:
    if isinstance(cell, tuple):
        return f'<td data-value="{cell[0]:.9g}">{cell[1]}</td>'
    if isinstance(cell, int):
        return f'<td class="text" data-value="{cell}">{cell}</td>'
    return f'<td class="text">{text(cell)}</td>'


def table(name: str, lines: list[dict[str, Cell]], *, search: bool = False) -> str:
    """Return a table that can be sorted; a column that would be empty is left out."""
    heads = [
        head
        for head in dict.fromkeys(key for line in lines for key in line)
        if any(line.get(head, "") != "" for line in lines)
    ]
    titles = "".join(
        f"<th scope=col><button type=button>{escape(head)}</button></th>" for head in heads
    )
    body = "".join(
        f"<tr>{''.join(_cell(line.get(head, '')) for head in heads)}</tr>" for line in lines
    )
    box = (
        f'<p class="search"><label>Search <input type="search" data-table="{name}" '
        f'autocomplete="off" placeholder="a name, a cluster"></label> '
        f'<output data-count="{name}">{len(lines):,} rows</output></p>'
    )
    return (
        f'{box * search}<div class="scroll"><table class="sortable" id="{name}"><thead><tr>'
        f"{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def judged(title: str, well: bool, verdict: str, content: str) -> str:
    """Return a section with a verdict, marked as good or not."""
    return (
        f'<section class="certificate {"yes" if well else "no"}"><h2>{escape(title)}</h2>'
        f"<p><strong>{text(verdict)}</strong></p>{content}</section>"
    )


def whole_page(title: str, body: str) -> str:
    style, script = (
        files("symnmf.report").joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js")
    )
    return PAGE.format(
        title=escape(short(title)),
        body=body,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
