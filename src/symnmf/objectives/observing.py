"""From X, a mask, weights or missing entries to the objective that counts what was observed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.errors import InputError, said_as_input_errors
from symnmf.interchange import is_dask, is_tensor, to_host
from symnmf.objectives.frobenius import Frobenius, MatrixObjective
from symnmf.objectives.weight_checks import checked_weights
from symnmf.ops import HostOps
from symnmf.parallel import Threads
from symnmf.storage.border import check_shape
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.indices import checked_csr
from symnmf.storage.opening import is_stored, open_stored
from symnmf.storage.sparse import SparseMatrix
from symnmf.storage.symmetric import SymmetricArray, SymmetricMatrix
from symnmf.storage.wrapping import (
    as_symmetric,
    in_memory,
    is_small,
    refuse_no_matrix,
    torch_device,
)

if TYPE_CHECKING:
    from symnmf.objectives.weighted import Weighted

#: Cost of a pair, observed or hidden, in units of an entry of a sparse product: measured.
OBSERVED_COST, HIDDEN_COST, DENSE_COST = 4.0, 5.0, 1.0 / 3.0

#: Most pairs of an X that is not in memory that are kept one by one.
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
    if mask is not None and weights is not None:
        raise InputError(
            "mask and weights were both given; pass weights alone, with 0 for what is hidden."
        )
    given, name = (mask, "mask") if weights is None else (weights, "weights")
    place = {"n_jobs": n_jobs, "device": device, "allow_negative": allow_negative}
    if given is None and missing is None and not ignore_diagonal:
        return Frobenius(as_symmetric(X, **place))
    X, W = _from_path(X), None
    if isinstance(X, SymmetricMatrix | str | os.PathLike) or is_dask(X):
        if missing is not None:
            raise InputError(
                f"missing={missing!r} needs X as an array or a sparse matrix in memory; say which "
                f"entries were observed by a mask instead."
            )
    else:
        there = torch_device(X, device) if is_tensor(X) else None
        if there is None or missing is not None:
            place["device"] = device if there is None else there
            X, W = observed_part(X, given, name, missing, ignore_diagonal)
    storage = as_symmetric(X, **place)
    if W is None:
        W = checked_weights(given, name, storage.shape[0], storage.ops)
    return weigh(storage, W, ignore_diagonal)


def weigh(storage: SymmetricMatrix, W: Any, skip_diagonal: bool = False) -> MatrixObjective:
    """Return the misfit of X with the weights W, or all of it where W is None.

    The entries are reached in whichever of the ways of :class:`Weighted` is the cheapest.
    """
    from symnmf.objectives.parts import Parts
    from symnmf.objectives.weighted import Weighted

    n, ops = storage.shape[0], storage.ops
    if W is None and not skip_diagonal:
        return Frobenius(storage)
    on_host = isinstance(ops, HostOps)
    if on_host and W is None and n > 1:
        return by_hidden(storage, sp.csr_array(sp.eye_array(n)))
    W = np.ones((n, n), dtype=bool) if W is None else W
    if not on_host:
        W = W.toarray() if sp.issparse(W) else W
        W = ops.put(W) if isinstance(W, np.ndarray) else W
    if skip_diagonal and sp.issparse(W):
        W = sp.csr_array(W - sp.diags_array(W.diagonal()))
        W.eliminate_zeros()
    elif skip_diagonal:
        others = ops.put(~np.eye(n, dtype=bool))
        W = ops.cast(W, storage.dtype) * ops.cast(others, storage.dtype)
    parts = Parts(storage, W)
    seen, counts = parts.row_sums()
    if not counts.any():
        raise InputError("no entry of X is observed; at least one must be.")
    if on_host:
        held = W.data if sp.issparse(W) else W
        observed, altered = int(counts.sum()), n * n - int(np.count_nonzero(held == 1.0))
        most = MOST_PAIRS if isinstance(in_memory(storage), SymmetricArray) else n * n
        product = len(storage.indices) if isinstance(storage, SparseMatrix) else DENSE_COST * n * n
        if altered == 0:
            return Frobenius(storage)
        if OBSERVED_COST * observed <= product + HIDDEN_COST * altered and observed <= most:
            return by_observed(storage, sp.csr_array(W))
        if altered <= most:
            return by_hidden(storage, _complement(W.toarray() if sp.issparse(W) else W))
    return Weighted(storage, parts, False, seen, counts)


def _complement(W: np.ndarray) -> sp.csr_array:
    """Return 1 - w where that is not 0."""
    rows, columns = np.nonzero(W != 1.0)
    return sp.csr_array((1.0 - W[rows, columns], (rows, columns)), shape=W.shape)


def by_observed(X: SymmetricMatrix, W: sp.csr_array) -> Weighted:
    """Return the misfit of the pairs of X that have a weight in W."""
    from symnmf.objectives.pairs import Pairs
    from symnmf.objectives.weighted import Weighted

    W.sort_indices()
    x, threads = _values_at(X, W), _threads(X)
    uniform = bool(np.all(W.data == 1.0))
    w = np.ones(1, X.dtype) if uniform else W.data.astype(X.dtype)
    storage = SparseMatrix(W.indptr, W.indices, x if uniform else x * w, threads)
    storage.signed = X.signed
    seen = np.asarray(W.sum(axis=1, dtype=np.float64)).ravel()
    pairs = Pairs(W.indptr, W.indices, x, w, threads)
    return Weighted(storage, pairs, False, seen, np.diff(W.indptr))


def by_hidden(X: SymmetricMatrix, hidden: sp.csr_array) -> Weighted:
    """Return the misfit of all of X, corrected by the pairs that weigh 1 - ``hidden``."""
    from symnmf.objectives.pairs import Pairs
    from symnmf.objectives.weighted import Weighted

    n, x, gone = X.shape[0], _values_at(X, hidden), hidden.data == 1.0
    x = x if x.any() else np.zeros(1, X.dtype)
    w = np.full(1, -1.0, X.dtype) if gone.all() else -hidden.data.astype(X.dtype)
    pairs = Pairs(hidden.indptr, hidden.indices, x, w, _threads(X))
    counts = n - np.bincount(_rows(hidden), gone, minlength=n).astype(np.int64)
    return Weighted(X, pairs, True, n - np.asarray(hidden.sum(axis=1)).ravel(), counts)


def _rows(matrix: Any) -> np.ndarray:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _threads(X: SymmetricMatrix) -> Threads:
    assert isinstance(X.ops, HostOps)
    return X.ops.threads


def _values_at(X: SymmetricMatrix, pattern: sp.csr_array) -> np.ndarray:
    """Return the entries of X in the pattern of a matrix."""
    held, rows = in_memory(X), _rows(pattern)
    if isinstance(held, SymmetricArray):
        return X.values_at(rows, pattern.indices)
    return np.asarray(_dense(held[rows, pattern.indices]), X.dtype).ravel()


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sp.issparse(values) else values)


def observed_part(
    X: Any, given: Any, name: str, missing: str | None, ignore_diagonal: bool = False
) -> tuple[Any, Any]:
    """Return an array or a CSR matrix with zeros for what was not observed, and the weights.

    So anything may stand there. The weights are None where there are none.
    """
    values = to_host(X)
    if missing == "unstored" and not sp.issparse(values):
        raise InputError(
            "missing='unstored' needs a sparse X, whose stored entries are what was observed; "
            "use missing='nan' or a mask for an array."
        )
    values = values if sp.issparse(values) else _array(values)
    check_shape(values.shape, "X")
    if sp.issparse(values):
        values = checked_csr(values, float_dtype(values.dtype, "X"), "X")
    n = values.shape[0]
    W = hide_missing(values, checked_weights(given, name, n), missing)
    if sp.issparse(values):
        rows, keep = _rows(values), np.ones(len(values.data), dtype=bool)
        if W is not None:
            keep &= _dense(W[rows, values.indices]).ravel() != 0.0
        if ignore_diagonal:
            keep &= rows != values.indices
        data = np.where(keep, values.data, 0)
        return sp.csr_array((data, values.indices, values.indptr), values.shape), W
    if W is not None:
        values = np.where(_dense(W) == 0.0, 0, values)
    if ignore_diagonal and values.diagonal().any():
        values = values.copy()
        np.fill_diagonal(values, 0)
    return values, W


def _from_path(X: Any) -> Any:
    """Read the matrix that a path names, where it is small enough to be read as a whole."""
    if not isinstance(X, str | os.PathLike) or not is_stored(Path(X)):
        return X
    source = open_stored(Path(X), "X")
    return source[:] if is_small(source) else X


def _array(X: Any) -> np.ndarray:
    refuse_no_matrix(X, "X")
    with said_as_input_errors("X"):
        return np.asarray(X)


def hide_missing(X: Any, W: Any, missing: str | None) -> Any:
    """Give weight 0 to the entries of X that are missing."""
    if missing is None:
        return W
    if missing == "unstored":
        pattern = sp.csr_array((np.ones(len(X.data)), X.indices, X.indptr), X.shape)
        if (pattern != pattern.T).nnz:
            raise InputError(
                "X stores an entry without its mirror image; with missing='unstored' store both, "
                "since (i, j) and (j, i) are one observation."
            )
        return pattern if W is None else sp.csr_array(pattern.multiply(W))
    if sp.issparse(X):
        raise InputError(
            "missing='nan' needs a dense X; use missing='unstored' or a mask for a sparse one."
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
    return ~hidden if W is None else np.where(hidden, 0, _dense(W))
