"""A folder of blocks of the upper triangle, and how one is written."""

from __future__ import annotations

import contextlib
import json
import math
import os
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from symnmf.archives import open_regular, read_header, read_members, unpacked_size
from symnmf.errors import InputError
from symnmf.outputs import write_atomically
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.names import write_names
from symnmf.storage.stores import Store, filled
from symnmf.storage.tiles import Block, Tile

MANIFEST = "manifest.json"
FORMAT = "symnmf-blocks-1"

#: Rows a folder may have however little it stores, and beyond that for each byte of its blocks.
FREE_ROWS, ROWS_PER_BYTE = 2**20, 8


class BlockFolder(Store):
    """A folder of blocks of the upper triangle, ``I-J.npz`` (CSR) or ``I-J.npy``, and a manifest.

    The manifest is JSON: ``format``, ``n``, ``dtype``, ``bounds`` (the rows at which blocks begin,
    and n) and ``blocks``, the pairs I, J with I <= J that are stored; others are zero. A block on
    the diagonal is whole, with both its triangles. ``checksums`` may hold a CRC-32 of the numbers
    of each dense block, row by row; it is compared when a block is first read. npz files have their
    own.
    """

    slices = False

    def __init__(self, folder: Path) -> None:
        self.folder, self.title = folder, f"folder {str(folder)!r}"
        try:
            with open_regular(folder / MANIFEST) as file:
                manifest = json.loads(file.read())
            if manifest["format"] != FORMAT:
                raise ValueError(f"its format is {str(manifest['format'])[:40]!r}, not {FORMAT!r}")
            self.n = int(manifest["n"])
            self.dtype = float_dtype(np.dtype(str(manifest["dtype"])), self.title)
            bounds = [int(bound) for bound in manifest["bounds"]]
            pairs = [(int(i), int(j)) for i, j in manifest["blocks"]]
            self.kind = str(manifest["kind"])
            checksums = [int(checksum) for checksum in manifest.get("checksums", [])]
            if bounds[0] != 0 or bounds[-1] != self.n or (np.diff(bounds) < 1).any():
                raise ValueError(f"its bounds do not rise from 0 to {self.n}")
            last = len(bounds) - 1
            if any(not 0 <= i <= j < last for i, j in pairs) or len(set(pairs)) < len(pairs):
                raise ValueError("its blocks are not pairs I <= J, each once")
            if checksums and len(checksums) != len(pairs):
                raise ValueError("it has not one checksum for each block")
            if self.kind not in ("csr", "dense"):
                raise ValueError(f"its kind is {self.kind[:40]!r}, not 'csr' or 'dense'")
        except InputError:
            raise
        except OSError as error:
            raise InputError(
                f"{self.title} has no readable {MANIFEST} ({error.strerror}); symnmf convert "
                f"writes such folders."
            ) from error
        except Exception as error:  # JSON may hold anything, in any depth
            raise InputError(
                f"{self.title}: its {MANIFEST} is not that of a folder of blocks ({error}); "
                f"symnmf convert writes such folders."
            ) from error
        self._files = {
            Tile(bounds[i], bounds[i + 1], bounds[j], bounds[j + 1]): self._file(i, j)
            for i, j in sorted(pairs)
        }
        named = zip(pairs, checksums, strict=False)  # none of them in a folder made by hand
        self._unread = {self._file(i, j): checksum for (i, j), checksum in named}
        self._sizes = {path: self._size(path) for path in self._files.values()}
        if self.n > max(FREE_ROWS, ROWS_PER_BYTE * sum(self._sizes.values())):
            raise InputError(
                f"{self.title}: its {MANIFEST} tells of {self.n} rows, far more than its blocks "
                f"account for; convert the matrix again."
            )

    def _file(self, i: int, j: int) -> Path:
        return self.folder / f"{i}-{j}.{'npz' if self.kind == 'csr' else 'npy'}"

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        return self.kind == "csr"

    @property
    def largest_block(self) -> int:
        """Bytes of the largest block."""
        return max(self._sizes.values(), default=0)

    def _size(self, path: Path) -> int:
        """Bytes of one block in memory; SciPy may have compressed it."""
        try:
            with open_regular(path) as file:
                return unpacked_size(file) if self.is_sparse else os.fstat(file.fileno()).st_size
        except OSError as error:
            raise InputError(
                f"{self.title} misses its block {path.name} ({error.strerror}); convert the matrix "
                f"again."
            ) from error
        except Exception as error:
            raise self._damaged(path.name, error) from error

    def _damaged(self, name: str, error: Exception) -> InputError:
        return InputError(
            f"{self.title}: block {name} is damaged or cut short "
            f"({str(error).rstrip('.')[:120]}); convert the matrix again."
        )

    def tiles(self, size: int) -> list[Tile]:
        if self.largest_block > size:
            raise InputError(
                f"{self.title} has blocks of up to {self.largest_block} bytes, and the memory "
                f"allowed holds blocks of {size}; allow more, or convert the matrix again with "
                f"less memory."
            )
        return list(self._files)

    def where(self, tile: Tile) -> str:
        return f"block {self._files[tile].name} ({tile})"

    def read(self, tile: Tile, buffer: np.ndarray | None = None) -> Block:
        path = self._files[tile]
        try:
            with open_regular(path) as file:
                found: Any = self._sparse(file, path) if self.is_sparse else _dense(file, buffer)
        except FileNotFoundError as error:
            raise InputError(
                f"{self.title} misses its block {path.name}; convert the matrix again."
            ) from error
        except Exception as error:  # damaged bytes make the libraries raise whatever they run into
            raise self._damaged(f"{path.name} ({tile})", error) from error
        what = None
        if found.shape != tile.shape:
            got, due = (" x ".join(map(str, shape)) for shape in (found.shape, tile.shape))
            what = f"is {got} and should be {due}"
        elif found.dtype != self.dtype:
            what = f"holds {found.dtype} and should hold {self.dtype}"
        elif self.is_sparse and not _whole_csr(found):
            what = "is not a whole CSR matrix"
        if what is not None:
            raise InputError(f"{self.title}: {self.where(tile)} {what}; convert the matrix again.")
        if self.is_sparse:
            return found
        whole = np.ascontiguousarray(found)
        if path in self._unread:
            if zlib.crc32(whole.data) != self._unread[path]:
                raise self._damaged(f"{path.name} ({tile})", ValueError("its checksum is wrong"))
            self._unread.pop(path, None)
        return whole

    def _sparse(self, file: IO[bytes], path: Path) -> Any:
        stored = read_members(file, most=self._sizes[path])
        if stored["format"].tolist() not in (b"csr", "csr"):
            raise ValueError("it is not in CSR format")
        arrays = stored["data"], stored["indices"], stored["indptr"]
        rows, columns = stored["shape"].tolist()
        return sp.csr_array(arrays, shape=(rows, columns))


