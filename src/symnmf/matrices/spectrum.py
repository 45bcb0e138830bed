"""Extreme eigenvalues of X from products alone: never an n x n eigendecomposition for large n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from symnmf.matrices.symmetric import SymmetricMatrix

SMALL = 64  # up to this n the dense eigenvalues are cheaper than Lanczos


@dataclass(frozen=True)
class Spectrum:
    """The ends of the spectrum of X."""

    smallest: float
    largest: float

    @property
    def norm(self) -> float:
        """||X||_2."""
        return max(abs(self.smallest), abs(self.largest))


def _fixed_start(n: int) -> np.ndarray:
    """Return a positive start that meets the dominant eigenvector and stays the same every time."""
    return 1.0 + np.random.default_rng(0).random(n)


def as_operator(X: SymmetricMatrix) -> LinearOperator:
    """Wrap X for scipy's iterative eigensolvers, in float64."""

    def multiply(v: np.ndarray) -> np.ndarray:
        thin = np.ascontiguousarray(v.reshape(X.shape[0], -1), dtype=X.dtype)
        return X.matmul(thin).astype(np.float64).reshape(v.shape)

    return LinearOperator(X.shape, matvec=multiply, matmat=multiply, dtype=np.float64)


def leading_eigenpairs(X: SymmetricMatrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``count`` algebraically largest eigenvalues, descending, and eigenvectors."""
    n = X.shape[0]
    if count >= n - 1 or n <= SMALL:
        values, vectors = np.linalg.eigh(X.matmul(np.eye(n, dtype=X.dtype)).astype(np.float64))
    else:
        values, vectors = eigsh(as_operator(X), k=count, which="LA", v0=_fixed_start(n), tol=1e-10)
    order = np.argsort(values)[::-1][:count]
    return values[order], vectors[:, order]


def spectrum(X: SymmetricMatrix) -> Spectrum:
    """Return the smallest and the largest eigenvalue of X, to about 1e-6 relative."""
    n = X.shape[0]
    if n <= SMALL:
        values = np.linalg.eigvalsh(X.matmul(np.eye(n, dtype=X.dtype)).astype(np.float64))
        return Spectrum(float(values[0]), float(values[-1]))
    if X.sqnorm == 0.0:
        return Spectrum(0.0, 0.0)
    try:
        values = eigsh(
            as_operator(X),
            k=2,
            which="BE",
            v0=_fixed_start(n),
            tol=1e-6,
            return_eigenvectors=False,
            ncv=min(n, 40),
        )
    except ArpackNoConvergence:
        return lanczos(X, steps=100)
    return Spectrum(float(values.min()), float(values.max()))


def lanczos(X: SymmetricMatrix, steps: int = 20) -> Spectrum:
    """Estimate both ends from ``steps`` products with one vector, three vectors in memory.

    The estimates lie inside the spectrum, and near its ends after a few steps.
    """
    n = X.shape[0]
    # a random sign pattern: the positive vector of `_fixed_start` is almost blind to the low end
    current = np.random.default_rng(0).standard_normal(n)
    current /= np.linalg.norm(current)
    before = np.zeros(n)
    diagonal: list[float] = []
    off: list[float] = []
    for _ in range(min(steps, n)):
        image = X.matmul(np.ascontiguousarray(current[:, None], dtype=X.dtype))[:, 0].astype(
            np.float64
        )
        alpha = float(image @ current)
        image -= alpha * current + (off[-1] if off else 0.0) * before
        diagonal.append(alpha)
        beta = float(np.linalg.norm(image))
        if beta <= 1e-12 * max(map(abs, diagonal)):
            break
        off.append(beta)
        before, current = current, image / beta
    values = eigh_tridiagonal(
        np.array(diagonal), np.array(off[: len(diagonal) - 1]), eigvals_only=True
    )
    return Spectrum(float(values[0]), float(values[-1]))
