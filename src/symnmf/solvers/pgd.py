"""Projected gradient descent (Lin, 2007) on the symmetric problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.arguments import TINY_TO_HUGE, check_ranges
from symnmf.objectives import Objective
from symnmf.solvers.original import (
    Move,
    enough,
    gradient,
    projected_move,
)
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, State

STEP = "pgd_step"


@dataclass(frozen=True)
class PGD(Solver):
    """U+ = max(U - a grad f(U), 0), with Lin's search for the step length a.

    A trial is accepted when f(U+) - f(U) <= ``sufficient`` <grad f(U), U+ - U>. If the first one
    is, a grows by 1/``shrink`` while trials stay accepted and still change the point; otherwise
    it shrinks until one is accepted. The next iteration begins with the a of this one. Every
    trial costs one product.

    Parameters
    ----------
    first_step : float
        a of the first trial, in units of 1/||X||_F so that it follows the scale of X.
    shrink : float
        Factor between trials.
    sufficient : float
        Share of the expected decrease that must be reached.
    max_trials : int
        Most trials per iteration; if none is accepted U stays and the search continues from the
        last a in the next iteration.
    """

    name: ClassVar[str] = "pgd"
    summary: ClassVar[str] = "projected gradient with Lin's line search (2007)"
    cost: ClassVar[str] = "1 product per trial step, usually 2 or 3 trials"
    requires: ClassVar[tuple[str, ...]] = ("along",)

    first_step: float = 1.0
    shrink: float = 0.1
    sufficient: float = 0.01
    max_trials: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, first_step=TINY_TO_HUGE, shrink=(1e-6, 0.999999), max_trials=(1, 1e6))
        check_ranges(self, sufficient=(0.0, 0.999999))

    def memory(self, f: Objective, rank: int) -> Layout:
        return {STEP: Kept(least=0.0, optional=True)}

    def step(self, f: Objective, state: State) -> None:
        slope = gradient(f, state.U)
        length = float(state.memory.get(STEP, self.first_step / f.norm))

        def attempt(length: float) -> tuple[Move, bool]:
            move = projected_move(f, state, slope, length)
            return move, enough(f, state, move, slope, self.sufficient)

        best, accepted = attempt(length)
        growing = accepted
        for _ in range(self.max_trials - 1):
            if growing:
                move, accepted = attempt(length / self.shrink)
                if not accepted or f.ops.apart(move.U, best.U) == 0.0:
                    accepted = True
                    break
                best, length = move, length / self.shrink
            else:
                length *= self.shrink
                best, accepted = attempt(length)
                if accepted:
                    break
        state.memory[STEP] = np.array(length)
        if accepted:
            best.take(state)
