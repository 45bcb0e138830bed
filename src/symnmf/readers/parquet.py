"""Parquet files (.parquet): tables of numbers, and tables of edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.naming import named_ends
from symnmf.readers.cells import chosen_columns
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import NAN_ADVICE, Source, shown
from symnmf.readers.sparse_parts import adjacency

#: How pandas calls an index that has no name.
INDEX = "__index_level_0__"


def read_parquet(source: Source) -> MatrixFile:
    """A table of numbers with an optional index or first column of names, or a table of edges.

    It is a table of edges where two columns are called as the ends of edges are called.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'symnmf[tables]'.") from None
    if source.compressed:
        raise source.error("Parquet is compressed in itself; decompress the file and leave out .gz")
    try:
        file = pq.ParquetFile(source.raw)
        header = [str(name) for name in file.schema_arrow.names]
        _check_size(source, file)
        edges = named_ends(header) is not None
        kept = _kept(source, header)
        # text stays a dictionary: a name that is repeated a million times is held once
        text = [name for name in kept if pa.types.is_string(file.schema_arrow.field(name).type)]
        table = pq.ParquetFile(source.raw, read_dictionary=text).read(columns=kept)
    except InputError:
        raise
    except Exception as error:  # the parser raises whatever it stumbles over
        raise source.error(f"it cannot be read as Parquet ({shown(error)})") from error
    if not table.num_rows:
        raise source.error("it holds no rows")
    return _graph(source, table) if edges else _matrix(source, table, pa)


def _check_size(source: Source, file: Any) -> None:
    """Refuse more than the limits allow, by what the file says before anything is read."""
    described = file.metadata
    stored = sum(described.row_group(k).total_byte_size for k in range(described.num_row_groups))
    source.check_growth(max(stored, 8 * described.num_rows * described.num_columns))


def _kept(source: Source, header: list[str]) -> list[str]:
    if len(set(header)) < len(header):
        raise source.error("two of its columns have one name; rename one")
    places = chosen_columns(source, header, len(header), 1)
    return header if places is None else [header[place] for place in places]


def _graph(source: Source, table: Any) -> MatrixFile:
    from symnmf.graphs.edge_tables import read_frame  # loads scikit-learn

    told: dict[str, Any] = {}
    columns = list(table.column_names)
    if source.columns is not None:
        if len(columns) not in (2, 3):
            raise source.error(f"{len(columns)} columns were asked for, and an edge has 2 or 3")
        told = {"source": columns[0], "target": columns[1]}
    found = read_frame(table, name=f"file {shown(source.path, 300)}", **told)
    A = adjacency(
        source, len(found.names), (found.pairs[:, 0], found.pairs[:, 1]), found.weights, None
    )
    if found.names == list(range(len(found.names))):
        return MatrixFile(A, "graph")
    return MatrixFile(A, "graph", _as_names(found.names))


def _as_names(names: list[Any]) -> np.ndarray:
    if all(type(name) is int for name in names):
        return np.array(names, dtype=np.int64)
    named = np.empty(len(names), dtype=object)
    named[:] = [str(name) for name in names]
    return named


def _matrix(source: Source, table: Any, pa: Any) -> MatrixFile:
    names = None
    columns = list(table.column_names)
    index = _index_of(table)
    named = columns[0] if index is None else index
    if index is not None or not _is_numeric(pa, table.schema.field(named).type):
        names = _as_names(table.column(named).to_pylist())
        columns.remove(named)
    if not columns:
        raise source.error("it holds no column of numbers")
    parts = []
    for name in columns:
        if not _is_numeric(pa, table.schema.field(name).type):
            raise source.error(
                f"column {shown(name)} holds {shown(table.schema.field(name).type)} and no numbers",
                advice=(
                    "; name the columns of numbers by columns=",
                    "; name the columns of numbers by --columns",
                ),
            )
        values = np.asarray(table.column(name).to_numpy(), dtype=np.float64)
        fine = ~np.isinf(values) if source.nan else np.isfinite(values)
        if not fine.all():
            row = int(np.flatnonzero(~fine)[0])
            said = f"column {shown(name)} has no finite number in row {row}"
            raise source.error(said, advice=NAN_ADVICE)
        parts.append(values)
    return MatrixFile(np.column_stack(parts), "matrix", names, columns=columns)


def _index_of(table: Any) -> str | None:
    """Return the column that pandas wrote its index to, which it puts last."""
    if INDEX in table.column_names:
        return INDEX
    try:
        described = table.schema.pandas_metadata or {}
        index = described.get("index_columns", [])
    except (ValueError, AttributeError, RecursionError):  # not what pandas writes
        return None
    named = isinstance(index, list) and len(index) == 1 and index[0] in table.column_names
    return str(index[0]) if named and isinstance(index[0], str) else None


def _is_numeric(pa: Any, kind: Any) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
