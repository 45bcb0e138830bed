"""Files of matrices, tables, graphs and labels, read by the libraries that own the formats.

==================  ===============================================================================
Ending              What it holds
==================  ===============================================================================
.npy                one 2-D array of numbers
.npz                a SciPy sparse matrix, a graph (``edges`` (m, 2), the number of nodes ``n``, and
                    perhaps ``weights`` and ``node_names``), or one 2-D array (alone, or called
                    ``X``, ``adjacency`` or ``affinity``); ``y`` holds labels in all three
.csv .tsv           numbers, with an optional header; commas, semicolons or tabs separate cells
.parquet            the same (extra ``tables`` and pandas)
.mtx                Matrix Market, real, integer or pattern
.edges .edgelist    one edge per line, ``u v`` or ``u v weight``, separated by spaces, tabs or
.el .txt .ncol      commas; lines that start with ``#`` or ``%`` are comments. A table with columns
                    called ``source`` and ``target`` holds edges too
.hyperedges         one hyperedge per line, its nodes separated by spaces, tabs or commas
.graphml .gml       a graph, read by networkx (extra ``graphs``)
.net                a graph of Pajek, read by igraph (extra ``graphs``)
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
import re
import stat
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.errors import InputError, imported, warn
from symnmf.kinds import SEQUENCE
from symnmf.naming import named_ends, named_weight
from symnmf.options import documented
from symnmf.outputs import MACHINE_FAILED, AnyPath, as_path, write_atomically
from symnmf.storage.indices import check_indices

__all__ = ["read", "read_labels", "write_table"]

TABLES = (".csv", ".tsv", ".parquet")
EDGE_LISTS = (".edges", ".edgelist", ".el", ".txt", ".ncol")
LABELS = (".csv", ".tsv", ".txt", ".labels")
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
#: A spreadsheet takes a cell that begins with one of these for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
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
class _Table:
    """What the caller says of a table; see :func:`read`."""

    columns: list[str] | None = None
    name_column: str | None = None
    header: bool | None = None
    decimal: str = "."
    missing: str | None = None

    def number(self, cell: str) -> float:
        """The number in a cell."""
        cell = cell.strip()
        if self.missing == "nan" and cell.lower() in ABSENT:
            return math.nan
        if "_" in cell or (self.decimal == "," and "." in cell):
            raise ValueError(f"{cell!r} is no number")  # Python reads 1_000 as one
        return float(cell.replace(self.decimal, "."))

    def is_number(self, cell: str) -> bool:
        try:
            self.number(cell)
        except ValueError:
            return False
        return True


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
    for option, value in {"columns": columns, "name_column": name_column, "header": header}.items():
        if value is not None and _ending(path) not in TABLES:
            raise InputError(
                f"{option} is for {', '.join(TABLES)}, not for {_ending(path)}; leave it out."
            )
    if columns is not None:
        columns = columns.split(",") if isinstance(columns, str) else list(columns)
        columns = [str(column).strip() for column in columns]
    column = None if name_column is None else str(name_column)
    with _opened(path, tuple(_READERS)) as file:
        table = _Table(columns, column, header, decimal, missing)
        return _checked(_READERS[file.suffix](file, table), missing)


# Opening --------------------------------------------------------------------------------------


def _shown(content: object) -> str:
    """A file's own text, escaped and cut, fit for one line of a message."""
    text = str(content)
    return ascii(text if len(text) <= SHOWN else text[:SHOWN] + "...")


def _ending(path: AnyPath) -> str:
    """The ending that names the format of a file."""
    return Path(as_path(path).name.lower().removesuffix(".gz")).suffix


