"""Tables of numbers (.csv, .tsv)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from symnmf.errors import InputError
from symnmf.readers.cells import (
    COLUMNS_ADVICE,
    DECIMAL_ADVICE,
    chosen_columns,
    delimiter_of,
    has_decimal_comma,
    margin_of,
    split_cells,
    with_points,
)
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import HEADER_ADVICE, NAN_ADVICE, NO_ADVICE, Advice, Source, shown
from symnmf.readers.text import (
    Line,
    Lines,
    is_nan,
    lines_of,
    number,
    number_problem,
    numbers,
)

OR_HEADER: Advice = (
    ", or pass header=True or header=False",
    ", or give --header or --no-header",
)

#: What a header calls a column of row names.
NAME_WORDS = (b"name", b"names", b"id", b"ids", b"node", b"nodes", b"vertex", b"row", b"rows")


#: What other programs write for a missing value.
MISSING = (
    *(b"na", b"n/a", b"#n/a", b"#na", b"<na>", b"nat", b"null", b"nil", b"none", b"missing"),
    *(b"-", b"?", b"."),
)


class _Table:
    """The state of one pass: the layout found in the first lines, and the rows so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.delimiter = b""
        self.width = 0
        self.named = False
        self.first_name: Line | None = None
        self.names: list[str] = []
        self.parts: list[np.ndarray] = []
        self.columns: list[str] | None = None
        self.kept: list[int] | None = None

    def cells(self, line: Line) -> list[bytes]:
        """The cells of a line, with decimal points."""
        cells = split_cells(self.source, line, self.delimiter)
        return with_points(self.source, cells, line[0])

    def choose(self, line: Line, header: bool) -> None:
        """Keep what the header calls the columns, and which of them are read."""
        if header:
            self.columns = [cell.decode("utf-8") for cell in self.cells(line)]
        self.kept = chosen_columns(self.source, self.columns, self.width, line[0])
        read = self.kept if self.kept is not None else list(range(self.named, self.width))
        self.named &= 0 not in read
        if self.columns is not None:
            self.columns = [self.columns[place] for place in read]

    def start(self, line: Line, following: Line | None) -> bool:
        """Learn the layout from the first two lines; tell whether the first is a header."""
        below_it = None if following is None else following[1]
        self.delimiter = delimiter_of(self.source, line[1], below_it)
        cells = self.cells(line)
        self.width = len(cells)
        if self.source.header is not None:
            return self._start_as_told(cells, following)
        header = any(map(self._is_word, cells))
        self._check_doubtful(cells, line)
        if self.source.nan and not header and not cells[0] and self.width > 1:
            # pandas numbers rows and columns alike, so that read as a row they are symmetric too
            raise self.source.error(
                "cell 1 is empty, so the line may be a header of numbers or a row; write nan into"
                " the cell of a row, and leave out a header of numbers and the column below it",
                line[0],
                OR_HEADER,
            )
        self.named = header and not cells[0] and self.width > 1
        if not header or self.named or self.width == 1 or following is None:
            return header
        below = self.cells(following)[0]
        if self._is_word(below):
            if cells[0].lower() not in NAME_WORDS:
                self._check_doubtful(cells[1:], line, 2)
            self.named = True
            header = any(map(self._is_word, cells[1:])) or cells[0].lower() in NAME_WORDS
            self.first_name = (following[0], below) if header else (line[0], cells[0])
        return header

    def _start_as_told(self, cells: list[bytes], following: Line | None) -> bool:
        """Learn the layout where the caller says whether there is a header."""
        header = bool(self.source.header)
        if self.width > 1:
            below = cells[0]
            if following is not None:
                below = self.cells(following)[0]
            words = [cell for cell in (below,) if header] or [cells[0], below]
            self.named = all(map(self._is_word, words))
            self.named |= header and not cells[0]
        return header

    def _check_doubtful(self, cells: list[bytes], line: Line, first: int = 1) -> None:
        """Refuse a line without a plain word that has a cell which may be a number or a name."""
        words = [(place, cell) for place, cell in enumerate(cells, first) if self._is_word(cell)]
        if words and all(is_doubtful(cell) for _, cell in words):
            place, cell = words[0]
            if self.delimiter != b"," and has_decimal_comma(cell):
                raise self._comma_error(place, cell, line[0])
            raise self._doubt(place, cell, line[0])

    def _doubt(self, place: int, cell: bytes, line: int) -> InputError:
        """The error about a first line of which nobody can tell whether it is a header."""
        return self.source.error(
            f"cell {place} is {shown(cell)}, which is not a number, and the line may be a row or a"
            " header",
            line,
            HEADER_ADVICE,
        )

    def _is_word(self, cell: bytes) -> bool:
        return _is_word(cell) and not (self.source.nan and _is_absent(cell))

    def check_header(self, line: Line) -> None:
        """Refuse a first line that is a row with something else than a number in it.

        A header is words. Numbers may follow only a first cell that is empty or announces names;
        a word among numbers and the mark of a missing value may belong to a row, which must not be
        dropped as a header.
        """
        if self.source.header:
            return
        cells = self.cells(line)
        numbered = any(cell and not self._is_word(cell) for cell in cells)
        numbered |= bool(cells) and is_doubtful(cells[0])
        mixed = numbered and cells[0].lower() not in (b"", *NAME_WORDS)
        if mixed and list(map(self._is_word, cells)) == [True, *[False] * (len(cells) - 1)]:
            raise self._doubt(1, cells[0], line[0])
        for place, cell in enumerate(cells):
            if self._is_word(cell) and (mixed or cell.lower() in MISSING):
                raise self.source.error(
                    f"cell {place + 1} is {shown(cell)}, which is not a number, and the line is no"
                    f" header, whose cells are words; {self._advice(cells)}",
                    line[0],
                )

    def add(self, lines: Lines) -> None:
        plain = not self.named and self.kept is None and self.source.decimal == b"."
        values = self._fast(lines) if plain else None
        self.parts.append(self._slow(lines) if values is None else values)

    def _fast(self, lines: Lines) -> np.ndarray | None:
        texts = lines.texts
        if {text.count(self.delimiter) for text in texts} != {self.width - 1}:
            return None
        values = numbers(self.delimiter.join(texts).split(self.delimiter), self.source.nan)
        return None if values is None else values.reshape(len(lines), self.width)

    def _slow(self, lines: Lines) -> np.ndarray:
        rows = []
        for line in lines:
            cells = self.cells(line)
            if len(cells) != self.width:
                raise self.source.error(
                    f"it has {len(cells)} cells where the first line has {self.width}", line[0]
                )
            if self.named:
                self._check_name(line[0], cells[0])
                self.names.append(cells[0].decode("utf-8"))
            places = range(self.named, self.width) if self.kept is None else self.kept
            cells = [cells[place] for place in places]
            if self.source.nan:
                cells = [b"nan" if _is_absent(cell) else cell for cell in cells]
            values = numbers(cells, self.source.nan)
            if values is None:
                raise self._cell_error(line, cells, places)
            rows.append(values)
        return np.array(rows)

    def _cell_error(self, line: Line, cells: list[bytes], places: Sequence[int]) -> InputError:
        """The error about the first cell of a row that is not a number."""
        place, cell, problem = next(
            (place, cell, problem)
            for place, cell in zip(places, cells, strict=True)
            if (problem := number_problem(cell, self.source.nan))
        )
        if self.delimiter != b"," and has_decimal_comma(cell):
            return self._comma_error(place + 1, cell, line[0])
        if _is_absent(cell) and not self.source.nan:
            return self.source.error(f"cell {place + 1} {problem}", line[0], NAN_ADVICE)
        advice = self._advice(self.cells(line))
        also = NO_ADVICE if self.width == 1 or self.kept is not None else COLUMNS_ADVICE
        return self.source.error(f"cell {place + 1} {problem}; {advice}", line[0], also)

    def _comma_error(self, place: int, cell: bytes, line: int) -> InputError:
        return self.source.error(f"cell {place} is {shown(cell)}", line, DECIMAL_ADVICE)

    def _advice(self, cells: list[bytes]) -> str:
        """Say what to do about a row that is not one of numbers."""
        if self.width in (2, 3) and all(map(_is_word, cells[:2])):
            return "for the edges of a graph let the first line be source,target"
        return "leave out columns of text and fill in what is missing"

    def _check_name(self, line: int, name: bytes) -> None:
        """Refuse a number among names that no header announced: the column may be data."""
        if self.delimiter != b"," and has_decimal_comma(name):
            raise self._comma_error(1, name, line)
        if self.first_name is not None and not _is_word(name):
            where, first = self.first_name
            raise self.source.error(
                f"cell 1 is {shown(name)}, but line {where} has the name {shown(first)} there; a "
                "column holds names or numbers",
                line,
            )


