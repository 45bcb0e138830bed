"""Choosing the reader by the file's ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.readers.arrays import as_float, read_array
from symnmf.readers.cells import BEGINNING, checked_columns, delimiter_of
from symnmf.readers.edge_tables import read_edge_table
from symnmf.readers.edges import TABLES, is_header, read_edges
from symnmf.readers.graph_files import read_gml, read_graphml
from symnmf.readers.hdf5 import read_cool, read_h5ad
from symnmf.readers.hyperedges import read_hyperedges
from symnmf.readers.market import read_mtx
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.npz import read_npz
from symnmf.readers.pajek import read_pajek, read_vosviewer
from symnmf.readers.parquet import read_parquet
from symnmf.readers.source import (
    MAX_BYTES,
    MAX_RATIO,
    AnyPath,
    Source,
    checked_path,
    opened,
    shown,
    split_ending,
)
from symnmf.readers.tables import read_table
from symnmf.storage.border import check_missing


def _read_npy(source: Source) -> MatrixFile:
    available = None if source.compressed else source.size
    array = read_array(source, source, available, "its array")
    return MatrixFile(as_float(source, array, "its array"), "matrix")


READERS: dict[str, Callable[[Source], MatrixFile]] = {
    ".npy": _read_npy,
    ".npz": read_npz,
    ".csv": read_table,
    ".tsv": read_table,
    ".mtx": read_mtx,
    ".edges": read_edges,
    ".edgelist": read_edges,
    ".el": read_edges,
    ".txt": read_edges,
    ".ncol": read_edges,
    ".hyperedges": read_hyperedges,
    ".graphml": read_graphml,
    ".gml": read_gml,
    ".net": read_pajek,
    ".json": read_vosviewer,
    ".parquet": read_parquet,
    ".h5ad": read_h5ad,
    ".cool": read_cool,
    ".mcool": read_cool,
}
#: Files with columns that have names.
WITH_COLUMNS = (*TABLES, ".parquet")


def _reader_of(source: Source) -> Callable[[Source], MatrixFile] | None:
    """The reader for a file; a table whose first line is source,target or the like holds edges."""
    if source.ending in TABLES and source.header is not False:
        first = source.peek(BEGINNING).removeprefix(b"\xef\xbb\xbf").split(b"\n")[0]
        try:
            if is_header(first):
                return _edge_reader(source, first)
        except UnicodeDecodeError:
            pass
    return READERS.get(source.ending)


def _edge_reader(source: Source, first: bytes) -> Callable[[Source], MatrixFile]:
    """The fast reader where cells are as in any edge list, else the one that knows columns."""
    delimiter = delimiter_of(source, first)
    usual = delimiter == TABLES[source.ending] and first.count(delimiter) < 3
    told = source.columns is not None or source.decimal != b"."
    return read_edges if usual and not told else read_edge_table


def check_decimal(path: AnyPath, decimal: str) -> None:
    """Refuse ``decimal`` unless it is a point, or a comma for a table of text."""
    if decimal not in (".", ","):
        raise InputError(f"decimal must be '.' or ',', got {decimal!r}.")
    if decimal == "," and split_ending(checked_path(path))[0] not in TABLES:
        said = f"is for .csv and .tsv tables, and file {shown(path, 300)} is none; leave it out."
        raise InputError(f"decimal {said}", in_shell=f"--decimal {said}")


def check_columns(path: AnyPath, columns: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """The names of columns, refused where the file has none."""
    names = checked_columns(columns)
    if names is not None and split_ending(checked_path(path))[0] not in WITH_COLUMNS:
        said = (
            f"is for .csv, .tsv and .parquet tables, and file {shown(path, 300)} is none; leave "
            f"it out."
        )
        raise InputError(f"columns {said}", in_shell=f"--columns {said}")
    return names


def split_part(path: AnyPath) -> tuple[str, str | None]:
    """The path of a file, and which part of it is meant, as in ``file.mcool::resolutions/5000``."""
    text = checked_path(path)
    file, mark, part = text.partition("::")
    if mark and split_ending(file)[0] in (".cool", ".mcool"):
        return file, part
    return text, None


def check_header(path: AnyPath, header: bool | None) -> None:
    """Refuse ``header`` where it is no answer, or the file no table."""
    if header is None:
        return
    if not isinstance(header, bool):
        raise InputError(f"header must be True, False or None, got {header!r}.")
    if split_ending(checked_path(path))[0] not in TABLES:
        said = f"is for .csv and .tsv tables, and file {shown(path, 300)} is none; leave it out."
        raise InputError(f"header {said}", in_shell=f"--header {said}")


@checked(columns=("text", "sequence", "none"))
def read_matrix(
    path: AnyPath,
    *,
    missing: str | None = None,
    header: bool | None = None,
    decimal: str = ".",
    columns: Sequence[str] | str | None = None,
    balance: bool | None = None,
    max_bytes: int = MAX_BYTES,
    max_ratio: float = MAX_RATIO,
) -> MatrixFile:
    """Read a matrix, a table or a graph from a file that need not be trusted.

    Parameters
    ----------
    path : str or path
        Ends in .npy, .npz, .csv, .tsv, .parquet, .mtx, .edges, .edgelist, .el, .txt, .ncol,
        .hyperedges, .graphml, .gml, .net, .json, .h5ad, .cool or .mcool, or in one of these and
        .gz. A table that begins with source,target (or from,to or src,dst) is an edge list; see
        :mod:`symnmf.readers` for what each may hold.
    missing : "nan", "unstored" or None
        As for :func:`symnmf.factorize`: with "nan" a dense matrix may hold NaN, and in a table
        cells that are empty or hold the mark of a missing value (NA, null, ?) become NaN.
    header : bool or None
        Whether the first line of a .csv or .tsv table is a header. None decides from the table: a
        line of words is a header, a line of numbers is a row, and a line that could be either
        (``$12``, ``1%``) is refused.
    decimal : {".", ","}
        The decimal separator in a .csv or .tsv table. It is never guessed.
    columns : list of str, or str with commas, or None
        The columns of a .csv, .tsv or .parquet table to read, by their names in the header or by
        numbers from 1. For edges: the two ends, and maybe the weights.
    balance : bool or None
        Whether to balance the contacts of a .cool file; None balances them if the file has the
        weights.
    max_bytes : int, default=8 GiB
        The largest size of the file after decompression.
    max_ratio : float, default=200
        Largest growth by decompression, beyond the first 64 MiB.

    Returns
    -------
    MatrixFile
        ``data``, ``kind``, ``names`` and ``labels``.

    Raises
    ------
    InputError
        If anything is wrong with the file: one sentence that names the file and the line.
    """
    check_missing(missing)
    path, part = split_part(path)
    check_header(path, header)
    check_decimal(path, decimal)
    told = {
        "nan": missing == "nan",
        "header": header,
        "decimal": decimal.encode(),
        "columns": check_columns(path, columns),
        "part": part,
        "balance": balance,
    }
    with opened(path, max_bytes=max_bytes, max_ratio=max_ratio, **told) as source:
        reader = _reader_of(source)
        if reader is None:
            raise source.error(
                f"the ending {shown(source.ending)} is not known; use one of {', '.join(READERS)},"
                " each with or without .gz"
            )
        return reader(source)
