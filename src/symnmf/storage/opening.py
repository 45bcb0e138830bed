"""Recognising a matrix on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from symnmf.archives import open_regular
from symnmf.errors import InputError
from symnmf.storage.folder import BlockFolder
from symnmf.storage.stores import ArrayFile, ChunkedArray, Store


def is_stored(X: Any) -> bool:
    """Whether X is, or names, a matrix on disk that :func:`open_store` takes."""
    if isinstance(X, np.memmap):
        return True
    if isinstance(X, str | Path):
        path = Path(X)
        return path.is_dir() or path.suffix in (".npy", ".h5", ".hdf5", ".zarr")
    return type(X).__module__.split(".")[0] in ("zarr", "h5py") and hasattr(X, "shape")


def open_store(X: Any) -> Store:
    """Open a .npy, .h5 or .zarr path, a folder of blocks, a memory map, a Zarr or h5py array."""
    if isinstance(X, Store):
        return X
    if isinstance(X, np.memmap):
        return ArrayFile.mapped(X) or ChunkedArray.of_map(X)
    if isinstance(X, str | Path):
        return _open_path(Path(X))
    return ChunkedArray(X, f"{type(X).__module__.split('.')[0]} array X")


def _open_path(path: Path) -> Store:
    if not path.exists():
        raise InputError(
            f"{str(path)!r} does not exist; name a .npy, .h5 or .zarr array or a folder."
        )
    if path.is_dir():
        if (path / "zarr.json").exists() or (path / ".zarray").exists():
            zarr = _library("zarr")
            try:
                array = zarr.open_array(str(path), mode="r")
            except Exception as error:  # whatever is wrong with what describes the array
                raise InputError(
                    f"{str(path)!r} is not a readable Zarr array ({type(error).__name__}: "
                    f"{str(error).rstrip('.')[:120]}); write it again."
                ) from error
            return ChunkedArray(array, f"Zarr array {str(path)!r}")
        return BlockFolder(path)
    if path.suffix == ".npy":
        return ArrayFile.open(path)
    if path.suffix in (".h5", ".hdf5"):
        return _open_hdf5(path)
    raise InputError(
        f"{str(path)!r} cannot be read in blocks; symnmf convert makes a folder of blocks of it."
    )


def _open_hdf5(path: Path) -> Store:
    h5py = _library("h5py")
    found: list[Any] = []
    try:
        open_regular(path).close()
        file = h5py.File(path, "r")
        file.visititems(
            lambda _, item: (
                found.append(item) if isinstance(item, h5py.Dataset) and item.ndim == 2 else None
            )
        )
    except InputError:
        raise
    except Exception as error:  # whatever is wrong inside
        said = str(error).rstrip(".")[:200]
        raise InputError(f"file {str(path)!r} is not a readable HDF5 file ({said}).") from error
    if len(found) != 1:
        names = ", ".join(item.name for item in found) or "none"
        raise InputError(
            f"file {str(path)!r} holds {len(found)} two-dimensional arrays ({names[:200]}); pass "
            f"the h5py dataset itself."
        )
    return ChunkedArray(found[0], f"HDF5 array {str(path)!r}")


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"reading this needs {name}: pip install 'symnmf[blocks]'.") from None
