"""One label per row, from text or NumPy files."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from symnmf.arguments import checked
from symnmf.readers.arrays import as_labels, read_array
from symnmf.readers.cells import delimiter_of, margin_of, split_cells
from symnmf.readers.npz import open_archive
from symnmf.readers.source import MAX_BYTES, MAX_RATIO, AnyPath, Source, opened, shown
from symnmf.readers.tables import NAME_WORDS, is_doubtful
from symnmf.readers.text import FAILED_CELL, Line, blocks, integers, number

LABEL_WORDS = ["label", "labels", "y", "class", "classes", "cluster", "clusters", "target"]
LABEL_WORDS += ["community", "group", "category"]
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".labels")


@checked()
def read_labels(
    path: AnyPath, *, max_bytes: int = MAX_BYTES, max_ratio: float = MAX_RATIO
) -> np.ndarray:
    """Read one label per row from a file that need not be trusted.

    Parameters
    ----------
    path : str or path
        Ends in .csv, .tsv, .txt, .labels, .npy or .npz (the array ``y`` or ``labels``, or the
        only one), or in one of these and .gz.
    max_bytes, max_ratio
        As in :func:`symnmf.readers.read_matrix`.

    Returns
    -------
    ndarray
        int64 where every label is an integer (below 2**53 in text files), otherwise text in an
        object array.

    Notes
    -----
    A text file holds a label per line; with two columns the first is an id, with more a header
    must name the label's column. The first line is a header when its label cell is a word such as
    ``label``, ``class`` or ``cluster``, when the first of two is ``id``, ``name`` or the like, or
    when it is the only label that is not an integer.
    Labels come in the file's order; integer ids must therefore increase, and no id may repeat.
    Lines that start with ``#`` are comments; an empty line among the labels is refused.
    """
    with opened(path, max_bytes=max_bytes, max_ratio=max_ratio) as source:
        if source.ending not in TEXT_ENDINGS:
            return _read_arrays(source)
        text = _read_text(source)
        if text.width == 2:
            assert text.ids is not None
            _check_ids(source, text.lines, text.ids)
        return text.labels


@checked()
def read_named_labels(
    path: AnyPath, *, max_bytes: int = MAX_BYTES, max_ratio: float = MAX_RATIO
) -> tuple[np.ndarray | None, np.ndarray]:
    """Read labels, and the names they belong to if the file has a column of names.

    Parameters
    ----------
    path, max_bytes, max_ratio
        As in :func:`read_labels`.

    Returns
    -------
    names : ndarray or None
        Text in an object array, in the order of the file and unchanged, even if names repeat: the
        first of two columns, or the only column that the header calls ``id``, ``name``, ``node``,
        ``vertex`` or ``row``. None if there is no such column, as in NumPy files.
    labels : ndarray
        As :func:`read_labels` returns them.
    """
    with opened(path, max_bytes=max_bytes, max_ratio=max_ratio) as source:
        if source.ending not in TEXT_ENDINGS:
            return None, _read_arrays(source)
        text = _read_text(source)
        return None if text.ids is None else _as_text(text.ids), text.labels


def _read_arrays(source: Source) -> np.ndarray:
    if source.ending == ".npy":
        available = None if source.compressed else source.size
        array = read_array(source, source, available, "its array")
        return as_labels(source, array, "its array")
    if source.ending == ".npz":
        return _read_archive(source)
    raise source.error(
        f"the ending {shown(source.ending)} is not known for labels; use one of"
        f" {', '.join((*TEXT_ENDINGS, '.npy', '.npz'))}, each with or without .gz"
    )


def _read_archive(source: Source) -> np.ndarray:
    with open_archive(source) as archive:
        named = [name for name in ("y", "labels") if name in archive] or list(archive.members)
        if len(named) != 1:
            raise source.error(
                f"its archive holds {shown(', '.join(sorted(archive.members)))}, and one array"
                " 'y' or 'labels' is needed"
            )
        return as_labels(source, archive.get(named[0]), f"array {shown(named[0])}")


class _Text(NamedTuple):
    """A text file's columns without its header."""

    width: int
    lines: list[Line]
    ids: list[bytes] | None
    labels: np.ndarray


#: Lines of text that a file may hold whatever its size on disk, and for each of its bytes there:
#: a line that is kept costs a hundred times what it may be compressed to.
FREE_LINES, LINES_PER_BYTE = 2**20, 16

_INTEGERS = re.compile(rb"(?:-?[0-9]{1,15}\n)*+")


