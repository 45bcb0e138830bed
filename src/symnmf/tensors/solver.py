"""The method for tensors: sweeps, then Gauss-Newton steps under U >= 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from symnmf.objectives import Objective
from symnmf.ops import Hals
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, State
from symnmf.steps.gauss_newton import damping_factor

SWEEPS = 10  # before the Gauss-Newton steps
PROXIMAL = 0.01  # lambda of a sweep, in units of the mean diagonal of the curvature
GUARD = 9  # Gauss-Newton steps between two sweeps
FIRST_WEIGHT, LEAST_WEIGHT, MOST_WEIGHT = 0.03, 1e-6, 1e6  # of the damping, in the same units
STEP_DECREASE = 1e-8  # of these units times the squared length of a Gauss-Newton step
INNER_STEPS = 20  # of conjugate gradients
INNER_RESIDUAL = 1e-4  # of the first one, squared and preconditioned, where they end
NEGLIGIBLE = 1e-18  # coefficients of a slope over the largest of them


@dataclass(frozen=True)
class TensorNewton(Solver):
    """Sweeps, then damped Gauss-Newton steps, each with an exact line search; f never rises."""

    name: ClassVar[str] = "tensor-newton"
    summary: ClassVar[str] = "sweeps, then Gauss-Newton, for tensors"
    cost: ClassVar[str] = "2 products, 3 of order 4, and 20 inner steps of 8nr^2"
    starts_at_random: ClassVar[bool] = False
    requires: ClassVar[tuple[str, ...]] = ("change_along",)
    rows = Hals()

    def memory(self, f: Objective, rank: int) -> Layout:
        return {
            "weight": Kept(least=LEAST_WEIGHT, most=MOST_WEIGHT),
            "newton_steps": Kept((), np.dtype(np.int64), 0, GUARD),
        }

    def start(self, f: Objective, U0: np.ndarray) -> State:
        state = super().start(f, U0)
        state.memory["weight"] = np.array(FIRST_WEIGHT)
        return state

    def step(self, f: Objective, state: State) -> None:
        if state.iteration == 0:
            scale = f.best_multiple(state.U)
            state.U = state.V = state.U.scaled(scale, f) if scale > 0.0 else state.U
        level = float(f.curvature(state.U.gram).trace()) / state.rank
        since = int(state.memory["newton_steps"])
        if state.iteration >= SWEEPS and since < GUARD:
            went_down = _newton_step(f, state, level)
            since = since + 1 if went_down else GUARD
        else:
            since, U = 0, state.U
            K = f.curvature(U.gram)
            out = f.ops.empty(U.values)
            target = f.ops.sweep(Hals(), U.values, U.product(f), K, PROXIMAL * level, out)
            _line_step(f, state, target, 0.0)
        state.memory["newton_steps"] = np.array(since, np.int64)


def _newton_step(f: Any, state: State, level: float) -> bool:
    """Take a Gauss-Newton step and adapt the damping; return whether f fell."""
    weight = float(state.memory["weight"])
    target = gauss_newton_target(f, state, weight * level)
    t = _line_step(f, state, target, STEP_DECREASE * level)
    following = damping_factor(t) * weight
    state.memory["weight"] = np.array(min(max(following, LEAST_WEIGHT), MOST_WEIGHT))
    return t > 0.0


def _line_step(f: Any, state: State, target: np.ndarray, per_length: float) -> float:
    """Move U towards ``target`` to where f is lowest; return the fraction of the way.

    U stays unless f falls by ``per_length`` times the squared length of the step.
    """
    U = state.U.values
    D = target - U
    t, change = polynomial_step(*f.change_along(state.U, D))
    if t == 0.0 or -change < per_length * t**2 * float(np.vdot(D, D)):
        return 0.0
    state.moved(f.ops.clip(U + D.dtype.type(t) * D))
    return t


def gauss_newton_target(f: Any, state: State, shift: float) -> np.ndarray:
    r"""Return Z >= 0 near the minimum of the damped Gauss-Newton model of f at U.

    With K = (U^T U)^(d-1) and H = (U^T U)^(d-2) entry by entry, P the product and g = U K - P, the
    model of f/d without the term that holds the residual is

    .. math:: \langle g, D\rangle
        + \tfrac12\langle D, DK + (d-1)\,U((D^\top U) \circ H) + \mu D\rangle,

    mu = ``shift``. T is in P only, so a step needs no product with it: conjugate gradients on the
    free entries {U > 0 or g < 0}, preconditioned by (K + mu I)^-1, then a clipping at zero.
    """
    U, gram = state.U.values, state.U.gram
    if not shift > 0.0:  # U = 0, or as good as that: the model has no curvature
        return U.copy()
    K = f.curvature(gram)
    damped = K + shift * np.eye(len(K))
    coupled = (f.order - 1) * gram ** (f.order - 2)
    slope = U @ K.astype(U.dtype) - state.U.product(f)
    free = (U > 0.0) | (slope < 0.0)
    flat, inverse = damped.astype(U.dtype), np.linalg.inv(damped).astype(U.dtype)

    step, residual = np.zeros_like(U), np.where(free, -slope, U.dtype.type(0))
    direction = shaped = (residual @ inverse) * free
    first = energy = float(np.vdot(residual, shaped))
    for _ in range(INNER_STEPS):
        turned = ((direction.T @ U) * coupled).astype(U.dtype)
        image = (direction @ flat + U @ turned) * free
        bend = float(np.vdot(direction, image))
        if not bend > 0.0:
            break
        along = U.dtype.type(energy / bend)
        step += along * direction
        residual -= along * image
        shaped = (residual @ inverse) * free
        previous, energy = energy, float(np.vdot(residual, shaped))
        if energy <= INNER_RESIDUAL * first:
            break
        direction = shaped + U.dtype.type(energy / previous) * direction
    return f.ops.clip(U + step)


def polynomial_step(*coefficients: float) -> tuple[float, float]:
    """Minimise q(t) = c_1 t + c_2 t^2 + ... over [0, 1]; return t and q(t) <= q(0) = 0."""
    q = np.polynomial.Polynomial([0.0, *coefficients])
    slope = q.deriv()
    size = np.abs(slope.coef).max()
    least = min(float(q(1.0)), 0.0)
    best = 1.0 if least < 0.0 else 0.0
    if not (np.isfinite(size) and size > 0.0):
        return best, least
    # terms that cannot matter on [0, 1] would only make the others' zeros less exact
    zeros = np.polynomial.Polynomial(slope.coef / size).trim(NEGLIGIBLE).roots()
    for t in zeros.real[(zeros.real > 0.0) & (zeros.real < 1.0)]:
        value = float(q(t))
        if value < least:
            best, least = float(t), value
    return best, least
