"""Write files whole or not at all, and never replace a file of somebody else.

A path may name a file, a link, a device or a pipe, or nothing yet. What is there decides how it is
written, and whatever cannot be written is refused in one sentence.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from symnmf.errors import InputError

#: Failures that no other path would avoid.
MACHINE_FAILED = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EMFILE, errno.ENFILE)

#: Longest file name that the name of a temporary file is built from; most systems allow 255 bytes.
LONGEST_NAME = 200
MOST_LINKS = 40
#: Bytes kept in memory on the way to a device or a pipe; more go through a temporary file.
IN_MEMORY = 2**24

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
        target = _resolved(place)
        found = _checked(target)
        if found is not None and not stat.S_ISREG(found.st_mode):
            _write_into(target, found, write)
        else:
            _replace(target, found, write)
    except OSError as error:
        if error.errno in MACHINE_FAILED:
            raise
        raise _refusal(path, error) from error


def check_output(path: AnyPath, name: str = "path") -> None:
    """Refuse a place that could not be written to, before anything is computed for it."""
    place = as_path(path, name)
    try:
        target = _resolved(place)
        found = _checked(target)
        # a file is replaced by one made beside it; a device or a pipe is opened as it is
        replaced = found is None or stat.S_ISREG(found.st_mode)
        if replaced and not os.access(target.parent, os.W_OK | os.X_OK):
            if not target.parent.is_dir():
                raise InputError(
                    f"{name} {str(place)!r} cannot be written: the folder {str(target.parent)!r} "
                    f"does not exist; create it first."
                )
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


def clear_leftovers(path: AnyPath) -> None:
    """Remove the temporary files that our writers of ``path`` left when they were killed.

    Another user's files stay: they may be in use, and in a shared folder they cannot be removed.
    """
    target = Path(path)
    name = re.compile(rf"\.{re.escape(_short(target.name))}\.[0-9a-f]{{16}}\.tmp")
    with contextlib.suppress(OSError):  # a folder may be writable and not readable
        for file in target.parent.iterdir():
            if name.fullmatch(file.name):
                with contextlib.suppress(OSError):
                    found = file.lstat()
                    if stat.S_ISREG(found.st_mode) and _is_ours(found):
                        file.unlink()


def _is_ours(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _refusal(path: AnyPath, error: OSError) -> InputError:
    reason = error.strerror or type(error).__name__
    return InputError(f"{str(path)!r} cannot be written ({reason}); choose another place.")


def _short(name: str) -> str:
    """A file name that leaves space for what a temporary file adds to it."""
    if len(os.fsencode(name)) <= LONGEST_NAME:
        return name
    return hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()


def _resolved(path: Path) -> Path:
    """The file that a link names, through as many links as there are."""
    for _ in range(MOST_LINKS):
        try:
            found = path.lstat()
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(found.st_mode):
            return path
        _check_link(path, found)
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _check_link(path: Path, found: os.stat_result) -> None:
    """Refuse a link that somebody else left in a folder that all may write to.

    The rule is Linux's own (fs.protected_symlinks), which following links by hand would bypass.
    """
    folder = path.parent.stat()
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if shared and not _is_ours(found) and found.st_uid != folder.st_uid:
        raise OSError(errno.EACCES, "it is a link that another user left in a shared folder")


def _checked(target: Path) -> os.stat_result | None:
    """What is at ``target``, which can be written; None if there is nothing."""
    try:
        found = target.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, "it is a folder")
    if stat.S_ISSOCK(found.st_mode) or stat.S_ISBLK(found.st_mode):
        raise OSError(errno.EINVAL, "it is a socket or a disk")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return found


def _replace(target: Path, found: os.stat_result | None, write: Callable[[IO[bytes]], Any]) -> None:
    # created exclusively under a drawn name, so that no file in the folder can be in its way
    temporary = target.with_name(f".{_short(target.name)}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # nobody may read a private file's successor at any moment; a new file gets the usual mode
    descriptor = os.open(temporary, flags, 0o666 if found is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if found is not None:
                _keep_owner(stream, found)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _keep_owner(stream: IO[bytes], found: os.stat_result) -> None:
    """Give the new file the owner, where that is allowed, and the permissions of the old one."""
    if hasattr(os, "fchown"):
        for owner in (found.st_uid, -1):  # only root may give a file to somebody else
            try:
                os.fchown(stream.fileno(), owner, found.st_gid)
                break
            except OSError:
                continue
    if hasattr(os, "fchmod"):
        os.fchmod(stream.fileno(), stat.S_IMODE(found.st_mode) & 0o777)


def _write_into(target: Path, found: os.stat_result, write: Callable[[IO[bytes]], Any]) -> None:
    """Write into a device or a pipe, which has no other file to be replaced by."""
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as whole:
        write(whole)
        whole.seek(0)
        # a pipe that nobody reads would be waited for; opened like this it fails at once
        flags = os.O_WRONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
        try:
            descriptor = os.open(target, flags)
        except OSError as error:
            if error.errno == errno.ENXIO and stat.S_ISFIFO(found.st_mode):
                raise OSError(errno.ENXIO, "it is a pipe that nobody reads") from error
            raise
        with os.fdopen(descriptor, "wb") as stream:
            os.set_blocking(stream.fileno(), True)
            shutil.copyfileobj(whole, stream)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; not every system can open a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
