"""The exact line search: f along a line is a polynomial of degree 2d, lowest where it says."""

from __future__ import annotations

import math

import numpy as np

from symnmf.run.state import State
from symnmf.tensors.tensor import SymmetricTensor

POLISH = 4  # Newton steps on a zero found as an eigenvalue


def lowest_step(coefficients: np.ndarray) -> tuple[float, float]:
    """Minimise q(t) = c_1 t + c_2 t^2 + ... over [0, 1]; return t and q(t).

    The value returned is never above 0 = q(0).
    """
    q = np.polynomial.Polynomial([0.0, *coefficients])
    slope = q.deriv()
    bend = slope.deriv()
    best, least = 0.0, 0.0
    for t in (1.0, *_between(slope)):
        for _ in range(POLISH):
            curved = bend(t)
            if t == 1.0 or curved <= 0.0:
                break
            t = min(max(t - slope(t) / curved, 0.0), 1.0)
        value = q(t)
        if value < least:
            best, least = float(t), float(value)
    return best, least


def _between(slope: np.polynomial.Polynomial) -> np.ndarray:
    """Return the zeros of a polynomial between 0 and 1, or nearly."""
    size = np.abs(slope.coef).max()
    if not (np.isfinite(size) and size > 0.0):
        return np.empty(0)
    # terms that cannot matter on [0, 1] would only make the others' zeros less exact
    kept = np.polynomial.Polynomial(slope.coef / size).trim(1e-18)
    zeros = kept.roots()
    return zeros.real[(np.abs(zeros.imag) < 1e-6) & (zeros.real > 0.0) & (zeros.real < 1.0)]


def line_step(T: SymmetricTensor, state: State, target: np.ndarray, per_length: float) -> float:
    r"""Move U towards ``target`` to where f is lowest; return the fraction t of the way.

    With D = target - U, the inner products with T come from products with D,

    .. math:: \langle T, (U + tD)^{\otimes d}\rangle
        = \sum_k \binom dk t^k \langle T, D^{\otimes k} \otimes U^{\otimes d-k}\rangle,

    and ||[[U + tD, ...]]||^2 from sums over the factors. U stays (t = 0) unless f falls by
    ``per_length`` ||tD||^2. ``target`` is overwritten.
    """
    U, ops, d = state.U.values, T.ops, T.order
    D = np.subtract(target, U, out=target)
    powers = T.matmul(D)
    inner = {1: ops.inner(state.U.product(T), D), d: ops.inner(powers, D)}
    inner[d - 1] = ops.inner(powers, U)
    if d == 4:
        inner[2] = ops.inner(T.contract([D, D, U]), U)
    change = 0.5 * T.model.line(U, D)[1:]
    for k, value in inner.items():
        change[k - 1] -= math.comb(d, k) * value
    t, fall = lowest_step(change)
    if t == 0.0 or -fall < per_length * t * t * ops.inner(D, D):
        return 0.0
    moved = ops.clip(ops.combine((1.0, U), (t, D)))
    state.spare.append(U)
    state.moved(moved, product=T.matmul(moved, out=powers))
    return t
