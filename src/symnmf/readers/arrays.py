"""NumPy's .npy format, read without ``eval``, without pickle and within the bytes there are."""

from __future__ import annotations

import math
import re
from typing import Protocol

import numpy as np

from symnmf.readers.source import CHUNK, NAN_ADVICE, NO_ADVICE, Advice, Source, shown

MAX_HEADER = 2**14
MAX_TEXT_ITEM = 4096

_MAGIC = b"\x93NUMPY"
# Runs of spaces are made one before these look, so that no pattern has a choice of where they go.
_DESCR = re.compile(r"'descr' ?: ?'([<>|=]?)([a-zA-Z])([0-9]{1,5})' ?[,}]")
_ORDER = re.compile(r"'fortran_order' ?: ?(True|False) ?[,}]")
_SHAPE = re.compile(r"'shape' ?: ?\( ?((?:[0-9]{1,18}L? ?, ?)*(?:[0-9]{1,18}L? ?)?)\) ?[,}]")


class Readable(Protocol):
    """All that reading an array asks of a file."""

    def read(self, size: int, /) -> bytes: ...


def read_array(source: Source, stream: Readable, available: int | None, label: str) -> np.ndarray:
    """One array of numbers, truth values or text.

    Parameters
    ----------
    source : Source
        The file, for its limits and its errors.
    stream : binary file
        Positioned at the array's first byte.
    available : int or None
        Bytes the stream holds, or None where only reading tells (a gzip stream).
    label : str
        What the array is called in errors.
    """
    dtype, fortran, shape, used = _read_header(source, stream, label)
    needed = math.prod(shape) * dtype.itemsize
    if needed == 0:
        raise source.error(f"{label} of shape {_sizes(shape)} holds nothing")
    if available is not None and needed != available - used:
        raise source.error(
            f"{label} of shape {_sizes(shape)} needs {needed} bytes but {available - used} are"
            " there, so the file is damaged or cut short"
        )
    source.check_growth(needed)
    payload = _read_exactly(stream, needed)
    if len(payload) != needed or stream.read(1):
        raise source.error(
            f"{label} of shape {_sizes(shape)} needs {needed} bytes but the stream holds"
            f" {'fewer' if len(payload) < needed else 'more'}, so the file is damaged"
        )
    flat = np.frombuffer(payload, dtype=dtype)
    if dtype.kind == "b":  # a damaged byte other than 0 or 1 is no valid truth value
        flat = flat.view(np.uint8) != 0
    return flat.reshape(shape, order="F" if fortran else "C")


def _read_header(
    source: Source, stream: Readable, label: str
) -> tuple[np.dtype, bool, tuple[int, ...], int]:
    start = stream.read(8)
    width = {1: 2, 2: 4, 3: 4}.get(start[6], 0) if len(start) == 8 else 0
    length_bytes = stream.read(width)
    length = int.from_bytes(length_bytes, "little")
    if start[:6] != _MAGIC or not width or len(length_bytes) != width or length > MAX_HEADER:
        raise source.error(f"{label} does not begin as NumPy's .npy format does")
    content = stream.read(length)
    header = re.sub(" +", " ", content.decode("latin-1"))
    descr, order, shape = (p.search(header) for p in (_DESCR, _ORDER, _SHAPE))
    if len(content) != length or not order or not shape:
        raise source.error(f"{label} has a damaged .npy header {shown(header)}")
    if not descr or descr[2] not in "biufUS":
        raise source.error(
            f"{label} holds Python objects, records or another type that is neither real numbers"
            " nor text, which is never unpickled; save plain numbers"
        )
    try:
        dtype = np.dtype("".join(descr.groups()))
    except TypeError as error:
        raise source.error(f"{label} has the unknown type {shown(descr[0])}") from error
    if dtype.kind in "US" and dtype.itemsize > MAX_TEXT_ITEM:
        raise source.error(f"{label} holds texts of {dtype.itemsize} bytes each; shorten them")
    sizes = tuple(map(int, re.findall("[0-9]+", shape[1])))
    if len(sizes) > 8:
        raise source.error(f"{label} has {len(sizes)} dimensions")
    return dtype, order[1] == "True", sizes, 8 + width + length


def _read_exactly(stream: Readable, needed: int) -> bytearray:
    # Grows with what arrives, so a header alone cannot make it large.
    payload = bytearray()
    while len(payload) < needed:
        chunk = stream.read(min(CHUNK, needed - len(payload)))
        if not chunk:
            break
        payload += chunk
    return payload


def _sizes(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def as_float(
    source: Source, array: np.ndarray, label: str, ndim: int = 2, advice: Advice = NO_ADVICE
) -> np.ndarray:
    """A finite float64 array of ``ndim`` dimensions, or an error that says where it is not.

    A matrix (``ndim`` is 2) may hold NaN where the source says so; ``advice`` is for NaN elsewhere.
    """
    if array.ndim != ndim or array.dtype.kind not in "biuf":
        raise source.error(
            f"{label} must be a {ndim}-D array of numbers, and it is {array.ndim}-D of type"
            f" {array.dtype}"
        )
    with np.errstate(all="ignore"):  # long doubles may overflow, which the next check reports
        values = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(values)
    if ndim == 2 and source.nan:
        finite |= np.isnan(values)
    if not finite.all():
        place = np.unravel_index(int(np.argmin(finite)), values.shape)
        advice = NAN_ADVICE if ndim == 2 else advice
        raise source.error(
            f"{label} is not finite at [{', '.join(map(str, place))}]",
            advice=advice if np.isnan(values[place]) else NO_ADVICE,
        )
    return values


def as_integers(source: Source, array: np.ndarray, label: str, ndim: int = 1) -> np.ndarray:
    """A nonnegative int64 array of ``ndim`` dimensions."""
    if array.ndim != ndim or array.dtype.kind not in "iu":
        raise source.error(
            f"{label} must be a {ndim}-D array of integers, and it is {array.ndim}-D of type"
            f" {array.dtype}"
        )
    if array.min() < 0 or array.max() > np.iinfo(np.int64).max:
        raise source.error(f"{label} must lie between 0 and 2**63 - 1")
    return array.astype(np.int64)


def as_labels(source: Source, array: np.ndarray, label: str, n: int | None = None) -> np.ndarray:
    """Labels: int64, or text in an object array; ``n`` of them where a number is known."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise source.error(f"{label} must be 1-D, and it has the shape {_sizes(array.shape)}")
    if n is not None and array.size != n:
        raise source.error(f"{label} holds {array.size} labels for {n} rows")
    if array.dtype.kind == "f":
        values = as_float(source, array, label, ndim=1)
        if (np.abs(values) >= 2**53).any() or (values != np.round(values)).any():
            raise source.error(f"{label} holds fractions, and labels are integers or text")
        return values.astype(np.int64)
    if array.dtype.kind in "biu":
        if array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
            raise source.error(f"{label} holds an integer beyond 2**63 - 1")
        return array.astype(np.int64)
    return as_text(source, array, label)


def as_text(source: Source, array: np.ndarray, label: str) -> np.ndarray:
    """Text as Python strings in an object array."""
    if array.dtype.kind not in "US":
        raise source.error(f"{label} must hold text, and it is of type {array.dtype}")
    try:
        plain = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
        texts = plain.astype(object)
        "".join(texts.tolist()).encode("utf-8")
    except (UnicodeError, ValueError, SystemError) as error:  # the last for numbers no text has
        raise source.error(f"{label} holds text that is not valid Unicode") from error
    return texts
