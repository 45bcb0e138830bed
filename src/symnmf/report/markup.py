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
from symnmf.run.result import OUTSIDE

LONGEST_CELL = 200

#: Cells are names (text, or whole numbers that sort as such), or numbers and the text for them.
Cell = str | int | tuple[float, str]


def facts(values: list[tuple[str, str]]) -> str:
    """Return values and what they are, side by side."""
    items = "".join(f"<div><dd>{text(v)}</dd><dt>{text(k)}</dt></div>" for v, k in values)
    return f'<dl class="facts">{items}</dl>'


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


def cluster_cell(label: int) -> Cell:
    return "none" if label == OUTSIDE else label


def name_cell(name: Any) -> Cell:
    value = name.item() if isinstance(name, np.generic) else name
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _cell(cell: Cell) -> str:
    if isinstance(cell, tuple):
        return f'<td data-value="{cell[0]:.9g}">{cell[1]}</td>'
    if isinstance(cell, int):
        return f'<td class="text" data-value="{cell}">{cell}</td>'
    return f'<td class="text">{text(cell)}</td>'


def table(name: str, head: list[str], rows: list[list[Cell]], *, search: bool = False) -> str:
    columns = "".join(
        f"<th scope=col><button type=button>{escape(title)}</button></th>" for title in head
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    box = ""
    if search:
        box = (
            f'<p class="search"><label>Search <input type="search" data-table="{name}" '
            f'autocomplete="off" placeholder="a name, a cluster"></label> '
            f'<output data-count="{name}">{len(rows):,} rows</output></p>'
        )
    return (
        f'{box}<div class="scroll"><table class="sortable" id="{name}"><thead><tr>{columns}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def whole_page(title: str, body: str) -> str:
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        f"base-uri 'none'; form-action 'none'"
    )
    name = escape(short(title))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{name}</title>\n<style>{style}</style></head>\n"
        f"<body><main><h1><bdi>{name}</bdi></h1>\n{body}\n</main>\n"
        f"<script>{script}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return files("symnmf.report").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
