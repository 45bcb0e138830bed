"""Tables of numbers (.csv, .tsv)."""

from __future__ import annotations

import csv

import numpy as np

from symnmf.readers.result import MatrixFile
from symnmf.readers.source import Source
from symnmf.readers.text import (
    MARGIN,
    Line,
    Lines,
    lines_of,
    number,
    number_problem,
    numbers,
)


def delimiter_of(source: Source, line: bytes) -> bytes:
    """Tab for .tsv; for the rest comma, or semicolon where the first line has only those."""
    if source.ending == ".tsv":
        return b"\t"
    return b";" if b";" in line and b"," not in line else b","


def margin_of(source: Source) -> bytes:
    """What may surround a line: a tab is an empty cell where tabs separate."""
    return MARGIN.replace(b"\t", b"") if source.ending == ".tsv" else MARGIN


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


class _Table:
    """The state of one pass: the layout found in the first line, and the rows so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.delimiter = b""
        self.width = 0
        self.named = False
        self.names: list[str] = []
        self.parts: list[np.ndarray] = []

    def start(self, line: Line) -> bool:
        """Learn the layout from the first line; tell whether it is a header."""
        self.delimiter = delimiter_of(self.source, line[1])
        cells = split_cells(self.source, line, self.delimiter)
        self.width = len(cells)
        header = any(number(cell) is None and cell for cell in cells)
        self.named = header and not cells[0] and self.width > 1
        return header

    def add(self, lines: Lines) -> None:
        values = None if self.named else self._fast(lines)
        self.parts.append(self._slow(lines) if values is None else values)

    def _fast(self, lines: Lines) -> np.ndarray | None:
        texts = lines.texts
        if {text.count(self.delimiter) for text in texts} != {self.width - 1}:
            return None
        values = numbers(self.delimiter.join(texts).split(self.delimiter))
        return None if values is None else values.reshape(len(lines), self.width)

    def _slow(self, lines: Lines) -> np.ndarray:
        rows = []
        for line in lines:
            cells = split_cells(self.source, line, self.delimiter)
            if len(cells) != self.width:
                raise self.source.error(
                    f"it has {len(cells)} cells where the first line has {self.width}", line[0]
                )
            if self.named:
                self.names.append(cells[0].decode("utf-8"))
                cells = cells[1:]
            values = numbers(cells)
            if values is None:
                first = 2 if self.named else 1
                column, problem = next(
                    (column, problem)
                    for column, cell in enumerate(cells, first)
                    if (problem := number_problem(cell))
                )
                raise self.source.error(f"cell {column} {problem}", line[0])
            rows.append(values)
        return np.array(rows)


def read_table(source: Source) -> MatrixFile:
    """A table of finite numbers, one row per line.

    The first line is a header when one of its cells is no number (a header of years is a row); a
    header whose first cell is empty, as pandas and R write it, says that the first column holds
    row names. Cells are separated by commas (semicolons where the first line has no comma), in
    .tsv by tabs. Blank lines and lines that start with ``#`` are skipped.
    """
    table = _Table(source)
    started = False
    for lines in lines_of(source, b"#", margin_of(source)):
        if not started:
            started = True
            if table.start(lines[0]):
                lines = lines.rest()
        if len(lines):
            table.add(lines)
    if not table.parts:
        raise source.error("it holds no row of numbers")
    names = None
    if table.named:
        names = np.empty(len(table.names), dtype=object)
        names[:] = table.names
    return MatrixFile(np.concatenate(table.parts), "matrix", names)
