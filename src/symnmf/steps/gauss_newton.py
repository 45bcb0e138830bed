"""The Gauss-Newton step of f under U >= 0, by alternating directions and without a product."""

from __future__ import annotations

import numpy as np

from symnmf.kernels import directions
from symnmf.parallel import Threads

INNER_STEPS = 10
RELAXATION = 1.6
DAMPING_SHARE = 0.003  # of the weight that ties both halves of the split also damps the model


def gauss_newton_target(
    U: np.ndarray,
    product: np.ndarray,
    gram: np.ndarray,
    weight: float,
    dual: np.ndarray,
    threads: Threads,
) -> np.ndarray:
    r"""Return Z >= 0 that nearly minimises the Gauss-Newton model of f, and update ``dual``.

    With A = X U (``product``), G = U^T U (``gram``) and D = Z - U the model is

    .. math:: \min_{U + D \ge 0} -\langle A - UG, D\rangle + \tfrac14\|DU^\top + UD^\top\|^2
        + \tfrac\mu2\|D\|^2,

    half of f to second order without the term that holds the residual X - U U^T. It is split into
    D and Z with the ``weight`` :math:`\rho` (ADMM): the half without bounds has a closed form, at
    the price of one product with (G + (mu + rho) I)^-1, and the other is a clipping. ``dual`` is
    the scaled multiplier of U + D = Z, never positive, which says which entries the bound holds:
    started from the last call's, a few steps are enough.
    """
    n, r = U.shape
    kind = U.dtype
    shift = (1.0 + DAMPING_SHARE) * weight
    if not shift * shift > 0.0:  # U = 0, or as good as that: the model has no curvature
        return U.copy()
    level = float(np.trace(gram)) / r
    values, vectors = np.linalg.eigh(gram / level)
    values = level * values
    inverse = ((vectors / (values + shift)) @ vectors.T).astype(kind)
    curvature, turn = gram.astype(kind), vectors.astype(kind)
    basis, fixed, pull = (np.empty((n, r), kind) for _ in range(3))
    Z = U.copy()
    bounds = threads.split(n, 6.0 * r * r)

    def prepare(begin: int, end: int) -> np.ndarray:
        return directions.prepare_rows(
            U, product, curvature, turn, dual, weight, basis, fixed, pull, begin, end
        )

    def step(begin: int, end: int) -> np.ndarray:
        return directions.relax_rows(
            U, basis, fixed, inverse, coupling, weight, RELAXATION, pull, Z, dual, begin, end
        )

    parts = threads.run(prepare, bounds)
    if len(bounds) == 1:
        directions.relax(
            U, basis, fixed, inverse, parts[0], vectors, values,
            weight, shift, RELAXATION, pull, Z, dual, INNER_STEPS,
        )  # fmt: skip
        return Z
    for _ in range(INNER_STEPS):
        moment = sum(parts[1:], start=parts[0])
        coupling = directions.couple(moment, vectors, values, shift).astype(kind)
        parts = threads.run(step, bounds)
    return Z
