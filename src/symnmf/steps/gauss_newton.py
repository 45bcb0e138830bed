"""The Gauss-Newton step of f under U >= 0, by alternating directions and without a product."""

from __future__ import annotations

import numpy as np

from symnmf.objectives import Objective
from symnmf.ops import Factor
from symnmf.state import Point

INNER_STEPS = 10
RELAXATION = 1.6
DAMPING_SHARE = 0.003  # of the weight that ties both halves of the split also damps the model
LEAST_SHIFT = 1e-30  # ||X||_F is about 1, and the inverse of the shift may have to be a float32


def gauss_newton_target(
    f: Objective, U: Point, weight: float, dual: Factor, spare: list[Factor] | None = None
) -> tuple[Factor, Factor]:
    r"""Return Z >= 0 that nearly minimises the Gauss-Newton model of f, and the new ``dual``.

    With A = X U, G = U^T U and D = Z - U the model is

    .. math:: \min_{U + D \ge 0} -\langle A - UG, D\rangle + \tfrac14\|DU^\top + UD^\top\|^2
        + \tfrac\mu2\|D\|^2,

    half of f to second order without the term that holds the residual X - U U^T. It is split into
    D and Z with the ``weight`` :math:`\rho` (ADMM): the half without bounds has a closed form, at
    the price of one product with (G + (mu + rho) I)^-1, and the other is a clipping. ``dual`` is
    the scaled multiplier of U + D = Z, never positive, which says which entries the bound holds:
    started from the last call's, a few steps are enough. Factors in ``spare`` may be written to.
    """
    gram = U.gram
    shift = (1.0 + DAMPING_SHARE) * weight
    if not shift > LEAST_SHIFT:  # U = 0, or as good as that: the model has no curvature
        return f.ops.copy(U.values), dual
    level = float(gram.trace()) / len(gram)
    values, vectors = np.linalg.eigh(gram / level)
    return f.ops.gauss_newton(
        U.values,
        f.aim(U),
        gram,
        (level * values, vectors),
        (weight, shift, RELAXATION),
        dual,
        INNER_STEPS,
        spare,
    )


def damping_factor(t: float) -> float:
    """Return by how much to change the weight, from how far the line search went."""
    return 0.7 if t >= 0.9 else 1.0 if t >= 0.5 else 1.5 if t > 0.0 else 10.0
