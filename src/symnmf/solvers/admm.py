"""ADMM for symmetric NMF (Lu, Hong and Wang, 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.arguments import TINY_TO_HUGE, check_ranges
from symnmf.objectives import Objective
from symnmf.ops import Factor, Nnls
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, Point, State

MULTIPLIER, RHO, APART = "admm_multiplier", "admm_rho", "admm_apart"


@dataclass(frozen=True)
class ADMM(Solver):
    """Minimise 1/2 ||X - A Y^T||^2 subject to Y = A and Y >= 0, with a multiplier L.

    Y = argmin over Y >= 0 of the augmented Lagrangian (exact, row by row); A = (X Y + rho Y + L)
    (Y^T Y + rho I)^-1; L += rho (Y - A). U is Y. V is A, which agrees with it only in the limit
    and may dip below zero until then, so ``consensus`` is the primal residual ||Y - A||_F. rho is
    not the lambda of the paper's theorems: ``coupling`` is 0 and the schedules play no part.

    The theory asks for rho > 6 n tau, with tau a bound on the squared rows of Y, and a proximal
    term (beta/2) ||Y - Y_old||^2 with beta = (6/rho) ||X - A Y^T||^2, under which little moves in
    an iteration. Chosen here, for the paper's synthetic data and for graphs: the defaults below, in
    which rho grows whenever ||Y - A|| has not fallen between two looks; no bound on the rows.

    Parameters
    ----------
    first, limit : float
        The first and the largest rho, in units of ||X||_F.
    growth : float
        Factor by which rho grows.
    every : int
        Iterations between looks at ||Y - A||.
    proximal : float
        Share of the paper's beta; 1 is its proximal term.
    """

    name: ClassVar[str] = "admm"
    summary: ClassVar[str] = "Y >= 0 and A held together by a multiplier (Lu, Hong and Wang 2017)"
    cost: ClassVar[str] = "2 products, n small nonnegative least squares and n solves of size r"

    second_factor: ClassVar[bool] = True
    free_second_factor: ClassVar[bool] = True
    requires: ClassVar[tuple[str, ...]] = ("plain_misfit", "exact_rows")
    rows = Nnls()

    first: float = 0.01
    limit: float = 10.0
    growth: float = 1.5
    every: int = 20
    proximal: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, first=TINY_TO_HUGE, limit=TINY_TO_HUGE, growth=(1.0, 1e100))
        check_ranges(self, every=(1, 1e18), proximal=(0.0, 1e100))

    def memory(self, f: Objective, rank: int) -> Layout:
        return {
            MULTIPLIER: Kept((f.shape[0], rank), f.dtype, tall=True),
            APART: Kept(least=0.0, infinite=True),
            RHO: Kept(least=0.0),
        }

    def start(self, f: Objective, U0: Factor) -> State:
        state = super().start(f, U0)
        state.memory |= {APART: np.array(np.inf), RHO: np.array(self.first * f.norm)}
        state.U.product(f)  # on the clock, as all others
        return state

    def step(self, f: Objective, state: State) -> None:
        ops, identity_matrix = f.ops, np.eye(state.rank)
        Y, A, multiplier = state.U.values, state.V.values, state.memory[MULTIPLIER]
        if state.iteration % self.every == 0:
            self.adjust(f, state)
        rho, beta = float(state.memory[RHO]), self._proximity(f, state)
        cross = ops.combine((1.0, f.storage.matmul(A)), (rho, A), (-1.0, multiplier), (beta, Y))
        Y = self.solved(f, state, cross, state.V.gram + (rho + beta) * identity_matrix)
        U = Point(ops, Y, f.storage.matmul(Y))
        target = ops.combine((1.0, U.product(f)), (rho, Y), (1.0, multiplier))
        A = ops.times(target, _inverse(U.gram + rho * identity_matrix))
        state.U, state.V = U, Point(ops, A)
        state.memory[MULTIPLIER] = ops.combine((1.0, multiplier), (rho, Y), (-rho, A))

    def adjust(self, f: Objective, state: State) -> None:
        """Let rho grow where the factors have not come nearer to each other."""
        apart, size = f.ops.apart(state.U.values, state.V.values), state.V.size
        # below this share of ||A|| the two agree, and a growing rho would only freeze them
        if apart >= float(state.memory[APART]) and apart > 1e-18 * size:
            rho = min(self.growth * float(state.memory[RHO]), self.limit * f.norm)
            state.memory[RHO] = np.array(rho)
        if state.iteration > 0:
            state.memory[APART] = np.array(apart)

    def solved(self, f: Objective, state: State, cross: Factor, gram: np.ndarray) -> Factor:
        """Return the Y >= 0 that minimises 1/2 <Y gram, Y> - <cross, Y>."""
        return f.ops.solve_rows(self.rows, state.U.values, cross, cross, gram, 0.0)

    def _proximity(self, f: Objective, state: State) -> float:
        """Return beta."""
        if self.proximal == 0.0:
            return 0.0
        misfit = f.twice_split(state)  # of two factors without a lambda between them
        return self.proximal * 6.0 / float(state.memory[RHO]) * misfit


def _inverse(gram: np.ndarray) -> np.ndarray:
    """Return the inverse; every rho that the rules give has one, a made-up checkpoint's may not."""
    try:
        return np.linalg.inv(gram)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(gram, hermitian=True)
