"""Arrays on disk that tiles are read from."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from symnmf.archives import open_regular, read_header
from symnmf.errors import InputError
from symnmf.storage.border import check_shape
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.tiles import Block, Tile


class Store(ABC):
    """A matrix on disk, of which tiles can be read.

    Attributes
    ----------
    n : int
    dtype : numpy dtype
        float32 or float64: what tiles are given as.
    title : str
        What messages call it.
    grain : int
        Rows and columns that are read at once, however few of them are asked for.
    """

    n: int
    dtype: np.dtype
    title: str
    grain: int = 1
    is_sparse: ClassVar[bool] = False
    slices: ClassVar[bool] = True  # whether any rectangle can be read, the lower triangle too

    @abstractmethod
    def tiles(self, size: int) -> list[Tile]:
        """Cut the upper triangle into tiles of at most ``size`` bytes, in reading order."""

    @abstractmethod
    def read(self, tile: Tile, buffer: np.ndarray | None = None) -> Block:
        """Return a tile; ``buffer``, of at least as many numbers, may hold it."""

    def where(self, tile: Tile) -> str:
        """Name a tile for an error message."""
        return str(tile)

    def _given(self, array: np.ndarray, tile: Tile, buffer: np.ndarray | None) -> np.ndarray:
        if array.shape != tile.shape:
            raise InputError(
                f"{self.title} gives {array.shape[0]} x {array.shape[1]} numbers for {tile}; it "
                f"was changed or cut short, so write it again."
            )
        if buffer is None:
            return np.ascontiguousarray(array, dtype=self.dtype)
        copy = buffer[: array.size].reshape(array.shape)
        np.copyto(copy, array, casting="unsafe")
        return copy


def panels(n: int, most: int, rows: int = 1, columns: int = 1) -> list[Tile]:
    """Cut the upper triangle into panels of whole rows, from the diagonal on.

    Parameters
    ----------
    n : int
    most : int
        Numbers in a panel.
    rows, columns : int
        Rows and columns of the chunks that are read at once. Panels are whole chunks high, and
        where even that is more than ``most``, they are cut into tiles of whole chunks.
    """
    tiles = []
    top = 0
    while top < n:
        height = max(rows, most // (n - top) // rows * rows)
        bottom = min(top + height, n)
        width = max(columns, most // (bottom - top) // columns * columns)
        # a tile that holds a part of the diagonal holds all columns of its square
        edge = max(top + width, bottom)
        tiles.append(Tile(top, bottom, top, min(edge, n)))
        for left in range(edge, n, width):
            tiles.append(Tile(top, bottom, left, min(left + width, n)))
        top = bottom
    return tiles


def squares(n: int, most: int, grain: int = 1) -> list[Tile]:
    """Cut the upper triangle into squares of at most ``most`` numbers, or of whole grains."""
    if grain * grain > most:
        grain = 1
    side = max(grain, int(np.sqrt(most)) // grain * grain)
    edges = [*range(0, n, side), n]
    return [
        Tile(edges[i], edges[i + 1], edges[j], edges[j + 1])
        for i in range(len(edges) - 1)
        for j in range(i, len(edges) - 1)
    ]


def chunk_tiles(
    title: str, n: int, chunks: tuple[int, int], sizes: tuple[int, int], size: int
) -> list[Tile]:
    """Cut a matrix in chunks into tiles of at most ``size`` bytes, along its chunks if they fit.

    ``sizes`` are the bytes of a number as it is stored and as it is given.
    """
    one = chunks[0] * chunks[1] * sizes[0]
    if one > size // 2:  # an encoded chunk and the decoded one are there at the same time
        raise InputError(
            f"{title} has chunks of {one} bytes, and the memory allowed holds blocks of {size}; "
            f"allow more, or write it with smaller chunks."
        )
    most = max(1, size // (2 * sizes[1]))
    if max(chunks) ** 2 > most:  # a tile along long chunks would be larger than allowed
        return squares(n, most)
    return panels(n, most, *chunks)


class ArrayFile(Store):
    """A C- or Fortran-ordered array in a .npy file, or anywhere in a file that was mapped.

    Tiles are read, not mapped: mapped pages would count as memory of the process.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype, offset: int) -> None:
        self.path, self.stored, self.offset = path, dtype, offset
        self.title = f"file {str(path)!r}"
        check_shape(shape, self.title)
        self.dtype = float_dtype(dtype, self.title)
        self.n = shape[0]
        size = path.stat().st_size
        if size < offset + self.n * self.n * dtype.itemsize:
            whole = (size - offset) // max(1, self.n * dtype.itemsize)
            raise InputError(
                f"{self.title} ends after {whole} of its {self.n} rows; it was cut short, so write "
                f"it again."
            )

    @classmethod
    def open(cls, path: Path) -> ArrayFile:
        """Read the header of a .npy file."""
        try:
            with open_regular(path) as file:
                shape, _, dtype = read_header(file)
                offset = file.tell()
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"file {str(path)!r} cannot be read ({error.strerror}).") from error
        except Exception as error:  # NumPy parses headers as Python, and may stumble anyhow
            said = str(error).rstrip(".")[:120]
            raise InputError(f"file {str(path)!r} is not a .npy array ({said}).") from error
        if dtype.hasobject:
            raise InputError(f"file {str(path)!r} holds Python objects; save an array of numbers.")
        return cls(path, shape, dtype, offset)

    @classmethod
    def mapped(cls, array: np.memmap) -> ArrayFile | None:
        """Return the file behind a memory map; None where the array is but a part of the map."""
        if array.filename is None or not isinstance(array.base, mmap.mmap):
            return None
        if array.mode == "c":  # changes to a copy are not in the file
            return None
        return cls(Path(array.filename), array.shape, array.dtype, array.offset)

    def tiles(self, size: int) -> list[Tile]:
        converted = 0 if self.stored == self.dtype else self.stored.itemsize
        return panels(self.n, max(1, size // (self.dtype.itemsize + converted)))

    def read(self, tile: Tile, buffer: np.ndarray | None = None) -> np.ndarray:
        rows, columns = tile.shape
        same = self.stored == self.dtype
        if buffer is not None and same:
            values = buffer[: rows * columns].reshape(tile.shape)
        else:
            values = np.empty(tile.shape, self.stored)
        self._read_runs(values.reshape(1, -1) if columns == self.n else values, tile)
        return values if same else self._given(values, tile, buffer)

    def _read_runs(self, runs: np.ndarray, tile: Tile) -> None:
        starts = [
            self.offset + ((tile.top + row) * self.n + tile.left) * self.stored.itemsize
            for row in range(len(runs))
        ]
        try:
            with self.path.open("rb", buffering=0) as file:
                if len(runs) > 1:
                    _announce(file, starts, runs[0].nbytes)
                for row, start in enumerate(starts):
                    file.seek(start)
                    if not filled(file, runs[row]):
                        raise InputError(
                            f"{self.title} ends in row {tile.top + row} of its {self.n}; it was "
                            f"cut short, so write it again."
                        )
        except OSError as error:
            raise InputError(
                f"{self.title} cannot be read any more ({error.strerror}), at {tile}."
            ) from error


def filled(file: Any, array: np.ndarray) -> bool:
    """Read a whole array from where a file stands; False where the file ends before."""
    rest = memoryview(array.data).cast("B")
    while rest:
        count = file.readinto(rest)
        if not count:
            return False
        rest = rest[count:]
    return True


def _announce(file: Any, starts: list[int], size: int) -> None:
    """Tell the system which parts of a file are read next, if it supports that.

    The rows of a tile are not contiguous. If the disk gets all requests at once, it reads them in
    one go. The read-ahead of the system would wait for each, and read what is between them.
    """
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for start in starts:
            os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_WILLNEED)


class ChunkedArray(Store):
    """A Zarr array or an HDF5 dataset."""

    def __init__(self, array: Any, title: str) -> None:
        sound = all(hasattr(array, part) for part in ("chunks", "dtype", "shape"))
        if not sound or callable(array.chunks):  # as a matrix of ours has it
            raise InputError(
                f"{title} must be the path of an array on disk or of a folder of blocks, a memory "
                f"map, a Zarr or an HDF5 array, got {type(array).__name__}."
            )
        self.array, self.title = array, title
        check_shape(tuple(array.shape), title)
        self.n = int(array.shape[0])
        self.dtype = float_dtype(np.dtype(array.dtype), title)
        rows, columns = array.chunks or (1, 1)
        self.chunks = (int(rows), int(columns))
        self.grain = max(self.chunks)

    def tiles(self, size: int) -> list[Tile]:
        # a part of a memory map has no chunks that are read as a whole
        sizes = np.dtype(self.array.dtype).itemsize, self.dtype.itemsize
        return chunk_tiles(self.title, self.n, self.chunks, sizes, size)

    def read(self, tile: Tile, buffer: np.ndarray | None = None) -> np.ndarray:
        try:
            found = self.array[tile.top : tile.bottom, tile.left : tile.right]
        except Exception as error:  # whatever the codec, the store or the file system raise
            raise InputError(
                f"{self.title} cannot be read at {tile} ({type(error).__name__}: "
                f"{str(error).rstrip('.')}); write it again."
            ) from error
        return self._given(np.asarray(found), tile, buffer)

    @classmethod
    def of_map(cls, array: np.memmap) -> ChunkedArray:
        """Take a part of a memory map."""
        return cls(_Unchunked(array), "the memory map X")


class _Unchunked:
    """A part of a memory map, which has no chunks."""

    chunks = None

    def __init__(self, array: np.memmap) -> None:
        self.shape, self.dtype, self._array = array.shape, array.dtype, array

    def __getitem__(self, key: Any) -> np.ndarray:
        return np.asarray(self._array[key])
