"""What is measured along a run, from products already computed.

The fitting error comes from the trace identity

    ||X - U V^T||^2 = ||X||^2 - 2 <X U, V> + <U^T U, V^T V>,

which needs no product beyond X U. It loses all digits when the error is small, so then the
residual is formed entry by entry instead.

Generic functions, so that an X of another order brings its own (:mod:`symnmf.tensors.measuring`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from symnmf.run.state import Misfit, Point, State
from symnmf.storage import SymmetricMatrix

#: The unit of stationarity, as a share of ||X||_F ||U||_F. A residual of the whole of it is that of
#: a gradient with nothing balanced yet; a tenth is nearer to where ordinary starts begin.
REFERENCE_SHARE = 0.1

#: Relative errors under which the identity has too few digits left.
IDENTITY_TRUSTED_ABOVE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-2}

#: The relative doubt up to which a misfit is carried along a run before X is read for it again.
CARRIED_WITHIN = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 5e-5}

#: ||U||_F, in the units of a run, below which squares of what is left are too small to be numbers:
#: as good as U = 0.
LEAST_SIZE = 1e-140


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
    stationarity : float
        How far U is from a critical point of the original problem, whatever the run began with:
        the natural residual ||U - max(U - t grad f(U), 0)||_F / t with t = 1/||X||_F, over a
        tenth of ||X||_F ||U||_F. Infinite at U = 0, which is critical and never an answer.
    """

    objective: float
    error: float
    consensus: float
    disagreement: float
    stationarity: float


def identity(X: SymmetricMatrix, explained: float, gram: np.ndarray, other: np.ndarray) -> float:
    """Return ||X - U V^T||^2 by the trace identity, given <X U, V> and the two Gram matrices."""
    return X.sqnorm - 2.0 * explained + float(np.vdot(gram, other))


def quick_sqnorm(X: SymmetricMatrix, U: Point, full: SymmetricMatrix) -> float:
    """Return ||X - U U^T||_F^2 to the digits of the identity, for ||X|| of ``full`` precision."""
    sums = U.weighted_sums(X)
    if sums is not None:
        return sums[0]
    return identity(full, X.ops.inner(U.product(X), U.values), U.gram, U.gram)


def fitting_sqnorm(X: SymmetricMatrix, U: Point, V: Point, explained: float) -> float:
    """Return ||X - U V^T||_F^2, given ``explained`` = <X U, V>; with the weights of X, if any."""
    sums = U.weighted_sums(X) if V is U else X.weighted_sums(U.values, V.values)
    if sums is not None:
        return sums[0]
    total = identity(X, explained, U.gram, V.gram)
    if total > IDENTITY_TRUSTED_ABOVE[X.dtype] * X.sqnorm:
        return total
    known = U.misfit if V is U else None
    if known is not None and known.doubt <= CARRIED_WITHIN[X.dtype] * known.sqnorm:
        return known.sqnorm
    exact = X.residual_sqnorm(U.values, V.values)
    if exact is None:
        return max(total, 0.0)
    if V is U:
        U.misfit = Misfit(exact)
    return exact


@singledispatch
def stationarity(X: Any, U: Point) -> float:
    """Return the ``stationarity`` of a :class:`Measurement` at U."""
    size = float(np.sqrt(np.trace(U.gram)))
    if size < LEAST_SIZE:
        return np.inf
    moved = X.ops.natural_residual(U.values, U.product(X), U.gram, 1.0 / X.norm)
    return float(moved / (REFERENCE_SHARE * size))


@singledispatch
def best_multiple(X: Any, U: Point) -> float:
    """Return the s >= 0 that minimises ||X - (sU)(sU)^T||_F."""
    sums = U.weighted_sums(X)
    fourth = float(np.sum(U.gram**2)) if sums is None else sums[2]
    if fourth == 0.0:
        return 1.0
    explained = X.ops.inner(U.product(X), U.values) if sums is None else sums[1]
    return float(np.sqrt(max(explained, 0.0) / fourth))


@singledispatch
def measure(X: Any, state: State) -> Measurement:
    """Evaluate a state; one product with X only where the step left none behind."""
    U, V = state.U, state.V
    product = U.product(X)
    if V is U:
        apart, together = 0.0, 1.0
        symmetric = split = fitting_sqnorm(X, U, U, X.ops.inner(product, U.values))
    else:
        own, mixed, apart, together = X.ops.split(product, U.values, V.values)
        symmetric = fitting_sqnorm(X, U, U, own)
        split = fitting_sqnorm(X, U, V, mixed)
    # U = 0 and V = 0 agree; the tiny floor keeps 0/0 out
    relative = np.sqrt(apart / together) if together > 0.0 else (0.0 if apart == 0.0 else np.inf)
    return Measurement(
        objective=0.5 * split + 0.5 * state.coupling * apart,
        error=symmetric / X.sqnorm,
        consensus=float(np.sqrt(apart)),
        disagreement=float(relative),
        stationarity=stationarity(X, U),
    )


def rounding_level(dtype: np.dtype) -> float:
    """Return the stationarity under which nothing but rounding is left."""
    return float(64.0 * np.finfo(dtype).eps / REFERENCE_SHARE)
