"""HDF5 files: their chunks are taken from the library as they are stored, and decoded here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.archives import open_regular
from symnmf.errors import InputError
from symnmf.storage.chunked import Chunked
from symnmf.storage.decoding import decompressed, unshuffled
from symnmf.storage.stores import ArrayFile, ChunkedArray, Store

#: HDF5's numbers of the filters that are read here.
DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3
FILTERS = {DEFLATE: "gzip", SHUFFLE: "shuffle", FLETCHER32: "fletcher32"}
#: Bytes by which an encoded chunk may exceed the decoded one, besides a part of it.
SPARE = 2**16


def open_hdf5(path: Path, h5py: Any) -> Store:
    """Open the only two-dimensional array of a file."""
    found: list[Any] = []

    def look(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim == 2:
            found.append(item)

    try:
        open_regular(path).close()
        file = h5py.File(path, "r")
        file.visititems(look)  # which follows no link into another file
        names = [str(item.name) for item in found]
        if len(found) == 1:
            return _open_dataset(found[0], path, h5py)
    except InputError:
        raise
    except Exception as error:  # whatever is wrong inside
        said = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise InputError(
            f"file {str(path)!r} is not a readable HDF5 file ({said[:200]})."
        ) from error
    raise InputError(
        f"file {str(path)!r} holds {len(found)} two-dimensional arrays "
        f"({', '.join(names)[:200] or 'none'}); pass the h5py dataset itself."
    )


def _open_dataset(dataset: Any, path: Path, h5py: Any) -> Store:
    title = f"HDF5 array {str(path)!r}"
    plan = dataset.id.get_create_plist()
    if dataset.is_virtual or plan.get_external_count():
        raise InputError(
            f"{title} keeps its numbers in other files; copy it into one file, or pass the h5py "
            f"dataset itself if you trust them."
        )
    filters = [plan.get_filter(place)[0] for place in range(plan.get_nfilters())]
    unknown = [number for number in filters if number not in FILTERS]
    if unknown:
        raise InputError(
            f"{title} is compressed by filter {unknown[0]}, and only {', '.join(FILTERS.values())} "
            f"are read here; write it again, or pass the h5py dataset itself if you trust it."
        )
    dtype = np.dtype(dataset.dtype)
    if dtype.kind not in "biuf" or dataset.id.get_type() != h5py.h5t.py_create(dtype, logical=True):
        raise InputError(f"{title} holds {dtype}, and not as plain numbers; write it again.")
    if dataset.chunks is not None:
        return HDF5Chunks(dataset, title, path, filters)
    offset = dataset.id.get_offset()
    if offset is not None and not filters:
        # numbers in one run: read them as those of any other file, within what it holds
        return ArrayFile(path, tuple(dataset.shape), dtype, offset)
    store = ChunkedArray(dataset, title)
    if store.n * store.n * dtype.itemsize > 2**16:  # a compact array; others are never allocated
        raise InputError(f"{title} says that it has {store.n} rows, and stores none of them.")
    return store


class HDF5Chunks(Chunked):
    """An HDF5 dataset in chunks."""

    def __init__(self, dataset: Any, title: str, path: Path, filters: list[int]) -> None:
        self.dataset, self.filters = dataset, filters
        dtype = np.dtype(dataset.dtype)
        super().__init__(title, tuple(dataset.shape), tuple(dataset.chunks), dtype, 0)
        self.fill = np.asarray(dataset.fillvalue).astype(dtype)
        self.file_size = os.stat(path).st_size
        self.check_plausible(self.file_size)

    def chunk(self, i: int, j: int) -> np.ndarray | None:
        origin = (i * self.chunks[0], j * self.chunks[1])
        info = self.dataset.id.get_chunk_info_by_coord(origin)
        if info.byte_offset is None:
            return None
        most = self.chunk_bytes + self.chunk_bytes // 8 + SPARE
        if info.size > min(most, self.file_size):
            raise ValueError(f"its {info.size} bytes are not those of a chunk")
        skipped, content = self.dataset.id.read_direct_chunk(origin)
        return self._decoded(bytes(content), skipped)

    def _decoded(self, content: bytes, skipped: int) -> np.ndarray:
        for place in reversed(range(len(self.filters))):
            if skipped >> place & 1:
                continue
            number = self.filters[place]
            if number == FLETCHER32:
                content = _without_fletcher32(content)
            elif number == SHUFFLE:
                content = unshuffled(content, self.stored.itemsize)
            else:
                content = decompressed(content, "zlib", self._size_after(place, skipped))
        if len(content) != self.chunk_bytes:
            raise ValueError(f"it holds {len(content)} bytes, and a chunk has {self.chunk_bytes}")
        return np.frombuffer(content, self.stored).reshape(self.chunks)

    def _size_after(self, place: int, skipped: int) -> int:
        """Bytes that a filter got: those of a chunk, and of checksums that were added before it."""
        before = [n for k, n in enumerate(self.filters[:place]) if not skipped >> k & 1]
        return self.chunk_bytes + 4 * before.count(FLETCHER32)


def _without_fletcher32(content: bytes) -> bytes:
    """Compare the checksum at the end of a chunk and leave it out."""
    body = content[:-4]
    if len(content) < 4 or int.from_bytes(content[-4:], "little") != _fletcher32(body):
        raise ValueError("its checksum is wrong")
    return body


def _fletcher32(content: bytes) -> int:
    """Fletcher's checksum as HDF5 has it: over big-endian pairs of bytes, modulo 65535."""
    pairs = np.frombuffer(content, ">u2", len(content) // 2).astype(np.uint64)
    first = second = np.uint64(0)
    for start in range(0, len(pairs), 2**15):
        part = pairs[start : start + 2**15]
        weights = np.arange(len(part), 0, -1, dtype=np.uint64)
        second = (second + first * np.uint64(len(part)) + (part * weights).sum()) % np.uint64(65535)
        first = (first + part.sum()) % np.uint64(65535)
    if len(content) % 2:
        first = (first + np.uint64(content[-1] << 8)) % np.uint64(65535)
        second = (second + first) % np.uint64(65535)
    return int(second) << 16 | int(first)
