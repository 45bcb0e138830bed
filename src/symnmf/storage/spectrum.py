"""Extreme eigenvalues of X from products alone: never an n x n eigendecomposition for large n."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from symnmf import calls
from symnmf.ops import Factor
from symnmf.storage.symmetric import SymmetricMatrix

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

SMALL = 64  # up to this n the dense eigenvalues are cheaper than Lanczos
MIDDLING = 2000  # up to this n they are cheaper than one Lanczos run after another


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


def host_product(X: SymmetricMatrix, v: np.ndarray) -> np.ndarray:
    """Return X times a vector or a few of them in host memory, in float64."""
    thin = np.ascontiguousarray(v.reshape(X.shape[0], -1), dtype=X.dtype)
    return X.ops.get(X.matmul(X.ops.put(thin))).astype(np.float64).reshape(v.shape)


def as_operator(X: SymmetricMatrix) -> LinearOperator:
    """Wrap X for scipy's iterative eigensolvers, in float64."""
    from scipy.sparse.linalg import LinearOperator

    def multiply(v: np.ndarray) -> np.ndarray:
        return host_product(X, v)

    return LinearOperator(X.shape, matvec=multiply, matmat=multiply, dtype=np.float64)


def leading_eigenpairs(X: SymmetricMatrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``count`` algebraically largest eigenvalues, descending, and eigenvectors.

    A Krylov space of one vector holds one direction of every eigenspace, so copies of a repeated
    eigenvalue (a graph with several equal components has them) show up by rounding or not at all.
    What was found is therefore locked away and the rest of the spectrum searched until nothing
    larger is left there.
    """
    n = X.shape[0]
    if X.sqnorm == 0.0:
        return np.zeros(count), np.eye(n, count)
    if count >= n - 1 or n <= SMALL:
        return _dense_eigenpairs(X, count)
    values, vectors = _largest(as_operator(X), count, _fixed_start(n))
    while True:
        kept = np.sort(values)[-count]
        rest = _without(X, values, vectors)
        start = np.random.default_rng(len(values)).standard_normal(n)
        # a Ritz value is never above the largest eigenvalue, so a rough one raises no false alarm
        if _largest(rest, 1, start, tol=1e-4)[0][0] <= kept + 1e-8 * X.norm:
            break
        # twice as many with every round: where one copy is missing, more may be
        wanted = max(1, len(values) - count)
        if n <= MIDDLING or len(values) + wanted >= n:
            return _dense_eigenpairs(X, count)
        more = _largest(rest, wanted, start)
        values = np.concatenate([values, more[0]])
        vectors = np.linalg.qr(np.hstack([vectors, more[1]]))[0]
    order = np.argsort(values)[::-1][:count]
    return values[order], vectors[:, order]


def _dense_eigenpairs(X: SymmetricMatrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import eigh

    n = X.shape[0]
    values, vectors = eigh(host_product(X, np.eye(n)), subset_by_index=(n - count, n - 1))
    return values[::-1], vectors[:, ::-1]


def _largest(
    operator: LinearOperator, count: int, start: np.ndarray, tol: float = 1e-10
) -> tuple[np.ndarray, np.ndarray]:
    from scipy.sparse.linalg import eigsh

    return eigsh(operator, k=count, which="LA", v0=start, tol=tol)


def _without(X: SymmetricMatrix, values: np.ndarray, vectors: np.ndarray) -> LinearOperator:
    """Return X with the given eigenvalues moved below all others."""
    from scipy.sparse.linalg import LinearOperator

    lowered = values + X.norm

    def deflated(v: np.ndarray) -> np.ndarray:
        thin = v.reshape(X.shape[0], -1)
        image = host_product(X, thin) - vectors @ (lowered[:, None] * (vectors.T @ thin))
        return image.reshape(v.shape)

    return LinearOperator(X.shape, matvec=deflated, matmat=deflated, dtype=np.float64)


def largest_eigenvalue(n: int, multiply: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the largest eigenvalue of the symmetric n x n matrix behind ``multiply``.

    ``multiply`` takes and gives n x k arrays in float64. Accurate to about 1e-8 of the value.
    """
    if n <= SMALL:
        return float(np.linalg.eigvalsh(multiply(np.eye(n)))[-1])
    from scipy.sparse.linalg import LinearOperator, eigsh

    operator = LinearOperator(
        (n, n),
        matvec=lambda v: multiply(v.reshape(n, 1))[:, 0],
        dtype=np.float64,
    )
    # the matrices asked about have no sign, so the start has none either
    start = np.random.default_rng(0).standard_normal(n)
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=1e-8, return_eigenvectors=False)[0])


def spectrum(X: SymmetricMatrix) -> Spectrum:
    """Return the smallest and the largest eigenvalue of X, to about 1e-6 relative."""
    n = X.shape[0]
    if n <= SMALL:
        values = np.linalg.eigvalsh(host_product(X, np.eye(n)))
        return Spectrum(float(values[0]), float(values[-1]))
    if X.sqnorm == 0.0:
        return Spectrum(0.0, 0.0)
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

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
        return lanczos_ends(n, lambda v: host_product(X, v), steps=100)
    return Spectrum(float(values.min()), float(values.max()))


def lanczos_ends(n: int, multiply: Callable[[np.ndarray], np.ndarray], steps: int = 20) -> Spectrum:
    """Estimate both ends of the n x n matrix behind ``multiply``, which takes one vector.

    The estimates lie inside the spectrum, and near its ends after a few steps.
    """
    # a random sign pattern: the positive vector of `_fixed_start` is almost blind to the low end
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
