"""L-BFGS-B on the original problem, through scipy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.arguments import check_ranges
from symnmf.objectives import Objective
from symnmf.solvers.original import Move, gradient, move_to
from symnmf.solvers.solver import Solver
from symnmf.state import Point, State


@dataclass(frozen=True)
class LBFGS(Solver):
    """Bound-constrained quasi-Newton; one step is a call of scipy with a few of its iterations.

    scipy cannot pass its curvature pairs from one call to the next, so each step begins with
    steepest descent and builds them again. This is the price of running in the same loop as all
    solvers. A resumed run behaves the same, since there is no other state.

    Parameters
    ----------
    iterations : int
        scipy's iterations per step.
    pairs : int
        Curvature pairs kept (scipy's ``maxcor``).
    """

    name: ClassVar[str] = "lbfgs"
    summary: ClassVar[str] = "L-BFGS-B on the original problem, a few of its iterations per step"
    cost: ClassVar[str] = "about 1.1 products for each of its 50 inner iterations"
    requires: ClassVar[tuple[str, ...]] = ("along",)

    iterations: int = 50
    pairs: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, iterations=(1, 1e9), pairs=(1, 1e6))

    def step(self, f: Objective, state: State) -> None:
        from scipy.optimize import Bounds, minimize

        ops, here = f.ops, f.ops.get(state.U.values)
        best: Move | None = None
        unit = np.sqrt(f.norm)  # of U: scipy's first step has length 1 in its variables

        def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best
            move = move_to(f, state, ops.put((unit * flat).reshape(here.shape).astype(f.dtype)))
            if move.change < (0.0 if best is None else best.change):
                best = move
            slope = ops.get(gradient(f, Point(ops, move.U, move.product)))
            return move.change / f.sqnorm, slope.astype(np.float64).ravel() * (unit / f.sqnorm)

        # f is counted from the step's own start, where its small differences keep their digits
        minimize(
            evaluate,
            here.astype(np.float64).ravel() / unit,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(0.0, np.inf),
            options={
                "maxiter": self.iterations,
                "maxcor": self.pairs,
                "maxfun": 20 * self.iterations,
                "ftol": 0.0,
                "gtol": 0.0,
            },
        )
        if best is not None:
            best.take(state)
