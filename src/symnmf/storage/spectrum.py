"""Extreme eigenvalues of X from products alone: never an n x n eigendecomposition for large n."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from symnmf import calls
from symnmf.ops import Factor
from symnmf.storage.symmetric import SymmetricMatrix

DENSE_UP_TO = 400  # rows up to which all eigenvalues are as cheap as a few by Lanczos


class Spectrum(NamedTuple):
    """The ends of the spectrum of X."""

    smallest: float
    largest: float


def host_product(X: SymmetricMatrix, v: np.ndarray) -> np.ndarray:
    """Return X times a vector or a few of them in host memory, in float64."""
    thin = np.ascontiguousarray(v.reshape(X.shape[0], -1), dtype=X.dtype)
    return X.ops.get(X.matmul(X.ops.put(thin))).astype(np.float64).reshape(v.shape)


def leading_eigenpairs(
    n: int, multiply: Callable[[np.ndarray], np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``count`` largest eigenvalues, descending, and eigenvectors.

    They are those of the symmetric n x n matrix behind ``multiply``, which takes and gives n x k
    arrays in float64, to about 1e-10 of the value.
    """
    if n <= DENSE_UP_TO or count >= n - 1:
        # all of them: LAPACK's search for some finds none of an eigenvalue that is repeated
        values, vectors = (part[..., n - count :] for part in np.linalg.eigh(multiply(np.eye(n))))
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh

        operator = LinearOperator(
            (n, n), matvec=lambda v: multiply(v.reshape(n, 1))[:, 0], dtype=np.float64
        )
        start = np.random.default_rng(0).standard_normal(n)
        values, vectors = eigsh(operator, k=count, which="LA", v0=start, tol=1e-10)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def largest_eigenvalue(n: int, multiply: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the largest eigenvalue of the matrix behind ``multiply``."""
    return float(leading_eigenpairs(n, multiply, 1)[0][0])


def lanczos_ends(n: int, multiply: Callable[[np.ndarray], np.ndarray], steps: int = 20) -> Spectrum:
    """Estimate both ends of the n x n matrix behind ``multiply``, which takes one vector.

    The estimates lie inside the spectrum, and near its ends after a few steps.
    """
    # with both signs: a positive vector is almost blind to the low end
    current = np.random.default_rng(0).standard_normal(n)
    current /= np.linalg.norm(current)
    before = np.zeros(n)
    diagonal: list[float] = []
    off: list[float] = []
    for _ in range(min(steps, n)):
        image = multiply(current)
        alpha = float(image @ current)
        image -= alpha * current + (off[-1] if off else 0.0) * before
        diagonal.append(alpha)
        beta = float(np.linalg.norm(image))
        if beta <= 1e-12 * max(map(abs, diagonal)):
            break
        off.append(beta)
        before, current = current, image / beta
    from scipy.linalg import eigh_tridiagonal

    values = eigh_tridiagonal(
        np.array(diagonal), np.array(off[: len(diagonal) - 1]), eigvals_only=True
    )
    return Spectrum(float(values[0]), float(values[-1]))


def filtered(
    multiply: Callable[[Factor], Factor],
    block: Factor,
    image: Factor,
    ends: tuple[float, float, float],
    degree: int,
    combine: Callable[..., Factor],
    needed: float = 0.0,
) -> Factor:
    """Return p(A) block, p the Chebyshev polynomial that is small on [low, edge], 1 at ``top``.

    ``ends`` are low, edge and top, ``image`` is A block, and ``combine`` is that of the
    operations on such blocks. The polynomial is cut short, at a lower degree, where the call has
    fewer than ``needed`` seconds left.
    """
    low, edge, top = ends
    half, centre = (edge - low) / 2, (edge + low) / 2
    first = half / (top - centre)
    scale = first
    before, now = block, combine((scale / half, image), (-scale / half * centre, block))
    for _ in range(degree - 1):
        if calls.out_of_time(needed):
            break
        following = 1 / (2 / first - scale)
        weight = 2 * following / half
        step = combine(
            (weight, multiply(now)), (-weight * centre, now), (-scale * following, before)
        )
        before, now, scale = now, step, following
    return now
