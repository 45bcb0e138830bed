"""Zarr arrays in folders, versions 2 and 3, read without the library.

The metadata of a folder may name any codec, and some of the library's run what a chunk holds. So
the metadata is read here first, and only what is known to be harmless is decoded.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.archives import open_regular
from symnmf.errors import InputError
from symnmf.storage.chunked import Chunked
from symnmf.storage.decoding import COMPRESSIONS, decompressed

VERSION_2, VERSION_3 = ".zarray", "zarr.json"
MOST_METADATA = 2**20
#: Bytes by which an encoded chunk may exceed the decoded one, besides a part of it.
SPARE = 2**16
ABSENT = 2**64 - 1
NUMBERS: tuple[str, ...] = ("bool", "float16", "float32", "float64")
NUMBERS += tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))


@dataclass(frozen=True)
class Encoding:
    """How a chunk was encoded.

    Attributes
    ----------
    dtype : numpy dtype
        With its byte order.
    by_columns : bool
    steps : tuple of str
        The name of a compression, "crc32c", or both, in this order.
    """

    dtype: np.dtype
    by_columns: bool
    steps: tuple[str, ...]

    def decode(self, content: bytes, shape: tuple[int, int]) -> np.ndarray:
        """Return a chunk from its bytes; whatever is wrong with them raises some exception."""
        size = shape[0] * shape[1] * self.dtype.itemsize
        for step in reversed(self.steps):
            if step == "crc32c":
                content = _without_checksum(content)
            else:
                content = decompressed(content, step, size)
        if len(content) != size:
            raise ValueError(f"it holds {len(content)} bytes, and a chunk has {size}")
        if self.by_columns:
            return np.frombuffer(content, self.dtype).reshape(shape[::-1]).T
        return np.frombuffer(content, self.dtype).reshape(shape)


@dataclass(frozen=True)
class Shards:
    """Chunks that are kept together in one file, with an index of where each is."""

    across: tuple[int, int]
    index_first: bool
    checked: bool

    @property
    def index_size(self) -> int:
        return 16 * self.across[0] * self.across[1] + (4 if self.checked else 0)


@dataclass(frozen=True)
class Layout:
    """What the metadata of an array says."""

    shape: tuple[int, ...]
    chunks: tuple[int, int]
    encoding: Encoding
    fill: Any
    prefix: str
    separator: str
    shards: Shards | None = None


class ZarrFolder(Chunked):
    """A Zarr array in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        title = f"Zarr array {str(folder)!r}"
        try:
            self.layout = _read_layout(folder)
        except InputError:
            raise
        except Exception as error:  # JSON may hold anything, in any depth
            said = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            raise InputError(
                f"{str(folder)!r} is not a readable Zarr array ({said.rstrip('.')[:160]}); write "
                f"it again, or open it with zarr and pass the array."
            ) from error
        layout = self.layout
        super().__init__(title, layout.shape, layout.chunks, layout.encoding.dtype, layout.fill)
        self._root = os.path.realpath(folder)
        self.check_plausible(_stored_bytes(folder))

    def chunk(self, i: int, j: int) -> np.ndarray | None:
        layout = self.layout
        if layout.shards is not None:
            content = self._from_shard(i, j, layout.shards)
        else:
            content = self._content(i, j, None)
        return None if content is None else layout.encoding.decode(content, layout.chunks)

    def _path(self, i: int, j: int) -> Path:
        return self.folder / f"{self.layout.prefix}{i}{self.layout.separator}{j}"

    def _content(self, i: int, j: int, part: tuple[int, int] | None) -> bytes | None:
        """The bytes of a file, or ``part`` of them (where, how many); None if there is none."""
        path = self._path(i, j)
        try:
            file = open_regular(path)
        except FileNotFoundError:
            return None
        with file:
            inside = os.path.realpath(path)
            if os.path.commonpath([self._root, inside]) != self._root:
                raise ValueError("it is a link to a file outside of the folder")
            size = os.fstat(file.fileno()).st_size
            most = self.chunk_bytes + self.chunk_bytes // 8 + SPARE
            start, count = part or (0, size)
            if start < 0:
                start += size
            if count > most or not 0 <= start <= start + count <= size:
                raise ValueError(f"its {count} bytes are not those of a chunk")
            file.seek(start)
            return file.read(count)

    def _from_shard(self, i: int, j: int, shards: Shards) -> bytes | None:
        high, wide = shards.across
        size = shards.index_size
        # an index is small beside its chunks, but read again for each: systems keep it in memory
        index = self._content(i // high, j // wide, (0 if shards.index_first else -size, size))
        if index is None:
            return None
        if shards.checked:
            index = _without_checksum(index)
        start, count = struct.unpack_from("<QQ", index, 16 * (i % high * wide + j % wide))
        if start == count == ABSENT:
            return None
        return self._content(i // high, j // wide, (start, count))


def _stored_bytes(folder: Path) -> int:
    """Bytes of the files in a folder, as far as they matter."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return total


def _without_checksum(content: bytes) -> bytes:
    if int.from_bytes(content[-4:], "little") != _crc32c(content[:-4]) or len(content) < 4:
        raise ValueError("its checksum is wrong")
    return content[:-4]


def _crc32c(content: bytes) -> int:
    for library, function in (("google_crc32c", "value"), ("crc32c", "crc32c")):
        try:
            return int(getattr(importlib.import_module(library), function)(content))
        except ImportError:
            continue
    raise ValueError("comparing its checksum needs google-crc32c: pip install google-crc32c")


def _read_layout(folder: Path) -> Layout:
    for name, read in ((VERSION_3, _version_3), (VERSION_2, _version_2)):
        try:
            file = open_regular(folder / name)
        except FileNotFoundError:
            continue
        with file:
            content = file.read(MOST_METADATA + 1)
        if len(content) > MOST_METADATA:
            raise ValueError(f"its {name} has more than {MOST_METADATA} bytes")
        found = json.loads(content)
        if not isinstance(found, dict):
            raise ValueError(f"its {name} holds no object")
        return read(found)
    raise FileNotFoundError(2, "it has no zarr.json and no .zarray")


def _sides(found: Any, what: str) -> tuple[int, int]:
    sides = tuple(found)
    if len(sides) != 2 or any(type(side) is not int or side < 0 for side in sides):
        raise ValueError(f"its {what} is not two whole numbers")
    return sides[0], sides[1]


def _refused(kind: str, name: object) -> ValueError:
    known = ", ".join(COMPRESSIONS)
    return ValueError(f"its {kind} {str(name)[:40]!r} is not one of those read here: {known}")


def _number(fill: Any, dtype: np.dtype) -> Any:
    words = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    if isinstance(fill, str) and fill not in words:
        raise ValueError(f"its fill value is {fill[:40]!r}")
    value = words.get(fill, fill) if isinstance(fill, str) else fill
    if value is not None and not isinstance(value, bool | int | float):
        raise ValueError("its fill value is no number")
    with np.errstate(all="ignore"):  # NaN has no integer; whatever it becomes is checked as data
        return np.asarray(0 if value is None else value).astype(dtype)


def _version_2(found: dict[str, Any]) -> Layout:
    if found["zarr_format"] != 2:
        raise ValueError("its format is not 2")
    dtype = np.dtype(found["dtype"]) if isinstance(found["dtype"], str) else None
    if dtype is None or dtype.name not in NUMBERS:
        raise ValueError(f"its type is {str(found['dtype'])[:40]!r}, which is no number")
    if found.get("filters"):
        raise _refused("filter", found["filters"][0].get("id"))
    steps: tuple[str, ...] = ()
    if (compressor := found.get("compressor")) is not None:
        if compressor["id"] not in COMPRESSIONS:
            raise _refused("compressor", compressor["id"])
        steps = (compressor["id"],)
    separator = found.get("dimension_separator", ".")
    if separator not in (".", "/") or found.get("order", "C") not in ("C", "F"):
        raise ValueError("its separator or its order is not known")
    encoding = Encoding(dtype, found.get("order", "C") == "F", steps)
    fill = _number(found.get("fill_value"), dtype)
    shape, chunks = _sides(found["shape"], "shape"), _sides(found["chunks"], "chunks")
    return Layout(shape, chunks, encoding, fill, "", separator)


def _version_3(found: dict[str, Any]) -> Layout:
    if found["zarr_format"] != 3 or found["node_type"] != "array":
        raise ValueError("it is not an array of format 3")
    if found["data_type"] not in NUMBERS:
        raise ValueError(f"its type is {str(found['data_type'])[:40]!r}, which is no number")
    dtype = np.dtype(found["data_type"])
    grid, keys = found["chunk_grid"], found["chunk_key_encoding"]
    if grid["name"] != "regular" or found.get("storage_transformers"):
        raise ValueError("its chunks are not of one shape, or stored in another way")
    chunks = _sides(grid["configuration"]["chunk_shape"], "chunk shape")
    usual = {"default": ("c", "/"), "v2": ("", ".")}[keys["name"]]
    separator = (keys.get("configuration") or {}).get("separator", usual[1])
    if separator not in (".", "/"):
        raise ValueError("its separator is not known")
    prefix = f"c{separator}" if usual[0] else ""
    codecs, shards = list(found["codecs"]), None
    if codecs and codecs[0]["name"] == "sharding_indexed":
        if len(codecs) > 1:
            raise _refused("codec", codecs[1]["name"])
        chunks, codecs, shards = _sharding(codecs[0]["configuration"], chunks)
    fill = _number(found["fill_value"], dtype)
    shape = _sides(found["shape"], "shape")
    return Layout(shape, chunks, _encoding(codecs, dtype), fill, prefix, separator, shards)


def _sharding(
    found: dict[str, Any], outer: tuple[int, int]
) -> tuple[tuple[int, int], list[Any], Shards]:
    inner = _sides(found["chunk_shape"], "chunk shape")
    if min(inner) < 1 or outer[0] % inner[0] or outer[1] % inner[1]:
        raise ValueError("its shards are not of whole chunks")
    names = [codec["name"] for codec in found["index_codecs"]]
    endian = (found["index_codecs"][0].get("configuration") or {}).get("endian", "little")
    if names not in (["bytes"], ["bytes", "crc32c"]) or endian != "little":
        raise _refused("index codec", names)
    place = found.get("index_location", "end")
    if place not in ("start", "end"):
        raise ValueError("its index is neither at the start nor at the end")
    across = (outer[0] // inner[0], outer[1] // inner[1])
    if across[0] * across[1] > 2**16:
        raise ValueError("its shards have more than 65536 chunks")
    return inner, list(found["codecs"]), Shards(across, place == "start", len(names) > 1)


def _encoding(codecs: list[Any], dtype: np.dtype) -> Encoding:
    by_columns, ordered = False, False
    steps: list[str] = []
    for codec in codecs:
        name, how = codec["name"], codec.get("configuration") or {}
        if name == "transpose" and not ordered and how["order"] in ([0, 1], [1, 0], "C", "F"):
            by_columns = by_columns != (how["order"] in ([1, 0], "F"))
        elif name == "bytes" and not ordered:
            ordered = True
            dtype = dtype.newbyteorder(">" if how.get("endian") == "big" else "<")
        elif (ordered and name in COMPRESSIONS and not steps) or (
            ordered and name == "crc32c" and "crc32c" not in steps
        ):
            steps.append(name)
        else:
            raise _refused("codec", name)
    if not ordered:
        raise ValueError("its codecs do not say how numbers become bytes")
    return Encoding(dtype, by_columns, tuple(steps))