def _dense(file: IO[bytes], buffer: np.ndarray | None) -> np.ndarray:
    """Read an array, into ``buffer`` where it fits: memory that is there already."""
    shape, by_columns, dtype = read_header(file)
    count = math.prod(shape)
    if os.fstat(file.fileno()).st_size < file.tell() + count * dtype.itemsize:
        raise ValueError(f"it ends before its {' x '.join(map(str, shape))} numbers do")
    if buffer is None or buffer.dtype != dtype or buffer.size < count or by_columns:
        file.seek(0)
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array
    values = buffer[:count]
    if not filled(file, values):
        raise ValueError("it was cut short while it was read")
    return values.reshape(shape)


def _whole_csr(matrix: Any) -> bool:
    """Whether the index arrays of a CSR matrix stay inside it; kernels rely on that."""
    starts, indices = matrix.indptr, matrix.indices
    if len(starts) != matrix.shape[0] + 1 or starts[0] != 0 or starts[-1] != len(matrix.data):
        return False
    if len(indices) != len(matrix.data) or (np.diff(starts) < 0).any():
        return False
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < matrix.shape[1])


class FolderWriter:
    """Writes a folder of blocks; its manifest comes last, so half a folder is not taken for one.

    Used in a ``with`` block, which removes whatever was written if it ends in an error.

    Parameters
    ----------
    folder : path
        Made where it is not there; refused where it holds anything.
    bounds : sequence of int
        The rows at which blocks begin, and n.
    dtype : numpy dtype
    kind : {"csr", "dense"}
    beside : str
        The name of something that the folder may hold already.
    """

    def __init__(
        self, folder: Path, bounds: list[int], dtype: np.dtype, kind: str, *, beside: str = ""
    ) -> None:
        self.folder, self.bounds = folder, bounds
        self.dtype, self.kind = np.dtype(dtype), kind
        self.pairs: list[tuple[int, int]] = []
        self.checksums: list[int] = []
        self.written: list[Path] = []
        self.made = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            others = [file for file in folder.iterdir() if file.name != beside]
        except OSError as error:
            raise InputError(
                f"folder {str(folder)!r} cannot be made ({error.strerror}); name another."
            ) from error
        if others:
            raise InputError(f"folder {str(folder)!r} is not empty; name a new one, or empty it.")

    def add(self, i: int, j: int, block: Block) -> None:
        """Write block (i, j), i <= j; nothing is stored of a sparse block without entries."""
        if self.kind == "dense":
            whole = np.ascontiguousarray(block, dtype=self.dtype)
            with self._new(f"{i}-{j}.npy") as file:
                header = np.lib.format.header_data_from_array_1_0(whole)
                np.lib.format.write_array_header_1_0(file, header)
                file.write(whole.data)  # NumPy's own way of writing says less about a full disk
            self.checksums.append(zlib.crc32(whole.data))
        elif block.nnz:
            whole = sp.csr_array(block, dtype=self.dtype)
            with self._new(f"{i}-{j}.npz") as file:
                sp.save_npz(file, whole, compressed=False)
        else:
            return
        self.pairs.append((i, j))

    def add_names(self, names: np.ndarray | None) -> None:
        """Write the names of the rows, if there are any."""
        if names is not None:
            self.written.append(write_names(self.folder, names))

    def _new(self, name: str) -> IO[bytes]:
        path = self.folder / name
        file = path.open("xb")
        self.written.append(path)
        return file

    def __enter__(self) -> FolderWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self.close()
                return
            except BaseException:
                self._discard()
                raise
        self._discard()

    def _discard(self) -> None:
        """Leave the folder as it was found."""
        for path in self.written:
            path.unlink(missing_ok=True)
        if self.made:
            with contextlib.suppress(OSError):
                self.folder.rmdir()

    def close(self) -> None:
        """Write the manifest."""
        manifest = {
            "format": FORMAT,
            "n": self.bounds[-1],
            "dtype": str(self.dtype),
            "kind": self.kind,
            "bounds": self.bounds,
            "blocks": self.pairs,
            "checksums": self.checksums,
        }
        content = json.dumps(manifest).encode("utf-8")
        write_atomically(self.folder / MANIFEST, lambda stream: stream.write(content))
