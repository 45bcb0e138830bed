"""What is measured along a run, from products already computed.

The fitting error comes from the trace identity

    ||X - U V^T||^2 = ||X||^2 - 2 <X U, V> + <U^T U, V^T V>,

which needs no product beyond X U. It loses all digits when the error is small, so then the
residual is formed entry by entry instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symnmf.kernels import reductions
from symnmf.matrices import SymmetricMatrix
from symnmf.run.state import State

#: Relative errors under which the identity has too few digits left.
IDENTITY_TRUSTED_ABOVE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-2}


@dataclass(frozen=True)
class Measurement:
    """One evaluation of a state, in the units of the matrix it was taken on.

    Attributes
    ----------
    objective : float
        1/2 ||X - U V^T||^2 + lambda/2 ||U - V||^2.
    error : float
        E = ||X - U U^T||^2 / ||X||^2.
    consensus : float
        ||U - V||_F.
    disagreement : float
        ||U - V||_F / ||V||_F.
    residual : float
        ||U - max(U - t grad f(U), 0)||_F / t with t = 1/||X||_F: how far U is from a critical
        point of the original problem. Near one it is the norm of the projected gradient.
    """

    objective: float
    error: float
    consensus: float
    disagreement: float
    residual: float


def fitting_sqnorm(
    X: SymmetricMatrix, state: State, other: np.ndarray, gram_other: np.ndarray, explained: float
) -> float:
    """Return ||X - U other^T||_F^2, given ``explained`` = <X U, other>."""
    total = X.sqnorm - 2.0 * explained + float(np.vdot(state.known_gram_U(X.threads), gram_other))
    if total > IDENTITY_TRUSTED_ABOVE[X.dtype] * X.sqnorm or not X.residual_affordable:
        return max(total, 0.0)
    return X.residual_sqnorm(state.U, other)


def natural_residual(X: SymmetricMatrix, state: State, scale: float = 1.0) -> float:
    """Return the natural residual of ``scale * U``, in the units of a gradient."""
    assert state.product is not None
    gram = state.known_gram_U(X.threads)
    if scale != 1.0:
        U, product, gram = scale * state.U, scale * state.product, scale**2 * gram
    else:
        U, product = state.U, state.product
    return reductions.natural_residual(U, product, gram, 1.0 / X.norm, X.threads) * X.norm


def best_multiple(X: SymmetricMatrix, state: State) -> float:
    """Return the s >= 0 that minimises ||X - (sU)(sU)^T||_F."""
    assert state.product is not None
    fourth = float(np.sum(state.known_gram_U(X.threads) ** 2))
    if fourth == 0.0:
        return 1.0
    return float(np.sqrt(max(reductions.inner(state.product, state.U, X.threads), 0.0) / fourth))


def measure(X: SymmetricMatrix, state: State) -> Measurement:
    """Evaluate a state; one product with X only where the step left none behind."""
    threads = X.threads
    if state.product is None:
        state.product = X.matmul(state.U)
    U, V, gram = state.U, state.V, state.known_gram_U(threads)
    if V is U:
        apart, together = 0.0, 1.0
        symmetric = split = fitting_sqnorm(
            X, state, U, gram, reductions.inner(state.product, U, threads)
        )
    else:
        own, mixed, apart, together = reductions.split(state.product, U, V, threads)
        symmetric = fitting_sqnorm(X, state, U, gram, own)
        split = fitting_sqnorm(X, state, V, state.known_gram_V(threads), mixed)
    # U = 0 and V = 0 agree; the tiny floor keeps 0/0 out
    relative = np.sqrt(apart / together) if together > 0.0 else (0.0 if apart == 0.0 else np.inf)
    return Measurement(
        objective=0.5 * split + 0.5 * state.penalty * apart,
        error=symmetric / X.sqnorm,
        consensus=float(np.sqrt(apart)),
        disagreement=float(relative),
        residual=natural_residual(X, state),
    )


def rounding_level(X: SymmetricMatrix, state: State) -> float:
    """Return the size under which a residual at U is rounding."""
    size = np.sqrt(float(np.trace(state.known_gram_U(X.threads))))
    return float(64.0 * np.finfo(X.dtype).eps * X.norm * size)
