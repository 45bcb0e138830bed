"""Starts from the leading eigenvectors, turned until they are as good as nonnegative.

Where X = U U^T held exactly, U would be the eigenvectors scaled by the roots of their eigenvalues
and turned by some rotation. The rotation is looked for as spectral clustering looks for labels:
k rows that point in directions as different as possible become the axes (pivoted QR, Damle,
Minden and Ying 2019). What is negative after the turn is set to 0. Such a start has most of the
way behind it, and rows drawn at random, far ones more likely, give as many starts as are wanted.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import qr, svd

from symnmf.matrices import SymmetricMatrix
from symnmf.run.objective import best_multiple
from symnmf.run.state import Point

EXACT_UP_TO = 256  # rows up to which all eigenvectors at once are cheaper
SPARE = 10  # more columns than asked for, so that the last eigenvectors come quickly
ROUNDS, DEGREE = 2, 8  # of the filter; about twenty products in all, whatever the spectrum
FLOOR = 0.01  # of the mean entry: what is 0 in U_0 should be able to grow


@dataclass(frozen=True, eq=False)
class Basis:
    """The leading eigenvectors of X, about, times the roots of their eigenvalues."""

    vectors: np.ndarray
    values: np.ndarray

    def start(self, X: SymmetricMatrix, generator: np.random.Generator | None) -> np.ndarray:
        """Return U_0: rows that span most as axes, or rows drawn where there is a generator."""
        axes = _farthest(self.vectors) if generator is None else _drawn(self.vectors, generator)
        left, _, right = svd(axes.T)
        turned = (self.vectors * np.sqrt(np.maximum(self.values, 0.0))) @ (left @ right)
        positive, negative = np.maximum(turned, 0.0), np.maximum(-turned, 0.0)
        U = np.where((positive**2).sum(axis=0) >= (negative**2).sum(axis=0), positive, negative)
        U = np.ascontiguousarray(np.maximum(U, FLOOR * U.mean()), dtype=X.dtype)
        if not U.any():  # X has no positive eigenvalue
            U[:] = 1.0
        return (best_multiple(X, Point(X.ops, X.ops.put(U))) * U).astype(X.dtype)


def leading_subspace(X: SymmetricMatrix, count: int) -> Basis:
    """Return about the ``count`` leading eigenpairs, from some twenty products with X.

    A Chebyshev filter on a block of vectors: unlike Lanczos it finds repeated eigenvalues, and
    unlike an eigensolver run to convergence its cost does not depend on the spectrum. What is
    inexact in the last vectors the factorization mends.
    """
    n = X.shape[0]
    if n <= EXACT_UP_TO or count + SPARE > n // 2:
        values, vectors = np.linalg.eigh(_times(X, np.eye(n)))
        return Basis(np.ascontiguousarray(vectors[:, : -count - 1 : -1]), values[: -count - 1 : -1])
    width = count + SPARE
    block = np.random.default_rng(0).standard_normal((n, width))
    block = np.linalg.qr(_times(X, block))[0]
    for _ in range(ROUNDS):
        image = _times(X, block)
        ritz = np.linalg.eigvalsh(block.T @ image)
        top = ritz[-1]
        if not top > 0.0:
            break
        # X >= 0, so no eigenvalue lies below -top; what is above the edge is blown up
        edge = max(ritz[SPARE // 2], 0.05 * top)
        block = np.linalg.qr(_filtered(X, block, image, -top, edge, top))[0]
    values, turn = np.linalg.eigh(block.T @ _times(X, block))
    return Basis(block @ turn[:, : -count - 1 : -1], values[: -count - 1 : -1])


def _times(X: SymmetricMatrix, block: np.ndarray) -> np.ndarray:
    tall = X.ops.put(np.ascontiguousarray(block, dtype=X.dtype))
    return np.asarray(X.ops.get(X.matmul(tall)), dtype=np.float64)


def _filtered(
    X: SymmetricMatrix, block: np.ndarray, image: np.ndarray, low: float, edge: float, top: float
) -> np.ndarray:
    """Return p(X) block, p the Chebyshev polynomial that is small on [low, edge], 1 at ``top``."""
    half, centre = (edge - low) / 2, (edge + low) / 2
    first = half / (top - centre)
    scale = first
    before, now = block, (image - centre * block) * (scale / half)
    for _ in range(DEGREE - 1):
        following = 1 / (2 / first - scale)
        step = (_times(X, now) - centre * now) * (2 * following / half)
        before, now, scale = now, step - (scale * following) * before, following
    return now


def _farthest(vectors: np.ndarray) -> np.ndarray:
    """Return the k rows that pivoted QR takes first."""
    chosen = qr(vectors.T, mode="r", pivoting=True)[1][: vectors.shape[1]]
    return vectors[chosen]


def _drawn(vectors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return k rows, each drawn in proportion to its squared part outside the span of the earlier.

    Rows are scaled to one length in every second draw: small degrees then count as much as
    large ones. Neither is better on all graphs.
    """
    rest = vectors
    if generator.integers(2):
        rest = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-150)
    rows = rest
    axes = []
    for _ in range(vectors.shape[1]):
        weight = np.cumsum(np.einsum("ij,ij->i", rest, rest))
        if not weight[-1] > 0.0:
            axes.append(np.zeros(vectors.shape[1]))
            continue
        place = min(int(np.searchsorted(weight, generator.random() * weight[-1])), len(rest) - 1)
        axes.append(rows[place])
        direction = rest[place] / max(np.linalg.norm(rest[place]), 1e-150)
        rest = rest - np.outer(rest @ direction, direction)
    return np.array(axes)


@dataclass
class SpectralStarts:
    """One start after another from the same eigenvectors, which are computed when first needed.

    ``starts(number)`` is an ``init`` for :func:`symnmf.factorize`: the farthest rows as axes for
    number 0, drawn ones for the others.
    """

    known: Basis | None = field(default=None, repr=False)
    bound: float = float("nan")  # the error that no U of this rank comes below, about
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def __call__(self, number: int) -> Any:
        def init(X: SymmetricMatrix, rank: int, random_state: Any) -> np.ndarray:
            return self.prepare(X, rank).start(X, random_state if number else None)

        return init

    def prepare(self, X: SymmetricMatrix, rank: int) -> Basis:
        """Return the eigenvectors, which the first call computes."""
        with self._lock:
            if self.known is None:
                self.known = leading_subspace(X, rank)
            if np.isnan(self.bound):
                kept = float((np.maximum(self.known.values, 0.0) ** 2).sum())
                self.bound = max(1.0 - kept / X.sqnorm, 0.0) if X.sqnorm > 0.0 else 0.0
            return self.known

    def explained(self, error: float) -> float:
        """Return how much of what the eigenvectors explain an error leaves; NaN without them."""
        best = 1.0 - self.bound
        return (1.0 - error) / best if best != 0.0 else 1.0


def spectral_start(X: SymmetricMatrix, rank: int, random_state: Any) -> np.ndarray:
    """The start from the rows that span most; it does not depend on the seed."""
    return leading_subspace(X, rank).start(X, None)
