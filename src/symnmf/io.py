"""Files of matrices, tables, graphs and labels, read by the libraries that own the formats.

==================  ===============================================================================
Ending              What it holds
==================  ===============================================================================
.npy                one 2-D array of numbers
.npz                a SciPy sparse matrix, a graph (``edges`` (m, 2), optional ``n``, ``weights``,
                    ``node_names``), or one 2-D array (alone, or called ``X``, ``adjacency`` or
                    ``affinity``); ``y`` holds labels in all three
.csv .tsv           numbers, with an optional header; commas, semicolons or tabs separate cells
.parquet            the same (extra ``tables`` and pandas)
.mtx                Matrix Market, real, integer or pattern
.edges .edgelist    one edge per line, ``u v`` or ``u v weight``, separated by spaces, tabs or
.el .txt .ncol      commas; lines that start with ``#`` or ``%`` are comments. A table with columns
                    called ``source`` and ``target`` holds edges too
.hyperedges         one hyperedge per line, its nodes separated by spaces, tabs or commas
.graphml .gml .net  a graph, read by igraph or networkx (extra ``graphs``)
.h5ad               the neighbour graph of an AnnData, else its PCA, else X (extra ``anndata``)
==================  ===============================================================================

Each may also end in ``.gz``. Files are data: nothing in them is unpickled or evaluated. What a
library returns is checked before compiled code sees it. If anything is wrong, there is one
:class:`symnmf.errors.InputError` that names the file.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import shutil
import stat
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.errors import InputError, warn
from symnmf.kinds import SEQUENCE
from symnmf.naming import named_ends, named_weight
from symnmf.options import documented
from symnmf.outputs import MACHINE_FAILED, as_path, write_atomically
from symnmf.storage.indices import check_indices

__all__ = ["FileData", "read", "read_labels", "write_table"]

AnyPath: TypeAlias = str | os.PathLike[str]

TABLES = (".csv", ".tsv", ".parquet")
EDGE_LISTS = (".edges", ".edgelist", ".el", ".txt", ".ncol")
GRAPHS = (".graphml", ".gml", ".net")
#: The only array of an .npz archive may have any name; of several it is the one called like this.
MATRIX_NAMES = ("X", "adjacency", "affinity")
#: Where an AnnData keeps a graph of its cells or their coordinates; the first one there is read.
CELL_GRAPHS = ("obsp/connectivities", "obsp/neighbors_connectivities")
CELL_POINTS = ("obsm/X_pca", "X")
#: What other programs write for a missing value.
ABSENT = {"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "nat", "null", "none", "missing", "-", "?"}
#: What the columns of names and of labels are called.
NAME_WORDS = {"name", "names", "id", "ids", "node", "nodes", "vertex", "row", "rows"}
LABEL_WORDS = {"label", "labels", "y", "class", "classes", "cluster", "clusters", "target", "truth"}
LABEL_WORDS |= {"community", "group", "category"}
#: What makes a spreadsheet take a cell for a formula; numbers are none.
FORMULA = re.compile(r"'*[=+\-@\t\r]")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
SHOWN = 200  # characters of a file, or of a library's complaint, in one sentence


@dataclass(frozen=True, eq=False)
class FileData:
    """The content of one file.

    Attributes
    ----------
    data : ndarray or csr_array of float64, or Hypergraph
        The table or matrix, or the symmetric adjacency matrix of a graph.
    kind : {"matrix", "graph", "hypergraph"}
        What the format says; a square table is a "matrix" too.
    names : list or None
        One name per row, text or whole numbers. None if rows are only numbered from 0.
    labels : ndarray or None
        One label per row, if the file holds labels.
    columns : list of str or None
        The names of the columns of a table.
    part : str or None
        Which part was read, if the file holds several matrices.
    """

    data: Any
    kind: str = "matrix"
    names: list[Any] | None = None
    labels: np.ndarray | None = None
    columns: list[str] | None = None
    part: str | None = None


@dataclass(frozen=True)
class _Options:
    """What the caller says of a table; see :func:`read`."""

    columns: list[str] | None
    name_column: str | None
    header: bool | None
    decimal: str
    missing: str | None


@documented
@checked()
def read(
    path: AnyPath,
    *,
    columns: Sequence[str] | str | None = None,
    name_column: str | int | None = None,
    header: bool | None = None,
    decimal: str = ".",
    missing: str | None = None,
) -> FileData:
    """Read a matrix, a table or a graph.

    Parameters
    ----------
    path : str or path
        A file with one of the endings of :mod:`symnmf.io`.
    {columns, name_column, header, decimal, missing}

    Raises
    ------
    InputError
        If anything is wrong with the file: one sentence that names it.
    """
    file, ending = _place(path)
    if ending not in _READERS:
        raise InputError(
            f"file {_shown(file)} has the unknown ending {ending!r}; use one of "
            f"{', '.join(_READERS)}, each with or without .gz."
        )
    options = {"columns": columns, "name_column": name_column, "header": header}
    for option, value in options.items():
        if value is not None and ending not in TABLES:
            raise InputError(
                f"{option} is for {', '.join(TABLES)}, not for {ending}; leave it out."
            )
    if columns is not None:
        columns = columns.split(",") if isinstance(columns, str) else list(columns)
        columns = [str(column).strip() for column in columns]
    column = None if name_column is None else str(name_column)
    with _opened(file, ending) as plain:
        content = _READERS[ending](plain, _Options(columns, column, header, decimal, missing))
        return _checked(content, missing)


# Opening --------------------------------------------------------------------------------------


def _shown(content: object) -> str:
    """A file's own text, escaped and cut, fit for one line of a message."""
    text = str(content)
    return ascii(text if len(text) <= SHOWN else text[:SHOWN] + "...")


