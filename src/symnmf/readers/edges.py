"""Edge lists: one edge per line, ``u v`` or ``u v weight``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from symnmf.naming import END_NAMES
from symnmf.readers.cells import split_cells
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import Source
from symnmf.readers.sparse_parts import adjacency
from symnmf.readers.text import (
    Lines,
    blocks,
    check_text,
    content_lines,
    integers,
    number_column,
    split_columns,
)

#: What separates the cells of tables; any may hold an edge list.
TABLES = {".csv": b",", ".tsv": b"\t"}
SEPARATORS = bytes.maketrans(b",;", b"  ")


def compact(ids: np.ndarray) -> tuple[int, np.ndarray, np.ndarray | None]:
    """Number integer ids 0..n-1 in increasing order.

    Returns ``n``, the new ids in the shape of the old ones, and the old id of each node, or None
    where the ids were 0..n-1 already.
    """
    largest = int(ids.max())
    if largest < 4 * ids.size:
        present = np.zeros(largest + 1, dtype=bool)
        present[ids] = True
        if present.all():
            return largest + 1, ids, None
        known, places = np.flatnonzero(present), (np.cumsum(present, dtype=ids.dtype) - 1)[ids]
    else:
        known, places = np.unique(ids, return_inverse=True)
    return int(known.size), places.reshape(ids.shape), known


def _short(numbers: np.ndarray) -> np.ndarray:
    """A copy of whole numbers, in half the memory if they fit."""
    short = not numbers.size or numbers.max() < 2**31
    return numbers.astype(np.int32 if short else np.int64)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """One array of all parts, which are given up, so that large ones are not held twice."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _digits(ids: np.ndarray) -> int:
    """How many digits it takes to write all ids."""
    powers = 10 ** np.arange(1, 19, dtype=np.int64)
    return int(np.searchsorted(powers, ids, side="right").sum()) + ids.size


def _as_text(ids: np.ndarray) -> list[bytes]:
    return [b"%d" % value for value in ids.ravel().tolist()]


class Nodes:
    """Node ids as they arrive: integers as long as all are, text from the first that is not.

    An integer id is a plain decimal without sign or leading zero, so its text can be recovered
    and the switch loses nothing.
    """

    def __init__(self) -> None:
        self.integer: list[np.ndarray] = []
        self.text: list[np.ndarray] = []
        self.index: dict[bytes, int] | None = None

    def add(self, ends: list[list[bytes]] | np.ndarray) -> None:
        """Add both ends of some edges: two columns of text, or whole numbers in two columns."""
        if isinstance(ends, np.ndarray):
            if self.index is None:
                self._add_integers(ends)
            else:
                self._add_text(_as_text(ends))
            return
        fields = list(chain.from_iterable(zip(*ends, strict=True)))
        if self.index is None:
            ids = integers(fields)
            # More digits than the numbers need are leading zeros: 007 and 7 are two names.
            if ids is not None and sum(map(len, fields)) == _digits(ids):
                self._add_integers(ids.reshape(-1, 2))
                return
            self.index = {}
            for earlier in self.integer:
                self._add_text(_as_text(earlier))
            self.integer.clear()
        self._add_text(fields)

    def _add_integers(self, ids: np.ndarray) -> None:
        self.integer.append(_short(ids))

    def _add_text(self, fields: list[bytes]) -> None:
        assert self.index is not None
        index = self.index
        places = [index.setdefault(field, len(index)) for field in fields]
        self.text.append(np.array(places, dtype=np.int64).reshape(-1, 2))

    def finish(self) -> tuple[int, np.ndarray, np.ndarray | None]:
        """Number the nodes, once: the ids that were kept are given up."""
        if self.index is None:
            return compact(_joined(self.integer))
        names = np.empty(len(self.index), dtype=object)
        names[:] = [name.decode("utf-8") for name in self.index]
        return len(self.index), _joined(self.text), names


def is_header(line: bytes) -> bool:
    """Whether a line names the two ends of edges."""
    plain = line.lower().translate(SEPARATORS, b'"')
    return tuple(plain.decode("utf-8").split()[:2]) in END_NAMES


