"""The names of the rows of a folder of blocks, in a file beside the blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

import numpy as np

from symnmf.archives import open_regular, read_header
from symnmf.errors import InputError
from symnmf.outputs import write_atomically

NUMBERED, NAMED = "names.npy", "names.json"
#: Bytes that the names may have whatever their number, and for each of them.
FREE_BYTES, BYTES_PER_NAME = 2**20, 2**12


def write_names(folder: Path, names: np.ndarray) -> Path:
    """Write one name per row: integers as .npy, text as JSON. Return the file."""
    if names.dtype.kind in "iu":
        path = folder / NUMBERED
        write_atomically(path, lambda stream: np.save(stream, names))
    else:
        path = folder / NAMED
        content = json.dumps(names.tolist()).encode("utf-8")
        write_atomically(path, lambda stream: stream.write(content))
    return path


def read_names(folder: Path, n: int) -> list[Any] | None:
    """Return the names of the ``n`` rows of a folder; None where they are only numbered."""
    for name, read in ((NUMBERED, _integers), (NAMED, _texts)):
        path = folder / name
        try:
            with open_regular(path) as file:
                if file.seek(0, 2) > FREE_BYTES + BYTES_PER_NAME * n:
                    raise ValueError(f"it is far larger than {n} names are")
                file.seek(0)
                names = read(file, n)
            if len(names) != n:
                raise ValueError(f"it has {len(names)} names for {n} rows")
            return names
        except FileNotFoundError:
            continue
        except InputError:
            raise
        except Exception as error:  # JSON may hold anything, in any depth
            said = getattr(error, "strerror", None) or str(error).rstrip(".")[:120]
            raise InputError(
                f"folder {str(folder)!r}: its {name} cannot be read ({said}); convert the matrix "
                f"again, or remove the file."
            ) from error
    return None


def _integers(file: IO[bytes], n: int) -> list[Any]:
    shape, _, dtype = read_header(file)
    if len(shape) != 1 or dtype.kind not in "iu":
        raise ValueError("it is not a list of integers")
    if shape[0] != n:
        raise ValueError(f"it has {shape[0]} names for {n} rows")
    content = file.read()
    if len(content) != n * dtype.itemsize:
        raise ValueError("it is damaged or cut short")
    return list(np.frombuffer(content, dtype).tolist())


def _texts(file: IO[bytes], n: int) -> list[Any]:
    names = json.loads(file.read())
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("it is not a list of names")
    return names
