"""Where X lives. :func:`as_symmetric` takes what a user has and gives what a solver needs."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.matrices.blocks import AT_A_TIME, MEMORY, Blocks
from symnmf.matrices.checks import check_asymmetry, check_shape, check_values
from symnmf.matrices.dense import DenseMatrix
from symnmf.matrices.dtypes import float_dtype
from symnmf.matrices.host import HostMatrix
from symnmf.matrices.lowrank import LowRank
from symnmf.matrices.opening import is_stored, open_store
from symnmf.matrices.sparse import SparseMatrix
from symnmf.matrices.symmetric import Entries, SymmetricMatrix
from symnmf.matrices.tiles import Tile
from symnmf.parallel import Threads

__all__ = [
    "Blocks",
    "DenseMatrix",
    "Entries",
    "HostMatrix",
    "LowRank",
    "SparseMatrix",
    "SymmetricMatrix",
    "as_symmetric",
]


def as_symmetric(X: Any, *, n_jobs: int | None = None, name: str = "X") -> SymmetricMatrix:
    """Check X and wrap it, without a copy where its layout allows.

    Parameters
    ----------
    X : array-like, scipy sparse array or matrix, SymmetricMatrix, or a matrix on disk
        Square, symmetric, finite, nonnegative. What :class:`Blocks` takes (a path, a memory map,
        a Zarr or HDF5 array) is read block by block unless it is as small as a block.
        float32 and float64 are kept; float16 becomes float32; integers, booleans and longer
        floats become float64. A SymmetricMatrix, such as :class:`LowRank`, has checked itself.
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
    if is_stored(X):
        return _stored(X, n_jobs, threads, name)
    return _checked_dense(X, threads, name)


def _stored(X: Any, n_jobs: int | None, threads: Threads, name: str) -> SymmetricMatrix:
    """Take a matrix on disk in blocks, or whole where it is no larger than a block."""
    store = open_store(X)
    whole = Tile(0, store.n, 0, store.n)
    if store.slices and store.n**2 * store.dtype.itemsize <= MEMORY // AT_A_TIME:
        return _checked_dense(store.read(whole), threads, name)
    return Blocks(store, n_jobs=n_jobs, name=name)


def _checked_dense(X: Any, threads: Threads, name: str) -> DenseMatrix:
    if hasattr(X, "adjacency") or hasattr(X, "get_edgelist"):
        raise InputError(
            f"{name} is a graph, not a matrix; call symnmf.communities on it, or take its matrix "
            f"from symnmf.graphs.from_graph({name})[0]."
        )
    if X is None or isinstance(X, str | bytes | os.PathLike | dict):
        raise InputError(
            f"{name} must be a matrix, got {type(X).__name__}; symnmf.readers.read_matrix reads "
            f"files, and a .npy, .h5 or .zarr path or a folder of blocks is read in blocks."
        )
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; fill the masked entries first.")
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} cannot be read as a matrix: {error}.") from error
    dtype = float_dtype(array.dtype, name)
    check_shape(array.shape, name)
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
        check_values(smallest, largest, name)
        for first in range(0, n, rows):
            block = array[first : first + rows, first:]
            mirror = array[first:, first : first + rows]
            asymmetry = max(asymmetry, float(np.abs(block - mirror.T).max()))
    check_asymmetry(asymmetry, largest, dtype, name)
    return DenseMatrix(array, threads)


def _checked_sparse(X: Any, threads: Threads, name: str) -> SparseMatrix:
    dtype = float_dtype(X.dtype, name)
    check_shape(X.shape, name)
    canonical = X.format == "csr" and X.has_canonical_format and X.dtype == dtype
    matrix = X if canonical else sp.csr_array(X, dtype=dtype, copy=True)
    if not canonical:
        matrix.sum_duplicates()
    if matrix.nnz:
        check_values(float(matrix.data.min()), float(matrix.data.max()), name)
        mirror = matrix.T.tocsr()
        mirror.sort_indices()
        same_pattern = np.array_equal(mirror.indptr, matrix.indptr) and np.array_equal(
            mirror.indices, matrix.indices
        )
        if same_pattern:
            asymmetry = float(np.abs(mirror.data - matrix.data).max())
        else:
            asymmetry = float(abs(mirror - matrix).max())
        check_asymmetry(asymmetry, float(matrix.data.max()), dtype, name)
    data = np.ascontiguousarray(matrix.data, dtype=dtype)
    return SparseMatrix(matrix.indptr, matrix.indices, data, threads)
