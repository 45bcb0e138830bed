"""Choosing the reader by the file's ending."""

from __future__ import annotations

from collections.abc import Callable

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.readers.arrays import as_float, read_array
from symnmf.readers.edges import TABLES, is_header, read_edges
from symnmf.readers.graph_files import read_gml, read_graphml
from symnmf.readers.market import read_mtx
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.npz import read_npz
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
    ".graphml": read_graphml,
    ".gml": read_gml,
}

LONGEST_HEADER = 4096


def _begins_as_edges(path: AnyPath, max_bytes: int, max_ratio: float) -> bool:
    """Whether the first line of a table names the ends of edges, such as source,target."""
    if split_ending(checked_path(path))[0] not in TABLES:
        return False
    with opened(path, max_bytes=max_bytes, max_ratio=max_ratio) as source:
        first = source.read(LONGEST_HEADER).removeprefix(b"\xef\xbb\xbf").split(b"\n")[0]
    try:
        return is_header(first)
    except UnicodeDecodeError:
        return False


def check_header(path: AnyPath, header: bool | None) -> None:
    """Refuse ``header`` where it is no answer, or the file no table."""
    if header is None:
        return
    if not isinstance(header, bool):
        raise InputError(f"header must be True, False or None, got {header!r}.")
    if split_ending(checked_path(path))[0] not in TABLES:
        said = f"is for .csv and .tsv tables, and file {shown(path, 300)} is none; leave it out."
        raise InputError(f"header {said}", in_shell=f"--header {said}")


@checked()
def read_matrix(
    path: AnyPath,
    *,
    missing: str | None = None,
    header: bool | None = None,
    max_bytes: int = MAX_BYTES,
    max_ratio: float = MAX_RATIO,
) -> MatrixFile:
    """Read a matrix, a table or a graph from a file that need not be trusted.

    Parameters
    ----------
    path : str or path
        Ends in .npy, .npz, .csv, .tsv, .mtx, .edges, .edgelist, .el, .txt, .graphml or .gml, or in
        one of these and .gz. A table that begins with source,target (or from,to or src,dst) is an
        edge list; see :mod:`symnmf.readers` for what each may hold.
    missing : "nan", "unstored" or None
        As for :func:`symnmf.factorize`: with "nan" a dense matrix may hold NaN, and in a table
        cells that are empty or hold the mark of a missing value (NA, null, ?) become NaN.
    header : bool or None
        Whether the first line of a .csv or .tsv table is a header. None lets the table tell: words
        are a header and numbers a row, and what may be either (``$12``, ``1%``) is refused.
    max_bytes : int, default=8 GiB
        Most bytes the file may hold once decompressed.
    max_ratio : float, default=200
        Largest growth by decompression, beyond the first 64 MiB.

    Returns
    -------
    MatrixFile
        ``data``, ``kind``, ``names`` and ``labels``.

    Raises
    ------
    InputError
        Whatever is wrong with the file, in one sentence that names it and the line.
    """
    check_missing(missing)
    check_header(path, header)
    edges = header is not False and _begins_as_edges(path, max_bytes, max_ratio)
    nan = missing == "nan"
    with opened(path, max_bytes=max_bytes, max_ratio=max_ratio, nan=nan, header=header) as source:
        reader = read_edges if edges else READERS.get(source.ending)
        if reader is None:
            raise source.error(
                f"the ending {shown(source.ending)} is not known; use one of {', '.join(READERS)},"
                " each with or without .gz"
            )
        return reader(source)