@contextmanager
def _opened(path: AnyPath, endings: Sequence[str]) -> Iterator[Path]:
    """A regular file, decompressed from .gz; whatever goes wrong with it is one sentence.

    The path that is yielded ends in what names its format.
    """
    original, ending = as_path(path), _ending(path)
    try:
        if not stat.S_ISREG(original.stat().st_mode):  # a pipe would be waited for
            raise InputError("it is a folder or a device; give a regular file")
        if ending not in endings:
            raise InputError(
                f"it has the unknown ending {ending!r}; use one of {', '.join(endings)}, each with "
                f"or without .gz"
            )
        if original.suffix == ending:
            yield original
            return
        with tempfile.TemporaryDirectory() as folder:
            plain, zipped = Path(folder, f"content{ending}"), original.suffix.lower() == ".gz"
            with gzip.open(original) if zipped else original.open("rb") as content:
                plain.write_bytes(content.read())
            yield plain
    except InputError as error:
        raise InputError(f"file {_shown(original)}: {str(error).rstrip('.')}.") from error
    except MemoryError as error:
        raise InputError(f"file {_shown(original)} needs more memory than there is.") from error
    except Exception as error:  # a library raises whatever it stumbles over
        if isinstance(error, OSError) and error.errno in MACHINE_FAILED:
            raise
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        reason = re.sub(r"^Error at \S+ ", "", reason.split("\n")[0])  # a place in igraph's source
        raise InputError(f"file {_shown(original)} cannot be read ({_shown(reason)}).") from error


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
    values = data.data if sp.issparse(data) else data
    count = values.size - np.count_nonzero(np.isfinite(values))
    if count and (missing != "nan" or values is not data or np.isinf(values).any()):
        raise InputError(
            f"{count} of its entries are NaN or infinite; correct them, or if NaN is an entry that "
            f"was not observed, pass missing='nan', of a sparse matrix leave it out and pass "
            f"missing='unstored'"
        )
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


# Arrays ---------------------------------------------------------------------------------------


def _npy(file: Path, _: _Table) -> FileData:
    return FileData(np.load(file, allow_pickle=False))


def _npz(file: Path, _: _Table) -> FileData:
    with np.load(file, allow_pickle=False) as archive:
        names = list(archive)
        labels = _as_labels(archive["y"]) if "y" in names else None
        if "format" in names and "shape" in names:
            return FileData(sp.load_npz(file), labels=labels)
        if "edges" in names:
            return _numbered_graph({name: archive[name] for name in names}, labels)
        candidates = [name for name in names if name in MATRIX_NAMES]
        others = [name for name in names if name != "y"]
        if len(candidates) != 1 and len(others) != 1:
            raise InputError(
                f"it holds the arrays {', '.join(sorted(names))}, and one of "
                f"{', '.join(MATRIX_NAMES)} (or a single array) is needed",
            )
        return FileData(archive[(candidates or others)[0]], labels=labels)


def _numbered_graph(arrays: Mapping[str, np.ndarray], labels: np.ndarray | None) -> FileData:
    """A graph of the nodes 0..n-1."""
    edges, weights = arrays["edges"], arrays.get("weights")
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise InputError("it must hold edges as two columns of whole numbers")
    if weights is not None and (len(weights) != len(edges) or weights.dtype.kind not in "iuf"):
        raise InputError(f"it must hold one weight for each of the {len(edges)} edges")
    if "n" not in arrays:
        raise InputError("it holds edges and not n, the number of nodes")
    n = int(arrays["n"])
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise InputError(f"it has an edge to a node that is none of the {n}, numbered from 0")
    names = arrays["node_names"].tolist() if "node_names" in arrays else None
    return replace(_graph(range(n), edges, weights), names=names, labels=labels)


def _mtx(file: Path, _: _Table) -> FileData:
    """A Matrix Market file; SciPy reads its header only.

    Its ``mmread`` crashes on damaged files, takes "4x" for 4 and drops further columns.
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


def _h5ad(file: Path, _: _Table) -> FileData:
    h5py = imported("h5py", "anndata", "such a file")
    read_elem = imported("anndata.io", "anndata", "such a file").read_elem
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


def _loaded(lines: Any, **settings: Any) -> np.ndarray:
    """The records in lines of text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lines that hold nothing, which callers look for
        try:
            return np.loadtxt(lines, comments=None, quotechar='"', ndmin=1, **settings)
        except ValueError as error:
            raise InputError(_in_rows(str(error))) from error


def _in_rows(reason: str) -> str:
    """What NumPy says of a record, without its own options and with rows counted from 1."""
    if width := re.match(r"the dtype passed requires (.+ found) at row (\d+);", reason):
        return f"it needs {width[1]} in row {width[2]}; give every row the same number of cells"
    if cell := re.match(r"could not convert string (.*) to \w+ at row (\d+), column (\d+)", reason):
        row = int(cell[2]) + 1
        return (
            f"row {row} holds {_shown(cell[1][1:-1])} in column {cell[3]}, which is no number; "
            f"correct it or leave the row out"
        )
    return _shown(reason)


def _separator(line: str) -> str:
    """What separates cells: the tab, the semicolon or the comma, the first that is in the line."""
    unquoted = re.sub('"[^"]*"', "", line)
    return next((mark for mark in "\t;," if mark in unquoted), ",")


