"""The methods for tensors; the loop around them is the one for matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.naming import lookup
from symnmf.ops import Hals, Tall
from symnmf.run.memory import Kept, Layout
from symnmf.run.objective import best_multiple
from symnmf.run.state import Point, State
from symnmf.solvers import Solver
from symnmf.tensors.curvature import gauss_newton_target
from symnmf.tensors.line import line_step
from symnmf.tensors.measuring import curvature, filled
from symnmf.tensors.tensor import SymmetricTensor

PROXIMAL = 0.01  # weight of the sweeps, in units of the mean diagonal of the curvature
FIRST_SWEEPS = 10
GUARD = 9  # Gauss-Newton steps between two sweeps
FIRST_WEIGHT = 0.03  # damping, in the same units
LEAST_WEIGHT, MOST_WEIGHT = 1e-6, 1e6
STEP_DECREASE = 1e-8  # of the same units times the squared length of a step


class TensorSolver(Solver):
    """A method for tensors."""

    orders: ClassVar[tuple[int, ...]] = (3, 4)


@dataclass(frozen=True)
class TensorASymHALS(TensorSolver):
    r"""The paper's splitting, for tensors: d factors held together by a coupling.

    .. math:: g(U_1, \dots, U_d) = \tfrac12\|T - [[U_1, \dots, U_d]]\|^2
        + \tfrac\lambda2 \sum_{p<q} \|U_p - U_q\|^2

    With all factors but U_p fixed, its rows are those of a matrix problem: the Gram matrix is the
    entrywise product of the others', the anchor their mean, the coupling (d - 1) lambda. Entries
    that are not observed are filled with what the model says of them before each sweep.

    Parameters
    ----------
    inner_sweeps : int
        Sweeps over a factor before the next one moves.
    """

    name: ClassVar[str] = "a-symhals"
    summary: ClassVar[str] = "sweeps over each of d factors held together by a coupling"
    cost: ClassVar[str] = "d products, dL sweeps of 2nr^2"
    has_coupling: ClassVar[bool] = True
    second_factor: ClassVar[bool] = True

    inner_sweeps: int = 2

    def __post_init__(self) -> None:
        if type(self.inner_sweeps) is not int or self.inner_sweeps < 1:
            raise InputError(
                f"inner_sweeps must be a whole number of at least 1, got {self.inner_sweeps!r}."
            )

    def start(self, X: SymmetricTensor, U0: Tall) -> State:  # type: ignore[override]
        first, *others = (Point(X.ops, X.ops.copy(U0)) for _ in range(X.order - 1))
        return State(Point(X.ops, U0), first, others=others)

    def step(self, X: SymmetricTensor, state: State) -> None:  # type: ignore[override]
        ops, d = X.ops, X.order
        factors = [point.values for point in state.factors]
        grams = [point.gram for point in state.factors]
        for p in range(d):
            fixed = [factor for q, factor in enumerate(factors) if q != p]
            product, hidden = X.contract(fixed), X.model.hidden(factors, p)
            if hidden is not None:
                product += hidden
            gram = np.prod([gram for q, gram in enumerate(grams) if q != p], axis=0)
            anchor = ops.combine(*((1.0 / (d - 1), factor) for factor in fixed))
            weight = (d - 1) * state.coupling
            factors[p] = ops.solve_rows(
                Hals(self.inner_sweeps), factors[p], product, anchor, gram, weight
            )
            grams[p] = ops.gram(factors[p])
        points = [Point(ops, f, gram=gram) for f, gram in zip(factors, grams, strict=True)]
        state.U, state.V, *state.others = points


@dataclass(frozen=True)
class TensorSymHALS(TensorASymHALS):
    """One sweep over each factor in turn."""

    name: ClassVar[str] = "symhals"
    summary: ClassVar[str] = "one sweep over each of d factors held together by a coupling"
    cost: ClassVar[str] = "d products, d sweeps of 2nr^2"

    inner_sweeps: int = 1


@dataclass(frozen=True)
class TensorHalsNewton(TensorSolver):
    r"""Minimise :math:`f(U) = \tfrac12\|T - [[U, \dots, U]]\|^2` itself.

    HALS sweeps first, each a descent direction for f, then Gauss-Newton steps under U >= 0 by
    conjugate gradients, every tenth a sweep; after each an exact line search along the polynomial
    that f is. f never rises.
    """

    name: ClassVar[str] = "hals-newton"
    summary: ClassVar[str] = "sweeps, then Gauss-Newton, on the original problem"
    cost: ClassVar[str] = "2 products (3 of order 4), up to 20 inner steps of 8nr^2"

    def start(self, X: SymmetricTensor, U0: Tall) -> State:  # type: ignore[override]
        memory = {"weight": np.array(FIRST_WEIGHT), "newton_steps": np.array(0)}
        return State.at(X, U0, memory=memory)

    def memory(self, n: int, rank: int, dtype: np.dtype) -> Layout:
        return {
            "weight": Kept(least=LEAST_WEIGHT, most=MOST_WEIGHT),
            "newton_steps": Kept((), np.dtype(np.int64), 0, GUARD),
        }

    def step(self, X: SymmetricTensor, state: State) -> None:  # type: ignore[override]
        if state.iteration == 0:
            scale = best_multiple(X, state.U)
            if scale > 0.0:
                state.U = state.V = state.U.scaled(scale, X)
        K = curvature(X, state.U)
        level = float(np.trace(K)) / state.rank
        since = state.memory["newton_steps"]
        if state.iteration >= FIRST_SWEEPS and since < GUARD:
            since += 1
            if not self._newton_step(X, state, level):
                since[...] = GUARD
            return
        since[...] = 0
        product, ops = filled(X, state.U), X.ops
        weight = PROXIMAL * level
        target = ops.sweep(Hals(1), state.U.values, product, K, weight, state.room())
        line_step(X, state, target, 0.0)

    def _newton_step(self, X: SymmetricTensor, state: State, level: float) -> bool:
        weight = float(state.memory["weight"])
        target = gauss_newton_target(X, state, weight)
        t = line_step(X, state, target, STEP_DECREASE * level)
        factor = 0.7 if t >= 0.9 else 1.0 if t >= 0.5 else 1.5 if t > 0.0 else 10.0
        state.memory["weight"] = np.array(min(max(factor * weight, LEAST_WEIGHT), MOST_WEIGHT))
        return t > 0.0


SOLVERS: dict[str, type[TensorSolver]] = {
    "auto": TensorHalsNewton,
    **{method.name: method for method in (TensorHalsNewton, TensorSymHALS, TensorASymHALS)},
}


def as_tensor_solver(solver: str | Solver) -> Solver:
    """Return the method for tensors that a name or an object stands for."""
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str):
        raise InputError(f"solver must be a name or a Solver, got {type(solver).__name__}.")
    return lookup(solver, SOLVERS, "solver")()
