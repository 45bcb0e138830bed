"""Several symmetric matrices of the same rows, each with a weight: the layers of one problem."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.naming import shown
from symnmf.ops import Factor
from symnmf.parallel import Threads
from symnmf.storage.symmetric import SymmetricArray, SymmetricMatrix
from symnmf.storage.wrapping import as_symmetric, in_memory, stored


def is_layers(X: Any) -> bool:
    """Whether X is a list of matrices or graphs, and not a list of rows or of edges."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return all(_is_layer(one) for one in X)


def _is_layer(one: Any) -> bool:
    if isinstance(one, SymmetricArray) or hasattr(one, "adjacency") or hasattr(one, "get_edgelist"):
        return True
    shape = getattr(one, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2 and shape[0] == shape[1] > 1


def layer_weights(weights: Any, count: int) -> np.ndarray:
    """Return the weights of so many layers with sum 1; equal ones for None."""
    if weights is None:
        return np.full(count, 1.0 / count)
    try:
        given = np.array(weights, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"layer_weights must be numbers ({error}).") from error
    if given.shape != (count,):
        raise InputError(f"layer_weights must have one number for each of the {count} layers.")
    if not (np.isfinite(given).all() and given.min() >= 0 and given.max() > 0):
        raise InputError("layer_weights must be numbers of at least 0, and one of them above 0.")
    given /= given.max()  # whose sum may be more than a float holds
    return np.asarray(given / given.sum())


class Layers(SymmetricMatrix):
    """Layers X_1, X_2, ... of the same n rows, with weights a_1, a_2, ... of sum 1.

    The sum of a_l ||X_l - U U^T||^2 equals ||M - U U^T||^2 plus a constant, where M is the weighted
    mean of the layers. So products use M, while norms and residuals are sums over the layers: E is
    the fraction of all layers that is not explained. If all layers are in memory, M is computed
    once, and a product costs no more than that of one matrix.

    Parameters
    ----------
    layers : sequence of array-like, sparse or SymmetricMatrix
        Dense, sparse and low-rank ones may be mixed.
    weights : sequence of float or None
        How much each layer counts, in any unit; None for equal weights.
    """

    def __init__(
        self,
        layers: Sequence[Any],
        weights: Any = None,
        *,
        n_jobs: int | None = None,
        device: Any = None,
        allow_negative: bool = False,
    ) -> None:
        if not isinstance(layers, list | tuple):
            raise InputError(f"layers must be a list of matrices, got {shown(layers)}.")
        if not len(layers):
            raise InputError("layers is empty; pass at least one matrix.")
        options: dict[str, Any] = {
            "n_jobs": n_jobs,
            "device": device,
            "allow_negative": allow_negative,
        }
        found = [as_symmetric(X, name=f"layer {i}", **options) for i, X in enumerate(layers)]
        shapes = {X.shape for X in found}
        if len(shapes) > 1:
            raise InputError(
                f"layers must have the same rows, got {' and '.join(str(s[0]) for s in shapes)}."
            )
        dtype = np.result_type(*(X.dtype for X in found))
        super().__init__(found[0].shape[0], dtype, found[0].ops)
        self.layers: list[Any] = found
        self.weights = layer_weights(weights, len(found))
        self.signed = any(X.signed for X in found)
        self.mean = self._mean()
        if self.mean is None and any(X.dtype != dtype for X in found):
            raise InputError("layers that stay where they are must have one precision.")

    def _mean(self) -> SymmetricMatrix | None:
        """Return the mean of layers in memory; None where one of them is elsewhere."""
        held = [in_memory(X) for X in self.layers]
        if any(isinstance(X, SymmetricArray) for X in held):
            return None
        total: Any = sum(w * X for w, X in zip(self.weights, held, strict=True))
        if sp.issparse(total):
            total = sp.csr_array(total, dtype=self.dtype)
        else:
            total = np.ascontiguousarray(total, dtype=self.dtype)
        mean = stored(total, self.layers[0].threads.count)
        mean.signed = self.signed
        return mean

    def matmul(self, V: Factor, out: Factor | None = None) -> Factor:
        if self.mean is not None:
            return self.mean.matmul(V, out)
        products = ((w, X.matmul(V)) for w, X in zip(self.weights, self.layers, strict=True))
        return self.ops.combine(*products)

    def compute_sqnorm(self) -> float:
        return float(sum(w * X.sqnorm for w, X in zip(self.weights, self.layers, strict=True)))

    def residual_sqnorm(self, U: Factor, V: Factor) -> float | None:
        shares = [X.residual_sqnorm(U, V) for X in self.layers]
        if any(share is None for share in shares):
            return None
        return float(sum(w * share for w, share in zip(self.weights, shares, strict=True)))

    def errors(self, U: Any) -> np.ndarray:
        """Return ||X_l - U U^T||^2 / ||X_l||^2 of each layer."""
        tall = self.ops.put(np.ascontiguousarray(U, dtype=self.dtype))
        gram = self.ops.gram(tall)
        found = []
        for X in self.layers:
            explained = self.ops.inner(X.matmul(tall), tall)
            misfit = X.sqnorm - 2.0 * explained + float(np.vdot(gram, gram))
            found.append(misfit / X.sqnorm if X.sqnorm > 0.0 else 0.0)
        return np.array(found)

    def compute_largest(self) -> float:
        return float(max(X.largest() for X in self.layers))

    def with_threads(self, threads: Threads) -> Self:
        other = copy.copy(self)
        other.layers = [X.with_threads(threads) for X in self.layers]
        other.mean = None if self.mean is None else self.mean.with_threads(threads)
        other.ops = other.layers[0].ops
        return other

    def cost(self, rank: int) -> float:
        multiplied = self.layers if self.mean is None else [self.mean]
        return float(sum(X.cost(rank) for X in multiplied))

    def columns(self, begin: int, end: int) -> Factor:
        if self.mean is not None:
            return self.mean.columns(begin, end)
        return super().columns(begin, end)

    def digest(self) -> str:
        parts = [X.digest() for X in self.layers] + [repr(self.weights.tolist())]
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
