"""Passes over the parts of X, each with its weights, on every storage backend."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.interchange import namespace
from symnmf.objectives.objective import Coefficients
from symnmf.ops import Factor, Ops
from symnmf.state import Sums
from symnmf.storage.symmetric import Square, SymmetricMatrix, Work

#: Weights on a device that are summed together.
SUMMED = 2**24


@dataclass(eq=False)
class Weights:
    """Weights of all entries, cut as X is cut.

    Attributes
    ----------
    values : ndarray, csr_array or None
        The weights; None where all are 1.
    skip_diagonal : bool
        Whether the diagonal has no weight, whatever is given.
    """

    n: int
    values: Any = None
    skip_diagonal: bool = False

    def __call__(self, square: Square) -> Factor:
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

    @property
    def arrays(self) -> list[np.ndarray]:
        """What there is to them, for a fingerprint."""
        held, skip = self.values, np.array(self.skip_diagonal)
        if held is None:
            return [skip]
        return [skip, *((held.indptr, held.indices, held.data) if sp.issparse(held) else (held,))]


@dataclass(eq=False)
class PlacedWeights(Weights):
    """Weights where X is, without a diagonal already where that has none."""

    ops: Ops = field(kw_only=True)
    dtype: np.dtype = field(kw_only=True)

    @classmethod
    def of(cls, n: int, W: Any, skip_diagonal: bool, X: SymmetricMatrix) -> PlacedWeights:
        """Place weights of the host, and take others as they are."""
        ops = X.ops
        if sp.issparse(W):
            W = W.toarray()
        if isinstance(W, np.ndarray):
            W = ops.put(W if W.dtype == bool else W.astype(X.dtype))
        if skip_diagonal:
            others = ops.put(~np.eye(n, dtype=bool))
            W = others if W is None else ops.cast(W, X.dtype) * ops.cast(others, X.dtype)
        return cls(n, W, ops=ops, dtype=X.dtype)

    def __call__(self, square: Square) -> Factor:
        block = self.values[square.top : square.bottom, square.left : square.right]
        return self.ops.cast(block, self.dtype)

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        wide, step = np.dtype(np.float64), max(1, SUMMED // self.n)
        sums: list[list[np.ndarray]] = [[], []]
        for first in range(0, self.n, step):
            columns = self.ops.cast(self.values[:, first : min(first + step, self.n)], wide)
            sums[0].append(self.ops.column_sums(columns))
            sums[1].append(self.ops.column_sums(self.ops.cast(columns != 0.0, wide)))
        seen, counts = map(np.concatenate, sums)
        return seen, counts.astype(np.int64)

    @property
    def arrays(self) -> list[np.ndarray]:
        return [self.ops.get(self.values)]


@dataclass(frozen=True, eq=False)
class Parts:
    """Passes over a storage and its weights; each part is processed on its own device."""

    storage: SymmetricMatrix
    weights: Weights
    known_sqnorm: float | None = None

    def sqnorm(self) -> float:
        """Return the sum of w x^2."""
        if self.known_sqnorm is None:
            (sqnorm,) = self._totals(_squared, [])
            object.__setattr__(self, "known_sqnorm", sqnorm)
        assert self.known_sqnorm is not None
        return self.known_sqnorm

    def over(self, storage: SymmetricMatrix) -> Parts:
        """Return the same passes over another storage of X."""
        return Parts(storage, self.weights, self.known_sqnorm)

    @property
    def arrays(self) -> list[np.ndarray]:
        """What there is to the weights, for a fingerprint."""
        return self.weights.arrays

    def flops(self, rank: int) -> float:
        """Return the floating point operations of a pass."""
        return 4.0 * self.storage.shape[0] ** 2 * rank

    def add(self, F: Factor, V: Factor, T: Factor, out: Factor) -> Sums:
        """Add S T to ``out``, S = W o (X - F V^T); return the sums."""
        misfit, explained = 0.0, 0.0
        factors = [F, T] if F is V else [F, V, T]
        for square, found in self.storage.visit(_product, factors, self.weights):
            own, other, apart, along = found
            out[square.top : square.bottom, :] += own
            if other is not None:
                out[square.left : square.right, :] += other
            misfit, explained = misfit + apart, explained + along
        return self._sums(misfit, explained)

    def _sums(self, misfit: float, explained: float) -> Sums:
        """Return all three sums from those of w (x - m)^2 and of w (x - m) m, fit - size."""
        fit = self.sqnorm() - misfit - explained
        return misfit, fit, fit - explained

    def sums(self, U: Factor, V: Factor) -> Sums:
        misfit, explained = self._totals(_misfit, [U] if U is V else [U, V])
        return self._sums(misfit, explained)

    def quartic(self, U: Factor, D: Factor) -> Coefficients:
        """Return c_1 to c_4 of f along U + t D."""
        return self._totals(_quartic, [U, D])

    def _totals(self, work: Work, factors: list[Factor]) -> tuple[float, ...]:
        """Return the sums over all parts of the numbers that ``work`` finds in each."""
        visits = self.storage.visit(work, factors, self.weights)
        return tuple(float(sum(numbers)) for numbers in zip(*(v for _, v in visits), strict=True))


# --- what is done with one part. NumPy arrays and tensors alike; sums are numbers of the host.


def _dot(A: Factor, B: Factor) -> float:
    return float(namespace(A).sum(A * B))


def _squared(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[float]:
    return ((1.0 if diagonal else 2.0) * _dot(w * block, block),)


#: S = w o (X - F V^T), and the sums of w (x - m)^2 and w (x - m) m.
Residual = tuple[Factor, float, float]


def _residual(block: Factor, w: Factor, F: Factor, V: Factor) -> Residual:
    model = F @ V.T
    gap = block - model
    S = w * gap
    return S, _dot(S, gap), _dot(S, model)


def _mirrored(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], own: Residual
) -> Residual:
    """Return the residual of the mirror image, transposed; F alone is V too."""
    return own if len(rows) == 1 else _residual(block, w, rows[1], columns[0])


def _product(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[Factor, Factor | None, float, float]:
    *rows, T = rows
    *columns, R = columns
    own = S, apart, along = _residual(block, w, rows[0], columns[-1])
    if diagonal:
        return S @ R, None, apart, along
    mirror, more, further = _mirrored(block, w, rows, columns, own)
    return S @ R, mirror.T @ T, apart + more, along + further


def _misfit(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[float, float]:
    own = _, apart, along = _residual(block, w, rows[0], columns[-1])
    if diagonal:
        return apart, along
    _, more, further = _mirrored(block, w, rows, columns, own)
    return apart + more, along + further


def _quartic(
    block: Factor, w: Factor, rows: list[Factor], columns: list[Factor], diagonal: bool
) -> tuple[float, float, float, float]:
    (U, D), (V, E) = rows, columns
    S = w * (block - U @ V.T)
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
