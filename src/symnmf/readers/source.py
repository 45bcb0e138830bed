"""Opening a file without trusting it: its kind, its size and what it decompresses to."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from symnmf.errors import InputError

MAX_BYTES = 8 * 2**30
"""Most bytes a file may hold once decompressed."""

MAX_RATIO = 200.0
"""Largest growth of a compressed file, beyond the first ``FREE_BYTES``."""

FREE_BYTES = 64 * 2**20
"""Decompressed size up to which no compression ratio is suspicious (zeros shrink a lot)."""

CHUNK = 2**20
SHOWN = 60

#: Failures of a disk that something made of the file is written to: none of the file's own.
WRITE_FAILED = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Advice = tuple[str, str]
"""What to do about a fault, in Python and in the shell."""

FILL_IN = "; fill it in or leave the row out; for a similarity matrix with entries not observed, "

NAN_ADVICE: Advice = (f"{FILL_IN}pass missing='nan'", f"{FILL_IN}give --missing nan")
"""For NaN in a dense matrix."""

SPARSE_NAN_ADVICE: Advice = (
    "; leave such entries out, and pass missing='unstored' where what is not stored was not"
    " observed",
    "; leave such entries out, and call symnmf factorize with --missing unstored where what is not"
    " stored was not observed",
)
"""For NaN among the entries of a sparse matrix."""

HEADER_ADVICE: Advice = (
    "; write it as a number, or pass header=True or header=False",
    "; write it as a number, or give --header or --no-header",
)
"""For a first line that may be a header or a row."""

NO_ADVICE: Advice = ("", "")

AnyPath = str | os.PathLike[str]


def shown(content: object, limit: int = SHOWN) -> str:
    """``content`` from a file, escaped and cut, fit for one line of an error message."""
    if isinstance(content, bytes):
        content = content[: 4 * limit].decode("utf-8", "replace")
    text = str(content)
    return ascii(text) if len(text) <= limit else ascii(text[:limit]) + "..."


@dataclass
class Source:
    """An opened regular file, read from start to end, and the limits its content must respect.

    Attributes
    ----------
    path : str
        The path as given.
    ending : str
        The lower-case ending that names the format, without ``.gz``.
    size : int
        Bytes on disk; compression ratios are taken against it.
    raw : binary file
        The content, decompressed.
    compressed : bool
        Whether ``raw`` decompresses, so that ``size`` says nothing about its length.
    nan : bool
        Whether NaN in a dense matrix stands for what was not observed, and is let through.
    header : bool or None
        Whether the first line of a table is a header; None where the table itself must tell.
    decimal : bytes
        What separates the fractions of numbers in a table, a point or a comma.
    columns : tuple of str or None
        The columns of a table that are read; None for all.
    part : str or None
        Which part of the file is read, of a file that holds several.
    balance : bool or None
        Whether contacts are balanced; None where the file has weights for it.
    """

    path: str
    ending: str
    size: int
    raw: BinaryIO | gzip.GzipFile
    compressed: bool
    max_bytes: int
    max_ratio: float
    nan: bool = False
    header: bool | None = None
    decimal: bytes = b"."
    columns: tuple[str, ...] | None = None
    part: str | None = None
    balance: bool | None = None
    total: int = 0

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; decompressed ones are counted, and damage is reported."""
        chunk = self._take(self.raw.read, size)
        if self.compressed:
            self.total += len(chunk)
            self.check_growth(self.total)
        return chunk

    def peek(self, size: int) -> bytes:
        """At most ``size`` of the bytes that will be read next."""
        peek = getattr(self.raw, "peek", None)
        return b"" if peek is None else self._take(peek, size)[:size]

    def _take(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise self.error(
                f"its gzip stream is damaged or cut short ({shown(error)}); copy it again"
            ) from error

    def content(self, most: int, advice: str) -> bytes:
        """All that is left, of which a parser needs every byte at once; ``most`` at most."""
        parts, total = [], 0
        while chunk := self.read(CHUNK):
            total += len(chunk)
            if total > most:
                raise self.error(f"it holds more than {most} bytes; {advice}")
            parts.append(chunk)
        return b"".join(parts)

    def error(
        self, problem: str, line: int | None = None, advice: Advice = NO_ADVICE
    ) -> InputError:
        """The one-sentence error about this file (and this line)."""
        where = f"file {shown(self.path, 300)}" + ("" if line is None else f", line {line}")
        said, in_shell = (f"{where}: {problem}{remedy}." for remedy in advice)
        return InputError(said, in_shell=in_shell)

    def check_growth(self, total: int) -> None:
        """Refuse ``total`` decompressed bytes when that is more than the limits allow."""
        if total > self.max_bytes:
            raise self.error(
                f"it holds more than the {self.max_bytes} bytes allowed; raise max_bytes if you"
                " trust it"
            )
        if total > FREE_BYTES and total > self.max_ratio * max(self.size, 1):
            raise self.error(
                f"its {self.size} bytes decompress to more than {self.max_ratio:g} times as many,"
                " as a decompression bomb does; raise max_ratio if you trust it"
            )


def _check_limits(max_bytes: int, max_ratio: float) -> None:
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise InputError(f"max_bytes must be a positive integer, got {max_bytes!r}.")
    if not isinstance(max_ratio, int | float) or not max_ratio >= 1:
        raise InputError(f"max_ratio must be a number of at least 1, got {max_ratio!r}.")


def checked_path(path: AnyPath) -> str:
    """``path`` as text, refused when it is not a path at all."""
    try:
        text = os.fsdecode(path)
    except TypeError as error:
        raise InputError(f"path must be a string or a path, got {type(path).__name__}.") from error
    if "\0" in text or not text:
        raise InputError(f"path must name a file, got {shown(text)}.")
    return text


def split_ending(path: str) -> tuple[str, bool]:
    """The ending that names the format, and whether ``.gz`` stood on top of it."""
    stem, ending = os.path.splitext(os.path.basename(path).lower())
    zipped = ending == ".gz"
    if zipped:
        ending = os.path.splitext(stem)[1]
    return ending, zipped


def _open_regular(path: str) -> BinaryIO:
    # O_NONBLOCK lets a FIFO open at once, to be refused below instead of waited for.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            kind, advice = "a device, a pipe or a socket", "give a regular file"
            if stat.S_ISDIR(mode):
                kind = "a folder"
            raise InputError(f"file {shown(path, 300)}: it is {kind}; {advice}.")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


@contextmanager
def opened(
    path: AnyPath,
    *,
    max_bytes: int = MAX_BYTES,
    max_ratio: float = MAX_RATIO,
    **told: Any,
) -> Iterator[Source]:
    """Open ``path`` for one reader; file-system and memory errors become ``InputError``.

    ``told`` is what the caller says of the content, see :class:`Source`.
    """
    _check_limits(max_bytes, max_ratio)
    name = checked_path(path)
    ending, zipped = split_ending(name)
    try:
        with _open_regular(name) as file:
            size = os.fstat(file.fileno()).st_size
            raw = gzip.GzipFile(fileobj=file, mode="rb") if zipped else file
            limits = max_bytes, float(max_ratio)
            source = Source(name, ending, size, raw, zipped, *limits, **told)
            if size == 0:
                raise source.error("it is empty")
            if not zipped and size > max_bytes:
                source.check_growth(size)
            yield source
    except OSError as error:
        if error.errno in WRITE_FAILED:
            raise
        reason = error.strerror or type(error).__name__
        raise InputError(f"file {shown(name, 300)}: it cannot be read ({reason}).") from error
    except MemoryError as error:
        raise InputError(
            f"file {shown(name, 300)}: reading it needs more memory than there is."
        ) from error
