"""What a user has, checked and wrapped: :func:`as_symmetric`."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.calls import read_once
from symnmf.errors import InputError, imported
from symnmf.interchange import is_anndata, is_dask, is_tensor, to_host
from symnmf.ops import HostOps
from symnmf.parallel import Threads
from symnmf.storage.border import (
    NAN_IN_ARRAY,
    NAN_IN_SPARSE,
    NEGATIVE,
    check_asymmetry,
    check_range,
    check_shape,
    check_values,
)
from symnmf.storage.dense import DenseMatrix
from symnmf.storage.dtypes import as_array, float_dtype
from symnmf.storage.host import HostMatrix
from symnmf.storage.indices import checked_csr
from symnmf.storage.opening import is_stored, open_stored
from symnmf.storage.sparse import SparseMatrix
from symnmf.storage.symmetric import SymmetricArray, SymmetricMatrix

#: Differences between two sums of the same numbers, relative to them, that are rounding.
ROUNDED = 1e-10


@checked()
def as_symmetric(
    X: Any,
    *,
    n_jobs: int | None = None,
    device: Any = None,
    name: str = "X",
    allow_negative: bool = False,
) -> Any:
    """Check X and wrap it, without a copy where its layout allows.

    Parameters
    ----------
    X : array-like, scipy sparse array or matrix, torch tensor, SymmetricMatrix, or on disk
        Square, symmetric, finite, nonnegative. What :class:`symnmf.storage.Blocks` takes
        (a path, a memory map, a Zarr or HDF5 array) is read block by block unless it is
        as small as a block; a Dask array is computed by the current scheduler.
        float32 and float64 are kept; float16 becomes float32; integers, booleans and longer
        floats become float64. A SymmetricMatrix, such as
        :class:`symnmf.storage.LowRank`, has checked itself.
    n_jobs : int or None
        Threads for every operation on X; None for all cores, or those a SymmetricMatrix has.
    device : str, torch.device or None
        The device to work on: "cuda" for a GPU, through torch; "cpu" for this machine's memory;
        None for the device of X.
    name : str
        What error messages call the argument.
    allow_negative : bool
        Whether entries may be negative; not for what is read in blocks.
    """
    if device is not None or is_tensor(X):
        place = torch_device(X, device)
        if place is not None:
            from symnmf.storage.torch_matrix import on_torch

            return on_torch(X, place, name=name, signed=allow_negative)
        X = to_host(X)
    if isinstance(X, SymmetricArray) and n_jobs is None:
        return X
    threads = Threads(n_jobs)
    if isinstance(X, SymmetricArray):
        return X.with_threads(threads)
    if sp.issparse(X):
        return checked_sparse(X, threads, name, allow_negative)
    if is_dask(X):
        from symnmf.storage.dask import DaskMatrix

        return DaskMatrix(X, n_jobs=n_jobs, name=name)
    if is_stored(X):
        X = open_stored(X, name)
        if is_small(X):
            return checked_dense(X[:], threads, name, allow_negative)
        from symnmf.storage.blocks import Blocks

        return Blocks(X, n_jobs=n_jobs, name=name)
    return checked_dense(X, threads, name, allow_negative)


def is_storage(X: Any) -> bool:
    """Whether X stays where it is, so that only products with it are made."""
    if isinstance(X, str | os.PathLike):
        return is_stored(X)
    return isinstance(X, SymmetricArray) or is_dask(X)


def in_memory(X: SymmetricArray) -> Any:
    """Return the array or the csr_array that X holds; X itself where it holds neither."""
    if isinstance(X, DenseMatrix):
        return X.array
    if isinstance(X, SparseMatrix):
        return sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    return X


def stored(A: Any, n_jobs: int | None = None) -> HostMatrix:
    """Return the storage of an array or a csr_array that was checked and has no negative entry.

    The other way round than :func:`in_memory`, without a second check.
    """
    if not sp.issparse(A):
        return DenseMatrix(A, Threads(n_jobs))
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return SparseMatrix(A.indptr, A.indices, A.data, Threads(n_jobs))


def on_device(X: Any, device: Any = "cuda") -> SymmetricMatrix:
    """Return X on a device, checked, for :func:`symnmf.factorize` and everything else to take.

    Parameters
    ----------
    X : array-like, scipy sparse or torch tensor
        As for :func:`symnmf.extending.as_symmetric`.
    device : str or torch.device
        A device of torch's, "cpu" among them (for comparison: what runs there is plain torch).
    """
    place = _usable(device)
    from symnmf.storage.torch_matrix import on_torch

    return on_torch(X, place)


def torch_device(X: Any, device: Any) -> Any:
    """Return torch's device that X is to be worked on, None for this machine's memory."""
    kind = str(X.device if device is None else device).partition(":")[0]
    if kind == "cpu":
        if isinstance(X, SymmetricMatrix) and not isinstance(X, HostMatrix):
            raise InputError(
                f"device='cpu' is not supported for a {type(X).__name__}; pass X itself."
            )
        return None
    return _usable(X.device if device is None else device)


def _usable(device: Any) -> Any:
    """Return torch's device of this name, or say what it needs."""
    imported("torch", "gpu", f"device={device!r}")
    from symnmf.storage.torch_matrix import usable_device

    return usable_device(device)


