"""Write files whole or not at all, and refuse in one sentence what cannot be written."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from symnmf.errors import InputError

#: Failures that no other path would avoid.
MACHINE_FAILED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EMFILE, errno.ENFILE)

#: Longest file name that the name of a temporary file is built from; most systems allow 255 bytes.
LONGEST_NAME = 200

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
    place = as_path(path)
    try:
        target, found = _place(place)
        if found is None or stat.S_ISREG(found.st_mode):
            _replace(target, found, write)
        else:
            whole = io.BytesIO()  # archives are not written front to back
            write(whole)
            _write_into(target, whole.getvalue())
    except OSError as error:
        if error.errno in MACHINE_FAILED:
            raise
        raise _refusal(path, error) from error


def check_output(path: AnyPath, name: str = "path") -> None:
    """Refuse a place that could not be written to, before anything is computed for it."""
    place = as_path(path, name)
    try:
        target, found = _place(place)
        # a file is replaced by one made beside it; a device or a pipe is opened as it is
        replaced = found is None or stat.S_ISREG(found.st_mode)
        if replaced and not target.parent.is_dir():
            raise InputError(
                f"{name} {str(place)!r} cannot be written: the folder {str(target.parent)!r} does "
                f"not exist; create it first."
            )
        if replaced and not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "its folder cannot be written to")
    except OSError as error:
        raise _refusal(path, error) from error


def as_path(path: object, name: str = "path") -> Path:
    """``path`` as a Path, refused when no file can be called that."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"{name} must be the path of a file (a string or a path), got {type(path).__name__}."
        )
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(f"{name} must name a file, got {text!r}.")
    return Path(text)


def _refusal(path: AnyPath, error: OSError) -> InputError:
    reason = error.strerror or type(error).__name__
    return InputError(f"{str(path)!r} cannot be written ({reason}); choose another place.")


def _place(place: Path) -> tuple[Path, os.stat_result | None]:
    """Return the file that is named, through links, and what is there; None for nothing yet."""
    if place.is_symlink():
        _check_link(place)
    target = Path(os.path.realpath(place))
    try:
        found = target.lstat()
    except FileNotFoundError:
        return target, None
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, "it is a folder")
    if stat.S_ISSOCK(found.st_mode) or stat.S_ISBLK(found.st_mode):
        raise OSError(errno.EINVAL, "it is a socket or a disk")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return target, found


def _check_link(link: Path) -> None:
    """Refuse a link that somebody else left in a folder that all may write to.

    The rule is Linux's own (fs.protected_symlinks), which following links by hand would bypass.
    """
    owner, folder = link.lstat().st_uid, link.parent.stat()
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    ours = not hasattr(os, "geteuid") or owner == os.geteuid()
    if shared and not ours and owner != folder.st_uid:
        raise OSError(errno.EACCES, "it is a link that another user left in a shared folder")


def _replace(target: Path, found: os.stat_result | None, write: Callable[[IO[bytes]], Any]) -> None:
    name = target.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()
    # created exclusively under a drawn name, so that no file in the folder can be in its way
    temporary = target.with_name(f".{name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # nobody may read a private file's successor at any moment; a new file gets the usual mode
    descriptor = os.open(temporary, flags, 0o666 if found is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if found is not None and hasattr(os, "fchmod"):
                with contextlib.suppress(OSError):  # only root may give a file to somebody else
                    os.fchown(stream.fileno(), found.st_uid, found.st_gid)
                os.fchmod(stream.fileno(), stat.S_IMODE(found.st_mode) & 0o777)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # not every system can open a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _write_into(target: Path, content: bytes) -> None:
    """Write into a device or a pipe, which has no other file to be replaced by."""
    # a pipe that nobody reads would be waited for; opened like this it fails at once
    flags = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        descriptor = os.open(target, flags)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe that nobody reads") from error
        raise
    with os.fdopen(descriptor, "wb") as stream:
        os.set_blocking(stream.fileno(), True)
        stream.write(content)