def _cells(line: str, mark: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line.rstrip("\r\n")], delimiter=mark))]


def _csv(file: Path, table: _Table) -> FileData:
    lines = _lines(file, "#", everywhere=False)
    first = next(lines, "")
    if not first:
        raise InputError("it is empty")
    mark = _separator(first)
    if mark == table.decimal and mark in first:
        raise InputError("it has cells separated by commas, which cannot be decimal commas too")
    cells = _cells(first, mark)
    header = cells if _is_header(cells, table) else None
    row = first if header is None else next(lines, "")
    if not row:
        raise InputError("it holds no row of numbers")
    cells = _cells(row, mark)
    if header is not None and len(cells) != len(header):
        raise InputError(f"it has {len(header)} names of columns and {len(cells)} cells in a row")
    chosen = _places(header, len(cells), table)
    numeric = [k for k in chosen if table.is_number(cells[k])]
    plain = table.decimal == "." and table.missing != "nan"
    records = _loaded(
        chain([row], lines),
        dtype=[(str(k), float if k in numeric else object) for k in range(len(cells))],
        delimiter=mark,
        converters=None if plain else dict.fromkeys(numeric, table.number),
    )
    return _from_columns(header, [records[name] for name in records.dtype.names or ()], table)


def _is_header(cells: list[str], table: _Table) -> bool:
    """Whether the first line is a header, where its cells leave no doubt."""
    if table.header is not None:
        return table.header
    index = len(cells) > 1 and not cells[0]  # as pandas writes the names of rows
    rest = cells[index:]
    numbers = sum(map(table.is_number, rest))
    if numbers == len(rest) and not (index and table.missing == "nan"):
        return index
    if not numbers and all(c[:1].isidentifier() and c.lower() not in ABSENT for c in rest):
        return True
    doubtful = next((c for c in rest if not table.is_number(c)), rest[0])
    raise InputError(
        f"its first line, which has {_shown(doubtful)}, may be a header or a row of data; pass "
        f"header=True or header=False"
    )


def _places(header: list[str] | None, width: int, table: _Table) -> list[int]:
    """The columns that are asked for, by number; all of them where none are."""
    if table.columns is None:
        return list(range(width))
    return [_place_of(name, header, width) for name in table.columns]


def _place_of(name: str, header: list[str] | None, width: int) -> int:
    if header is not None and name in header:
        return header.index(name)
    if name.isascii() and name.isdigit() and 1 <= int(name) <= width:
        return int(name) - 1
    known = f"columns are {_shown(', '.join(header))}" if header else f"columns are 1 to {width}"
    raise InputError(f"it has no column {name!r}; its {known}")


def _parquet(file: Path, table: _Table) -> FileData:
    pandas = imported("pandas", "pandas", "such a file")
    imported("pyarrow", "tables", "such a file")
    frame = pandas.read_parquet(file, engine="pyarrow")
    indexed = not isinstance(frame.index, pandas.RangeIndex)  # without a name, as in a .csv file
    columns = [frame.iloc[:, k].to_numpy() for k in range(frame.shape[1])]
    return _from_columns(
        [""] * indexed + list(map(str, frame.columns)),
        [frame.index.to_numpy()] * indexed + columns,
        table,
    )


def _from_columns(header: list[str] | None, columns: list[np.ndarray], table: _Table) -> FileData:
    """The numbers, or the edges, in the columns of a table."""
    places = _places(header, len(columns), table)
    if header is not None and named_ends(header) is not None:
        return _edge_table(header, columns, places)
    named = 0 if header and not header[0] and len(columns) > 1 else None
    if table.name_column is not None:
        named = _place_of(table.name_column, header, len(columns))
    places = [place for place in places if place != named]
    if not places:
        raise InputError("it holds no column of numbers")
    for place in places:
        if columns[place].dtype.kind not in "biuf":
            title, cell = str(place + 1) if header is None else header[place], columns[place][0]
            raise InputError(
                f"column {_shown(title)} holds {_shown(cell)}, which is no number; pass "
                f"decimal=',' if it has a decimal comma, choose columns by columns=A,B and the "
                f"names of rows by name_column=A, or encode words as numbers (a column of 0 and 1 "
                f"for each word, or a similarity for mixed columns such as Gower's)"
            )
    return FileData(
        np.column_stack([columns[place] for place in places]),
        names=None if named is None else _row_names(columns[named]),
        columns=None if header is None else [header[place] for place in places],
    )