def _is_absent(cell: bytes) -> bool:
    """Whether a cell says that there is no value, as pandas, R and spreadsheets say it."""
    return not cell or cell.lower() in MISSING or is_nan(cell)


#: Nothing but signs before a digit (1,200 and $12, 1% and 0x1, but also the 1st of a header) or
#: before the end, as the dashes of a cell without a value; a word for 1 or 0; a failed formula.
_DOUBTFUL = re.compile(r"\W*(\d|$)|(true|false|yes|no|on|off)$|#[A-Z/0]+[!?]?$", re.IGNORECASE)


def is_doubtful(cell: bytes) -> bool:
    """Whether a cell is no number and may have been meant as one."""
    return _is_word(cell) and _DOUBTFUL.match(cell.decode("utf-8", "replace")) is not None


def _is_word(cell: bytes) -> bool:
    return bool(cell) and number(cell) is None


def read_table(source: Source) -> MatrixFile:
    """A table of finite numbers, one row per line.

    The first line is a header when one of its cells is no number (a header of years is a row), and
    then all are words, but for numbers behind an empty first cell or a word such as ``name``: a
    word among numbers, or the mark of a missing value, is refused. The first column holds row names
    when the header's first cell is empty, as pandas and R write it, or when it holds text in every
    row; with such names a first line whose other cells are all numbers is a header only when it
    starts with a word such as ``name`` or ``id``. A first line whose only words begin with a digit
    (``1%``, ``$12``), have only signs (``--``) or stand for 1 and 0 (``true``, ``no``) is refused.
    Where the source says whether there is a header, that is believed.
    Where NaN may be, an empty cell and the mark of a missing value are NaN.
    Cells are separated by commas, semicolons or tabs, whichever the first two lines have; in .tsv
    by tabs.
    Blank lines and lines that start with ``#`` are skipped, but for a row whose first cell is that
    of a failed formula (``#N/A``).
    """
    table = _Table(source)
    parts = lines_of(source, b"#", margin_of(source))
    if (lines := next(parts, None)) is not None:
        if len(lines) == 1 and (more := next(parts, None)) is not None:
            lines = Lines(np.append(lines.numbers, more.numbers), lines.texts + more.texts)
        header = table.start(lines[0], lines[1] if len(lines) > 1 else None)
        if header:
            table.check_header(lines[0])
        table.choose(lines[0], header)
        lines = lines.rest() if header else lines
        for part in chain([lines], parts):
            if len(part):
                table.add(part)
    if not table.parts:
        raise source.error("it holds no row of numbers")
    names = None
    if table.named:
        names = np.empty(len(table.names), dtype=object)
        names[:] = table.names
    return MatrixFile(np.concatenate(table.parts), "matrix", names, columns=table.columns)
