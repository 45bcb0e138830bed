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
    if isinstance(T, SymmetricTensor):
        if repeated is not None and repeats_observed(repeated) != T.repeats_observed:
            raise InputError(
                f"{name} was made with other entries observed than repeated={repeated!r} says; "
                f"leave repeated out, or make {name} again with it."
            )
        if n_jobs is None:
            return T
        return T.with_threads(Threads(n_jobs))
    observed = repeats_observed("observed" if repeated is None else repeated)
    tensor = DenseTensor(_array(T, name), Threads(n_jobs), repeats_observed=observed)
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
    observed = repeats_observed(repeated)
    threads = Threads(n_jobs)
    tuples = _whole_numbers(indices)
    data = _values(values, len(tuples))
    n = _side(side, tuples)
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


def repeats_observed(repeated: str) -> bool:
    """Return whether entries with a repeated index count, from the word for it."""
    return lookup(repeated, {"observed": True, "unobserved": False}, "repeated")


def _array(T: Any, name: str) -> np.ndarray:
    if hasattr(T, "adjacency") or hasattr(T, "get_edgelist"):
        raise InputError(
            f"{name} is a graph, not a tensor; pass symnmf.tensors.triangles({name})[0], or call "
            f"symnmf.communities({name}, n_clusters, order=3)."
        )
    if T is None or isinstance(T, str | bytes | os.PathLike | dict | np.ma.MaskedArray):
        raise InputError(f"{name} must be an array or a tensor, got {type(T).__name__}.")
    try:
        array = np.asarray(T)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{name} cannot be read as an array; its rows may differ in length."
        ) from error
    dtype = float_dtype(array.dtype, name)
    if array.ndim not in ORDERS:
        instead = "; symnmf.factorize takes matrices as they are" if array.ndim == 2 else ""
        raise InputError(f"{name} must be of order 3 or 4, got {array.ndim} dimension(s){instead}.")
    if len(set(array.shape)) != 1:
        sides = " x ".join(map(str, array.shape))
        raise InputError(f"{name} must have equal sides to be symmetric, got shape {sides}.")
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty; pass a tensor with at least one entry.")
    return np.ascontiguousarray(array, dtype=dtype)


def _check_entries(array: np.ndarray, name: str) -> None:
    smallest = largest = 0.0
    with np.errstate(invalid="ignore"):
        for part in array:  # min and max carry NaN along
            smallest = float(np.minimum(smallest, part.min()))
            largest = float(np.maximum(largest, part.max()))
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


def _whole_numbers(indices: Any) -> np.ndarray:
    try:
        tuples = np.asarray(indices)
    except (ValueError, TypeError) as error:
        raise InputError(
            "indices cannot be read as an array; give every tuple the same length."
        ) from error
    if tuples.ndim != 2 or tuples.shape[1] not in ORDERS:
        sides = " x ".join(map(str, tuples.shape)) or "a number"
        raise InputError(
            f"indices must have a row of 3 or 4 numbers for each tuple, got shape {sides}."
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
    if values is None:
        return np.ones(count)
    try:
        data = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError("values cannot be read as an array of numbers.") from error
    data = data.astype(float_dtype(data.dtype, "values"), copy=False)
    if data.shape != (count,):
        raise InputError(
            f"values must hold one number for each of the {count} tuple(s), got shape {data.shape}."
        )
    if not np.isfinite(data).all():
        raise InputError("values has NaN or infinite entries; remove or replace them first.")
    if count and data.min() < 0:
        raise InputError(f"values has negative entries (the smallest is {data.min():.6g}).")
    check_range(float(data.max(initial=0.0)), data.dtype, "values")
    return data


def _side(side: int | None, tuples: np.ndarray) -> int:
    least = int(tuples.max()) + 1 if tuples.size else 1
    if side is None:
        return least
    if isinstance(side, bool) or not isinstance(side, int | np.integer) or side < least:
        raise InputError(
            f"side must be a whole number above the largest index {least - 1}, got {side!r}."
        )
    return int(side)
