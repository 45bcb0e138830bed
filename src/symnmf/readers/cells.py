"""The cells of a table's lines: what separates them, and which of them are read."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

import numpy as np

from symnmf.errors import InputError
from symnmf.readers.source import Advice, Source, shown
from symnmf.readers.text import MARGIN, Line

DECIMAL_ADVICE: Advice = (
    ", which reads as a number with a decimal comma; pass decimal=',' if it is one",
    ", which reads as a number with a decimal comma; give --decimal , if it is one",
)

COLUMNS_ADVICE: Advice = (
    ", or name the columns of numbers by columns=",
    ", or name the columns of numbers by --columns",
)

#: Bytes of the first line that show what separates its cells.
BEGINNING = 4096

_QUOTED = re.compile(rb'"[^"]*"')
_DECIMAL_COMMA = re.compile(rb"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_POINT = re.compile(rb"[+-]?[0-9]*\.[0-9]*(?:[eE][+-]?[0-9]+)?")


def delimiter_of(source: Source, line: bytes, following: bytes | None = None) -> bytes:
    """What separates cells: tabs in .tsv; else the tab, semicolon or comma of the first line.

    Where several are there, it is the first that the second line has as often. A decimal comma
    separates nothing.
    """
    if source.ending == ".tsv":
        return b"\t"
    first = _QUOTED.sub(b"", line)
    present = [mark for mark in (b"\t", b";", b",") if mark in first and mark != source.decimal]
    if len(present) > 1:
        if following is None:
            return b"," if b"," in present else present[0]
        second = _QUOTED.sub(b"", following)
        present = [mark for mark in present if first.count(mark) == second.count(mark)] or [b","]
    found = present[0] if present else b","
    if found == source.decimal:
        raise source.error(
            "its cells are separated by commas, which cannot be decimal commas too; leave decimal"
            " out, or separate cells by semicolons or tabs"
        )
    return found


def margin_of(source: Source) -> bytes:
    """What may surround a line: a tab is an empty cell where tabs separate."""
    first = source.peek(BEGINNING).split(b"\n")[0]
    tabbed = b"\t" in first and b"," not in first and b";" not in first
    return MARGIN.replace(b"\t", b"") if source.ending == ".tsv" or tabbed else MARGIN


def split_cells(source: Source, line: Line, delimiter: bytes) -> list[bytes]:
    """The cells of one line; double quotes may surround a cell but not span lines."""
    if b'"' not in line[1]:
        return [cell.strip() for cell in line[1].split(delimiter)]
    try:
        (row,) = csv.reader(
            [line[1].decode("utf-8")],
            delimiter=delimiter.decode(),
            strict=True,
            skipinitialspace=True,
        )
    except (csv.Error, ValueError) as error:
        raise source.error("its double quotes do not match up within the line", line[0]) from error
    return [cell.strip().encode("utf-8") for cell in row]


def with_points(source: Source, cells: list[bytes], line: int) -> list[bytes]:
    """The cells with decimal points, where the file was said to have decimal commas."""
    if source.decimal != b",":
        return cells
    for place, cell in enumerate(cells, 1):
        if _POINT.fullmatch(cell):
            raise source.error(
                f"cell {place} is {shown(cell)}, with a point, but decimal=',' says that numbers"
                " have decimal commas",
                line,
            )
    return [cell.replace(b",", b".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]


def has_decimal_comma(cell: bytes) -> bool:
    """Whether a cell reads as a number with a decimal comma, which is never guessed."""
    return _DECIMAL_COMMA.fullmatch(cell) is not None


def chosen_columns(
    source: Source, header: Sequence[str] | None, width: int, line: int
) -> list[int] | None:
    """The places of the columns that were asked for, from 0; None where all are read.

    They go by their names in the header, or by numbers from 1.
    """
    if source.columns is None:
        return None
    places = []
    for wanted in source.columns:
        if header is not None and wanted in header:
            if list(header).count(wanted) > 1:
                raise source.error(f"it has several columns {shown(wanted)}; go by number", line)
            places.append(list(header).index(wanted))
        elif wanted.isdecimal() and 1 <= int(wanted) <= width:
            places.append(int(wanted) - 1)
        else:
            known = shown(", ".join(header), 200) if header else "no header, so numbers from 1"
            raise source.error(f"it has no column {shown(wanted)}; its columns are {known}", line)
    return places


def checked_columns(columns: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """The names of columns, refused where they are none or one is named twice."""
    if columns is None:
        return None
    if isinstance(columns, str):
        columns = columns.split(",")
    if not all(isinstance(name, str | int | np.integer) for name in columns):
        raise InputError("columns must be names of columns, or their numbers from 1.")
    names = tuple(str(name).strip() for name in columns)
    if not names or not all(names):
        raise InputError("columns must name at least one column, and no name may be empty.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"columns names {twice!r} more than once.")
    return names
