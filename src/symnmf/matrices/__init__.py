"""Where X lives. :func:`as_symmetric` takes what a user has and gives what a solver needs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.matrices.dense import DenseMatrix
from symnmf.matrices.dtypes import float_dtype
from symnmf.matrices.host import HostMatrix
from symnmf.matrices.lowrank import LowRank
from symnmf.matrices.sparse import SparseMatrix
from symnmf.matrices.symmetric import Entries, SymmetricMatrix
from symnmf.parallel import Threads

__all__ = [
    "DenseMatrix",
    "Entries",
    "HostMatrix",
    "LowRank",
    "SparseMatrix",
    "SymmetricMatrix",
    "as_symmetric",
]

#: Largest |X - X^T| relative to the largest entry that passes for rounding.
ASYMMETRY_ALLOWED = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}


def as_symmetric(X: Any, *, n_jobs: int | None = None, name: str = "X") -> SymmetricMatrix:
    """Check X and wrap it, without a copy where its layout allows.

    Parameters
    ----------
    X : array-like, scipy sparse array or matrix, or SymmetricMatrix
        Square, symmetric, finite, nonnegative. float32 and float64 are kept; float16 becomes
        float32; integers, booleans and longer floats become float64. A SymmetricMatrix, such as
        :class:`LowRank`, has checked itself.
    n_jobs : int or None
        Threads for every operation on X; None for all cores, or those a SymmetricMatrix has.
    name : str
        What error messages call the argument.
    """
    if isinstance(X, SymmetricMatrix) and n_jobs is None:
        return X
    threads = Threads(n_jobs)
    if isinstance(X, SymmetricMatrix):
        return X.on(threads)
    if sp.issparse(X):
        return _checked_sparse(X, threads, name)
    return _checked_dense(X, threads, name)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise InputError(
            f"{name} must be a square two-dimensional matrix, got {len(shape)} dimension(s)."
        )
    if shape[0] != shape[1]:
        raise InputError(
            f"{name} must be square, got shape {shape[0]} x {shape[1]}; symnmf.SymNMF builds a "
            f"similarity matrix from samples x features."
        )
    if shape[0] == 0:
        raise InputError(f"{name} is empty (0 x 0); pass a matrix with at least one row.")


def _check_values(smallest: float, largest: float, name: str) -> None:
    if not (np.isfinite(smallest) and np.isfinite(largest)):
        raise InputError(f"{name} has NaN or infinite entries; remove or replace them first.")
    if smallest < 0:
        raise InputError(
            f"{name} has negative entries (the smallest is {smallest:.6g}); shift or clip them, "
            f"for instance with np.maximum({name}, 0)."
        )


def _check_asymmetry(asymmetry: float, largest: float, dtype: np.dtype, name: str) -> None:
    if asymmetry > ASYMMETRY_ALLOWED[dtype] * largest:
        raise InputError(
            f"{name} is not symmetric: entries differ from their mirror image by up to "
            f"{asymmetry:.6g} (the largest entry is {largest:.6g}); pass ({name} + {name}.T) / 2 "
            f"if that is what you mean."
        )


def _checked_dense(X: Any, threads: Threads, name: str) -> DenseMatrix:
    if hasattr(X, "adjacency") or hasattr(X, "get_edgelist"):
        raise InputError(
            f"{name} is a graph, not a matrix; call symnmf.communities on it, or take its matrix "
            f"from symnmf.graphs.from_graph({name})[0]."
        )
    if X is None or isinstance(X, str | bytes | os.PathLike | dict):
        raise InputError(
            f"{name} must be a matrix, got {type(X).__name__}; symnmf.readers.read_matrix reads "
            f"files."
        )
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; fill the masked entries first.")
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} cannot be read as a matrix: {error}.") from error
    dtype = float_dtype(array.dtype, name)
    _check_shape(array.shape, name)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        array = array.T
    array = np.ascontiguousarray(array, dtype=dtype)
    n = array.shape[0]
    with np.errstate(invalid="ignore"):
        rows = max(1, 262_144 // n)
        smallest, largest, asymmetry = np.inf, -np.inf, 0.0
        for first in range(0, n, rows):
            block = array[first : first + rows]
            # min and max carry NaN along, so the checks below see it
            smallest = float(np.minimum(smallest, block.min()))
            largest = float(np.maximum(largest, block.max()))
        _check_values(smallest, largest, name)
        for first in range(0, n, rows):
            block = array[first : first + rows, first:]
            mirror = array[first:, first : first + rows]
            asymmetry = max(asymmetry, float(np.abs(block - mirror.T).max()))
    _check_asymmetry(asymmetry, largest, dtype, name)
    return DenseMatrix(array, threads)


def _checked_sparse(X: Any, threads: Threads, name: str) -> SparseMatrix:
    dtype = float_dtype(X.dtype, name)
    _check_shape(X.shape, name)
    canonical = X.format == "csr" and X.has_canonical_format and X.dtype == dtype
    matrix = X if canonical else sp.csr_array(X, dtype=dtype, copy=True)
    if not canonical:
        matrix.sum_duplicates()
    if matrix.nnz:
        _check_values(float(matrix.data.min()), float(matrix.data.max()), name)
        mirror = matrix.T.tocsr()
        mirror.sort_indices()
        same_pattern = np.array_equal(mirror.indptr, matrix.indptr) and np.array_equal(
            mirror.indices, matrix.indices
        )
        if same_pattern:
            asymmetry = float(np.abs(mirror.data - matrix.data).max())
        else:
            asymmetry = float(abs(mirror - matrix).max())
        _check_asymmetry(asymmetry, float(matrix.data.max()), dtype, name)
    data = np.ascontiguousarray(matrix.data, dtype=dtype)
    return SparseMatrix(matrix.indptr, matrix.indices, data, threads)