def _place(path: AnyPath) -> tuple[Path, str]:
    """The path of a regular file and the ending that names its format."""
    file = as_path(path)
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise InputError(f"file {_shown(file)} cannot be read ({error.strerror}).") from error
    if not stat.S_ISREG(mode):  # a pipe would be waited for
        raise InputError(f"file {_shown(file)} is a folder or a device; give a regular file.")
    return file, Path(file.name.lower().removesuffix(".gz")).suffix


@contextmanager
def _opened(file: Path, ending: str) -> Iterator[Path]:
    """The file, decompressed where it ends in .gz; whatever goes wrong with it is one sentence."""
    try:
        if file.suffix.lower() != ".gz":
            yield file
            return
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder, f"content{ending}")
            with gzip.open(file) as content, plain.open("wb") as target:
                shutil.copyfileobj(content, target)
            yield plain
    except InputError as error:
        raise InputError(f"file {_shown(file)}: {str(error).rstrip('.')}.") from error
    except MemoryError as error:
        raise InputError(f"file {_shown(file)} needs more memory than there is.") from error
    except Exception as error:  # a library raises whatever it stumbles over
        if isinstance(error, OSError) and error.errno in MACHINE_FAILED:
            raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        reason = re.sub(r"^Error at \S+ ", "", reason)  # a place in igraph's own source
        raise InputError(
            f"file {_shown(file)} cannot be read as {ending} ({_shown(reason)})."
        ) from error


