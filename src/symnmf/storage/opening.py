"""Recognising and opening a matrix on disk, by the library that owns its format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.errors import InputError, imported

ENDINGS = (".npy", ".h5", ".hdf5", ".zarr")


def is_stored(X: Any) -> bool:
    """Whether X is, or names, a dense matrix on disk."""
    if isinstance(X, np.memmap):
        return True
    if isinstance(X, str | Path):
        return Path(X).suffix in ENDINGS
    return type(X).__module__.split(".")[0] in ("zarr", "h5py") and hasattr(X, "shape")


def open_stored(X: Any, name: str = "X") -> Any:
    """Return X, or the array that a path names: anything with shape, dtype and slices."""
    if not isinstance(X, str | Path):
        if not all(hasattr(X, part) for part in ("shape", "dtype", "__getitem__")):
            raise InputError(
                f"{name} must be a memory map, a Zarr or an HDF5 array or the path of one, got "
                f"{type(X).__name__}."
            )
        return X
    path = Path(X)
    if not os.path.exists(path):  # False for a name that no system takes
        raise InputError(f"{str(path)!r} does not exist; name a .npy, .h5 or .zarr array.")
    if path.suffix not in ENDINGS:
        raise InputError(f"{str(path)!r} cannot be read in blocks; save it as a .npy array.")
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if path.suffix == ".zarr":
            return imported("zarr", "blocks", "reading this").open_array(os.fspath(path), mode="r")
        return _only_matrix(imported("h5py", "blocks", "reading this"), path)
    except InputError:
        raise
    except Exception as error:  # the libraries raise whatever they run into
        reason = str(error).rstrip(".")[:200] or type(error).__name__
        raise InputError(
            f"{str(path)!r} is not a readable {path.suffix} array ({reason}); write it again."
        ) from error


def _only_matrix(h5py: Any, path: Path) -> Any:
    """Return the only two-dimensional array of an HDF5 file."""
    matrices: list[Any] = []

    def visit(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim == 2:
            matrices.append(item)

    h5py.File(path, "r").visititems(visit)
    if len(matrices) != 1:
        raise InputError(
            f"{str(path)!r} holds {len(matrices)} two-dimensional arrays; pass the h5py dataset "
            f"itself."
        )
    return matrices[0]
