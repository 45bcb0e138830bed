"""Masks and weights, looked at where they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError, said_as_input_errors
from symnmf.interchange import namespace, to_host
from symnmf.ops import HostOps, Ops
from symnmf.storage.border import check_shape
from symnmf.storage.indices import checked_csr

#: Weights that are looked at together.
LOOKED_AT = 2**22


def checked_weights(given: Any, name: str, n: int, ops: Ops | None = None) -> Any:
    """Return the weights, at most 1, as an array or in CSR form; None if there are none.

    What lives where ``ops`` work stays there. An array is not copied where it can be used as it is.
    """
    if given is None:
        return None
    W = given
    if sp.issparse(given):
        check_shape(given.shape, name)
        W = checked_csr(given, np.dtype(np.float64), name).copy()
        W.eliminate_zeros()
    elif ops is None or not _lives_with(given, ops):
        W = _on_host(given, name)
    if tuple(W.shape) != (n, n):
        raise InputError(
            f"{name} must have the shape of X, {n} x {n}, got {' x '.join(map(str, W.shape))}."
        )
    facts = [_looked_at(W.data, abs(W - W.T).max())] if sp.issparse(W) else list(_strips(W))
    largest, below, between, apart = np.max(facts, axis=0).tolist()
    if name == "mask" and between:
        raise InputError(
            "mask must be True (1) where an entry was observed and False (0) elsewhere, and has "
            "other values; pass it as weights if entries are to count by degrees."
        )
    if not np.isfinite(largest) or below > 0.0:
        raise InputError(f"{name} must be finite and at least 0 everywhere; change the others.")
    if largest == 0.0:
        raise InputError(f"{name} hides every entry of X; let at least one be observed.")
    if apart > 1e-10 * largest:
        both = "mask & mask.T" if name == "mask" else "(weights + weights.T) / 2"
        raise InputError(f"{name} is not symmetric; pass {both} if that is what you mean.")
    if sp.issparse(W):
        W.data /= largest
        return W
    if not between:
        return W if "bool" in str(W.dtype) else W != 0
    return W if largest == 1.0 else W / largest


def _lives_with(W: Any, ops: Ops) -> bool:
    """Whether an array is one of those that these operations work on."""
    if isinstance(ops, HostOps):
        return False
    own = ops.put(np.zeros((1, 1)))
    return type(W) is type(own) and W.device == own.device


def _on_host(given: Any, name: str) -> np.ndarray:
    with said_as_input_errors(name):
        W = np.asarray(to_host(given))
        return W if W.dtype in (bool, np.float32, np.float64) else W.astype(np.float64)


def _strips(W: Any) -> Iterator[tuple[float, float, float, float]]:
    """Look at weights a few rows at a time, where they are."""
    n = W.shape[0]
    step = max(1, LOOKED_AT // n)
    for first in range(0, n, step):
        last = min(first + step, n)
        rows, mirror = W[first:last, :], W[:, first:last].T
        xp = namespace(W)
        if "bool" in str(W.dtype):
            yield float(xp.any(rows)), 0.0, 0.0, float(xp.any(rows != mirror))
        else:
            yield _looked_at(rows, float(xp.max(xp.abs(rows - mirror))))


def _looked_at(values: Any, apart: float) -> tuple[float, float, float, float]:
    """Return the largest of some weights, how far they reach below 0, whether any is not 0 or 1.

    ``apart`` is passed on. NaN is the largest of all.
    """
    if 0 in values.shape:
        return 0.0, 0.0, 0.0, apart
    xp = namespace(values)
    largest, below = float(xp.max(values)), max(0.0, -float(xp.min(values)))
    between = not bool(xp.all((values == 0) | (values == 1)))
    return largest, below, float(between), apart
