"""npz archives of our own: written atomically, and read with a checksum.

The member ``checksum`` covers the names, types, shapes and bytes of all others, so that damage is
refused. It is no signature: whoever reads an array still checks that it is what compiled code may
be given.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.outputs import AnyPath, as_path, write_atomically

CHECKSUM = "checksum"


def digest(arrays: Mapping[str, Any]) -> str:
    """Return a digest of arrays by their names, types, shapes and values, whatever holds them."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.data)
    return total.hexdigest()


def write_archive(path: AnyPath, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to an npz archive with a checksum, atomically."""
    members: dict[str, Any] = {**arrays, CHECKSUM: np.array(digest(arrays))}
    write_atomically(path, lambda stream: np.savez(stream, **members))


def read_arrays(path: AnyPath) -> dict[str, np.ndarray]:
    """Return the arrays of any npz archive; whatever is wrong with the file is an InputError."""
    path = as_path(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for
        raise InputError(f"{path} is not a regular file; name another.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name], order="C") for name in archive.files}
    except Exception as error:
        # damaged bytes make zipfile and NumPy raise whatever they happen to run into
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path} cannot be read ({error.strerror}).") from error
        raise InputError(f"{path} is damaged or no npz archive; pass another file.") from error


def read_archive(path: AnyPath, expected_format: str) -> dict[str, np.ndarray]:
    """Return the arrays of an archive that :func:`write_archive` wrote, whole and undamaged.

    ``expected_format`` is what its array ``format`` must say.
    """
    stored = read_arrays(path)
    found = str(stored.get("format", "other data"))
    if found != expected_format:
        raise InputError(
            f"{path} holds {found[:60]!r} where {expected_format!r} is needed; pass another file."
        )
    if str(stored.pop(CHECKSUM, "")) != digest(stored):
        raise InputError(f"{path} was changed since symnmf wrote it; pass another file.")
    return stored