def _row_names(column: np.ndarray) -> list[Any]:
    if column.dtype.kind in "iuf" and (column == np.floor(column)).all():
        return column.astype(np.int64).tolist()
    return [_unprotected(str(cell)) for cell in column.tolist()]


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
    return _named_graph(columns[places[0]], columns[places[1]], weights)


def _edges(file: Path, _: _Table) -> FileData:
    lines = list(_lines(file, "#%", everywhere=True))
    if lines and named_ends(lines[0].replace(",", " ").split()) is not None:
        del lines[0]
    if not lines:
        raise InputError("it holds no edges")
    mark = "," if "," in lines[0] else None
    width = len(lines[0].split(mark))
    if width not in (2, 3):
        raise InputError(f"it has {width} fields in a line, and an edge is 'u v' or 'u v weight'")
    weight = [("w", float)] * (width == 3)
    try:
        edges = _loaded(lines, dtype=[("u", int), ("v", int), *weight], delimiter=mark)
    except ValueError:  # names
        edges = _loaded(lines, dtype=[("u", object), ("v", object), *weight], delimiter=mark)
    return _named_graph(edges["u"], edges["v"], edges["w"] if weight else None)


def _named_graph(first: np.ndarray, second: np.ndarray, weights: np.ndarray | None) -> FileData:
    """The graph of edges between the nodes they name: whole numbers where all are, else text."""
    from symnmf.graphs.edges import number_nodes

    ends: list[Any] = [first, second]
    if all(end.dtype.kind in "iuf" and (end == np.floor(end)).all() for end in ends):
        ends = [end.astype(np.int64) for end in ends]
    else:
        ends = [[str(cell).strip() for cell in end.tolist()] for end in ends]
        if not {"", "None", "nan", "<NA>"}.isdisjoint(chain(*ends)):
            raise InputError("it has an edge with only one end; name both, or leave it out")
    names, pairs = number_nodes(*ends)
    graph = _graph(names, pairs, weights)
    return replace(graph, names=None if names == list(range(len(names))) else names)


def _graph(names: Sequence[Any], ends: np.ndarray, weights: np.ndarray | None) -> FileData:
    from symnmf.graphs.edges import EdgeTable

    edges = EdgeTable(list(names), ends.astype(np.intp), weights)
    return FileData(edges.adjacency("it", allow_negative=True), "graph")


def _networkx(file: Path, _: _Table) -> FileData:
    networkx = imported("networkx", "graphs", "such a file")
    content = file.read_text("utf-8")
    if file.suffix == ".gml":
        graph = networkx.parse_gml(content.splitlines(), label="id")
    else:
        if len(re.findall(r"<(?:\w+:)?graph[\s/>]", content)) > 1:
            raise InputError("it holds several graphs, and one can be read")
        graph = networkx.read_graphml(file)
        declared = len(re.findall(r"<(?:\w+:)?node[\s/>]", content))
        if declared != len(graph):  # networkx makes nodes of whatever edges name
            raise InputError(f"it lists {declared} nodes, and its edges join {len(graph)}")
    rows = [data for _, data in graph.nodes(data=True)]
    columns = [[row.get(name) for row in rows] for name in ("name", "label")]
    place = {node: k for k, node in enumerate(graph)}
    edges = [(place[u], place[v], weight) for u, v, weight in graph.edges(data="weight", default=1)]
    return _parallel(edges, [*columns, list(graph)], graph.is_directed())


def _pajek(file: Path, _: _Table) -> FileData:
    igraph = imported("igraph", "graphs", "such a file")  # networkx drops edges of some files
    file.read_text("utf-8")  # igraph ends the process at a name that is not
    graph = igraph.Graph.Read_Pajek(str(file))
    weights = graph.es["weight"] if "weight" in graph.es.attributes() else [1.0] * graph.ecount()
    columns = [graph.vs[name] for name in ("name", "id") if name in graph.vs.attributes()]
    edges = [(*ends, weight) for ends, weight in zip(graph.get_edgelist(), weights, strict=True)]
    return _parallel(edges, [*columns, list(range(1, graph.vcount() + 1))], graph.is_directed())


