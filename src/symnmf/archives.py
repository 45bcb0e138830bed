"""npz archives of our own: written atomically, read without pickle."""

from __future__ import annotations

import contextlib
import os
import secrets
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from symnmf.errors import InputError


def write_atomically(path: str | Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Let ``write`` fill a temporary file in the same folder, then put it in place of ``path``.

    The old file is whole until the new one is on the disk, whatever happens in between.
    """
    target = Path(path)
    # created exclusively under a drawn name, so no file in the folder can be in its way, and with
    # the permissions any new file of this user gets
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            with open(temporary, "xb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"{str(target)!r} cannot be written ({reason}).") from error
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; not every system can open a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_archive(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to an npz archive, atomically."""
    write_atomically(path, lambda stream: np.savez(stream, allow_pickle=False, **arrays))


def read_archive(path: str | Path, expected_format: str) -> dict[str, np.ndarray]:
    """Read an npz archive that :func:`write_archive` wrote, or say what is wrong with it."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile) or "format" not in archive.files:
                raise InputError(f"{path} was not written by symnmf; its format is not known.")
            found = str(archive["format"])
            if found != expected_format:
                raise InputError(
                    f"{path} holds {found!r} where {expected_format!r} is needed; pass another "
                    f"file."
                )
            return {name: archive[name] for name in archive.files}
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}).") from error
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, KeyError) as error:
        raise InputError(
            f"{path} is not a whole npz archive written by symnmf; pass another file."
        ) from error
