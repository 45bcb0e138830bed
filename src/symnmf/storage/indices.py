"""The indices of a SciPy sparse matrix, checked before compiled code follows them.

SciPy checks the three arrays of a matrix when it builds one and trusts them from then on, though
anybody may put others in their place. Compiled code, SciPy's conversions included, checks nothing
and would read and write outside the arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError


def checked_csr(X: Any, dtype: np.dtype, name: str) -> Any:
    """Return X as a canonical csr array of ``dtype`` without unused capacity.

    Rows have increasing indices, none twice. X itself is not changed, and where it is in that
    form already its arrays are not copied.
    """
    check_indices(X, name)
    if X.format == "csr":
        matrix = X if X.dtype == dtype else X.astype(dtype)
    else:
        matrix = sp.csr_array(X, dtype=dtype)
        _check_compressed(matrix, name)  # what the other formats keep in lists and dictionaries
    matrix = _trimmed(matrix)
    if not _increasing(matrix.indptr, matrix.indices):
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def check_indices(X: Any, name: str) -> None:
    """Refuse a sparse matrix whose indices leave it; nothing is said of its values."""
    if X.format == "coo":
        _check_coordinates(X, name)
    elif X.format in ("csr", "csc", "bsr"):
        _check_compressed(X, name)


def _trimmed(matrix: Any) -> Any:
    """Return a csr array whose arrays end with its entries; SciPy allows them to be longer."""
    count = int(matrix.indptr[-1])
    # a new object, so that what X has noted about the order of its indices is not believed
    arrays = (matrix.data[:count], matrix.indices[:count], matrix.indptr)
    return sp.csr_array(arrays, shape=matrix.shape)


def _increasing(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """Whether the indices of every row increase, so that none stands twice."""
    if len(indices) < 2:
        return True
    rises = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # between two rows
    return bool(rises.all())


def _check_compressed(X: Any, name: str) -> None:
    major, minor = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        height, width = X.blocksize
        major, minor = major // height, minor // width
    indptr, indices = X.indptr, X.indices
    _check_array(indptr, f"{name}.indptr")
    _check_array(indices, f"{name}.indices")
    rises = len(indptr) == major + 1 and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all())
    if not rises:
        raise InputError(
            f"{name}.indptr must rise from 0 and have {major + 1} entries; build {name} again from "
            f"its rows and columns."
        )
    count = int(indptr[-1])
    if count > len(indices) or count > len(X.data):
        raise InputError(
            f"{name}.indptr ends at {count}, but {name} has {len(indices)} indices and "
            f"{len(X.data)} values; build {name} again from its rows and columns."
        )
    _check_range(indices[:count], minor, f"{name}.indices")


def _check_coordinates(X: Any, name: str) -> None:
    for indices, bound, axis in zip((X.row, X.col), X.shape, ("row", "col"), strict=True):
        _check_array(indices, f"{name}.{axis}")
        if len(indices) != len(X.data):
            raise InputError(
                f"{name}.{axis} has {len(indices)} entries for {len(X.data)} values; build {name} "
                f"again from its rows and columns."
            )
        _check_range(indices, bound, f"{name}.{axis}")


def _check_array(array: np.ndarray, what: str) -> None:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{what} must be a 1-D array of integers, got {array.ndim}-D of type {array.dtype}."
        )


def _check_range(indices: np.ndarray, bound: int, what: str) -> None:
    if len(indices) and not (indices.min() >= 0 and indices.max() < bound):
        raise InputError(
            f"{what} must lie between 0 and {bound - 1}, and it reaches from {indices.min()} to "
            f"{indices.max()}."
        )
