"""npz archives of our own: written atomically, and read with a checksum.

The member ``checksum`` covers the names, types, shapes and bytes of all others, so that damage is
refused. It is no signature: whoever reads an array still checks that it is what compiled code may
be given.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.outputs import AnyPath, as_path, write_atomically

CHECKSUM = "checksum"


def _checksum(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def write_archive(path: AnyPath, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to an npz archive with a checksum, atomically."""
    members: dict[str, Any] = {**arrays, CHECKSUM: np.array(_checksum(arrays))}
    write_atomically(path, lambda stream: np.savez(stream, **members))


def read_archive(path: AnyPath, expected_format: str) -> dict[str, np.ndarray]:
    """Return the arrays of an archive that :func:`write_archive` wrote, whole and undamaged.

    ``expected_format`` is what its array ``format`` must say. Whatever is wrong with the file is an
    :class:`InputError`.
    """
    path = as_path(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for
        raise InputError(f"{path} is not a regular file; name another.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            stored = {name: np.asarray(archive[name], order="C") for name in archive.files}
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist.") from error
    except Exception as error:
        # damaged bytes make zipfile and NumPy raise whatever they happen to run into
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path} cannot be read ({error.strerror}).") from error
        raise InputError(
            f"{path} is not a whole npz archive written by symnmf; pass another file."
        ) from error
    if "format" not in stored:
        raise InputError(f"{path} was not written by symnmf; its format is not known.")
    found = str(stored["format"])
    if found != expected_format:
        raise InputError(
            f"{path} holds {found[:60]!r} where {expected_format!r} is needed; pass another file."
        )
    if str(stored.pop(CHECKSUM, "")) != _checksum(stored):
        raise InputError(f"{path} was changed since symnmf wrote it; pass another file.")
    return stored
