"""One label per row, from text or NumPy files."""

from __future__ import annotations

import math

import numpy as np

from symnmf.readers.archives import open_archive
from symnmf.readers.arrays import as_labels, read_array
from symnmf.readers.source import MAX_BYTES, MAX_RATIO, AnyPath, Source, opened, shown
from symnmf.readers.tables import delimiter_of, margin_of, split_cells
from symnmf.readers.text import Line, blocks, integers, number

LABEL_WORDS = ["label", "labels", "y", "class", "classes", "cluster", "clusters", "target"]
LABEL_WORDS += ["community", "group", "category"]
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".labels")


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
    ``label``, ``class`` or ``cluster``, or when it is the only label that is not an integer.
    Labels come in the file's order; integer ids must therefore increase, and no id may repeat.
    Lines that start with ``#`` are comments; an empty line among the labels is refused.
    """
    with opened(path, max_bytes=max_bytes, max_ratio=max_ratio) as source:
        if source.ending == ".npy":
            available = None if source.compressed else source.size
            array = read_array(source, source, available, "its array")
            return as_labels(source, array, "its array")
        if source.ending == ".npz":
            return _read_archive(source)
        if source.ending in TEXT_ENDINGS:
            return _read_text(source)
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


def _read_text(source: Source) -> np.ndarray:
    lines = _lines(source)
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
    header = column in headed or (
        len(labels) > 1 and number(labels[0]) is None and _whole(labels[1:]) is not None
    )
    if header:
        lines, rows, labels = lines[1:], rows[1:], labels[1:]
    if not labels:
        raise source.error("it holds no labels")
    if width == 2:
        _check_ids(source, lines, [row[0] for row in rows])
    return _convert(source, lines, labels)


def _lines(source: Source) -> list[Line]:
    kept: list[Line] = []
    blank = None
    margin = margin_of(source)
    for first, block in blocks(source):
        # A block's own last line feed ends its last line and starts no empty one.
        for line, text in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
            text = text.strip(margin)
            if not text:
                blank = line if blank is None and kept else blank
            elif not text.startswith(b"#"):
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
    texts = np.empty(len(labels), dtype=object)
    texts[:] = [label.decode("utf-8") for label in labels]
    return texts
