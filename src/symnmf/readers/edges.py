"""Edge lists: one edge per line, ``u v`` or ``u v weight``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import Source
from symnmf.readers.sparse_parts import adjacency
from symnmf.readers.text import Lines, integers, lines_of, number_column, split_columns

HEADERS = (("source", "target"), ("from", "to"), ("src", "dst"))


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
        known, places = np.flatnonzero(present), (np.cumsum(present) - 1)[ids]
    else:
        known, places = np.unique(ids, return_inverse=True)
    return int(known.size), places.reshape(ids.shape), known


def _digits(ids: np.ndarray) -> int:
    """How many digits it takes to write all ids."""
    powers = 10 ** np.arange(1, 19, dtype=np.int64)
    return int(np.searchsorted(powers, ids, side="right").sum()) + ids.size


class Nodes:
    """Node ids as they arrive: integers as long as all are, text from the first that is not.

    An integer id is a plain decimal without sign or leading zero, so its text can be recovered
    and the switch loses nothing.
    """

    def __init__(self) -> None:
        self.integer: list[np.ndarray] = []
        self.text: list[np.ndarray] = []
        self.index: dict[bytes, int] | None = None

    def add(self, columns: list[list[bytes]]) -> None:
        fields = list(chain.from_iterable(zip(*columns, strict=True)))
        if self.index is None:
            ids = integers(fields)
            # More digits than the numbers need are leading zeros: 007 and 7 are two names.
            if ids is not None and sum(map(len, fields)) == _digits(ids):
                self.integer.append(ids.reshape(-1, 2))
                return
            self.index = {}
            for earlier in self.integer:
                self._add_text([b"%d" % value for value in earlier.ravel().tolist()])
            self.integer.clear()
        self._add_text(fields)

    def _add_text(self, fields: list[bytes]) -> None:
        assert self.index is not None
        index = self.index
        places = [index.setdefault(field, len(index)) for field in fields]
        self.text.append(np.array(places, dtype=np.int64).reshape(-1, 2))

    def finish(self) -> tuple[int, np.ndarray, np.ndarray | None]:
        if self.index is None:
            return compact(np.concatenate(self.integer))
        names = np.empty(len(self.index), dtype=object)
        names[:] = [name.decode("utf-8") for name in self.index]
        return len(self.index), np.concatenate(self.text), names


def _is_header(line: bytes) -> bool:
    words = tuple(line.lower().replace(b",", b" ").decode("utf-8").split()[:2])
    return words in HEADERS


def edge_chunks(source: Source) -> Iterator[tuple[list[list[bytes]], Lines, np.ndarray | None]]:
    """Yield the two ends of some edges, the lines they are on, and their weights if they have any.

    Fields are separated by commas when the first edge has one (names may then hold spaces), by
    white space otherwise. A first line ``source target``, ``from to`` or ``src dst`` is a header.
    """
    comma, width = False, 0
    for lines in lines_of(source, b"#%"):
        if not width:
            comma = b"," in lines.texts[0]
            if _is_header(lines.texts[0]):
                lines = lines.rest()
                if not len(lines):
                    continue
            width = lines.texts[0].count(b",") + 1 if comma else len(lines.texts[0].split())
            if width not in (2, 3):
                raise source.error(
                    f"it has {width} fields, and an edge is 'u v' or 'u v weight'", lines[0][0]
                )
        columns = split_columns(source, lines, width, comma)
        _check_named(source, lines, columns)
        weights = number_column(source, lines, columns[2], "weight") if width == 3 else None
        yield columns[:2], lines, weights
    if not width:
        raise source.error("it holds no edges")


def read_edges(source: Source) -> MatrixFile:
    """The symmetric adjacency matrix of an edge list.

    Ids that are all plain nonnegative integers are nodes in increasing order, renumbered 0..n-1
    with ``names`` holding the ids unless they were 0..n-1 already; so a huge id costs nothing. Any
    other id (text, a negative number, a leading zero, more than 18 digits) makes all of them text
    names, numbered in order of appearance.
    """
    nodes = Nodes()
    weights: list[np.ndarray] = []
    numbers: list[np.ndarray] = []
    for ends, lines, weight in edge_chunks(source):
        nodes.add(ends)
        numbers.append(lines.numbers)
        if weight is not None:
            weights.append(weight)
    n, pairs, names = nodes.finish()
    data = adjacency(
        source,
        n,
        (pairs[:, 0], pairs[:, 1]),
        np.concatenate(weights) if weights else None,
        names,
        np.concatenate(numbers),
    )
    return MatrixFile(data, "graph", names)


def _check_named(source: Source, lines: Lines, columns: list[list[bytes]]) -> None:
    if all(columns[0]) and all(columns[1]):
        return
    for (line, _), u, v in zip(lines, columns[0], columns[1], strict=True):
        if not (u and v):
            raise source.error("one end of the edge has no name", line)
