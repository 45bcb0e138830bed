"""npz archives of our own: written atomically, read as if a stranger had sent them.

An archive is a zip of NumPy arrays, stored as they are: without compression nothing can unpack to
more than the file holds, and without pickle nothing in it runs. Its member ``checksum`` covers the
names, types, shapes and bytes of all others, so that silent damage is refused. A checksum is no
signature: whoever reads an array still checks that it is what compiled code may be given.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import zipfile
from typing import IO

import numpy as np

from symnmf.errors import InputError
from symnmf.outputs import as_path, write_atomically

CHECKSUM = "checksum"
#: NumPy writes the arrays of one archive with headers of some hundred bytes.
MAX_HEADER = 4096
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
    members = {**arrays, CHECKSUM: np.array(_checksum(arrays))}

    def write(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, array in members.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    write_atomically(path, write)


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
    path = as_path(path)
    whole = "is not a whole npz archive written by symnmf; pass another file."
    try:
        with _open_regular(path) as file:
            stored = _read_members(file)
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist.") from error
    except Exception as error:
        # damaged bytes make zipfile and NumPy raise whatever they happen to run into
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path} cannot be read ({error.strerror}).") from error
        raise InputError(f"{path} {whole}") from error
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


def _open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading; a pipe or a device is refused and not waited for."""
    # O_NONBLOCK lets a FIFO open at once, to be refused below instead of waited for
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path} is not a regular file; name another.")
    return os.fdopen(descriptor, "rb")


def _read_members(file: IO[bytes]) -> dict[str, np.ndarray]:
    """Return the arrays of an npz archive; whatever is wrong with it raises some exception."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(set(names)) != len(names) or len(names) > MAX_MEMBERS:
            raise ValueError("it has too many members, or two of one name")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("its members are packed in another way")
        # members may overlap in a zip that means harm, so their sizes are summed
        if sum(member.file_size for member in members) > os.fstat(file.fileno()).st_size:
            raise ValueError("its members hold more than the file")
        return {name.removesuffix(".npy"): _read_array(archive, name) for name in names}


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return shape, Fortran order and type from the header of a .npy file, which is bounded."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):  # what NumPy writes for plain arrays
        raise ValueError(f"its version is {version}")
    first = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    header: tuple[tuple[int, ...], bool, np.dtype] = read(stream, max_header_size=MAX_HEADER)
    return header


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    if not name.endswith(".npy"):
        raise ValueError("one of its members is no array")
    with archive.open(name) as stream:
        shape, fortran, dtype = _read_header(stream)
        if dtype.kind not in "iufUSb" or not dtype.isnative or len(shape) > 4:
            raise ValueError("one of its arrays is not of plain numbers or text")
        needed = math.prod(shape) * dtype.itemsize
        if needed > archive.getinfo(name).file_size:
            raise ValueError("one of its arrays ends early")
        content = bytearray(stream.read())  # to the end, where zipfile compares the CRC
    if len(content) != needed:
        raise ValueError("one of its arrays has another size")
    array = np.frombuffer(content, dtype=dtype) if needed else np.zeros(0, dtype)
    return np.asarray(array.reshape(shape, order="F" if fortran else "C"), order="C")
