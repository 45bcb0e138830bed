"""From X, a mask, weights or missing entries to the objective that counts what was observed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.interchange import is_dask, is_tensor, to_host
from symnmf.objectives.frobenius import Frobenius, MatrixObjective
from symnmf.ops import HostOps
from symnmf.parallel import Threads
from symnmf.storage.border import NAN_IN_ARRAY, NAN_IN_SPARSE, check_missing, check_shape
from symnmf.storage.dense import DenseMatrix
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.host import HostMatrix
from symnmf.storage.indices import checked_csr
from symnmf.storage.opening import is_stored, open_stored
from symnmf.storage.sparse import SparseMatrix
from symnmf.storage.symmetric import SymmetricMatrix
from symnmf.storage.wrapping import (
    as_symmetric,
    checked_dense,
    checked_sparse,
    is_small,
    refuse_no_matrix,
    torch_device,
)

if TYPE_CHECKING:
    from symnmf.objectives.weighted import Weighted

#: Cost of a pair, observed or hidden, in units of an entry of a sparse product: measured.
OBSERVED_COST, HIDDEN_COST, DENSE_COST = 4.0, 5.0, 1.0 / 3.0


#: Most pairs of an X that is not an array in memory that are kept one by one.
MOST_PAIRS = 2**26


@checked()
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
) -> MatrixObjective:
    """Return the misfit to X over what was observed, as :class:`symnmf.Problem` says."""
    _check_options(X, mask, weights, missing, ignore_diagonal, allow_negative)
    given, name = (mask, "mask") if weights is None else (weights, "weights")
    settings = {"n_jobs": n_jobs, "device": device, "allow_negative": allow_negative}
    if given is None and missing is None and not ignore_diagonal:
        return Frobenius(as_symmetric(X, **settings))
    on_device = (device is not None or is_tensor(X)) and torch_device(X, device) is not None
    source = _from_path(X)
    if on_device or isinstance(source, SymmetricMatrix) or is_dask(source) or is_path(source):
        return _in_place(source, given, name, missing, ignore_diagonal, settings)
    values = to_host(source)
    values = values if sp.issparse(values) else _array(values)
    check_shape(values.shape, "X")
    if sp.issparse(values):
        values = checked_csr(values, float_dtype(values.dtype, "X"), "X")
    W = checked_weights(given, name, values.shape[0])
    W = hide_missing(values, W, missing)
    if W is None:
        if ignore_diagonal:
            values = _with_plain_diagonal(values)
        whole = as_symmetric(values, n_jobs=n_jobs, allow_negative=allow_negative)
        assert isinstance(whole, HostMatrix)
        diagonal = np.arange(whole.shape[0])
        return hide(whole, diagonal, diagonal) if ignore_diagonal else Frobenius(whole)
    if ignore_diagonal:
        W = _without_diagonal(W)
    return _weigh(values, W, Threads(n_jobs), allow_negative)


def _in_place(
    X: Any, given: Any, name: str, missing: str | None, ignore_diagonal: bool, settings: Any
) -> MatrixObjective:
    """Return the objective of an X that is not an array in memory, or goes to a device."""
    W = None
    if missing is not None:
        if isinstance(X, SymmetricMatrix) or is_dask(X) or is_path(X):
            raise InputError(
                f"missing={missing!r} needs X as an array or a sparse matrix in memory; say which "
                f"entries were observed by a mask instead."
            )
        values = to_host(X)
        W = hide_missing(values, checked_weights(given, name, values.shape[0]), missing)
        if not sp.issparse(values):
            X = _in_place_of_nan(X)
    storage = as_symmetric(X, **settings)
    if missing is None:
        W = checked_weights(given, name, storage.shape[0])
    return weigh_storage(storage, W, ignore_diagonal)


def weigh_storage(storage: SymmetricMatrix, W: Any, skip_diagonal: bool = False) -> MatrixObjective:
    """Return the misfit of any storage with the weights W, or all of it where W is None."""
    from symnmf.objectives.pairs import Pairs
    from symnmf.objectives.parts import Parts, Weights
    from symnmf.objectives.weighted import Weighted

    n = storage.shape[0]
    weights = Weights(n, _compact(W), skip_diagonal)
    seen, counts = weights.sums()
    if not counts.any():
        raise InputError("no entry of X is observed; at least one must be.")
    if W is None and not skip_diagonal:
        return Frobenius(storage)
    if not isinstance(storage.ops, HostOps):
        weights.place = storage.ops.put
        return Weighted(storage, Parts(storage, weights), False, seen, counts)
    total = int(counts.sum())
    if W is not None and OBSERVED_COST * total <= DENSE_COST * n * n and total <= MOST_PAIRS:
        pattern = _without_diagonal(sp.csr_array(W)) if skip_diagonal else sp.csr_array(W)
        pattern.sort_indices()
        rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
        x = storage.values_at(rows, pattern.indices)
        return _of_pairs(pattern, x, storage.ops.threads, storage.signed)
    hidden = _hidden_pattern(W, n, skip_diagonal)
    if hidden is not None and hidden.nnz <= MOST_PAIRS:
        rows = np.repeat(np.arange(n), np.diff(hidden.indptr))
        x = storage.values_at(rows, hidden.indices)
        w = -hidden.data.astype(storage.dtype)
        pairs = Pairs(hidden.indptr, hidden.indices, x, w, storage.ops.threads)
        return Weighted(storage, pairs, True, seen, counts)
    return Weighted(storage, Parts(storage, weights), False, seen, counts)


def _compact(W: Any) -> Any:
    """Return weights in as few bytes as hold them."""
    if W is None or sp.issparse(W):
        return W
    return W.astype(bool) if np.isin(W, (0.0, 1.0)).all() else W


def _hidden_pattern(W: Any, n: int, skip_diagonal: bool) -> sp.csr_array | None:
    """Return 1 - w where that is not 0; None where that is most of X."""
    if W is None:
        return sp.csr_array(sp.eye_array(n))
    if sp.issparse(W) and 2 * W.nnz < n * n:
        return None
    dense = W.toarray() if sp.issparse(W) else W
    if HIDDEN_COST * np.count_nonzero(dense != 1.0) > n * n:
        return None
    hidden = sp.csr_array(1.0 - dense)
    if skip_diagonal:
        hidden = hidden.tolil()
        hidden.setdiag(1.0)
    return sp.csr_array(hidden)


def _of_pairs(W: sp.csr_array, x: np.ndarray, threads: Threads, signed: bool) -> Weighted:
    """Return the misfit of the entries ``x`` in the pattern of W, and of no others."""
    from symnmf.objectives.pairs import Pairs
    from symnmf.objectives.weighted import Weighted

    dtype = x.dtype
    uniform = bool(np.all(W.data == 1.0))
    w = np.ones(1, dtype) if uniform else W.data.astype(dtype)
    pairs = Pairs(W.indptr, W.indices, x, w, threads)
    storage = SparseMatrix(W.indptr, W.indices, x if uniform else x * w, threads)
    storage.signed = signed
    seen = np.asarray(W.sum(axis=1)).ravel()
    return Weighted(storage, pairs, False, seen, np.diff(W.indptr))


def is_path(X: Any) -> bool:
    """Whether X names a matrix on disk that is read in blocks."""
    return isinstance(X, str | os.PathLike)


def _in_place_of_nan(X: Any) -> Any:
    """Return a dense X with zeros for NaN, which have no weight."""
    if is_tensor(X):
        return X.nan_to_num(nan=0.0)
    return np.nan_to_num(np.asarray(X), nan=0.0, posinf=np.inf, neginf=-np.inf)


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
    source = open_stored(Path(X))
    return source[:] if is_small(source) else X


def _array(X: Any) -> np.ndarray:
    refuse_no_matrix(X, "X")
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise InputError(f"X cannot be read as a matrix: {error}.") from error
    return array


def checked_weights(given: Any, name: str, n: int) -> Any:
    """Return the weights, at most 1, as an array or in CSR form; None if there are none."""
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
        raise InputError(f"{name} must be finite and at least 0 everywhere; change the others.")
    if largest == 0.0:
        raise InputError(f"{name} hides every entry of X; let at least one be observed.")
    if abs(W - W.T).max() > 1e-10 * largest:
        both = "mask & mask.T" if name == "mask" else "(weights + weights.T) / 2"
        raise InputError(f"{name} is not symmetric; pass {both} if that is what you mean.")
    held /= largest
    return W


def hide_missing(X: Any, W: Any, missing: str | None) -> Any:
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


def _weigh(X: Any, W: Any, threads: Threads, signed: bool) -> MatrixObjective:
    n = X.shape[0]
    sparse = sp.issparse(W)
    held = W.data if sparse else W
    seen = int(np.count_nonzero(held))
    altered = n * n - int(np.count_nonzero(held == 1.0))
    if seen == 0:
        raise InputError("no entry of X is observed; at least one must be.")
    stored = X.nnz if sp.issparse(X) else DENSE_COST * n * n
    if OBSERVED_COST * seen <= stored + HIDDEN_COST * altered:
        return by_observed(X, sp.csr_array(W), threads, signed)
    return by_hidden(X, W.toarray() if sparse else W, threads, signed)


def by_observed(X: Any, W: sp.csr_array, threads: Threads, signed: bool = False) -> Weighted:
    """Return the misfit of the pairs of X that have a weight in W."""
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
    pattern = sp.csr_array((W.data, checked.indices, checked.indptr), W.shape)
    return _of_pairs(pattern, checked.data, threads, checked.signed)


def by_hidden(X: Any, W: np.ndarray, threads: Threads, signed: bool = False) -> MatrixObjective:
    """Return the misfit of all of X, corrected by the pairs whose weight in W is below 1."""
    base: HostMatrix
    if sp.issparse(X):
        held = sp.csr_array(X, copy=True)
        held.sum_duplicates()
        rows = np.repeat(np.arange(len(W)), np.diff(held.indptr))
        held.data[W[rows, held.indices] == 0.0] = 0
        base = checked_sparse(held.astype(_kept(X.dtype)), threads, "X", signed)
    else:
        base = checked_dense(np.where(W == 0.0, 0, X).astype(_kept(X.dtype)), threads, "X", signed)
    if not np.any(W < 1.0):
        return Frobenius(base)
    hidden = sp.csr_array(1.0 - W)
    x = np.zeros(1, base.dtype)
    if np.any(hidden.data < 1.0):  # what counts a little has a value; what is hidden has none
        rows = np.repeat(np.arange(len(W)), np.diff(hidden.indptr))
        values = X[rows, hidden.indices]
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
        x = np.where(hidden.data == 1.0, 0, values.ravel()).astype(base.dtype)
    from symnmf.objectives.pairs import Pairs
    from symnmf.objectives.weighted import Weighted

    pairs = Pairs(hidden.indptr, hidden.indices, x, -hidden.data.astype(base.dtype), threads)
    return Weighted(base, pairs, True, W.sum(axis=1), np.count_nonzero(W, axis=1))


def _kept(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float32) if dtype in (np.float32, np.float16) else np.dtype(np.float64)


def hide(X: HostMatrix, rows: np.ndarray, columns: np.ndarray) -> Weighted:
    """Return the misfit of X without the entries (i, j) and (j, i) of these rows and columns.

    The cost of a step grows by that of the pairs, so this is for hiding a few of many entries.
    """
    from symnmf.objectives.pairs import Pairs
    from symnmf.objectives.weighted import Weighted

    n = X.shape[0]
    i, j = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    pattern = sp.csr_array((np.ones(len(i)), (i, j)), shape=(n, n))  # repeated ones are added up
    base, x = X, np.zeros(1, X.dtype)
    if isinstance(X, SparseMatrix):
        stored = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        kept = stored - stored.multiply(pattern.astype(bool))
        kept = sp.csr_array(kept, dtype=X.dtype)
        base = SparseMatrix(kept.indptr, kept.indices, kept.data, X.threads)
    elif isinstance(X, DenseMatrix):
        array = X.array.copy()
        array[i, j] = 0
        base = DenseMatrix(array, X.threads)
    else:
        x = X.values_at(np.repeat(np.arange(n), np.diff(pattern.indptr)), pattern.indices)
    base.signed = X.signed
    counts = np.diff(pattern.indptr)
    w = np.full(1, -1.0, X.dtype)
    pairs = Pairs(pattern.indptr, pattern.indices, x, w, X.threads)
    return Weighted(base, pairs, True, n - counts.astype(np.float64), n - counts)
