"""The Newton-like method of Kuang, Yun and Park (2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.arguments import TINY_TO_HUGE, check_ranges
from symnmf.objectives import Objective
from symnmf.ops import Factor
from symnmf.solvers.original import enough, gradient, projected_move
from symnmf.solvers.solver import Solver
from symnmf.state import State


@dataclass(frozen=True)
class Newton(Solver):
    """Projected Newton steps with the Hessian's diagonal blocks, one per column u of U.

    The block that belongs to grad f(U) = 2 (U U^T U - X U) is 2 (U U^T - X + u u^T + ||u||^2 I).
    It is solved by Cholesky on the entries that are not held at zero (u > eps or gradient <=
    eps); a column whose block is not positive definite takes its gradient, and so do all of them
    every ``refresh`` iterations or where the direction as a whole does not descend. Then Armijo
    along the projected path, from step 1.

    Parameters
    ----------
    eps : float
        Relative to the largest entry of U and of the gradient.
    sufficient, shrink : float
        Armijo's share of the expected decrease, and the factor between trials.
    refresh : int
        Iterations between forced gradient steps.
    max_trials : int
        Trials per search; a Newton direction that fails them is replaced by the gradient.
    """

    name: ClassVar[str] = "newton"
    summary: ClassVar[str] = "projected Newton, one Hessian block per column (Kuang et al. 2015)"
    needs: ClassVar[str] = "the entries of X and two dense n x n arrays in memory, sparse X or not"
    cost: ClassVar[str] = "r Cholesky factorisations of up to n x n, 1 product per trial step"
    requires: ClassVar[tuple[str, ...]] = ("plain_misfit", "entries")

    eps: float = 1e-6
    sufficient: float = 0.1
    shrink: float = 0.1
    refresh: int = 100
    max_trials: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, eps=TINY_TO_HUGE, shrink=(1e-6, 0.999999), max_trials=(1, 1e6))
        check_ranges(self, sufficient=(0.0, 0.999999), refresh=(1, 1e18))

    def step(self, f: Objective, state: State) -> None:
        slope = gradient(f, state.U)
        # a step of 1 has the scale of X in this unit
        directions = [f.ops.combine((1.0 / f.norm, slope))]
        if (state.iteration + 1) % self.refresh:
            direction = self._direction(f, state.U.values, slope)
            if f.ops.inner(slope, direction) > 0.0:
                directions.insert(0, direction)
        for direction in directions:
            length = 1.0
            for _ in range(self.max_trials):
                move = projected_move(f, state, direction, length)
                if enough(f, state, move, slope, self.sufficient):
                    move.take(state)
                    return
                length *= self.shrink

    def _direction(self, f: Objective, point: Factor, gradient: Factor) -> Factor:
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        assert f.entries is not None
        misfit = f.entries.residual(point)
        U, slope = f.ops.get(point), f.ops.get(gradient)
        free = (self.eps * U.max() < U) | (slope <= self.eps * np.abs(slope).max())
        direction = slope / f.dtype.type(f.norm)
        for j in range(U.shape[1]):
            rows = np.flatnonzero(free[:, j])
            u = U[rows, j].astype(np.float64)
            block = np.outer(u, u) - misfit[np.ix_(rows, rows)]
            block[np.diag_indices_from(block)] += float(U[:, j] @ U[:, j])
            try:
                factors = cho_factor(2.0 * block, overwrite_a=True, check_finite=False)
            except LinAlgError:
                continue
            direction[rows, j] = cho_solve(factors, slope[rows, j], check_finite=False)
        return f.ops.put(direction)
