"""The Gauss-Newton step of f under U >= 0 for a tensor, without a product with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from symnmf.kernels import conjugate
from symnmf.state import State

MOST_STEPS = 20
ENOUGH = 1e-4  # of the first residual, squared and preconditioned


def tensor_gauss_newton_target(f: Any, state: State, weight: float) -> np.ndarray:
    r"""Return Z >= 0 near the minimum of the damped Gauss-Newton model of f at U.

    With K = (U^T U)^(d-1) and H = (U^T U)^(d-2) entry by entry, the second derivative of f without
    the term that holds the residual is

    .. math:: D \mapsto d\,[DK + (d-1)\,U((D^\top U) \circ H)].

    Steps of conjugate gradients on the free entries, preconditioned by (K + mu I)^-1, then a
    clipping at zero. ``weight`` is the damping mu in units of the mean diagonal of K.
    """
    U, ops, threads = state.U.values, f.ops, f.ops.threads
    n, r = U.shape
    kind = U.dtype
    K = f.curvature(state.U.gram)
    shift = weight * float(np.trace(K)) / r
    if not shift > 0.0:  # U = 0, or as good as that: the model has no curvature
        return ops.copy(U)
    damped = K + shift * np.eye(r)
    inverse = np.linalg.inv(damped).astype(kind)
    coupled = (f.order - 1) * state.U.gram ** (f.order - 2)
    product = state.U.product(f)
    step, residual, shaped, direction, image = (state.scratch() for _ in range(5))
    free = np.empty(U.shape, np.bool_)
    bounds = threads.split(n, 8.0 * r * r)

    def both(task: Callable[[int, int], Any]) -> tuple[float, np.ndarray]:
        sums, crosses = zip(*threads.run(task, bounds), strict=True)
        return sum(sums), sum(crosses[1:], start=crosses[0])

    flat, curved = K.astype(kind), damped.astype(kind)
    energy, cross = both(
        lambda b, e: conjugate.begin_rows(
            U, product, flat, inverse, free, step, residual, shaped, direction, b, e
        )
    )
    enough, beta, along = ENOUGH * energy, 0.0, np.zeros((r, r))

    def curve(begin: int, end: int, coupling: np.ndarray, beta: float) -> float:
        return conjugate.curve_rows(
            U, curved, coupling, beta, free, shaped, direction, image, begin, end
        )

    def advance(begin: int, end: int, alpha: float) -> tuple[float, np.ndarray]:
        return conjugate.advance_rows(
            U, inverse, alpha, free, direction, image, step, residual, shaped, begin, end
        )

    for _ in range(MOST_STEPS):
        along = cross + beta * along
        coupling = (along * coupled).astype(kind)
        bend = sum(threads.run(partial(curve, coupling=coupling, beta=beta), bounds))
        if not bend > 0.0:
            break
        following, cross = both(partial(advance, alpha=energy / bend))
        if following <= enough:
            break
        energy, beta = following, following / energy
    target = ops.clip(np.add(U, step, out=step))
    state.spare += [residual, shaped, direction, image]
    return target