def _read_text(source: Source) -> _Text:
    parts = list(blocks(source))
    if parts and (whole := _plain_integers(parts)) is not None:
        return _Text(1, [], None, whole)
    lines = _lines(source, parts)
    rows = _rows(source, lines)
    width = len(rows[0])
    for (line, _), row in zip(lines, rows, strict=True):
        if len(row) != width:
            raise source.error(f"it has {len(row)} cells where the first has {width}", line)
    words = [cell.decode("utf-8").lower() for cell in rows[0]]
    headed = [place for place, word in enumerate(words) if word in LABEL_WORDS]
    if width > 2 and len(headed) != 1:
        raise source.error(
            f"it has {width} columns, and its header must call exactly one of them 'label'",
            lines[0][0],
        )
    column = headed[0] if width > 2 else width - 1
    labels = [row[column] for row in rows]
    called = [place for place, word in enumerate(words) if word.encode("utf-8") in NAME_WORDS]
    header = (
        column in headed
        or (width == 2 and called == [0])
        or (len(labels) > 1 and number(labels[0]) is None and _whole(labels[1:]) is not None)
    )
    if header and column not in headed and is_doubtful(labels[0]):
        raise source.error(
            f"its label {shown(labels[0])} is not an integer, and the others are; write it as one,"
            " or let the first line be label",
            lines[0][0],
        )
    if header:
        lines, rows, labels = lines[1:], rows[1:], labels[1:]
    if not labels:
        raise source.error("it holds no labels")
    named = [0] if width == 2 else called
    ids = [row[named[0]] for row in rows] if len(named) == 1 and width > 1 else None
    return _Text(width, lines, ids, _convert(source, lines, labels))


def _plain_integers(parts: list[tuple[int, bytes]]) -> np.ndarray | None:
    """The labels of a file of one integer per line and nothing else, without a list of lines."""
    last = parts[-1][1]
    ended = [*(block for _, block in parts[:-1]), last if last.endswith(b"\n") else last + b"\n"]
    if not all(_INTEGERS.fullmatch(block) for block in ended):
        return None
    return np.concatenate([np.fromstring(block, np.int64, sep=" ") for block in ended])


def _lines(source: Source, parts: list[tuple[int, bytes]]) -> list[Line]:
    count = parts[-1][0] + parts[-1][1].count(b"\n") if parts else 0
    if count > max(FREE_LINES, LINES_PER_BYTE * source.size):
        raise source.error(
            f"its {source.size} bytes hold {count} lines, as a decompression bomb does; send it"
            " uncompressed"
        )
    kept: list[Line] = []
    blank = None
    margin = margin_of(source)
    for first, block in parts:
        # A block's own last line feed ends its last line and starts no empty one.
        for line, text in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
            text = text.strip(margin)
            if not text:
                blank = line if blank is None and kept else blank
            elif not text.startswith(b"#") or FAILED_CELL.match(text):
                if blank is not None:
                    raise source.error("it is empty, and a label is missing there", blank)
                kept.append((line, text))
    if not kept:
        raise source.error("it holds no labels")
    return kept


def _rows(source: Source, lines: list[Line]) -> list[list[bytes]]:
    first = lines[0][1]
    if source.ending in (".csv", ".tsv"):
        delimiter = delimiter_of(source, first)
    elif b"\t" in first or b"," in first:
        delimiter = b"\t" if b"\t" in first else b","
    elif len(first.split()) == 2 and integers(first.split()) is not None:
        return [text.split() for _, text in lines]
    else:
        return [[text] for _, text in lines]
    return [split_cells(source, line, delimiter) for line in lines]


def _check_ids(source: Source, lines: list[Line], ids: list[bytes]) -> None:
    whole = integers(ids)
    seen: set[bytes] = set()
    for place, ((line, _), name) in enumerate(zip(lines, ids, strict=True)):
        if name in seen:
            raise source.error(f"the id {shown(name)} is there twice", line)
        if whole is not None and place and whole[place] < whole[place - 1]:
            raise source.error(
                f"the id {shown(name)} is smaller than the one before; sort the lines by id", line
            )
        seen.add(name)


def _whole(fields: list[bytes]) -> np.ndarray | None:
    """All fields as int64, also where written as -1 or 3.0; None unless all are whole."""
    values = [number(field) for field in fields]
    if not all(v is not None and abs(v) < 2**53 and v.is_integer() for v in values):
        return None
    return np.array(values, dtype=np.float64).astype(np.int64)


def _convert(source: Source, lines: list[Line], labels: list[bytes]) -> np.ndarray:
    whole = _whole(labels)
    if whole is not None:
        return whole
    for (line, _), label in zip(lines, labels, strict=True):
        value = number(label)
        if not label:
            raise source.error("its label is empty", line)
        if value is not None and not math.isfinite(value):
            raise source.error(f"its label {shown(label)} is not a finite number", line)
        if value is not None and not value.is_integer():
            raise source.error(
                f"its label {shown(label)} is a fraction; labels are integers or text", line
            )
    return _as_text(labels)


def _as_text(cells: list[bytes]) -> np.ndarray:
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [cell.decode("utf-8") for cell in cells]
    return texts
