"""Matrix Market files (.mtx)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import NAN_ADVICE, SPARSE_NAN_ADVICE, Source, shown
from symnmf.readers.sparse_parts import check_dimensions, first_repeat, from_coordinates
from symnmf.readers.text import (
    Line,
    Lines,
    blocks,
    content_lines,
    integers,
    number_column,
    split_columns,
)


class Market:
    """The state of one pass: banner, sizes, and the entries read so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.banner: tuple[str, str, str] | None = None
        self.sizes: list[int] | None = None
        self.columns: list[list[np.ndarray]] = []
        self.lines: list[np.ndarray] = []
        self.count = 0

    @property
    def expected(self) -> int:
        """Entries the size line announces."""
        assert self.banner is not None
        assert self.sizes is not None
        if self.banner[0] == "coordinate":
            return self.sizes[2]
        rows, columns = self.sizes
        return rows * (rows + 1) // 2 if self.banner[2] == "symmetric" else rows * columns

    def read_banner(self, line: bytes) -> None:
        words = line.decode("utf-8").lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise self.source.error(
                f"it starts with {shown(line)}, not with '%%MatrixMarket matrix ...'", 1
            )
        form, field, symmetry = words[2:]
        field = "real" if field == "double" else field
        if (
            form not in ("coordinate", "array")
            or field not in ("real", "integer", "pattern")
            or symmetry not in ("general", "symmetric")
            or (form == "array" and field == "pattern")
        ):
            raise self.source.error(
                f"{shown(' '.join(words[2:]))} is not read; save it as coordinate or array, real,"
                " integer or pattern, general or symmetric",
                1,
            )
        self.banner = (form, field, symmetry)

    def read_sizes(self, line: Line) -> None:
        assert self.banner is not None
        needed = 3 if self.banner[0] == "coordinate" else 2
        sizes = integers(line[1].split())
        if sizes is None or sizes.size != needed or sizes[:2].min() < 1:
            raise self.source.error(
                f"the size line {shown(line[1])} must hold {needed} integers, rows and columns"
                " positive",
                line[0],
            )
        self.sizes = sizes.tolist()
        if self.banner[2] == "symmetric" and sizes[0] != sizes[1]:
            raise self.source.error(
                f"a symmetric matrix cannot be {sizes[0]} x {sizes[1]}", line[0]
            )

    def read_entries(self, lines: Lines) -> None:
        assert self.banner is not None
        assert self.sizes is not None
        if self.count + len(lines) > self.expected:
            raise self.source.error(
                f"there are more than the {self.expected} entries the size line announces",
                lines[self.expected - self.count][0],
            )
        self.count += len(lines)
        form, field, _ = self.banner
        indices = 2 if form == "coordinate" else 0
        width = indices + (field != "pattern")
        fields = split_columns(self.source, lines, width, comma=False)
        arrays = [
            self._index_column(lines, fields[axis], self.sizes[axis]) for axis in range(indices)
        ]
        if field != "pattern":
            dense = form == "array"
            advice = NAN_ADVICE if dense else SPARSE_NAN_ADVICE
            nan = dense and self.source.nan
            arrays.append(number_column(self.source, lines, fields[-1], "entry", advice, nan))
        else:
            arrays.append(np.ones(len(lines)))
        self.columns.append(arrays)
        self.lines.append(lines.numbers)

    def _index_column(self, lines: Lines, fields: list[bytes], bound: int) -> np.ndarray:
        values = integers(fields)
        if values is None or values.min() < 1 or values.max() > bound:
            for (line, _), field in zip(lines, fields, strict=True):
                one = integers([field])
                if one is None or not 1 <= one[0] <= bound:
                    raise self.source.error(
                        f"the index {shown(field)} is not an integer from 1 to {bound}", line
                    )
        assert values is not None
        return values - 1

    def check_complete(self) -> None:
        """Refuse a file that ended early."""
        if self.banner is None or self.sizes is None:
            raise self.source.error("it ends before its size line")
        if self.count != self.expected or not self.count:
            raise self.source.error(
                f"it ends after {self.count} of the {self.expected} entries it announces"
                if self.expected
                else "its size line announces no entries"
            )

    def finish(self) -> np.ndarray | sp.csr_array:
        assert self.banner is not None
        parts = [np.concatenate(column) for column in zip(*self.columns, strict=True)]
        symmetric = self.banner[2] == "symmetric"
        if self.banner[0] == "array":
            return self._dense(parts[0], symmetric)
        return self._sparse(parts, symmetric)

    def _dense(self, values: np.ndarray, symmetric: bool) -> np.ndarray:
        assert self.sizes is not None
        rows, columns = self.sizes
        if not symmetric:
            return np.ascontiguousarray(values.reshape((rows, columns), order="F"))
        matrix = np.empty((rows, rows))
        # The lower triangle column by column is the upper triangle row by row.
        upper = np.triu_indices(rows)
        matrix[upper] = values
        matrix.T[upper] = values
        return matrix

    def _sparse(self, parts: list[np.ndarray], symmetric: bool) -> sp.csr_array:
        assert self.sizes is not None
        rows, columns, values = parts
        shape = (self.sizes[0], self.sizes[1])
        check_dimensions(self.source, shape, values.size)
        high, low = (
            (np.maximum(rows, columns), np.minimum(rows, columns)) if symmetric else (rows, columns)
        )
        order, same = first_repeat(high, low)
        if same.any():
            place = int(order[np.flatnonzero(same)[0]])
            raise self.source.error(
                f"the entry {rows[place] + 1} {columns[place] + 1} is given twice"
                + (" (a symmetric file holds one triangle)" if symmetric else ""),
                int(np.concatenate(self.lines)[place]),
            )
        if symmetric:
            off = high != low
            high, low = np.concatenate([high, low[off]]), np.concatenate([low, high[off]])
            values = np.concatenate([values, values[off]])
        return from_coordinates(self.source, shape, high, low, values)


def market_chunks(source: Source) -> Iterator[Market]:
    """Yield the state of the pass whenever entries have arrived."""
    market = Market(source)
    for first, block in blocks(source):
        if market.banner is None:
            market.read_banner(block.split(b"\n", 1)[0])
        lines = content_lines(block, first, b"%")
        if len(lines) and market.sizes is None:
            market.read_sizes(lines[0])
            lines = lines.rest()
        if len(lines):
            market.read_entries(lines)
            yield market
    market.check_complete()


def read_mtx(source: Source) -> MatrixFile:
    """A Matrix Market file: a csr array (coordinate) or an ndarray (array).

    The number of entries is checked as they arrive and sizes nothing. A symmetric file may hold
    either triangle but no entry twice.
    """
    market = deque(market_chunks(source), maxlen=1).pop()
    return MatrixFile(market.finish(), "matrix")
