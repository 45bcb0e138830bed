"""npz archives of our own: written atomically, read as if a stranger had sent them.

An archive is a zip of NumPy arrays, stored as they are: without compression nothing can unpack to
more than the file holds, and without pickle nothing in it runs. Its member ``checksum`` covers the
names, types, shapes and bytes of all others, so that silent damage is refused. A checksum is no
signature: whoever reads an array still checks that it is what compiled code may be given.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from symnmf.errors import InputError
from symnmf.outputs import as_path, write_atomically

CHECKSUM = "checksum"
MAX_MEMBERS = 100


def _checksum(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def write_archive(path: str | os.PathLike[str], arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to an npz archive with a checksum, atomically."""
    members: dict[str, Any] = {**arrays, CHECKSUM: np.array(_checksum(arrays))}
    write_atomically(path, lambda stream: np.savez(stream, **members))


def read_archive(path: str | os.PathLike[str], expected_format: str) -> dict[str, np.ndarray]:
    """Read an archive that :func:`write_archive` wrote, whole and undamaged.

    Parameters
    ----------
    path : str or path
        A regular file.
    expected_format : str
        What its array ``format`` must say.

    Returns
    -------
    dict of str to ndarray
        Numbers and text, in the machine's byte order and C order, to be written to at will.

    Raises
    ------
    InputError
        Whatever is wrong with the file.
    """
    path = Path(as_path(path))
    if not path.exists():
        raise InputError(f"{path} does not exist.")
    if not path.is_file():  # a pipe would be waited for
        raise InputError(f"{path} is not a regular file; name another.")
    try:
        with open(path, "rb") as file:
            stored = _read_members(file)
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


def _read_members(file: IO[bytes]) -> dict[str, np.ndarray]:
    """Return the arrays of an npz archive; whatever is wrong with it raises some exception."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    if len(members) > MAX_MEMBERS or any(m.compress_type != zipfile.ZIP_STORED for m in members):
        raise ValueError("it has too many members, or packed ones")
    # members may overlap in a zip that means harm, so their sizes are summed
    if sum(member.file_size for member in members) > os.fstat(file.fileno()).st_size:
        raise ValueError("its members hold more than the file")
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: np.array(archive[name], order="C") for name in archive.files}
    if any(
        array.dtype.kind not in "iufUSb" or not array.dtype.isnative for array in arrays.values()
    ):
        raise ValueError("one of its arrays is not of plain numbers or text")
    return arrays
