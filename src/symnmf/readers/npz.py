"""NumPy's .npz archives: sparse matrices, graphs and single arrays."""

from __future__ import annotations

import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.readers.arrays import as_float, as_integers, as_labels, as_text, read_array
from symnmf.readers.edges import compact
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import CHUNK, SPARSE_NAN_ADVICE, Source, shown
from symnmf.readers.sparse_parts import adjacency, check_dimensions, check_finite, from_coordinates

MAX_MEMBERS = 1000
NAMED = ("X", "adjacency", "affinity")

# What zipfile and zlib raise on damaged archives, beyond the OSError that opening handles.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    KeyError,
    IndexError,
    OverflowError,
    ValueError,
)


class Archive:
    """The arrays of one .npz file, read one at a time and counted against the limits."""

    def __init__(self, source: Source, archive: zipfile.ZipFile) -> None:
        self.source = source
        self.archive = archive
        self.members: dict[str, zipfile.ZipInfo] = {}
        self.read_bytes = 0
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in self.members:
                raise source.error(f"its archive holds {shown(name)} twice")
            self.members[name] = info
        if not 0 < len(self.members) <= MAX_MEMBERS:
            raise source.error(f"its archive holds {len(self.members)} members")

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def get(self, name: str) -> np.ndarray:
        """The array called ``name``."""
        if name not in self.members:
            raise self.source.error(f"its archive has no array {shown(name)}, which it needs")
        info = self.members[name]
        label = f"array {shown(name)}"
        # Other compressions are never written by NumPy, and lzma's header sizes its memory.
        if info.flag_bits & 1 or info.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise self.source.error(f"{label} is encrypted or compressed in an unknown way")
        self.read_bytes += info.file_size
        self.source.check_growth(self.read_bytes)
        with _damage(self.source, label), self.archive.open(info) as stream:
            return read_array(self.source, stream, info.file_size, label)


@contextmanager
def _damage(source: Source, what: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (*_DAMAGE, OSError) as error:
        raise source.error(f"{what} is damaged ({shown(error)}); copy it again") from error


@contextmanager
def open_archive(source: Source) -> Iterator[Archive]:
    """The archive in ``source``, closed at the end."""
    with tempfile.SpooledTemporaryFile(max_size=2**24) as spool:
        if source.compressed:  # a zip archive needs a file one can seek in
            while chunk := source.read(CHUNK):
                spool.write(chunk)
        file = cast("IO[bytes]", spool if source.compressed else source.raw)
        with _damage(source, "its zip archive"):
            zipped = zipfile.ZipFile(file)
        with zipped:
            yield Archive(source, zipped)


def read_npz(source: Source) -> MatrixFile:
    """A scipy sparse matrix, a graph or one 2-D array, with labels ``y`` if there are any."""
    with open_archive(source) as archive:
        if "format" in archive and "shape" in archive:
            return _labelled(archive, _read_sparse(archive))
        if "edges" in archive:
            return _read_graph(archive)
        return _labelled(archive, _read_single(archive))


def _labelled(archive: Archive, data: np.ndarray | sp.csr_array) -> MatrixFile:
    labels = None
    if "y" in archive:
        labels = as_labels(archive.source, archive.get("y"), "array 'y'", data.shape[0])
    return MatrixFile(data, "matrix", None, labels)


def _read_single(archive: Archive) -> np.ndarray:
    named = [name for name in NAMED if name in archive]
    others = [name for name in archive.members if name != "y"]
    if len(named) != 1 and len(others) != 1:
        raise archive.source.error(
            f"its archive holds {shown(', '.join(sorted(archive.members)))}, and exactly one of"
            f" {', '.join(NAMED)} (or a single array) is needed"
        )
    name = (named if len(named) == 1 else others)[0]
    return as_float(archive.source, archive.get(name), f"array {shown(name)}")


def _read_sparse(archive: Archive) -> sp.csr_array:
    source = archive.source
    kind = archive.get("format")
    form = str(as_text(source, kind.reshape(-1), "array 'format'")[0]) if kind.ndim == 0 else ""
    sizes = as_integers(source, archive.get("shape"), "array 'shape'")
    if sizes.size != 2:
        raise source.error(f"its sparse matrix has {sizes.size} dimensions, and 2 are needed")
    shape = (int(sizes[0]), int(sizes[1]))
    if form not in ("csr", "csc", "coo"):
        raise source.error(f"its sparse format is {shown(form)}; save it as csr, csc or coo")
    values = as_float(source, archive.get("data"), "array 'data'", 1, SPARSE_NAN_ADVICE)
    check_dimensions(source, shape, values.size)
    if form == "coo":
        rows, columns = (_indices(archive, name, values.size) for name in ("row", "col"))
        _check_below(source, rows, shape[0], "row")
        _check_below(source, columns, shape[1], "col")
        return from_coordinates(source, shape, rows, columns, values)
    major, minor = shape if form == "csr" else shape[::-1]
    indices = _indices(archive, "indices", values.size)
    _check_below(source, indices, minor, "indices")
    starts = _indices(archive, "indptr", major + 1)
    if starts[0] != 0 or starts[-1] != values.size or (np.diff(starts) < 0).any():
        raise source.error("array 'indptr' does not rise from 0 to the number of entries")
    build = sp.csr_array if form == "csr" else sp.csc_array
    matrix = build((values, indices, starts), shape=shape).tocsr()
    matrix.sum_duplicates()
    check_finite(source, matrix.data)
    return matrix


def _indices(archive: Archive, name: str, size: int) -> np.ndarray:
    array = as_integers(archive.source, archive.get(name), f"array {name!r}")
    if array.size != size:
        raise archive.source.error(f"array {name!r} holds {array.size} values, not {size}")
    return array


def _check_below(source: Source, array: np.ndarray, bound: int, name: str) -> None:
    if array.max() >= bound:
        raise source.error(f"array {name!r} holds {array.max()}, beyond the {bound} there are")


def _read_graph(archive: Archive) -> MatrixFile:
    """A graph: nodes 0..n-1 where ``n`` or ``y`` tells how many, compacted otherwise."""
    source = archive.source
    edges = as_integers(source, archive.get("edges"), "array 'edges'", ndim=2)
    if edges.shape[1] != 2:
        raise source.error(f"array 'edges' has {edges.shape[1]} columns, and 2 are needed")
    weights = None
    if "weights" in archive:
        weights = as_float(source, archive.get("weights"), "array 'weights'", ndim=1)
        if weights.size != len(edges):
            raise source.error(f"array 'weights' holds {weights.size} values, not {len(edges)}")
    labels = as_labels(source, archive.get("y"), "array 'y'") if "y" in archive else None
    n = None if labels is None else labels.size
    if "n" in archive:
        stated = int(as_integers(source, archive.get("n").reshape(-1), "array 'n'")[0])
        if n not in (None, stated):
            raise source.error(f"array 'n' says {stated} nodes and 'y' labels {n}")
        n = stated
    names = None
    if n is None:
        n, edges, names = compact(edges)
    _check_below(source, edges, n, "edges")
    if "node_names" in archive:
        names = as_labels(source, archive.get("node_names"), "array 'node_names'", n)
    data = adjacency(source, n, (edges[:, 0], edges[:, 1]), weights)
    return MatrixFile(data, "graph", names, labels)
