r"""The N that makes the bound largest, by ADMM.

With g(W) = sum_{i<=r} [lambda_i(W)]_+^2, which is convex, the largest bound is ||X||^2 less the
least g over all W = X + N >= X. The proximal map of g changes only the eigenvalues above a level s:
those of weight 1 are divided by 1 + 2 / rho, those tied at the level are lowered to it, and the
weights sum to r (Grussler and Giselsson, arXiv:1612.03186). That of W >= X is a maximum. So a step
costs about r leading eigenpairs and a few passes over an n x n array.

Every N met on the way gives a bound, so nothing here has to be exact.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

RHO = 1.0  # without units: g is quadratic in W
RELAXATION = 1.6
ALL_UP_TO = 600  # rows up to which all eigenpairs of a step cost less than a block of them
SPARE = 8  # tied eigenvalues beyond r: one to five were seen
KRYLOV = 2  # products with a block that knows the eigenvectors of the step before


def admm(X: np.ndarray, U: np.ndarray) -> Iterator[np.ndarray]:
    """Yield Y = X + N, a better N at every step on the whole; the array is reused.

    The start is the multiplier 2 U U^T, which is the right one where U is optimal and the bound
    tight.
    """
    n, rank = U.shape
    dtype = X.dtype if n <= ALL_UP_TO else np.dtype(np.float32)
    X, U = X.astype(dtype), U.astype(dtype)
    pairs = _AllPairs() if n <= ALL_UP_TO else _BlockPairs(U)
    Y, dual = X.copy(), U @ (U.T * dtype.type(-2.0 / RHO))
    while True:
        # W = prox(Y - dual), written over the old Y, which is no longer needed
        middle = Y - dual
        values, vectors = pairs(middle, rank)
        lowered = decrease(values, rank, RHO)
        used = lowered > 0.0
        middle -= (vectors[:, used] * lowered[used].astype(dtype)) @ vectors[:, used].T
        middle *= dtype.type(RELAXATION)
        Y *= dtype.type(1.0 - RELAXATION)
        Y += middle
        Y += dual
        np.maximum(X, Y, out=middle)
        np.subtract(Y, middle, out=dual)
        Y, middle = middle, Y
        yield Y


def decrease(values: np.ndarray, rank: int, rho: float) -> np.ndarray:
    """Return by how much the proximal map of g / rho lowers each of the descending eigenvalues."""
    share = 2.0 / rho
    positive = np.maximum(values, 0.0)
    if np.count_nonzero(positive) <= rank:
        return positive * share / (1.0 + share)
    low, high = 0.0, float(positive[0])
    for _ in range(60):  # the sum of the weights falls as the level rises
        level = 0.5 * (low + high)
        weights = np.clip((positive - level) / (share * level), 0.0, 1.0)
        low, high = (level, high) if weights.sum() > rank else (low, level)
    weights = np.clip((positive - high) / (share * high), 0.0, 1.0)
    return np.where(weights < 1.0, share * high * weights, positive * share / (1.0 + share))


class _AllPairs:
    """All eigenpairs of a small matrix, descending."""

    def __call__(self, M: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
        from scipy.linalg import eigh

        count = min(rank + 2 * SPARE, len(M))
        values, vectors = eigh(M, subset_by_index=(len(M) - count, len(M) - 1), check_finite=False)
        if len(values) < count:  # LAPACK may pass over eigenvalues that are repeated
            values, vectors = (part[..., len(M) - count :] for part in np.linalg.eigh(M))
        return values[::-1], vectors[:, ::-1]


class _BlockPairs:
    """Leading eigenpairs from a small Krylov space around those of the step before.

    Eigenvalues of weight 1 are 1 + 2 / rho times those of W here, far from the others, so that
    two products are enough.
    """

    def __init__(self, U: np.ndarray) -> None:
        spare = np.random.default_rng(0).standard_normal((len(U), SPARE))
        self.block = np.hstack([U, spare.astype(U.dtype)])

    def __call__(self, M: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
        blocks = [self.block]
        for _ in range(KRYLOV):
            image = M @ blocks[-1]
            image /= np.maximum(np.linalg.norm(image, axis=0), np.finfo(image.dtype).tiny)
            blocks.append(image)
        basis = np.linalg.qr(np.hstack(blocks))[0]
        values, turn = np.linalg.eigh(basis.T @ (M @ basis))
        width = self.block.shape[1]
        self.block = basis @ turn[:, : -width - 1 : -1]
        return values[: -width - 1 : -1].astype(np.float64), self.block
