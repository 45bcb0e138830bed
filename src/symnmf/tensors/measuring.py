r"""What is measured along a run on a tensor: the same as on a matrix, of a higher degree.

.. math:: \|T - [[U_1, \dots, U_d]]\|^2 = \|T\|^2
    - 2\langle T_{(1)}(U_d \odot \cdots \odot U_2), U_1\rangle + \|[[U_1, \dots, U_d]]\|^2, \qquad
    \tfrac1d \nabla f(U) = U (U^\top U)^{\circ(d-1)} - T_{(1)}(U \odot \cdots \odot U).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from symnmf.ops import Tall
from symnmf.run.objective import (
    IDENTITY_TRUSTED_ABOVE,
    LEAST_SIZE,
    REFERENCE_SHARE,
    Measurement,
    best_multiple,
    measure,
    stationarity,
)
from symnmf.run.state import Point, State
from symnmf.tensors.tensor import SymmetricTensor


def fitting_sqnorm(T: SymmetricTensor, factors: Sequence[np.ndarray], product: Tall) -> float:
    """Return ||T - [[U_1, ..., U_d]]||^2, given the product of T with all factors but the first."""
    explained = T.ops.inner(product, factors[0])
    total = T.sqnorm - 2.0 * explained + T.model.sqnorm(factors)
    if not total > IDENTITY_TRUSTED_ABOVE[T.dtype] * T.sqnorm and T.residual_affordable:
        return T.residual_sqnorm(factors)
    return max(total, 0.0)


def filled(T: SymmetricTensor, U: Point) -> np.ndarray:
    """Return T_(1)(U kr ... kr U) with unobserved entries taken as the model says."""
    hidden = T.model.hidden([U.values] * T.order, 0)
    product = U.product(T)
    return product if hidden is None else product + hidden


def curvature(T: SymmetricTensor, U: Point) -> np.ndarray:
    """Return (U^T U)^(d-1), entry by entry: what U^T U is to a matrix."""
    return U.gram ** (T.order - 1)


def step_length(T: SymmetricTensor) -> float:
    """Return the t of the natural residual, ||T|| to the power that makes t grad f a factor."""
    return float(T.norm ** -(2.0 - 2.0 / T.order))


@stationarity.register
def _(T: SymmetricTensor, U: Point) -> float:
    size = float(np.sqrt(np.trace(U.gram)))
    if size < LEAST_SIZE:
        return np.inf
    # the operation is a matrix's, whose gradient is 2 (U U^T U - X U)
    half = 0.5 * T.order * step_length(T)
    moved = T.ops.natural_residual(U.values, filled(T, U), curvature(T, U), half)
    return float(moved / (REFERENCE_SHARE * size))


@best_multiple.register
def _(T: SymmetricTensor, U: Point) -> float:
    size = T.model.sqnorm([U.values] * T.order)
    if size == 0.0:
        return 1.0
    explained = max(T.ops.inner(U.product(T), U.values), 0.0)
    return float((explained / size) ** (1.0 / T.order))


@measure.register
def _(T: SymmetricTensor, state: State) -> Measurement:
    U = state.U
    symmetric = fitting_sqnorm(T, [U.values] * T.order, U.product(T))
    split, apart, relative = symmetric, 0.0, 0.0
    if state.V is not U:
        factors = [point.values for point in state.factors]
        split = fitting_sqnorm(T, factors, T.contract(factors[1:]))
        for first, second in itertools.combinations(factors, 2):
            gap, _, size = T.ops.pair(first, second)
            apart += gap
            ratio = np.sqrt(gap / size) if size > 0.0 else (0.0 if gap == 0.0 else np.inf)
            relative = max(relative, float(ratio))
    return Measurement(
        objective=0.5 * split + 0.5 * state.coupling * apart,
        error=symmetric / T.sqnorm,
        consensus=float(np.sqrt(apart)),
        disagreement=relative,
        stationarity=stationarity(T, U),
    )
