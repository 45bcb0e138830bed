"""From several layers of one X, masked or not, to the objective of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.objectives.frobenius import Frobenius, MatrixObjective
from symnmf.objectives.observing import observed, observed_part
from symnmf.storage.layers import Layers, layer_weights
from symnmf.storage.symmetric import SymmetricArray

#: Rows up to which layers with masks are formed as arrays.
MASKED_UP_TO = 10_000


def layered(
    layers: Any,
    weights: Any = None,
    *,
    mask: Any = None,
    missing: str | None = None,
    ignore_diagonal: bool = False,
    allow_negative: bool = False,
    n_jobs: int | None = None,
    device: Any = None,
) -> MatrixObjective:
    r"""Return the misfit to all layers, each over what was observed of it.

    With masks it is sum a_l m_lij (x_lij - <u_i, u_j>)^2, which is w_ij (x_ij - <u_i, u_j>)^2 and a
    constant: w = sum a_l m_l, and x the mean of what was observed of the entry.
    """
    place: dict[str, Any] = {"n_jobs": n_jobs, "device": device, "allow_negative": allow_negative}
    if mask is None and missing is None and not ignore_diagonal:
        return Frobenius(Layers(layers, weights, **place))
    shares = layer_weights(weights, len(layers))
    masks = list(mask) if isinstance(mask, list | tuple) else [mask] * len(layers)
    if len(masks) != len(layers):
        raise InputError(
            f"mask must be one for all layers or a list of {len(layers)}, got {len(masks)}."
        )
    if any(isinstance(X, SymmetricArray) for X in layers):
        raise InputError("layers with a mask must be arrays or sparse matrices.")
    n = layers[0].shape[0]
    if n > MASKED_UP_TO or any(X.shape != (n, n) for X in layers):
        raise InputError(
            f"layers with a mask must have the same rows, and at most {MASKED_UP_TO} of them."
        )
    seen, total = np.zeros((n, n)), np.zeros((n, n))
    for share, X, shown in zip(shares, layers, masks, strict=True):
        values, W = (
            part.toarray() if sp.issparse(part) else part
            for part in observed_part(X, shown, "mask", missing)
        )
        seen += share if W is None else share * W
        total += share * values
    mean = np.divide(total, seen, out=np.zeros((n, n)), where=seen > 0.0)
    return observed(mean, weights=seen, ignore_diagonal=ignore_diagonal, **place)
