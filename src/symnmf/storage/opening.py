"""Recognising a matrix on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf.errors import InputError

if TYPE_CHECKING:
    from symnmf.storage.stores import Store


def is_stored(X: Any) -> bool:
    """Whether X is, or names, a matrix on disk that :func:`open_store` takes."""
    if isinstance(X, np.memmap):
        return True
    if isinstance(X, str | Path):
        path = Path(X)
        return os.path.isdir(path) or path.suffix in (".npy", ".h5", ".hdf5", ".zarr")
    return type(X).__module__.split(".")[0] in ("zarr", "h5py") and hasattr(X, "shape")


def open_store(X: Any) -> Store:
    """Open a .npy, .h5 or .zarr path, a folder of blocks, a memory map, a Zarr or h5py array."""
    from symnmf.storage.stores import ArrayFile, ChunkedArray, Store

    if isinstance(X, Store):
        return X
    if isinstance(X, np.memmap):
        return ArrayFile.mapped(X) or ChunkedArray.of_map(X)
    if isinstance(X, str | Path):
        return _open_path(Path(X))
    return ChunkedArray(X, f"{type(X).__module__.split('.')[0]} array X")


def _open_path(path: Path) -> Store:
    if not os.path.exists(path):
        raise InputError(
            f"{str(path)!r} does not exist; name a .npy, .h5 or .zarr array or a folder."
        )
    if path.is_dir():
        from symnmf.storage.folder import BlockFolder
        from symnmf.storage.zarr_folder import VERSION_2, VERSION_3, ZarrFolder

        if any(os.path.lexists(path / name) for name in (VERSION_2, VERSION_3)):
            return ZarrFolder(path)
        return BlockFolder(path)
    if path.suffix == ".npy":
        from symnmf.storage.stores import ArrayFile

        return ArrayFile.open(path)
    if path.suffix in (".h5", ".hdf5"):
        from symnmf.storage.hdf5_file import open_hdf5

        return open_hdf5(path, _library("h5py"))
    raise InputError(
        f"{str(path)!r} cannot be read in blocks; symnmf convert makes a folder of blocks of it."
    )


def _library(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"reading this needs {name}: pip install 'symnmf[blocks]'.") from None