def _library(name: str, extra: str, file: Path) -> Any:
    """Import a library, or say which extra has it."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"{file.suffix} files need {name.partition('.')[0]}: pip install 'symnmf[{extra}]'."
        ) from None


def _checked(content: FileData, missing: str | None) -> FileData:
    """Hold what a library read to what compiled code may be given."""
    if content.kind == "hypergraph":
        return content
    data = content.data
    if len(getattr(data, "shape", ())) != 2 or data.dtype.kind not in "biuf":
        raise InputError("it must hold a two-dimensional matrix of real numbers")
    if 0 in data.shape:
        raise InputError(f"its matrix is {data.shape[0]} x {data.shape[1]}, which is empty")
    if sp.issparse(data):
        data = _canonical(data)
    else:
        with np.errstate(over="ignore"):  # of long doubles, which the next check reports
            data = np.ascontiguousarray(data, dtype=np.float64)
    _check_finite(data, missing)
    for what, listed in (("names", content.names), ("labels", content.labels)):
        if listed is not None and len(listed) != data.shape[0]:
            raise InputError(f"it has {len(listed)} {what} for {data.shape[0]} rows")
    return replace(content, data=data)


def _canonical(data: Any) -> sp.csr_array:
    """A sparse matrix whose indices are in range and none twice, which SciPy would add up."""
    if data.format not in ("csr", "csc", "coo"):
        raise InputError(f"its sparse format is {data.format}; save it as csr, csc or coo")
    check_indices(data, "its matrix")
    count = data.nnz
    matrix = sp.csr_array(data, dtype=np.float64)
    matrix.sum_duplicates()
    if matrix.nnz < count:
        raise InputError(
            f"it gives {count - matrix.nnz} entries twice (a symmetric .mtx file holds one "
            f"triangle); give each once"
        )
    return matrix


def _check_finite(data: Any, missing: str | None) -> None:
    values = data.data if sp.issparse(data) else data
    count = values.size - np.count_nonzero(np.isfinite(values))
    if not count or (missing == "nan" and values is data and not np.isinf(values).any()):
        return
    advice = "correct those that are infinite"
    if not np.isinf(values).any():
        advice = "leave them out; if entries not stored were not observed, pass missing='unstored'"
        if values is data:
            advice = (
                "fill them in, or pass missing='nan' if they are entries that were not observed"
            )
    raise InputError(f"{count} of its entries are NaN or infinite; {advice}")


# Arrays ---------------------------------------------------------------------------------------


def _npy(file: Path, _: _Options) -> FileData:
    return FileData(np.load(file, allow_pickle=False))


def _npz(file: Path, _: _Options) -> FileData:
    with np.load(file, allow_pickle=False) as archive:
        names = list(archive)
        labels = _as_labels(archive["y"]) if "y" in names else None
        if "format" in names and "shape" in names:
            return FileData(sp.load_npz(file), labels=labels)
        if "edges" in names:
            content = _numbered_graph({name: archive[name] for name in names}, labels)
            return replace(content, labels=labels)
        candidates = [name for name in names if name in MATRIX_NAMES]
        others = [name for name in names if name != "y"]
        if len(candidates) != 1 and len(others) != 1:
            raise InputError(
                f"it holds the arrays {', '.join(sorted(names))}, and one of "
                f"{', '.join(MATRIX_NAMES)} (or a single array) is needed",
            )
        return FileData(archive[(candidates or others)[0]], labels=labels)


def _numbered_graph(arrays: dict[str, np.ndarray], labels: np.ndarray | None) -> FileData:
    """A graph of nodes 0..n-1 where ``n`` or labels say how many; else of the nodes it names."""
    edges, weights = arrays["edges"], arrays.get("weights")
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise InputError("it must hold edges as two columns of whole numbers")
    if weights is not None and (
        weights.shape != edges.shape[:1] or weights.dtype.kind not in "iuf"
    ):
        raise InputError(f"it must hold one weight for each of the {len(edges)} edges")
    sizes = {int(arrays["n"])} if "n" in arrays else set()
    sizes |= set() if labels is None else {len(labels)}
    if len(sizes) > 1:
        raise InputError(f"it says that it has {' and '.join(map(str, sorted(sizes)))} nodes")
    if not sizes:
        return _graph(edges[:, 0], edges[:, 1], weights)
    n = sizes.pop()
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise InputError(f"it has an edge to a node that is none of the {n}, numbered from 0")
    content = _graph(edges[:, 0], edges[:, 1], weights, n)
    if "node_names" in arrays:
        return replace(content, names=arrays["node_names"].tolist())
    return content


def _mtx(file: Path, _: _Options) -> FileData:
    """A Matrix Market file; SciPy reads its header only.

    Its ``mmread`` takes "4x" for 4, drops further columns and crashes at an end without newline.
    """
    from scipy.io import mminfo

    rows, columns, count, form, field, symmetry = mminfo(file)
    symmetric, sparse = symmetry == "symmetric", form == "coordinate"
    if field == "complex" or symmetry not in ("general", "symmetric"):
        raise InputError(f"it is {field} {symmetry}; save it as real, general or symmetric")
    if symmetric and rows != columns:
        raise InputError(f"it says that it is symmetric, and it is {rows} x {columns}")
    lines = _lines(file, "%", everywhere=True)
    next(lines)  # the sizes
    kinds = [("row", int), ("column", int)] * sparse + [("value", float)] * (field != "pattern")
    entries = _loaded(lines, dtype=kinds)
    if not sparse:
        count = rows * (rows + 1) // 2 if symmetric else rows * columns
    if len(entries) != count:
        raise InputError(f"it announces {count} entries and holds {len(entries)}")
    values = np.ones(count) if field == "pattern" else entries["value"]
    if sparse:
        i, j = entries["row"] - 1, entries["column"] - 1
    else:  # column by column, of a symmetric matrix from the diagonal down
        j, i = np.triu_indices(rows) if symmetric else np.divmod(np.arange(count), rows)
    if symmetric:
        off = i != j
        i, j = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
        values = np.concatenate([values, values[off]])
    data = sp.coo_array((values, (i, j)), shape=(rows, columns))
    return FileData(data if sparse else data.toarray())


def _h5ad(file: Path, _: _Options) -> FileData:
    h5py = _library("h5py", "anndata", file)
    read_elem = _library("anndata.io", "anndata", file).read_elem
    with h5py.File(file) as content:

        def index(table: str) -> list[str]:
            column = content[table][str(content[table].attrs["_index"])]
            return list(map(str, read_elem(column)))

        for part in (*CELL_GRAPHS, *CELL_POINTS):
            if part not in content:
                continue
            for item in (content[part], content["obs"]):
                _check_chunks(item, h5py)
            data = read_elem(content[part])
            if sp.issparse(data):
                check_indices(data, part)
            graph = part in CELL_GRAPHS
            if graph and abs(data - data.T).sum() > 0:
                raise InputError(f"it has {part}, which is not symmetric as a graph is")
            columns = index("var") if part == "X" and "var" in content else None
            kind = "graph" if graph else "matrix"
            return FileData(data, kind, index("obs"), None, columns, part)
    raise InputError("it has neither a graph of neighbours nor X")


def _check_chunks(item: Any, h5py: Any) -> None:
    """Refuse gzip chunks of another size than they should have: HDF5 reads on behind their end."""
    if isinstance(item, h5py.Group):
        for member in item.values():
            _check_chunks(member, h5py)
    elif item.chunks and item.compression == "gzip" and item.dtype.kind != "O":  # but texts
        needed = math.prod(item.chunks) * item.dtype.itemsize
        for number in range(item.id.get_num_chunks()):
            place = item.id.get_chunk_info(number).chunk_offset
            skipped, chunk = item.id.read_direct_chunk(place)
            if not skipped and len(zlib.decompress(chunk)) != needed:
                raise InputError(f"it has a damaged chunk in {_shown(item.name)}; copy it again")


# Tables ---------------------------------------------------------------------------------------


def _lines(file: Path, comments: str, everywhere: bool) -> Iterator[str]:
    """The lines of a text, without blank ones; comments are skipped at its start or everywhere."""
    with file.open(encoding="utf-8-sig", newline="\n") as stream:
        skipping = True
        for line in stream:
            if not line.strip() or (skipping and line.lstrip()[0] in comments):
                continue
            skipping = everywhere
            yield line


def _csv(file: Path, options: _Options) -> FileData:
    lines = _lines(file, "#", everywhere=False)
    first = next(lines, "")
    if not first:
        raise InputError("it is empty")
    mark = _separator(first, options)
    cells = _cells(first, mark)
    header = cells if _is_header(cells, options) else None
    row = next(lines, None) if header else first
    if row is None:
        raise InputError("it holds no row of numbers")
    read_number = _converter(options)
    kinds = [(f"{k}", _kind(cell, read_number)) for k, cell in enumerate(_cells(row, mark))]
    if header is not None and len(kinds) != len(header):
        raise InputError(f"it has {len(header)} names of columns and {len(kinds)} cells in a row")
    ignored = set(range(len(kinds))) - set(_places(header, len(kinds), options))
    kinds = [(name, object if k in ignored else kind) for k, (name, kind) in enumerate(kinds)]
    numeric = [k for k, (_, kind) in enumerate(kinds) if kind is float]
    plain = options.decimal == "." and options.missing != "nan"
    table = _loaded(
        chain([row], lines),
        dtype=kinds,
        delimiter=mark,
        converters=None if plain else dict.fromkeys(numeric, read_number),
    )
    return _table(header, [table[name] for name, _ in kinds], options)


def _loaded(lines: Any, **settings: Any) -> np.ndarray:
    settings = {"comments": None, "quotechar": '"', "ndmin": 1} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lines that hold nothing, which callers look for
        return np.loadtxt(lines, **settings)


def _separator(line: str, options: _Options) -> str:
    """What separates cells: the tab, the semicolon or the comma, the first that is in the line."""
    unquoted = re.sub('"[^"]*"', "", line)
    mark = next((mark for mark in "\t;," if mark in unquoted), ",")
    if mark == options.decimal and mark in unquoted:
        raise InputError("it has cells separated by commas, which cannot be decimal commas too")
    return mark


def _cells(line: str, mark: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line.rstrip("\r\n")], delimiter=mark))]


def _converter(options: _Options) -> Callable[[str], float]:
    """What makes a number of a cell."""

    def number(cell: str) -> float:
        cell = cell.strip()
        if options.missing == "nan" and cell.lower() in ABSENT:
            return math.nan
        if "_" in cell or (options.decimal == "," and "." in cell):
            raise ValueError(f"{cell!r} is no number")  # Python reads 1_000 as one
        return float(cell.replace(options.decimal, "."))

    return number


def _kind(cell: str, number: Callable[[str], float]) -> type:
    try:
        number(cell)
    except ValueError:
        return object
    return float


def _is_header(cells: list[str], options: _Options) -> bool:
    """Whether the first line is a header, where its cells leave no doubt."""
    if options.header is not None:
        return options.header
    number = _converter(options)
    index = not cells[0] and len(cells) > 1  # as pandas writes row names
    rest = cells[1:] if index or options.name_column == "1" else cells
    numbers = [_kind(cell, number) is float for cell in rest]
    if all(numbers) and not (index and options.missing == "nan"):
        return index
    for cell, numeric in zip(rest, numbers, strict=True):
        begins_as_a_name = cell[:1].isalpha() or cell[:1] == "_"
        if numeric or not begins_as_a_name or cell.lower() in ABSENT:
            raise InputError(
                f"its first line, which has {_shown(cell)}, may be a header or a row of data; pass "
                f"header=True or header=False"
            )
    return True


def _places(header: list[str] | None, width: int, options: _Options) -> list[int]:
    """The columns that are asked for, by number; all of them where none are."""
    if options.columns is None:
        return list(range(width))
    places = [_place_of(name, header, width) for name in options.columns]
    if len(set(places)) < len(places):
        raise InputError(f"columns names one column twice, got {', '.join(options.columns)}.")
    return places


def _place_of(name: str, header: list[str] | None, width: int) -> int:
    if header is not None and name in header:
        return header.index(name)
    if name.isascii() and name.isdigit() and 1 <= int(name) <= width:
        return int(name) - 1
    known = f"columns are {_shown(', '.join(header))}" if header else f"columns are 1 to {width}"
    raise InputError(f"it has no column {name!r}; its {known}")


def _parquet(file: Path, options: _Options) -> FileData:
    pandas = _library("pandas", "pandas", file)
    _library("pyarrow", "tables", file)
    frame = pandas.read_parquet(file, engine="pyarrow")
    if isinstance(frame.index, pandas.RangeIndex):
        header, columns = [], []
    else:  # an index, which has no name in the header of a .csv file
        header, columns = [""], [frame.index.to_numpy()]
    header += list(map(str, frame.columns))
    columns += [frame.iloc[:, k].to_numpy() for k in range(frame.shape[1])]
    return _table(header, columns, options)


def _table(header: list[str] | None, columns: list[np.ndarray], options: _Options) -> FileData:
    """The numbers, or the edges, in the columns of a table."""
    places = _places(header, len(columns), options)
    if header is not None and named_ends(header) is not None:
        return _edge_table(header, columns, places)
    named = 0 if header and not header[0] and len(columns) > 1 else None
    if options.name_column is not None:
        named = _place_of(options.name_column, header, len(columns))
    places = [place for place in places if place != named]
    if not places:
        raise InputError("it holds no column of numbers")
    for place in places:
        if columns[place].dtype.kind not in "biuf":
            title = str(place + 1) if header is None else header[place]
            raise _text_column(title, str(columns[place][0]))
    return FileData(
        np.column_stack([columns[place] for place in places]),
        names=None if named is None else _row_names(columns[named]),
        columns=None if header is None else [header[place] for place in places],
    )


def _row_names(column: np.ndarray) -> list[Any]:
    if column.dtype.kind in "iuf" and (column == np.floor(column)).all():
        return column.astype(np.int64).tolist()
    return [_unprotected(str(cell)) for cell in column.tolist()]


def _text_column(title: str, cell: str) -> InputError:
    problem = f"column {_shown(title)} holds {_shown(cell)}, which is no number; "
    if re.fullmatch(r"-?\d*,\d+", cell):
        return InputError(problem + "if it has a decimal comma, pass decimal=','")
    return InputError(
        problem + "encode words as numbers (one column of 0 and 1 for each word), use a similarity "
        "for mixed columns such as Gower's, or choose columns by columns=A,B and the names of rows "
        "by name_column=A"
    )


# Graphs ---------------------------------------------------------------------------------------


def _edge_table(header: list[str], columns: list[np.ndarray], places: list[int]) -> FileData:
    """The graph of a table of edges; of all its columns, those that are called like ends."""
    if len(places) == len(columns):
        ends = named_ends(header) or ("", "")
        titles = [*ends, named_weight(header, ends)]
        places = [header.index(title) for title in titles if title is not None]
    if len(places) not in (2, 3):
        raise InputError(f"an edge has two ends and maybe a weight, not {len(places)} columns")
    weights = columns[places[2]] if len(places) == 3 else None
    if weights is not None and weights.dtype.kind not in "iuf":
        raise InputError(f"it has the weight {_shown(weights[0])}, which is no number")
    return _graph(columns[places[0]], columns[places[1]], weights)


def _edges(file: Path, _: _Options) -> FileData:
    lines = _lines(file, "#%", everywhere=True)
    first = next(lines, "")
    if named_ends(first.replace(",", " ").split()) is not None:
        first = next(lines, "")
    if not first:
        raise InputError("it holds no edges")
    mark = "," if "," in first else None
    width = len(first.split(mark))
    if width not in (2, 3):
        raise InputError(f"it has {width} fields in a line, and an edge is 'u v' or 'u v weight'")
    weight = [("w", float)] * (width == 3)
    kinds = [("u", int), ("v", int), *weight]
    try:  # whole numbers, which NumPy reads fastest from the file itself
        marks = {"comments": ["#", "%"], "quotechar": None}
        edges = _loaded(file.absolute(), dtype=kinds, delimiter=mark, **marks)
    except ValueError:  # names, which may hold the signs of a comment
        kinds = [("u", object), ("v", object), *weight]
        edges = _loaded(chain([first], lines), dtype=kinds, delimiter=mark)
    return _graph(edges["u"], edges["v"], edges["w"] if weight else None)


def _graph(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray | None, n: int | None = None
) -> FileData:
    """The graph of edges between the nodes they name, or between 0..n-1."""
    from symnmf.graphs.edge_tables import number_nodes

    if n is not None:
        return _assembled(range(n), np.column_stack([first, second]), weights)
    names, ends = number_nodes(*_whole_numbers(first, second))
    graph = _assembled(names, ends, weights)
    return replace(graph, names=None if names == list(range(len(names))) else names)


def _assembled(names: Sequence[Any], ends: np.ndarray, weights: np.ndarray | None) -> FileData:
    from symnmf.graphs.assembling import EdgeTable

    edges = EdgeTable(list(names), ends.astype(np.intp), weights)
    return FileData(edges.adjacency("it", allow_negative=True), "graph")


def _whole_numbers(*ends: np.ndarray) -> list[Any]:
    """The ends of edges as whole numbers where all are, else as text."""
    if all(end.dtype.kind in "iuf" and (end == np.floor(end)).all() for end in ends):
        return [end.astype(np.int64) for end in ends]
    texts = [[str(cell).strip() for cell in end.tolist()] for end in ends]
    if not {"", "None", "nan", "<NA>"}.isdisjoint(chain(*texts)):
        raise InputError("it has an edge with only one end; name both, or leave it out")
    if all(text.isascii() and text.isdecimal() and len(text) < 19 for text in chain(*texts)):
        return [np.array(list(map(int, text))) for text in texts]
    return texts


def _graph_file(file: Path, _: _Options) -> FileData:
    """A graph as igraph reads it, or networkx where that is absent."""
    content = file.read_bytes()
    if file.suffix != ".graphml":
        content.decode("utf-8")  # igraph ends the process at a name that is not
    if len(re.findall(rb"<(?:\w+:)?graph[\s/>]", content)) > 1:
        raise InputError("it holds several graphs, and one can be read")
    try:
        columns, ends, weights, directed = _igraph(file)
    except ModuleNotFoundError:
        columns, ends, weights, directed = _networkx(file)
    names = _node_names(columns)
    if file.suffix == ".graphml":
        declared = len(re.findall(rb"<(?:\w+:)?node[\s/>]", content))
        if declared != len(names):
            raise InputError(f"it lists {declared} nodes, and its edges join {len(names)}")
    pairs = np.array(ends, dtype=np.intp).reshape(-1, 2)
    values = np.ones(len(pairs)) if weights is None else np.array(weights, dtype=np.float64)
    # parallel edges add up; an arc and its opposite are one edge and must agree
    pairs = pairs if directed else np.sort(pairs, axis=1)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    if len(distinct) < len(pairs):
        parallel = len(pairs) - len(distinct)
        warn(f"the file has {parallel} parallel edges, whose weights were summed.", UserWarning)
    summed = np.bincount(which.ravel(), values, len(distinct))
    return replace(_assembled(names, distinct, summed), names=names)


#: What nodes may be called, the ends of edges by number, weights, whether edges have a direction.
Edges = tuple[list[list[Any]], Any, Any, bool]


def _igraph(file: Path) -> Edges:
    import igraph

    kind = {".net": "pajek"}.get(file.suffix, file.suffix[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of attributes that are not read
        graph = igraph.Graph.Read(str(file), format=kind)
    known = [name for name in ("name", "label", "id") if name in graph.vs.attributes()]
    weights = graph.es["weight"] if "weight" in graph.es.attributes() else None
    from_one = range(1, graph.vcount() + 1)  # as Pajek counts
    columns = [*(graph.vs[name] for name in known), list(from_one)]
    return columns, graph.get_edgelist(), weights, graph.is_directed()


def _networkx(file: Path) -> Edges:
    if file.suffix == ".net":  # networkx drops the edges of some
        _library("igraph", "graphs", file)
    networkx = _library("networkx", "graphs", file)
    read = networkx.read_graphml if file.suffix == ".graphml" else networkx.read_gml
    graph = read(file) if file.suffix == ".graphml" else read(file, label="id")
    rows = [data for _, data in graph.nodes(data=True)]
    known = [name for name in ("name", "label") if all(name in row for row in rows)]
    place = {node: k for k, node in enumerate(graph)}
    edges = list(graph.edges(data="weight", default=1.0))
    columns = [*([row[name] for row in rows] for name in known), list(graph)]
    ends = [(place[u], place[v]) for u, v, _ in edges]
    return columns, ends, [float(weight) for *_, weight in edges], graph.is_directed()


def _node_names(columns: list[list[Any]]) -> list[Any]:
    """The first column that gives every node a name of its own, as text or whole numbers."""
    for names in columns:
        if all(name not in ("", None) for name in names) and len(set(names)) == len(names):
            whole = all(isinstance(name, int | float) and name == int(name) for name in names)
            return list(map(int if whole else str, names))
    raise InputError("it has no nodes")


def _hyperedges(file: Path, _: _Options) -> FileData:
    from symnmf.graphs.hypergraph import Hypergraph

    groups: list[list[Any]] = []
    for line in _lines(file, "#%", everywhere=True):
        groups.append([node.strip() for node in line.split("," if "," in line else None)])
        if not all(groups[-1]):
            raise InputError(f"the hyperedge {_shown(line.strip())} has a node without a name")
    nodes = None
    if all(node.isascii() and node.isdigit() for group in groups for node in group):
        groups = [list(map(int, group)) for group in groups]
        nodes = sorted({node for group in groups for node in group})
    data = Hypergraph(groups, nodes=nodes)
    return FileData(data, "hypergraph", data.names)


_READERS: dict[str, Callable[[Path, _Options], FileData]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
    ".mtx": _mtx,
    **dict.fromkeys(EDGE_LISTS, _edges),
    ".hyperedges": _hyperedges,
    **dict.fromkeys(GRAPHS, _graph_file),
    ".h5ad": _h5ad,
}


# Labels ---------------------------------------------------------------------------------------


@checked()
def read_labels(path: AnyPath, names: Sequence[Any] | None = None) -> np.ndarray:
    """Read one label per row.

    Parameters
    ----------
    path : str or path
        Ends in .csv, .tsv, .txt, .labels, .npy or .npz (the array ``y`` or ``labels``, or the only
        one), or in one of these and .gz. A text file holds a label per line; with two columns the
        first holds names; with more, a header must say which are the labels (``label``, ``class``,
        ``cluster``, ...) and the names (``name``, ``id``, ``row``, ...). If there is one
        line too many and the first is unlike all others, it is a header too.
    names : sequence, optional
        The names of the rows. Labels come in their order, found by name if the file has names.

    Returns
    -------
    ndarray
        int64 where every label is a whole number, otherwise text in an object array.
    """
    file, ending = _place(path)
    with _opened(file, ending) as plain:
        if ending in (".npy", ".npz"):
            known, labels = None, _labels_in_array(plain)
        elif ending in (".csv", ".tsv", ".txt", ".labels"):
            known, labels = _labels_in_text(plain)
        else:
            raise InputError(f"it has the ending {ending!r}, which is none of labels")
    if names is None:
        return labels
    if known is not None:
        return labels[match_names(known, names, path, "label")]
    if labels.dtype == object and len(labels) == len(names) + 1 and labels[0] not in labels[1:]:
        labels = _as_labels(labels[1:])  # one line too many, unlike all others: a header
    if len(labels) != len(names):
        raise InputError(f"{path} holds {len(labels)} labels for {len(names)} rows.")
    return labels


def _labels_in_array(file: Path) -> np.ndarray:
    content = np.load(file, allow_pickle=False)
    if isinstance(content, np.ndarray):
        return _as_labels(content)
    with content:
        names = list(content)
        found = [name for name in ("y", "labels") if name in names] or names
        if len(found) != 1:
            raise InputError("it must hold one array 'y' or 'labels'")
        return _as_labels(content[found[0]])


def _labels_in_text(file: Path) -> tuple[list[str] | None, np.ndarray]:
    lines = list(_lines(file, "#", everywhere=False))
    mark = next((mark for mark in "\t;," if lines and mark in lines[0]), ",")
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark)]
    pairs = [row[0].split() for row in rows]
    if all(len(row) == 1 for row in rows) and all(
        len(pair) == 2 and pair[0].isdigit() for pair in pairs
    ):
        rows = pairs
    if len({len(row) for row in rows}) > 1:
        raise InputError("it has lines of different lengths")
    header = [cell.lower() for cell in rows[0]] if rows else []
    labels = [place for place, cell in enumerate(header) if cell in LABEL_WORDS]
    ids = [place for place, cell in enumerate(header) if cell in NAME_WORDS]
    if labels or ids:
        rows = rows[1:]
    if not rows:
        raise InputError("it holds no labels")
    if len(header) > 2 and not labels:
        raise InputError(f"it has {len(header)} columns, and none is called label or class")
    column = labels[0] if labels else len(header) - 1
    named = ids or ([0] if len(header) == 2 and column == 1 else [])
    known = [_unprotected(row[named[0]]) for row in rows] if named and named[0] != column else None
    return known, _as_labels(np.array([row[column] for row in rows], dtype=object))


def _as_labels(labels: np.ndarray) -> np.ndarray:
    """Whole numbers as int64, other labels as text."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.dtype.kind not in "biufUSO":
        raise InputError("it must hold labels in one column of whole numbers or text")
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8")
    texts = labels.astype(object)
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        if not all(texts):
            raise InputError(
                f"it has no label in row {list(map(bool, texts)).index(False)}"
            ) from None
        return texts
    if not (np.isfinite(numbers) & (numbers == np.round(numbers))).all():
        raise InputError("it holds fractions or NaN, and labels are whole numbers or text")
    return numbers.astype(np.int64)


