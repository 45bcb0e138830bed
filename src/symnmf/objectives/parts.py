"""Passes over the parts of X, each with its weights, on every storage backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.objectives.objective import Coefficients
from symnmf.ops import Factor
from symnmf.state import Sums
from symnmf.storage.symmetric import Square, SymmetricMatrix, weighted_kernels


@dataclass(eq=False)
class Weights:
    """Weights of all entries, cut as X is cut.

    Attributes
    ----------
    values : ndarray, csr_array or None
        The weights; None where all are 1.
    skip_diagonal : bool
        Whether the diagonal has no weight, whatever is given.
    place : callable or None
        Moves a host array to the device of X.
    """

    n: int
    values: Any = None
    skip_diagonal: bool = False
    place: Callable[[np.ndarray], Factor] | None = None
    placed: dict[Square, Factor] = field(default_factory=dict, repr=False)

    def __call__(self, square: Square) -> Factor:
        if self.place is None:
            return self._block(square)
        if square not in self.placed:  # moved there once, not in every pass
            self.placed[square] = self.place(self._block(square))
        return self.placed[square]

    def whole(self) -> np.ndarray:
        """Return all of them as an array of the host."""
        return self._block(Square(0, self.n, 0, self.n))

    def _block(self, square: Square) -> np.ndarray:
        rows, columns = slice(square.top, square.bottom), slice(square.left, square.right)
        if self.values is None:
            block = np.ones((square.bottom - square.top, square.right - square.left))
        elif sp.issparse(self.values):
            block = self.values[rows, columns].toarray()
        else:
            block = self.values[rows, columns]
        if self.skip_diagonal and square.on_diagonal:
            block = block.copy()
            np.fill_diagonal(block, 0)
        return block

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the row sums, and how many entries of each row have a weight."""
        n, values = self.n, self.values
        if values is None:
            seen, counts = np.full(n, float(n)), np.full(n, n)
            diagonal = np.ones(n)
        else:
            seen = np.asarray(values.sum(axis=1), dtype=np.float64).ravel()
            nonzero = values.astype(bool) if sp.issparse(values) else values != 0
            counts = np.asarray(nonzero.sum(axis=1)).ravel()
            diagonal = np.asarray(values.diagonal(), dtype=np.float64)
        if self.skip_diagonal:
            seen, counts = seen - diagonal, counts - (diagonal != 0)
        return seen, counts


@dataclass(frozen=True, eq=False)
class Parts:
    """Passes over a storage and its weights; each part is processed on its own device."""

    storage: SymmetricMatrix
    weights: Weights
    known_sqnorm: float | None = None

    def sqnorm(self) -> float:
        """Return the sum of w x^2."""
        if self.known_sqnorm is None:
            visits = self.storage.visit(_squared, [], self.weights)
            object.__setattr__(self, "known_sqnorm", float(sum(found for _, found in visits)))
        assert self.known_sqnorm is not None
        return self.known_sqnorm

    @cached_property
    def kernels(self) -> Any:
        """Fused passes, where the storage has them for X as it lies; else None."""
        return weighted_kernels(self.storage, self.weights.whole)

    def flops(self, rank: int) -> float:
        """Return the floating point operations of a pass."""
        return 4.0 * self.storage.shape[0] ** 2 * rank

    def add(self, F: Factor, V: Factor, T: Factor, out: Factor) -> Sums:
        """Add S T to ``out``, S = W o (X - F V^T); return the sums."""
        same = F is V
        if self.kernels is not None and F.shape == T.shape and self.kernels.fit(F, V, T, out):
            return self._sums(*self.kernels.add(F, V, T, out))
        factors = [F, T] if same else [F, V, T]
        misfit, explained = 0.0, 0.0
        for square, found in self.storage.visit(
            _residual_product if same else _residual_product_of_two, factors, self.weights
        ):
            own, other, apart, along = found
            out[square.top : square.bottom] += own
            if other is not None:
                out[square.left : square.right] += other
            misfit, explained = misfit + apart, explained + along
        return self._sums(misfit, explained)

    def _sums(self, misfit: float, explained: float) -> Sums:
        """Return all three sums from those of w (x - m)^2 and of w (x - m) m, fit - size."""
        fit = self.sqnorm() - misfit - explained
        return misfit, fit, fit - explained

    def sums(self, U: Factor, V: Factor) -> Sums:
        same = U is V
        if self.kernels is not None and self.kernels.fit(U, V):
            return self._sums(*self.kernels.add(U, V, V, self.storage.ops.empty(U)))
        work = _sums if same else _sums_of_two
        visits = self.storage.visit(work, [U] if same else [U, V], self.weights)
        misfit, explained = (
            float(sum(column)) for column in zip(*(found for _, found in visits), strict=True)
        )
        return self._sums(misfit, explained)

    def quartic(self, U: Factor, D: Factor) -> Coefficients:
        """Return c_1 to c_4 of f along U + t D."""
        if self.kernels is not None and self.kernels.fit(U, D):
            return tuple(self.kernels.quartic(U, D))
        visits = self.storage.visit(_quartic, [U, D], self.weights)
        return tuple(
            float(sum(column)) for column in zip(*(found for _, found in visits), strict=True)
        )


# --- what is done with one part. NumPy arrays and tensors alike; sums are numbers of the host.


def _dot(A: Factor, B: Factor) -> float:
    return float((A * B).sum())


def _squared(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> float:
    return (1.0 if diagonal else 2.0) * _dot(w * block, block)


def _residual(block: Factor, w: Factor, F: Factor, V: Factor) -> tuple[Factor, Factor, Factor]:
    """Return the model F V^T, the residual, and the residual times the weights."""
    model = F @ V.T
    gap = block - model
    return model, gap, w * gap


def _residual_product(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[Factor, Factor | None, float, float]:
    (F, T), (G, R) = rows, columns
    model, gap, S = _residual(block, w, F, G)
    times = 1.0 if diagonal else 2.0
    return S @ R, None if diagonal else S.T @ T, times * _dot(S, gap), times * _dot(S, model)


def _residual_product_of_two(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[Factor, Factor | None, float, float]:
    (F, V, T), (G, W, R) = rows, columns
    model, gap, S = _residual(block, w, F, W)
    apart, along = _dot(S, gap), _dot(S, model)
    if diagonal:
        return S @ R, None, apart, along
    mirrored, gap, across = _residual(block, w, V, G)  # the model of the mirror image, transposed
    return S @ R, across.T @ T, apart + _dot(across, gap), along + _dot(across, mirrored)


def _sums(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[float, float]:
    model, gap, S = _residual(block, w, rows[0], columns[0])
    times = 1.0 if diagonal else 2.0
    return times * _dot(S, gap), times * _dot(S, model)


def _sums_of_two(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[float, float]:
    model, gap, S = _residual(block, w, rows[0], columns[1])
    apart, along = _dot(S, gap), _dot(S, model)
    if not diagonal:
        model, gap, S = _residual(block, w, rows[1], columns[0])
        apart, along = apart + _dot(S, gap), along + _dot(S, model)
    return apart, along


def _quartic(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[float, float, float, float]:
    (U, D), (V, E) = rows, columns
    _, _, S = _residual(block, w, U, V)
    mixed = U @ E.T + D @ V.T
    moved = D @ E.T
    weighed = w * mixed
    times = 1.0 if diagonal else 2.0
    return (
        -times * _dot(S, mixed),
        times * (0.5 * _dot(weighed, mixed) - _dot(S, moved)),
        times * _dot(weighed, moved),
        0.5 * times * _dot(w * moved, moved),
    )
