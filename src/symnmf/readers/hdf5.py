"""HDF5 files of biology: AnnData (.h5ad) and Hi-C contact matrices (.cool, .mcool)."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError, warn
from symnmf.readers.arrays import as_float
from symnmf.readers.matrix_file import MatrixFile
from symnmf.readers.source import CHUNK, Source, shown
from symnmf.readers.sparse_parts import check_dimensions, check_finite, from_coordinates
from symnmf.storage.indices import check_indices

#: HDF5's numbers of gzip, shuffle, Fletcher's checksum and h5py's lzf; other filters are plug-ins.
FILTERS = (1, 2, 3, 32000)


class Hdf5:
    """An opened file: arrays by their path, and nothing from other files."""

    def __init__(self, source: Source, file: Any, h5py: Any) -> None:
        self.source, self.file, self.h5py = source, file, h5py
        self.total = 0

    def find(self, path: str) -> Any:
        """What is at ``path``, or None; a link into another file is refused."""
        item = self.file
        for part in path.strip("/").split("/"):
            link = item.get(part, getlink=True) if isinstance(item, self.h5py.Group) else None
            if link is None:
                return None
            if not isinstance(link, self.h5py.HardLink):
                raise self.source.error(f"{shown(path)} is a link; copy what it leads to")
            item = item[part]
        return item

    def array(self, path: str) -> np.ndarray:
        """The array at ``path``, read within the limits of the file."""
        data = self.find(path)
        if not isinstance(data, self.h5py.Dataset):
            raise self.source.error(f"it has no array {shown(path)}, which it needs")
        plan = data.id.get_create_plist()
        filters = [plan.get_filter(place)[0] for place in range(plan.get_nfilters())]
        if data.is_virtual or plan.get_external_count():
            raise self.source.error(f"{shown(path)} keeps its numbers in other files")
        if any(number not in FILTERS for number in filters):
            raise self.source.error(
                f"{shown(path)} is compressed by a plug-in; write the file again with gzip"
            )
        self.total += math.prod(data.shape) * max(data.dtype.itemsize, 8)
        self.source.check_growth(self.total)
        return self._texts(data) if data.dtype.kind == "O" else np.asarray(data[()])

    def _texts(self, data: Any) -> np.ndarray:
        """An array of texts, some at a time: one long text may be referred to many times."""
        if data.ndim != 1 or self.h5py.check_string_dtype(data.dtype) is None:
            raise self.source.error(f"{shown(data.name)} holds neither numbers nor names")
        at_once = max(16, min(2**16, 2**30 // self.source.size))
        parts = []
        for start in range(0, len(data), at_once):
            parts.append(data[start : start + at_once])
            self.total += sum(map(len, parts[-1]))
            self.source.check_growth(self.total)
        return np.concatenate(parts) if parts else np.empty(0, dtype=object)

    def names(self, path: str) -> np.ndarray:
        """The texts at ``path``."""
        texts = self.array(path)
        found = np.empty(len(texts), dtype=object)
        found[:] = [
            text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
            for text in texts.tolist()
        ]
        return found


@contextmanager
def opened_hdf5(source: Source) -> Iterator[Hdf5]:
    """The file, closed at the end; whatever is wrong inside becomes one sentence."""
    try:
        import h5py
    except ImportError:
        raise InputError(
            f"{source.ending} files need h5py: pip install 'symnmf[blocks]'."
        ) from None
    with tempfile.TemporaryFile() as spool:
        if source.compressed:  # HDF5 needs a file one can seek in
            while chunk := source.read(CHUNK):
                spool.write(chunk)
        content = spool if source.compressed else source.raw
        _check_heaps(source, content)
        try:
            with h5py.File(content, "r") as file:
                yield Hdf5(source, file, h5py)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # the library raises whatever it stumbles over
            raise source.error(f"it is not a readable HDF5 file ({shown(error, 200)})") from error


#: How a heap of texts begins in an HDF5 file, and its version; then come three zeros and its size.
HEAP = b"GCOL\1\0\0\0"

#: Most bytes of a heap that are looked at; the library makes them of 4 KB unless a text is longer.
MOST_OF_HEAP = CHUNK


def _check_heaps(source: Source, content: Any) -> None:
    """Refuse a heap whose free space has no size: the library would go over it for ever."""
    content.seek(0)
    kept, read = b"", 0
    while chunk := content.read(CHUNK):
        begin, searched = read - len(kept), kept + chunk
        read += len(chunk)
        place = searched.find(HEAP)
        while place >= 0:
            if _never_ends(content, begin + place):
                raise source.error("it is not a readable HDF5 file (free space without a size)")
            place = searched.find(HEAP, place + 1)
        content.seek(read)
        kept = searched[1 - len(HEAP) :]
    content.seek(0)


def _never_ends(content: Any, place: int) -> bool:
    """Whether one of the texts in a heap is free space of size 0; sizes have 8 bytes."""
    content.seek(place + len(HEAP))
    size = int.from_bytes(content.read(8), "little")
    heap = content.read(max(0, min(size - 16, MOST_OF_HEAP)))
    at = 0
    while at + 16 <= len(heap):
        needed = int.from_bytes(heap[at + 8 : at + 16], "little")
        if heap[at : at + 2] != b"\0\0":
            needed = 16 + (needed + 7) // 8 * 8
        if needed == 0:
            return True
        at += needed
    return False


# AnnData ----------------------------------------------------------------------------------------

#: Where a graph or the coordinates of cells are looked for, in this order.
GRAPHS = ("obsp/connectivities", "obsp/neighbors_connectivities")
POINTS = ("obsm/X_pca", "X")


def read_h5ad(source: Source) -> MatrixFile:
    """The neighbour graph of the cells if there is one, else their PCA or X, with their names.

    The graph is what ``scanpy.pp.neighbors`` writes.
    """
    with opened_hdf5(source) as file:
        names = _index(file, "obs")
        for path in (*GRAPHS, *POINTS):
            if (item := file.find(path)) is None:
                continue
            data = _matrix(file, path, item)
            if data.shape[0] != len(names):
                raise source.error(
                    f"{shown(path)} has {data.shape[0]} rows, but there are {len(names)} cells"
                )
            columns = None
            if path == "X" and file.find("var") is not None:
                columns = _index(file, "var").tolist()
            kind = "graph" if path in GRAPHS else "matrix"
            if kind == "graph" and not _is_symmetric(data):
                raise source.error(f"{shown(path)} is not symmetric, as a graph of neighbours is")
            return MatrixFile(data, kind, names, columns=columns, part=path)
    raise source.error("it has neither a neighbour graph nor X")


def _is_symmetric(A: np.ndarray | sp.csr_array) -> bool:
    return A.shape[0] == A.shape[1] and not (A != A.T).sum()


def _index(file: Hdf5, table: str) -> np.ndarray:
    group = file.find(table)
    if group is None:
        raise file.source.error(f"it has no table {shown(table)}, as an AnnData has")
    key = group.attrs.get("_index", "_index")
    return file.names(f"{table}/{key}")


def _matrix(file: Hdf5, path: str, item: Any) -> np.ndarray | sp.csr_array:
    source = file.source
    if isinstance(item, file.h5py.Dataset):
        return as_float(source, file.array(path), path)
    kind = str(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", "")))
    shape = tuple(int(size) for size in item.attrs.get("shape", item.attrs.get("h5sparse_shape")))
    data, indices, indptr = (file.array(f"{path}/{name}") for name in ("data", "indices", "indptr"))
    make = {"csr": sp.csr_array, "csc": sp.csc_array}.get(kind[:3])
    if make is None or len(shape) != 2:
        raise source.error(f"{shown(path)} is stored as {shown(kind)}, and csr or csc is read")
    check_dimensions(source, (shape[0], shape[1]), data.size)
    matrix = make((data.astype(np.float64), indices, indptr), shape=shape)
    try:  # SciPy's own check looks at nothing if the last of indptr is 0, or below
        check_indices(matrix, "it")
    except InputError as error:
        raise source.error(f"{shown(path)} is damaged ({str(error).rstrip('.')})") from error
    check_finite(source, matrix.data)
    return sp.csr_array(matrix)


# Hi-C -------------------------------------------------------------------------------------------


def read_cool(source: Source) -> MatrixFile:
    """A contact matrix, balanced by its weights where it has them; bins are called chr:start-end.

    Contacts of bins that balancing leaves out are left out.
    """
    with opened_hdf5(source) as file:
        root = (source.part or "").strip("/")
        if not root and file.find("resolutions") is not None:
            known = sorted(file.find("resolutions"), key=lambda name: (len(name), name))
            raise source.error(
                f"it holds the resolutions {shown(', '.join(known), 200)}; name one, as in"
                f" {source.path}::resolutions/{known[-1] if known else 10000}"
            )
        return _contacts(file, f"{root}/" if root else "")


def _contacts(file: Hdf5, root: str) -> MatrixFile:
    source = file.source
    starts, ends = (file.array(f"{root}bins/{name}") for name in ("start", "end"))
    chromosomes = file.names(f"{root}chroms/name")
    which = file.array(f"{root}bins/chrom").astype(np.int64)
    n = len(starts)
    rows, columns = (file.array(f"{root}pixels/bin{k}_id").astype(np.int64) for k in (1, 2))
    counts = file.array(f"{root}pixels/count").astype(np.float64)
    places = np.concatenate([rows, columns])
    sizes = {len(rows), len(columns), len(counts)}, {n, len(ends), len(which)}
    wrong = which.size and not 0 <= which.min() <= which.max() < len(chromosomes)
    if wrong or any(len(size) > 1 for size in sizes):
        raise source.error("its tables of bins and pixels do not belong together")
    if places.size and not 0 <= places.min() <= places.max() < n:
        raise source.error(f"a pixel leads to a bin that is none of the {n}")
    check_dimensions(source, (n, n), counts.size)
    values = counts * _balance(file, root, n, rows, columns)
    kept = np.isfinite(values)
    rows, columns, values = rows[kept], columns[kept], values[kept]
    upper = from_coordinates(source, (n, n), rows, columns, values)
    off = upper.copy()
    off.setdiag(0)
    mirrored = (abs(upper - upper.T) > 0).nnz > 0  # else both halves are stored
    A = sp.csr_array(upper + off.T) if mirrored else upper
    A.eliminate_zeros()
    names = np.empty(n, dtype=object)
    names[:] = [
        f"{chromosomes[k]}:{start}-{end}"
        for k, start, end in zip(which.tolist(), starts.tolist(), ends.tolist(), strict=True)
    ]
    return MatrixFile(A, "graph", names, part=root.strip("/") or None)


def _balance(
    file: Hdf5, root: str, n: int, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray | float:
    """What each contact is multiplied by."""
    source = file.source
    item = file.find(f"{root}bins/weight")
    if source.balance is False:
        return 1.0
    if item is None:
        if source.balance:
            raise source.error("it has no weights to balance by; run cooler balance")
        warn(
            f"file {shown(source.path, 300)} has no weights to balance by, so its counts were "
            f"taken as they are; cooler balance adds them.",
            UserWarning,
        )
        return 1.0
    weights = file.array(f"{root}bins/weight").astype(np.float64)
    if len(weights) != n:
        raise source.error(f"it has {n} bins and {len(weights)} weights")
    if item.attrs.get("divisive_weights", False):
        weights = 1 / weights
    return weights[rows] * weights[columns]
