"""Lines, fields and numbers of a text file, block by block.

A block is a run of whole lines of about ``BLOCK`` bytes. Readers convert a whole block at once and
go through its lines one by one only to say which of them is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from symnmf.readers.source import NO_ADVICE, Advice, Source, shown

MAX_LINE = 4 * 2**20
"""Longest line in bytes."""

BLOCK = 2**19
MARGIN = b" \t\r"

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
#: Cells that spreadsheets write where a formula fails; a row may begin with one.
_FAILED = rb"(?:#(?:N/?A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!)[ \t\r]*(?:[,;\t\n]|\Z))"
FAILED_CELL = re.compile(_FAILED)
_BOM = b"\xef\xbb\xbf"

Line = tuple[int, bytes]


def blocks(source: Source, *, checked: bool = True) -> Iterator[tuple[int, bytes]]:
    """Yield ``(number of the first line, whole lines)``, checked to be UTF-8 text unless told."""
    first, tail = 1, b""
    while True:
        chunk = source.read(BLOCK)
        data = tail + chunk
        if first == 1 and data.startswith(_BOM):
            data = data[len(_BOM) :]
        cut = data.rfind(b"\n") + 1 if chunk else len(data)
        tail = data[cut:]
        if len(tail) > MAX_LINE:
            raise source.error(
                f"the line is longer than {MAX_LINE} bytes", first + data.count(b"\n")
            )
        if cut:
            block = data[:cut]
            if checked:
                check_text(source, block, first)
            yield first, block
            first += block.count(b"\n")
        if not chunk:
            return


def check_text(source: Source, block: bytes, first: int) -> None:
    """Refuse bytes that do not belong in a text, each with its line."""
    if found := _CONTROL.search(block):
        line = first + block.count(b"\n", 0, found.start())
        raise source.error(f"the byte 0x{found.group()[0]:02x} does not belong in a text", line)
    if not block.isascii():
        try:
            block.decode("utf-8")
        except UnicodeDecodeError as error:
            line = first + block.count(b"\n", 0, error.start)
            raise source.error(
                f"the byte 0x{block[error.start]:02x} is not UTF-8; save the file as UTF-8", line
            ) from error


@dataclass(frozen=True)
class Lines:
    """Stripped lines that hold something, and their numbers in the file."""

    numbers: np.ndarray
    texts: list[bytes]

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[Line]:
        return zip(self.numbers.tolist(), self.texts, strict=True)

    def __getitem__(self, place: int) -> Line:
        return int(self.numbers[place]), self.texts[place]

    def rest(self) -> Lines:
        """All lines but the first."""
        return Lines(self.numbers[1:], self.texts[1:])


def content_lines(block: bytes, first: int, comments: bytes, margin: bytes = MARGIN) -> Lines:
    """The lines of a block without blank ones and those that start with a byte of ``comments``.

    A row of a table whose first cell is what a failed formula leaves, such as #N/A, is no comment.
    Bytes of ``margin`` are stripped from both ends; a file whose cells tabs separate strips none.
    """
    if any(mark in block for mark in comments):
        # Emptied rather than removed, so that line numbers stay right.
        block = re.sub(rb"(?m)^[ \t\r]*(?!" + _FAILED + rb")[" + comments + rb"][^\n]*", b"", block)
    texts = [line.strip(margin) for line in block.split(b"\n")]
    numbers = np.arange(first, first + len(texts), dtype=np.int64)
    if not all(texts):
        numbers = numbers[np.fromiter(map(bool, texts), dtype=bool, count=len(texts))]
        texts = list(filter(None, texts))
    return Lines(numbers, texts)


def lines_of(source: Source, comments: bytes, margin: bytes = MARGIN) -> Iterator[Lines]:
    """Blocks of content lines; blocks without content are left out."""
    for first, block in blocks(source):
        if len(lines := content_lines(block, first, comments, margin)):
            yield lines


def number(field: bytes) -> float | None:
    """The number a field holds (it may be NaN or infinite), or None where it holds none."""
    if b"_" in field:  # Python reads 1_000 as a number; no data format does
        return None
    try:
        return float(field)
    except ValueError:
        return None


def is_nan(field: bytes) -> bool:
    """Whether a field holds NaN."""
    value = number(field)
    return value is not None and math.isnan(value)


def numbers(fields: Sequence[bytes], nan: bool = False) -> np.ndarray | None:
    """All fields as float64, finite (or NaN, with ``nan``), or None when any of them is not."""
    try:
        values = np.array(list(map(float, fields)), dtype=np.float64)
    except ValueError:
        return None
    fine = ~np.isinf(values) if nan else np.isfinite(values)
    if not fine.all() or any(b"_" in field for field in fields):
        return None
    return values


def number_problem(field: bytes, nan: bool = False) -> str | None:
    """What is wrong with a field that should hold a finite number (or NaN), or None."""
    value = number(field)
    if not field.strip():
        return "is empty"
    if value is None:
        return f"is {shown(field)}, which is not a number"
    if not math.isfinite(value) and not (nan and math.isnan(value)):
        return f"is {shown(field)}, which is not a finite number"
    return None


def integers(fields: Sequence[bytes]) -> np.ndarray | None:
    """All fields as int64, or None unless each is a plain decimal: digits, at most 18 of them."""
    if not all(map(bytes.isdigit, fields)) or max(map(len, fields), default=0) > 18:
        return None
    return np.array(list(map(int, fields)), dtype=np.int64)


def split_columns(source: Source, lines: Lines, width: int, comma: bool) -> list[list[bytes]]:
    """The fields of the lines as ``width`` columns; a line of another length is refused.

    All lines are split at once, because a list per line would cost several times as much.
    """
    if comma:
        counts = np.array([text.count(b",") + 1 for text in lines.texts])
        fields = list(map(bytes.strip, b",".join(lines.texts).split(b",")))
    else:
        joined = b"\n".join(lines.texts)
        fields = joined.split()
        characters = np.frombuffer(joined, dtype=np.uint8)
        blank = characters <= 32
        ends = np.flatnonzero(blank[1:] & ~blank[:-1])  # the last field of all ends in no blank
        breaks = np.flatnonzero(characters == 10)
        before = np.searchsorted(ends, breaks)  # fields that end at or before each line's end
        counts = np.diff(np.concatenate([[0], before, [len(fields)]]))
    wrong = np.flatnonzero(counts != width)
    if wrong.size:
        place = int(wrong[0])
        raise source.error(
            f"it has {counts[place]} fields where {width} are needed", int(lines.numbers[place])
        )
    return [fields[place::width] for place in range(width)]


def number_column(
    source: Source,
    lines: Lines,
    column: Sequence[bytes],
    what: str,
    advice: Advice = NO_ADVICE,
    nan: bool = False,
) -> np.ndarray:
    """A column of finite numbers; ``what`` names it when one of them is refused.

    With ``nan`` they may be NaN; ``advice`` is what to do about NaN.
    """
    values = numbers(column, nan)
    if values is None:
        for (line, _), field in zip(lines, column, strict=True):
            if problem := number_problem(field, nan):
                remedy = advice if is_nan(field) else NO_ADVICE
                raise source.error(f"the {what} {problem}", line, remedy)
    assert values is not None
    return values