def is_small(source: Any) -> bool:
    """Whether an array on disk is no larger than a block of it would be."""
    from symnmf.storage.blocks import AT_A_TIME, MEMORY

    return math.prod(source.shape) * np.dtype(source.dtype).itemsize <= MEMORY // AT_A_TIME


def refuse_no_matrix(X: Any, name: str) -> None:
    """Refuse what is no matrix but holds one or names one, and say how to come by it."""
    if hasattr(X, "adjacency") or hasattr(X, "get_edgelist"):
        raise InputError(
            f"{name} is a graph, not a matrix; call symnmf.communities on it, or take its matrix "
            f"from symnmf.graphs.from_graph({name})[0]."
        )
    if is_anndata(X):
        raise InputError(
            f"{name} is an AnnData; call symnmf.scanpy.cluster on it, or pass "
            f"{name}.obsp['connectivities']."
        )
    if X is None or isinstance(X, str | bytes | os.PathLike | dict):
        raise InputError(
            f"{name} must be a matrix, got {type(X).__name__}; symnmf.io.read reads "
            f"files, and a .npy, .h5 or .zarr path is read in blocks."
        )
    if isinstance(X, np.ma.MaskedArray):
        raise InputError(
            f"{name} is a masked array; pass {name}.filled(0) with mask=~{name}.mask to "
            f"symnmf.factorize to leave the masked entries out of the fit."
        )


def checked_dense(X: Any, threads: Threads, name: str, signed: bool = False) -> DenseMatrix:
    """Wrap an array, or say what is wrong with it; ``signed`` entries may be negative."""
    refuse_no_matrix(X, name)
    read_once()
    array = as_array(X, name)
    dtype = float_dtype(array.dtype, name)
    check_shape(array.shape, name)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        array = array.T
    array = np.ascontiguousarray(array, dtype=dtype)
    n = array.shape[0]
    with np.errstate(invalid="ignore"):
        rows = max(1, HostOps.block // n)
        smallest, largest, asymmetry = np.inf, -np.inf, 0.0
        for first in range(0, n, rows):
            block = array[first : first + rows]
            # min and max carry NaN along, so the checks below see it
            smallest = float(np.minimum(smallest, block.min()))
            largest = float(np.maximum(largest, block.max()))
        check_values(smallest, largest, name, signed=signed, nan=NAN_IN_ARRAY, negative=NEGATIVE)
        check_range(max(largest, -smallest), dtype, name)
        for first in range(0, n, rows):
            block = array[first : first + rows, first:]
            mirror = array[first:, first : first + rows]
            asymmetry = max(asymmetry, float(np.abs(block - mirror.T).max()))
    if check_asymmetry(asymmetry, max(largest, -smallest), dtype, name):
        array = array + array.T
        array *= 0.5
    matrix = DenseMatrix(array, threads)
    matrix.signed, matrix._largest = smallest < 0, max(largest, -smallest)
    return matrix


def checked_sparse(
    X: Any, threads: Threads, name: str, signed: bool = False, nan: str = NAN_IN_SPARSE
) -> SparseMatrix:
    """Wrap a sparse matrix, or say what is wrong with it; ``signed`` as above.

    ``nan`` is what else can be done about NaN, in an X whose entries come from something else.
    """
    dtype = float_dtype(X.dtype, name)
    check_shape(X.shape, name)
    read_once()
    matrix = checked_csr(X, dtype, name)
    smallest = largest = 0.0
    if matrix.nnz:
        smallest, largest = float(matrix.data.min()), float(matrix.data.max())
        check_values(smallest, largest, name, signed=signed, nan=nan, negative=NEGATIVE)
        check_range(max(largest, -smallest), dtype, name)
        mirror = None if is_mapped(matrix.data) else matrix.T.tocsr()
        if mirror is None:
            asymmetry = _seen_asymmetry(matrix)
        else:
            asymmetry = float(abs(mirror - matrix).max())
        rounded = check_asymmetry(asymmetry, max(largest, -smallest), dtype, name)
        if rounded and mirror is not None:
            matrix = sp.csr_array((matrix + mirror) * dtype.type(0.5))
            matrix.sort_indices()
    data = np.ascontiguousarray(matrix.data, dtype=dtype)
    found = SparseMatrix(matrix.indptr, matrix.indices, data, threads)
    found.signed, found._largest = smallest < 0, max(largest, -smallest)
    return found


def is_mapped(array: Any) -> bool:
    """Whether the numbers of an array are those of a file, in any part of a memory map."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def _seen_asymmetry(matrix: sp.csr_array) -> float:
    """Return about how much X w and X^T w differ: for an X on disk, of which one pass is made.

    Every w_i is random and at least 1, so an entry without its mirror image is seen in its row.
    """
    w = 1.0 + np.random.default_rng(0).random(len(matrix.indptr) - 1)
    rows, columns = np.empty_like(w), np.zeros_like(w)
    ends = np.searchsorted(matrix.indptr, np.arange(0, matrix.nnz, HostOps.block), "right")
    for first, last in itertools.pairwise([0, *np.unique(ends).tolist(), len(w)]):
        part = matrix[first:last]
        rows[first:last] = part @ w
        columns += part.T @ w[first:last]
    apart = np.abs(rows - columns)
    return float(apart[apart > ROUNDED * np.abs(rows)].max(initial=0.0))