def match_names(known: Sequence[Any], wanted: Sequence[Any], path: AnyPath, what: str) -> list[int]:
    """Where each wanted name stands among those of the file at ``path``, full of ``what``."""
    known, wanted = list(map(str, known)), list(map(str, wanted))
    if known == wanted:  # also where names repeat
        return list(range(len(known)))
    places = {name: place for place, name in enumerate(known)}
    advice = "leave out the column of names to match rows by their order"
    if len(places) < len(known):
        twice = next(name for place, name in enumerate(known) if places[name] != place)
        raise InputError(f"{path} holds the name {_shown(twice)} more than once; {advice}.")
    lacking = [name for name in wanted if name not in places]
    if lacking:
        raise InputError(
            f"{path} has no {what} for {len(lacking)} of the {len(wanted)} names, such as "
            f"{_shown(lacking[0])}; add them, or {advice}."
        )
    return [places[name] for name in wanted]


# Writing --------------------------------------------------------------------------------------


@checked(columns=("mapping",))
def write_table(path: AnyPath, columns: Mapping[str, Sequence[object] | np.ndarray]) -> None:
    """Write columns as a .csv or .csv.gz file, atomically.

    Text that a spreadsheet would take for a formula gets an apostrophe in front, which
    :func:`read` and :func:`read_labels` take off again from names.

    Parameters
    ----------
    path : str or path
        A file in an existing folder; an existing file is replaced.
    columns : mapping of str to sequence
        Columns of equal length; text, numbers, or None for an empty cell.
    """
    file = as_path(path)
    if not file.name.lower().endswith((".csv", ".csv.gz")):
        raise InputError(f"path must end in .csv or .csv.gz, got {_shown(file)}.")
    content = table_bytes(columns)
    if file.suffix.lower() == ".gz":
        content = gzip.compress(content, mtime=0)
    write_atomically(file, lambda stream: stream.write(content))


def table_bytes(columns: Mapping[str, Sequence[object] | np.ndarray]) -> bytes:
    """Columns as the content of a .csv file."""
    for name, column in columns.items():
        check(f"columns[{name!r}]", column, (SEQUENCE,))
    lists = [
        column.tolist() if isinstance(column, np.ndarray) else list(column)
        for column in columns.values()
    ]
    if not lists or len({len(column) for column in lists}) > 1:
        sizes = ", ".join(map(str, map(len, lists))) or "none"
        raise InputError(f"columns must be at least one, of equal lengths, got {sizes}.")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in chain([list(columns)], zip(*lists, strict=True)):
        writer.writerow([_protected(cell) if isinstance(cell, str) else cell for cell in row])
    try:
        return text.getvalue().encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError("columns must hold valid Unicode, and a cell does not.") from error


def _protected(cell: str) -> str:
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell


def _unprotected(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell
