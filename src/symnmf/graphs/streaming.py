"""Points that do not fit into memory: memory maps, and Dask arrays put into one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf.errors import InputError

if TYPE_CHECKING:
    from symnmf.graphs.neighbors import Array

ROWS_AT_ONCE = 1 << 16


def is_streamed(X: Any) -> bool:
    """Whether X is a memory map or a Dask array of points."""
    return isinstance(X, np.memmap) or (
        type(X).__module__.split(".")[0] == "dask" and hasattr(X, "chunks")
    )


def scratch(shape: tuple[int, int], dtype: Any) -> np.memmap:
    """Return an array in a file that is gone when the array is."""
    with tempfile.NamedTemporaryFile(prefix="symnmf-", suffix=".points") as file:
        return np.memmap(file, dtype, "w+", shape=shape)


def _parts(X: Any) -> Iterator[tuple[int, Array]]:
    """Yield runs of rows and where they begin, each computed or read by itself."""
    if isinstance(X, np.memmap):
        for first in range(0, len(X), ROWS_AT_ONCE):
            yield first, np.asarray(X[first : first + ROWS_AT_ONCE])
        return
    if any(np.isnan(size) for axis in X.chunks for size in axis):
        raise InputError(
            "X is a Dask array with unknown chunk sizes; call X.compute_chunk_sizes() first."
        )
    first = 0
    for size in X.chunks[0]:
        yield first, np.asarray(X[first : first + size].compute())
        first += size


def mapped(X: Any, change: Callable[[Array, int], Array] | None = None) -> Array:
    """Return points as an array in a file, float32 where X is, checked run by run.

    Parameters
    ----------
    X : memory map or Dask array of shape (n, d)
    change : callable, optional
        What becomes of a run of rows, given where it begins.
    """
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "fiub":
        raise InputError(
            f"X must be a nonempty two-dimensional array of numbers, not of shape {X.shape} and "
            f"type {X.dtype}."
        )
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    keep = isinstance(X, np.memmap) and X.dtype == dtype and change is None
    out = X if keep else scratch(X.shape, dtype)
    for first, rows in _parts(X):
        bad = rows.size - np.count_nonzero(np.isfinite(rows))
        if bad:
            raise InputError(
                f"X has {bad} NaN or infinite entries in rows {first} to {first + len(rows) - 1}; "
                f"impute or drop them first."
            )
        if not keep:
            out[first : first + len(rows)] = rows if change is None else change(rows, first)
    return out
