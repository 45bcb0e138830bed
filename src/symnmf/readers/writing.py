"""Tables written whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Mapping, Sequence

import numpy as np

from symnmf.archives import write_atomically
from symnmf.errors import InputError
from symnmf.readers.source import AnyPath, checked_path, shown, split_ending
from symnmf.readers.text import number

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
APOSTROPHE = "'"


def write_table(path: AnyPath, columns: Mapping[str, Sequence[object] | np.ndarray]) -> int:
    """Write columns as a .csv or .csv.gz file, atomically.

    The table goes to a temporary file in the same folder, is flushed to the disk and then takes
    the place of ``path``; whatever fails, ``path`` is either as it was or complete, and nothing
    is left behind. Only ``path`` decides where: names in the table are cells and nothing else.

    Parameters
    ----------
    path : str or path
        A file in an existing folder; replaced where it exists.
    columns : mapping of str to sequence
        Columns of equal length; text, integers, floats, truth values, or None for an empty cell.

    Returns
    -------
    int
        How many cells were changed to keep spreadsheets from running them: text that starts with
        ``=``, ``+``, ``-``, ``@``, a tab or a carriage return gets an apostrophe in front, in the
        header too, and so does text that has such an apostrophe already, so that no two cells
        become one. Numbers, also those written as text (``-5``), stay as they are, and floats are
        written so that reading them gives the same float.

    Raises
    ------
    InputError
        On another ending, columns of different lengths, cells of another type, or a place that
        cannot be written to.
    OSError
        When the disk is full or fails.
    """
    name = checked_path(path)
    ending, zipped = split_ending(name)
    if ending != ".csv":
        raise InputError(f"path must end in .csv or .csv.gz, got {shown(name, 300)}.")
    rows, changed = _cells(columns)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    try:
        content = text.getvalue().encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError("columns must hold valid Unicode, and a cell does not.") from error
    _replace(name, gzip.compress(content, mtime=0) if zipped else content)
    return changed


def _cells(
    columns: Mapping[str, Sequence[object] | np.ndarray],
) -> tuple[list[tuple[object, ...]], int]:
    if not columns:
        raise InputError("columns must hold at least one column, got none.")
    lists = {}
    for name, column in columns.items():
        if not isinstance(name, str):
            raise InputError(f"columns must have text names, got {shown(name)}.")
        lists[name] = column.tolist() if isinstance(column, np.ndarray) else list(column)
    lengths = {name: len(column) for name, column in lists.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns must have equal lengths, got {shown(lengths, 200)}.")
    given = [list(lists), *zip(*lists.values(), strict=True)]
    rows = [tuple(_plain(cell) for cell in row) for row in given]
    safe = [tuple(_safe(cell) for cell in row) for row in rows]
    changed = sum(
        a is not b
        for old, new in zip(rows, safe, strict=True)
        for a, b in zip(old, new, strict=True)
    )
    return safe, changed


def _plain(cell: object) -> object:
    value = cell.item() if isinstance(cell, np.generic) else cell
    if value is not None and not isinstance(value, str | int | float):
        raise InputError(f"columns must hold text and numbers, got {type(cell).__name__}.")
    return value


def _safe(cell: object) -> object:
    if not isinstance(cell, str) or not cell.lstrip(APOSTROPHE).startswith(FORMULA_STARTS):
        return cell
    is_number = number(cell.encode("utf-8", "replace")) is not None
    return cell if is_number else APOSTROPHE + cell


def without_apostrophe(cell: str) -> str:
    """The text that :func:`write_table` wrote as ``cell``."""
    bare = cell.lstrip(APOSTROPHE)
    return cell[1:] if bare != cell and bare.startswith(FORMULA_STARTS) else cell


def _replace(path: str, content: bytes) -> None:
    if os.path.lexists(path) and not os.path.isfile(path):
        raise InputError(f"path must be a regular file, and {shown(path, 300)} is not one.")
    write_atomically(path, lambda stream: stream.write(content))