class _Plain:
    """Compiled parsing of blocks whose edges are plain, with buffers that are used again."""

    def __init__(self, comma: bool, weighted: bool) -> None:
        self.comma, self.weighted = comma, weighted
        self._room = (np.empty((0, 2), np.int64), np.empty(0), np.empty(0, np.int64))

    def parse(self, block: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """The ends, the weights and the lines in the block of its edges; None if not all plain."""
        from symnmf.readers.plain_edges import parse_edges

        most = len(block) // 4 + 1
        if len(self._room[0]) < most:
            self._room = np.empty((most, 2), np.int64), np.empty(most), np.empty(most, np.int64)
        content = np.frombuffer(block, np.uint8)
        count = parse_edges(content, self.comma, self.weighted, *self._room)
        if count < 0:
            return None
        ends, weights, lines = (array[:count] for array in self._room)
        return ends, weights, lines


#: The two ends of some edges (as text, or as whole numbers), the lines they are on, their weights.
Chunk = tuple[list[list[bytes]] | np.ndarray, np.ndarray, np.ndarray | None]


def edge_chunks(source: Source) -> Iterator[Chunk]:
    """Yield the edges of a file, some at a time; arrays are overwritten by the next ones.

    Fields are separated by commas when the first edge has one (names may then hold spaces), by
    white space otherwise. A first line ``source target``, ``from to`` or ``src dst`` is a header.
    In .csv and .tsv files double quotes may surround a cell, and in .tsv only tabs separate names.
    The first edges are read line by line and show the layout, so that a small file costs no
    compilation; compiled code reads the rest where it can.
    """
    width, plain = 0, _Plain(comma=False, weighted=False)
    for first, block in blocks(source, checked=False):
        parsed = plain.parse(block) if width else None
        if parsed is not None:
            ends, weight, places = parsed
            if len(ends):
                yield ends, first + places, weight if plain.weighted else None
            continue
        check_text(source, block, first)
        lines = content_lines(block, first, b"#%")
        if len(lines) and not width:
            if is_header(lines.texts[0]):
                lines = lines.rest()
            if len(lines):
                width, comma = _layout(source, lines)
                plain = _Plain(comma, width == 3)
        if len(lines):
            columns = _columns(source, lines, width, plain.comma)
            check_named(source, lines, columns)
            weights = number_column(source, lines, columns[2], "weight") if width == 3 else None
            yield columns[:2], lines.numbers, weights
    if not width:
        raise source.error("it holds no edges")


def _layout(source: Source, lines: Lines) -> tuple[int, bool]:
    """The number of fields of the first edge, and whether commas separate them."""
    number, first = lines[0]
    comma = b"," in first
    if source.ending in TABLES:
        width = len(split_cells(source, lines[0], TABLES[source.ending]))
    else:
        width = first.count(b",") + 1 if comma else len(first.split())
    if width not in (2, 3):
        raise source.error(f"it has {width} fields, and an edge is 'u v' or 'u v weight'", number)
    return width, comma


def _columns(source: Source, lines: Lines, width: int, comma: bool) -> list[list[bytes]]:
    """The fields of edges in columns; a table's cells are as in any other table."""
    quoted = source.ending in TABLES and any(b'"' in text for text in lines.texts)
    if not (quoted or source.ending == ".tsv"):
        return split_columns(source, lines, width, comma)
    rows = [split_cells(source, line, TABLES[source.ending]) for line in lines]
    for number, row in zip(lines.numbers.tolist(), rows, strict=True):
        if len(row) != width:
            raise source.error(f"it has {len(row)} fields where {width} are needed", number)
    return [list(column) for column in zip(*rows, strict=True)]


def read_edges(source: Source) -> MatrixFile:
    """The symmetric adjacency matrix of an edge list.

    Ids that are all plain nonnegative integers are nodes in increasing order, renumbered 0..n-1
    with ``names`` holding the ids unless they were 0..n-1 already; so a huge id costs nothing. Any
    other id (text, a negative number, a leading zero, more than 18 digits) makes all of them text
    names, numbered in order of appearance.
    """
    nodes = Nodes()
    weights: list[np.ndarray] = []
    numbers: list[np.ndarray] = []  # of weighted edges, which alone can be at odds
    for ends, lines, weight in edge_chunks(source):
        nodes.add(ends)
        if weight is not None:
            weights.append(weight.copy())
            numbers.append(_short(lines))
    return graph_of(source, nodes, weights, numbers)


def graph_of(
    source: Source, nodes: Nodes, weights: list[np.ndarray], numbers: list[np.ndarray]
) -> MatrixFile:
    """The graph of the nodes, weights and lines that were read; all of them are given up."""
    n, pairs, names = nodes.finish()
    data = adjacency(
        source,
        n,
        (pairs[:, 0], pairs[:, 1]),
        _joined(weights) if weights else None,
        names,
        _joined(numbers) if numbers else None,
    )
    return MatrixFile(data, "graph", names)


def check_named(source: Source, lines: Lines, columns: list[list[bytes]]) -> None:
    """Refuse an edge of which one end has no name."""
    if all(columns[0]) and all(columns[1]):
        return
    for (line, _), u, v in zip(lines, columns[0], columns[1], strict=True):
        if not (u and v):
            raise source.error("one end of the edge has no name", line)
