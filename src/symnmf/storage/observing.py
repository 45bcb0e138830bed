"""From a mask, weights or missing entries to the backend that counts only what was observed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.interchange import is_tensor, to_host
from symnmf.parallel import Threads
from symnmf.storage.border import NAN_IN_ARRAY, NAN_IN_SPARSE, check_missing, check_shape
from symnmf.storage.dask import is_dask
from symnmf.storage.dense import DenseMatrix
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.host import HostMatrix
from symnmf.storage.indices import checked_csr
from symnmf.storage.masked import MaskedMatrix, Pairs
from symnmf.storage.opening import is_stored, open_store
from symnmf.storage.sparse import SparseMatrix
from symnmf.storage.symmetric import SymmetricMatrix
from symnmf.storage.wrapping import (
    as_symmetric,
    checked_dense,
    checked_sparse,
    read_small,
    refuse_no_matrix,
    torch_device,
)

#: The options of :func:`observed` that :func:`symnmf.factorize` shares.
OBSERVING = ("mask", "weights", "missing", "ignore_diagonal", "allow_negative")

#: Cost of a pair, observed or hidden, in units of an entry of a sparse product: measured.
OBSERVED_COST, HIDDEN_COST, DENSE_COST = 4.0, 5.0, 1.0 / 3.0


def observed(
    X: Any,
    *,
    mask: Any = None,
    weights: Any = None,
    missing: str | None = None,
    ignore_diagonal: bool = False,
    allow_negative: bool = False,
    n_jobs: int | None = None,
    device: Any = None,
) -> SymmetricMatrix:
    """Return X for :func:`symnmf.factorize`, with what was not observed left out of the fit.

    Parameters
    ----------
    X : array-like or scipy sparse, n x n
        Symmetric where it was observed; what is elsewhere does not matter.
    mask : array-like or sparse of bool, n x n, or None
        True where an entry was observed; entries not stored in a sparse mask were not.
    weights : array-like or sparse, n x n, or None
        How much each entry counts: symmetric, finite, at least 0, in units of the largest.
    missing : "nan", "unstored" or None
        "nan" hides the NaN entries of a dense X; "unstored" hides what a sparse X does not
        store. By default the entries that a sparse X does not store are zeros, which are data.
    ignore_diagonal : bool
        Leave the diagonal out, for similarities of things to themselves that mean nothing.
    allow_negative : bool
        Whether observed entries may be negative.
    n_jobs : int or None
        Threads; None for all cores.
    device : str, torch.device or None
        As for :func:`as_symmetric`; for an X that was observed as a whole.
    """
    _check_options(X, mask, weights, missing, ignore_diagonal, allow_negative)
    given, name = (mask, "mask") if weights is None else (weights, "weights")
    if given is None and missing is None and not ignore_diagonal:
        return as_symmetric(X, n_jobs=n_jobs, device=device, allow_negative=allow_negative)
    if (device is not None or is_tensor(X)) and torch_device(X, device) is not None:
        raise InputError(
            "a mask, weights, missing or ignore_diagonal cannot be used on a GPU; pass "
            "device='cpu', or fill the entries that were not observed."
        )
    X, threads = to_host(_from_path(X)), Threads(n_jobs)
    values = X if sp.issparse(X) else _array(X)
    check_shape(values.shape, "X")
    if sp.issparse(X):
        values = checked_csr(X, float_dtype(X.dtype, "X"), "X")
    W = _weights(given, name, values.shape[0])
    W = _hide_missing(values, W, missing)
    if W is None:
        if ignore_diagonal:
            values = _with_plain_diagonal(values)
        whole = as_symmetric(values, n_jobs=n_jobs, allow_negative=allow_negative)
        assert isinstance(whole, HostMatrix)
        diagonal = np.arange(whole.shape[0])
        return hide(whole, diagonal, diagonal) if ignore_diagonal else whole
    if ignore_diagonal:
        W = _without_diagonal(W)
    return _weigh(values, W, threads, allow_negative)


def _check_options(
    X: Any, mask: Any, weights: Any, missing: Any, ignore_diagonal: Any, allow_negative: Any
) -> None:
    if mask is not None and weights is not None:
        raise InputError(
            "mask and weights were both given; pass weights alone, with 0 for what is hidden."
        )
    check_missing(missing)
    for name, flag in (("ignore_diagonal", ignore_diagonal), ("allow_negative", allow_negative)):
        if not isinstance(flag, bool | np.bool_):
            raise InputError(f"{name} must be True or False, got {flag!r}.")
    hiding = mask is not None or weights is not None or missing is not None or ignore_diagonal
    if hiding and (isinstance(X, SymmetricMatrix) or is_dask(X)):
        what = "Dask array" if is_dask(X) else type(X).__name__
        raise InputError(
            f"X is a {what}, whose entries cannot be hidden; pass an array or a sparse "
            f"matrix with a mask, weights, missing or ignore_diagonal."
        )
    if missing == "unstored" and not sp.issparse(X):
        raise InputError(
            "missing='unstored' needs a sparse X, whose stored entries are what was observed; "
            "use missing='nan' or a mask for an array.",
            in_shell="--missing unstored needs a sparse INPUT, whose stored entries are what was "
            "observed; use --missing nan for a dense one.",
        )


def _from_path(X: Any) -> Any:
    """Read the matrix that a path names, where it is small enough to be read as a whole."""
    if not isinstance(X, str | os.PathLike) or not is_stored(Path(X)):
        return X
    array = read_small(open_store(Path(X)))
    if array is None:
        raise InputError(
            f"X names {os.fspath(X)!r}, which is read in blocks, whose entries cannot be hidden; "
            f"pass an array or a sparse matrix with a mask, weights, missing or ignore_diagonal."
        )
    return array


def _array(X: Any) -> np.ndarray:
    refuse_no_matrix(X, "X")
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise InputError(f"X cannot be read as a matrix: {error}.") from error
    return array


def _weights(given: Any, name: str, n: int) -> Any:
    """Return the weights, at most 1, as an array or in CSR form; None where there are none."""
    if given is None:
        return None
    W: Any = None
    if sp.issparse(given):
        check_shape(given.shape, name)
        W = checked_csr(given, np.dtype(np.float64), name).copy()
    else:
        try:
            W = np.array(given, dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise InputError(f"{name} cannot be read as a matrix: {error}.") from error
    if W.shape != (n, n):
        raise InputError(
            f"{name} must have the shape of X, {n} x {n}, got {' x '.join(map(str, W.shape))}."
        )
    if sp.issparse(W):
        W.eliminate_zeros()
    held = W.data if sp.issparse(W) else W
    largest = float(held.max(initial=0.0))
    if name == "mask" and not np.isin(held, (0.0, 1.0)).all():
        raise InputError(
            "mask must be True (1) where an entry was observed and False (0) elsewhere, and has "
            "other values; pass it as weights if entries are to count by degrees."
        )
    if not np.isfinite(held).all() or float(held.min(initial=0.0)) < 0:
        raise InputError(f"{name} must be finite and at least 0 everywhere; mend the others.")
    if largest == 0.0:
        raise InputError(f"{name} hides every entry of X; let at least one be observed.")
    if abs(W - W.T).max() > 1e-10 * largest:
        both = "mask & mask.T" if name == "mask" else "(weights + weights.T) / 2"
        raise InputError(f"{name} is not symmetric; pass {both} if that is what you mean.")
    held /= largest
    return W


def _hide_missing(X: Any, W: Any, missing: str | None) -> Any:
    """Give weight 0 to the entries of X that are missing."""
    if missing is None:
        return W
    if missing == "unstored":
        stored = sp.csr_array(X)
        stored.sum_duplicates()
        pattern = sp.csr_array(
            (np.ones(len(stored.data)), stored.indices, stored.indptr), stored.shape
        )
        if (pattern != pattern.T).nnz:
            raise InputError(
                "X stores an entry without its mirror image; with missing='unstored' store both, "
                "since (i, j) and (j, i) are one observation.",
                in_shell="INPUT stores an entry without its mirror image; with --missing unstored "
                "store both, since (i, j) and (j, i) are one observation.",
            )
        return pattern if W is None else sp.csr_array(pattern.multiply(W))
    if sp.issparse(X):
        raise InputError(
            "missing='nan' needs a dense X; use missing='unstored' or a mask for a sparse one.",
            in_shell="--missing nan needs a dense INPUT; use --missing unstored for a sparse one.",
        )
    hidden = np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)
    if not np.array_equal(hidden, hidden.T):
        raise InputError(
            "X is NaN in places whose mirror image is not; fill these in, since (i, j) and (j, i) "
            "are one observation."
        )
    if not hidden.any():
        return W
    if hidden.all():
        raise InputError("X is NaN everywhere; at least one entry must be observed.")
    if W is None:
        return np.where(hidden, 0.0, 1.0)
    W = W.toarray() if sp.issparse(W) else W
    W[hidden] = 0.0
    return W


def _with_plain_diagonal(X: Any) -> Any:
    """Return X with zeros for a diagonal that is ignored, where it would be refused."""
    if sp.issparse(X) or X.dtype.kind != "f":
        return X
    diagonal = X.diagonal()
    if np.isfinite(diagonal).all() and diagonal.min(initial=0.0) >= 0:
        return X
    X = X.copy()
    np.fill_diagonal(X, 0.0)
    return X


def _without_diagonal(W: Any) -> Any:
    if sp.issparse(W):
        W = W.tolil() if W.nnz < 1000 else W.copy()
        W.setdiag(0.0)
        W = sp.csr_array(W)
        W.eliminate_zeros()
        return W
    np.fill_diagonal(W, 0.0)
    return W


def _weigh(X: Any, W: Any, threads: Threads, signed: bool) -> SymmetricMatrix:
    n = X.shape[0]
    sparse = sp.issparse(W)
    held = W.data if sparse else W
    seen = int(np.count_nonzero(held))
    altered = n * n - int(np.count_nonzero(held == 1.0))
    if seen == 0:
        raise InputError("nothing of X is observed; let at least one entry be.")
    stored = X.nnz if sp.issparse(X) else DENSE_COST * n * n
    if OBSERVED_COST * seen <= stored + HIDDEN_COST * altered:
        return by_observed(X, sp.csr_array(W), threads, signed)
    return _by_hidden(X, W.toarray() if sparse else W, threads, signed)


def by_observed(X: Any, W: sp.csr_array, threads: Threads, signed: bool = False) -> MaskedMatrix:
    """Return X as the pairs that are observed, those with a weight in W."""
    W.sort_indices()
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    values = X[rows, W.indices]
    if sp.issparse(values):
        values = values.toarray()
    # explicit zeros are observations, so the pattern of W and not that of the values is kept
    checked = checked_sparse(
        sp.csr_array((np.asarray(values).ravel(), W.indices, W.indptr), W.shape),
        threads,
        "X",
        signed,
        nan=NAN_IN_SPARSE if sp.issparse(X) else NAN_IN_ARRAY,
    )
    dtype = checked.dtype
    uniform = bool(np.all(W.data == 1.0))
    pairs = Pairs(
        checked.indptr,
        checked.indices,
        checked.data,
        np.ones(1, dtype) if uniform else W.data.astype(dtype),
    )
    matrix = MaskedMatrix(
        pairs, threads, None, np.asarray(W.sum(axis=1)).ravel(), np.diff(W.indptr)
    )
    matrix.signed = checked.signed
    return matrix


def _by_hidden(X: Any, W: np.ndarray, threads: Threads, signed: bool) -> SymmetricMatrix:
    base: HostMatrix
    if sp.issparse(X):
        held = sp.csr_array(X, copy=True)
        held.sum_duplicates()
        rows = np.repeat(np.arange(len(W)), np.diff(held.indptr))
        w = W[rows, held.indices]
        data = np.where(w == 0.0, 0.0, held.data)
        constant = float(np.sum((w - w * w) * np.square(data, dtype=np.float64)))
        held = sp.csr_array((data * w, held.indices, held.indptr), held.shape)
        base = checked_sparse(held.astype(_kept(X.dtype)), threads, "X", signed)
    else:
        data = np.where(W == 0.0, 0, X)
        constant = float(np.sum((W - W * W) * np.square(data, dtype=np.float64)))
        base = checked_dense((data * W).astype(_kept(X.dtype)), threads, "X", signed)
    if not np.any(W < 1.0):
        return base
    hidden = sp.csr_array(1.0 - W)
    pairs = Pairs(
        hidden.indptr, hidden.indices, np.zeros(1, base.dtype), -hidden.data.astype(base.dtype)
    )
    matrix = MaskedMatrix(
        pairs, threads, base, W.sum(axis=1), np.count_nonzero(W, axis=1), constant
    )
    matrix.signed = base.signed
    return matrix


def _kept(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32) if dtype in (np.float32, np.float16) else np.dtype(np.float64)


def hide(X: HostMatrix, rows: np.ndarray, columns: np.ndarray) -> MaskedMatrix:
    """Return a dense or sparse X without the entries (i, j) and (j, i) of these rows and columns.

    The cost of a step grows by that of the pairs, so this is for hiding a few of many entries.
    """
    n = X.shape[0]
    i, j = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    pattern = sp.csr_array((np.ones(len(i)), (i, j)), shape=(n, n))  # repeated ones are added up
    base: HostMatrix
    if isinstance(X, SparseMatrix):
        stored = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        kept = stored - stored.multiply(pattern.astype(bool))
        kept = sp.csr_array(kept, dtype=X.dtype)
        base = SparseMatrix(kept.indptr, kept.indices, kept.data, X.threads)
    else:
        assert isinstance(X, DenseMatrix)
        array = X.array.copy()
        array[i, j] = 0
        base = DenseMatrix(array, X.threads)
    base.signed = X.signed
    counts = np.diff(pattern.indptr)
    pairs = Pairs(pattern.indptr, pattern.indices, np.zeros(1, X.dtype), np.full(1, -1.0, X.dtype))
    matrix = MaskedMatrix(pairs, X.threads, base, n - counts.astype(np.float64), n - counts)
    matrix.signed = X.signed
    return matrix