def _parallel(edges: list[Any], columns: list[list[Any]], directed: bool) -> FileData:
    """The graph of numbered edges and their weights, with parallel ones added up.

    Of ``columns``, the first that gives every node a name of its own is the nodes' names. An arc
    and its opposite are one edge and must agree.
    """
    pairs = np.array([edge[:2] for edge in edges], dtype=np.intp).reshape(-1, 2)
    weights = np.array([edge[2] for edge in edges], dtype=np.float64)
    distinct, which = np.unique(
        pairs if directed else np.sort(pairs, axis=1), axis=0, return_inverse=True
    )
    if len(distinct) < len(pairs):
        parallel = len(pairs) - len(distinct)
        warn(f"the file has {parallel} parallel edges, whose weights were summed.", UserWarning)
    names: list[Any] = next(
        column
        for column in columns
        if not {None, ""} & set(column) and len(set(column)) == len(column)
    )
    names = names if all(isinstance(name, int) for name in names) else list(map(str, names))
    summed = np.bincount(which.ravel(), weights, len(distinct))
    return replace(_graph(names, distinct, summed), names=names)


def _hyperedges(file: Path, _: _Table) -> FileData:
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


_READERS: dict[str, Callable[[Path, _Table], FileData]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
    ".mtx": _mtx,
    **dict.fromkeys(EDGE_LISTS, _edges),
    ".hyperedges": _hyperedges,
    ".graphml": _networkx,
    ".gml": _networkx,
    ".net": _pajek,
    ".h5ad": _h5ad,
}


# Labels ---------------------------------------------------------------------------------------


@checked()
def read_labels(path: AnyPath, names: Sequence[Any] | None = None) -> np.ndarray:
    """Read one label per row.

    Parameters
    ----------
    path : str or path
        A text file with a label per line, or a table whose header says which column holds the
        labels (``label``, ``class``, ``cluster``, ...) and which the names of the rows (``name``,
        ``id``, ``row``, ...). Of two columns without such words the first holds names. It ends in
        .csv, .tsv, .txt or .labels, or in one of these and .gz.
    names : sequence, optional
        The names of the rows. Labels come in their order, found by name if the file has names.

    Returns
    -------
    ndarray
        int64 where every label is a whole number, otherwise text in an object array.
    """
    with _opened(path, LABELS) as file:
        lines = list(_lines(file, "#", everywhere=False))
        mark = _separator(lines[0]) if lines else ","
        rows = [_cells(line, mark) for line in lines]
        if len({len(row) for row in rows}) > 1:
            raise InputError("it has lines of different lengths")
        header = [cell.lower() for cell in rows[0]] if rows else []
        titled = [k for k, cell in enumerate(header) if cell in LABEL_WORDS]
        named = [k for k, cell in enumerate(header) if cell in NAME_WORDS]
        if titled or named:
            rows = rows[1:]
        if not rows:
            raise InputError("it holds no labels")
        if len(header) > 2 and not titled:
            raise InputError(f"it has {len(header)} columns, and none is called label or class")
        column = titled[0] if titled else len(header) - 1
        if not named and len(header) == 2:
            named = [1 - column]
        labels = _as_labels(np.array([row[column] for row in rows], dtype=object))
    if names is None:
        return labels
    if named:
        return labels[match_names([_unprotected(row[named[0]]) for row in rows], names, path)]
    if len(labels) != len(names):
        raise InputError(f"{path} holds {len(labels)} labels for {len(names)} rows.")
    return labels


def _as_labels(labels: np.ndarray) -> np.ndarray:
    """Whole numbers as int64, other labels as text."""
    labels = labels.ravel() if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or labels.dtype.kind not in "biufUO":
        raise InputError("it must hold labels in one column of whole numbers or text")
    try:
        numbers = labels.astype(np.float64)
    except ValueError:
        texts = labels.astype(object)
        if not all(texts):
            place = list(map(bool, texts)).index(False)
            raise InputError(f"it has no label in row {place}") from None
        return texts
    if not (np.isfinite(numbers) & (numbers == np.round(numbers))).all():
        raise InputError("it holds fractions or NaN, and labels are whole numbers or text")
    return numbers.astype(np.int64)


def match_names(known: Sequence[Any], wanted: Sequence[Any], path: AnyPath) -> list[int]:
    """Where each wanted name stands among those of the file at ``path``."""
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
            f"{path} has no row for {len(lacking)} of the {len(wanted)} names, such as "
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
    return text.getvalue().encode("utf-8", "replace")


def _protected(cell: str) -> str:
    return f"'{cell}" if cell.lstrip("'").startswith(FORMULA) else cell


def _unprotected(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell
