"""Passes over the parts of X, each with its weights, on every storage backend."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.interchange import namespace
from symnmf.objectives.objective import Coefficients
from symnmf.ops import Factor
from symnmf.state import Sums
from symnmf.storage.symmetric import Square, SymmetricMatrix, Work

#: Weights on a device that are summed together.
SUMMED = 2**24


class Parts:
    """Passes over a storage and weights of all its entries, each part on its own device.

    Parameters
    ----------
    storage : SymmetricMatrix
        X.
    values : array where the factors of X are, or csr_array
        The weights.
    """

    def __init__(self, storage: SymmetricMatrix, values: Any) -> None:
        self.storage, self.values = storage, values

    def weights(self, square: Square) -> Factor:
        """Return the weights of a part."""
        block = self.values[square.top : square.bottom, square.left : square.right]
        block = block.toarray() if sp.issparse(block) else block
        return block if _is_mask(block) else self.storage.ops.cast(block, self.storage.dtype)

    def row_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the row sums, and how many entries of each row have a weight."""
        W, ops, wide = self.values, self.storage.ops, np.dtype(np.float64)
        if sp.issparse(W):
            return np.asarray(W.sum(axis=1)).ravel(), np.diff(W.indptr).astype(np.int64)
        n, step = W.shape[0], max(1, SUMMED // W.shape[0])
        sums: list[list[np.ndarray]] = [[], []]
        for first in range(0, n, step):
            columns = ops.cast(W[:, first : min(first + step, n)], wide)
            sums[0].append(ops.column_sums(columns))
            sums[1].append(ops.column_sums(ops.cast(columns != 0.0, wide)))
        seen, counts = map(np.concatenate, sums)
        return seen, counts.astype(np.int64)

    @property
    def arrays(self) -> list[np.ndarray]:
        """What there is to the weights, for a fingerprint."""
        W = self.values
        return [W.indptr, W.indices, W.data] if sp.issparse(W) else [self.storage.ops.get(W)]

    @cached_property
    def sqnorm(self) -> float:
        """The sum of w x^2."""
        (sqnorm,) = self._totals(_squared, [])
        return sqnorm

    def over(self, storage: SymmetricMatrix) -> Parts:
        """Return the same passes over another storage of X."""
        other = copy.copy(self)
        other.storage = storage
        return other

    def add(self, F: Factor, V: Factor, T: Factor, out: Factor) -> Sums:
        """Add S T to ``out``, S = W o (X - F V^T); return the sums."""
        own = T if T.shape[1] else V  # without columns the sums alone are asked for
        fused = self._fused("weighted_product", F, V, own)
        if fused is not None:
            product, misfit, explained = fused
            if T.shape[1]:
                out += product
            return self._sums(misfit, explained)
        misfit = explained = 0.0
        factors = [F, T] if F is V else [F, V, T]
        for square, found in self.storage.visit(_product, factors, self.weights):
            own, other, apart, along = found
            out[square.top : square.bottom, :] += own
            if other is not None:
                out[square.left : square.right, :] += other
            misfit, explained = misfit + apart, explained + along
        return self._sums(float(misfit), float(explained))

    def quartic(self, U: Factor, D: Factor) -> Coefficients:
        """Return c_1 to c_4 of f along U + t D."""
        fused = self._fused("weighted_line", U, D)
        return self._totals(_quartic, [U, D]) if fused is None else fused

    def _fused(self, name: str, *factors: Factor) -> Any:
        """Return what a kernel over all of X and its weights finds; None where there is none."""
        kernel, X = getattr(self.storage.ops, name, None), getattr(self.storage, "rows", None)
        return None if kernel is None or X is None else kernel(X, self.values, *factors)

    def _sums(self, misfit: float, explained: float) -> Sums:
        # what is explained is the sum of w (x - m) m: that of w x m less that of w m^2
        fit = self.sqnorm - misfit - explained
        return misfit, fit, fit - explained

    def _totals(self, work: Work, factors: list[Factor]) -> tuple[float, ...]:
        """Return the sums over all parts of the numbers that ``work`` finds in each."""
        visits = self.storage.visit(work, factors, self.weights)
        return tuple(float(sum(numbers)) for numbers in zip(*(v for _, v in visits), strict=True))


# --- what is done with one part. NumPy arrays and tensors alike; sums are numbers where these are.


def _is_mask(W: Any) -> bool:
    return "bool" in str(W.dtype)


def _weighed(w: Factor, block: Factor) -> Factor:
    """Return w o block."""
    return namespace(block).where(w, block, 0.0) if _is_mask(w) else w * block


def _dot(A: Factor, B: Factor) -> Factor:
    xp = namespace(A)
    return xp.sum(xp.linalg.vecdot(A, B), dtype=xp.float64)


def _squared(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[Factor]:
    return ((1.0 if diagonal else 2.0) * _dot(_weighed(w, block), block),)


#: S = w o (X - F V^T), and the sums of w (x - m)^2 and w (x - m) m.
Residual = tuple[Factor, Factor, Factor]


def _residual(block: Factor, w: Factor, F: Factor, V: Factor) -> Residual:
    model = F @ V.T
    gap = block - model
    S = _weighed(w, gap)
    return S, _dot(S, gap), _dot(S, model)


def _mirrored(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], own: Residual
) -> Residual:
    """Return the residual of the mirror image, transposed; F alone is V too."""
    return own if len(rows) == 1 else _residual(block, w, rows[1], columns[0])


def _product(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[Factor, Factor | None, Factor, Factor]:
    *rows, T = rows
    *columns, R = columns
    own = S, apart, along = _residual(block, w, rows[0], columns[-1])
    if diagonal:
        return S @ R, None, apart, along
    mirror, more, further = _mirrored(block, w, rows, columns, own)
    return S @ R, mirror.T @ T, apart + more, along + further


def _quartic(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[Factor, Factor, Factor, Factor]:
    (U, D), (V, E) = rows, columns
    concat = namespace(block).concat
    S = _weighed(w, block - U @ V.T)
    mixed = concat([U, D], axis=1) @ concat([E, V], axis=1).T
    moved = D @ E.T
    weighed = _weighed(w, mixed)
    times = 1.0 if diagonal else 2.0
    return (
        -times * _dot(S, mixed),
        times * (0.5 * _dot(weighed, mixed) - _dot(S, moved)),
        times * _dot(weighed, moved),
        0.5 * times * _dot(_weighed(w, moved), moved),
    )
