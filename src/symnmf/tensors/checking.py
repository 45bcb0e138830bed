"""From what a user has to a tensor that has been checked."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.naming import lookup
from symnmf.parallel import Threads
from symnmf.storage.border import ASYMMETRY_ALLOWED, check_range, check_values
from symnmf.storage.dtypes import float_dtype
from symnmf.tensors.storage import DenseTensor, SparseTensor, SymmetricTensor

Repeated = Literal["observed", "unobserved"]
ORDERS = (3, 4)
OBSERVED = {"observed": True, "unobserved": False}


@checked()
def as_tensor(
    T: Any, *, repeated: Repeated | None = None, n_jobs: int | None = None, name: str = "T"
) -> SymmetricTensor:
    """Check T and wrap it, without a copy where its layout allows.

    Parameters
    ----------
    T : array-like of three or four dimensions, or SymmetricTensor
        All sides equal, symmetric in every pair of indices, finite, nonnegative. float32 and
        float64 are kept; other numbers become float64.
    repeated : {"observed", "unobserved"} or None
        Whether entries with a repeated index, such as T[i, i, j], are data. If unobserved, their
        values are ignored. None for "observed", or for the setting of a SymmetricTensor.
    n_jobs : int or None
        Threads for every operation on T; None for all cores, or those a SymmetricTensor has.
    name : str
        What error messages call the argument.
    """
    observed = None if repeated is None else lookup(repeated, OBSERVED, "repeated")
    if isinstance(T, SymmetricTensor):
        if observed not in (None, T.repeats_observed):
            raise InputError(
                f"{name} was made with other entries observed than repeated={repeated!r} says; "
                f"leave repeated out, or make {name} again with it."
            )
        return T if n_jobs is None else T.with_threads(Threads(n_jobs))
    array = _array(T, name)
    tensor = DenseTensor(array, Threads(n_jobs), repeats_observed=observed is not False)
    _check_entries(tensor.array, name)
    return tensor


@checked()
def from_tuples(
    indices: Any,
    values: Any = None,
    *,
    side: int | None = None,
    repeated: Repeated = "observed",
    n_jobs: int | None = None,
) -> SparseTensor:
    """Return a sparse symmetric tensor from its index tuples, each given once.

    Parameters
    ----------
    indices : array-like of shape (m, 3) or (m, 4)
        Tuples of whole numbers from 0. One tuple stands for all its orders: (0, 1, 2) also sets
        T[2, 0, 1]. Entries of T that no tuple names are 0.
    values : array-like of shape (m,) or None
        Finite, nonnegative. None for 1 each.
    side : int or None
        n; None for one more than the largest index.
    repeated : {"observed", "unobserved"}
        Whether the entries with a repeated index, such as T[i, i, j], count. If not, tuples that
        hold an index twice are left out.
    n_jobs : int or None
        Threads for every operation on T; None for all cores.

    Examples
    --------
    >>> from symnmf import tensors
    >>> tensors.from_tuples([(0, 1, 2), (1, 2, 3)], [1.0, 0.5])
    SparseTensor(4 x 4 x 4, float64, 2 tuples)
    """
    observed, threads = lookup(repeated, OBSERVED, "repeated"), Threads(n_jobs)
    tuples = _tuples(indices)
    data = _values(values, len(tuples))
    largest = int(tuples.max(initial=0))
    n = largest + 1 if side is None else int(side)
    if n <= largest:
        raise InputError(
            f"side must be a whole number above the largest index {largest}, got {side!r}."
        )
    tuples = np.sort(tuples, axis=1)
    order = np.lexsort(tuples.T[::-1])
    tuples, data = tuples[order], data[order]
    same = np.flatnonzero((tuples[1:] == tuples[:-1]).all(axis=1))
    if same.size:
        raise InputError(
            f"indices holds {same.size} tuple(s) more than once (in some order of indices), the "
            f"first {tuple(tuples[same[0]].tolist())}; give each once, with the sum of its values."
        )
    kind = np.int32 if n < 2**31 else np.int64
    return SparseTensor(tuples.astype(kind), data, n, threads, repeats_observed=observed)


def _array(T: Any, name: str) -> np.ndarray:
    if hasattr(T, "adjacency") or hasattr(T, "get_edgelist"):
        raise InputError(
            f"{name} is a graph, not a tensor; pass symnmf.tensors.triangles({name})[0], or call "
            f"symnmf.communities({name}, n_clusters, order=3)."
        )
    if T is None or isinstance(T, str | bytes | os.PathLike | dict | np.ma.MaskedArray):
        raise InputError(f"{name} must be an array or a tensor, got {type(T).__name__}.")
    array = _read(T, name)
    dtype = float_dtype(array.dtype, name)
    if array.ndim not in ORDERS:
        instead = "; symnmf.factorize takes matrices as they are" if array.ndim == 2 else ""
        raise InputError(f"{name} must be of order 3 or 4, got {array.ndim} dimension(s){instead}.")
    if len(set(array.shape)) != 1 or not array.size:
        sides = " x ".join(map(str, array.shape))
        raise InputError(f"{name} must have equal sides of at least 1, got {sides}.")
    return np.ascontiguousarray(array, dtype=dtype)


def _read(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{name} cannot be read as an array; its rows may differ in length."
        ) from error


def _check_entries(array: np.ndarray, name: str) -> None:
    with np.errstate(invalid="ignore"):  # min and max carry NaN along
        smallest, largest = float(array.min()), float(array.max())
    check_values(smallest, largest, name)
    check_range(largest, array.dtype, name)
    asymmetry = 0.0
    for i, part in enumerate(array):
        # swaps of neighbouring indices generate all orders
        for mirror in (array[:, i], *(part.swapaxes(a, a + 1) for a in range(part.ndim - 1))):
            asymmetry = max(asymmetry, float(np.abs(part - mirror).max()))
    if asymmetry > ASYMMETRY_ALLOWED[array.dtype] * largest:
        raise InputError(
            f"{name} is not symmetric: entries differ from those with the same indices in another "
            f"order by up to {asymmetry:.6g} (the largest entry is {largest:.6g}); pass the mean "
            f"over all orders if that is what you mean."
        )


def _tuples(indices: Any) -> np.ndarray:
    tuples = _read(indices, "indices")
    if tuples.ndim != 2 or tuples.shape[1] not in ORDERS:
        raise InputError(
            f"indices must have a row of 3 or 4 numbers for each tuple, got shape {tuples.shape}."
        )
    if tuples.dtype.kind not in "iu":
        raise InputError(
            f"indices must hold whole numbers, got dtype {tuples.dtype}; from_hyperedges takes "
            f"names."
        )
    if tuples.size and tuples.min() < 0:
        raise InputError(f"indices must be at least 0, got {tuples.min()}.")
    return tuples


def _values(values: Any, count: int) -> np.ndarray:
    data = np.ones(count) if values is None else _read(values, "values")
    data = data.astype(float_dtype(data.dtype, "values"), copy=False)
    if data.shape != (count,):
        raise InputError(
            f"values must hold one number for each of the {count} tuple(s), got shape {data.shape}."
        )
    smallest, largest = float(data.min(initial=0.0)), float(data.max(initial=0.0))
    check_values(smallest, largest, "values")
    check_range(largest, data.dtype, "values")
    return data
