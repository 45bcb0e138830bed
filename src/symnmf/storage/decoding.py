"""Decoding the chunks of Zarr and HDF5 arrays, within the bytes that a chunk may have.

Only these are decoded, whatever the libraries can do: some of their codecs run what a file says
(``pickle``), load plug-ins, or unpack to any size.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from symnmf.errors import InputError


def _inflate(content: bytes, size: int, wrapping: int) -> bytes:
    decoder = zlib.decompressobj(wrapping)
    whole = decoder.decompress(content, size + 1)
    if not decoder.eof and len(whole) <= size:
        raise ValueError("its stream is cut short")
    return whole


def _gzip(content: bytes, size: int) -> bytes:
    return _inflate(content, size, 31)


def _zlib(content: bytes, size: int) -> bytes:
    return _inflate(content, size, 15)


def _bz2(content: bytes, size: int) -> bytes:
    return bz2.BZ2Decompressor().decompress(content, size + 1)


def _numcodecs(name: str) -> Any:
    try:
        import numcodecs
    except ImportError:
        raise InputError(
            "reading this Zarr array needs numcodecs: pip install 'symnmf[blocks]'."
        ) from None
    return getattr(numcodecs, name)()


def _blosc(content: bytes, size: int) -> bytes:
    # the header is compared first: older versions believe it and read or write out of bounds
    if len(content) < 16:
        raise ValueError("its Blosc header is cut short")
    raw, _, encoded = struct.unpack("<III", content[4:16])
    if raw != size or encoded != len(content):
        raise ValueError(f"its Blosc header tells of {raw} bytes in {encoded}")
    return _into(_numcodecs("Blosc"), content, size)


def _zstd(content: bytes, size: int) -> bytes:
    if _zstd_size(content) != size:
        raise ValueError("its Zstandard frame does not tell of the bytes of a chunk")
    return _into(_numcodecs("Zstd"), content, size)


def _zstd_size(content: bytes) -> int | None:
    """How many bytes a Zstandard frame says that it holds (RFC 8878, 3.1.1.1); None if none."""
    if content[:4] != b"\x28\xb5\x2f\xfd" or len(content) < 6:
        return None
    flags = content[4]
    single, dictionary = flags >> 5 & 1, (0, 1, 2, 4)[flags & 3]
    width = (1 if single else 0, 2, 4, 8)[flags >> 6]
    start = 5 + (0 if single else 1) + dictionary
    if not width or len(content) < start + width:
        return None
    return int.from_bytes(content[start : start + width], "little") + (256 if width == 2 else 0)


def _lz4(content: bytes, size: int) -> bytes:
    if len(content) < 4 or struct.unpack("<i", content[:4])[0] != size:
        raise ValueError("its LZ4 header does not tell of the bytes of a chunk")
    return _into(_numcodecs("LZ4"), content, size)


def _into(codec: Any, content: bytes, size: int) -> bytes:
    """Decode into memory of the right size, so that none is sized by the content."""
    whole = np.zeros(size, np.uint8)
    if size:
        codec.decode(content, out=whole)
    return whole.tobytes()


#: What decompresses a chunk of a known size, by the names that Zarr has for it.
COMPRESSIONS: dict[str, Callable[[bytes, int], bytes]] = {
    "blosc": _blosc,
    "bz2": _bz2,
    "gzip": _gzip,
    "lz4": _lz4,
    "zlib": _zlib,
    "zstd": _zstd,
}


def decompressed(content: bytes, name: str, size: int) -> bytes:
    """Decompress a chunk of ``size`` bytes; whatever is wrong with it raises some exception."""
    whole = COMPRESSIONS[name](content, size)
    if len(whole) != size:
        held = "more" if len(whole) > size else f"{len(whole)}"
        raise ValueError(f"it holds {held} bytes, and a chunk has {size}")
    return whole


def unshuffled(content: bytes, width: int) -> bytes:
    """Undo the shuffle filter: all first bytes of the numbers, then all second ones, and so on."""
    count = len(content) // width
    sorted_bytes = np.frombuffer(content, np.uint8, count * width).reshape(width, count)
    return sorted_bytes.T.tobytes() + content[count * width :]
