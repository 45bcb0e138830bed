"""Write files whole or not at all, and refuse in one sentence what cannot be written."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from symnmf.arguments import check
from symnmf.errors import InputError
from symnmf.kinds import PATH

#: Failures that no other path would avoid.
MACHINE_FAILED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EMFILE, errno.ENFILE)

AnyPath = str | os.PathLike[str]


def write_atomically(path: AnyPath, write: Callable[[IO[bytes]], Any]) -> None:
    """Let ``write`` fill a temporary file in the same folder, then put it in place of ``path``.

    The old file is whole until the new one is on the disk, whatever happens in between. The new
    one has the permissions of the old one. A link is followed, so that the file it names is
    replaced and the link stays. Devices and pipes are written into.

    Raises
    ------
    InputError
        If the place cannot be written to.
    OSError
        If the disk is full or fails.
    """
    target = as_path(path)
    try:
        target = Path(os.path.realpath(target))
        if target.exists() and not target.is_file() and not target.is_dir():
            whole = io.BytesIO()  # archives are not written front to back
            write(whole)
            target.write_bytes(whole.getvalue())
        else:
            _replace(target, write)
    except OSError as error:
        if error.errno in MACHINE_FAILED:
            raise
        raise _refusal(path, error) from error


def _replace(target: Path, write: Callable[[IO[bytes]], Any]) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # created exclusively under a drawn name, so that no file in the folder can be in its way
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # nobody may read a private file's successor at any moment; a new file gets the usual mode
    descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if mode is not None:
                os.chmod(temporary, mode & 0o777)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_output(path: AnyPath, name: str = "path") -> None:
    """Refuse a place that could not be written to, before anything is computed for it."""
    place = as_path(path, name)
    target = Path(os.path.realpath(place))
    try:
        if target.is_dir() or target.is_socket() or target.is_block_device():
            what = "a folder" if target.is_dir() else "no file"
            raise OSError(errno.EINVAL, f"it is {what}")
        if not target.parent.is_dir():
            raise InputError(
                f"{name} {str(place)!r} cannot be written: the folder {str(target.parent)!r} does "
                f"not exist; create it first."
            )
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _refusal(path, error) from error


def as_path(path: object, name: str = "path") -> Path:
    """``path`` as a Path, refused when no file can be called that."""
    check(name, path, (PATH,))
    return Path(path)  # type: ignore[arg-type]


def _refusal(path: AnyPath, error: OSError) -> InputError:
    reason = error.strerror or type(error).__name__
    return InputError(f"{str(path)!r} cannot be written ({reason}); choose another place.")
