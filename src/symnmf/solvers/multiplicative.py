"""Parallel multiplicative updates (He, Xie, Zdunek, Zhou and Cichocki, 2011)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from symnmf.arguments import TINY_TO_HUGE, check_ranges
from symnmf.objectives import Objective
from symnmf.solvers.original import move_to
from symnmf.solvers.solver import Solver
from symnmf.state import State


@dataclass(frozen=True)
class MultiplicativeSolver(Solver):
    """U <- U * h(R) elementwise, with R = (X U) / (U U^T U).

    h(R) = R^(1/3) never raises f. The bolder h of a subclass is tried first and given up for the
    cube root in an iteration where f would rise; where even that rises (by rounding) U stays.
    Zeros stay zeros, whatever the method.
    """

    cost: ClassVar[str] = "1 product, 2 if the safeguard steps in"
    requires: ClassVar[tuple[str, ...]] = ("plain_misfit", "nonnegative")

    @property
    @abstractmethod
    def shape(self) -> tuple[float, float]:
        """p and s of h(R) = 1 - s + s R^p."""

    def step(self, f: Objective, state: State) -> None:
        for power, share in (self.shape, (1.0 / 3.0, 1.0)):
            U = state.U
            bolder = f.ops.multiplied(U.values, U.product(f), U.gram, power, share)
            move = move_to(f, state, bolder)
            if move.change <= 0.0:
                move.take(state)
                return


@dataclass(frozen=True)
class BetaSNMF(MultiplicativeSolver):
    """h(R) = 1 - beta + beta R.

    Parameters
    ----------
    beta : float
        Above 0 and at most 1.
    """

    name: ClassVar[str] = "beta-snmf"
    summary: ClassVar[str] = "multiplicative, U (1 - beta + beta R) (He et al. 2011)"

    beta: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, beta=(TINY_TO_HUGE[0], 1.0))

    @property
    def shape(self) -> tuple[float, float]:
        return 1.0, self.beta


@dataclass(frozen=True)
class AlphaSNMF(MultiplicativeSolver):
    """h(R) = R^alpha.

    Parameters
    ----------
    alpha : float
        Above 0 and at most 1.
    """

    name: ClassVar[str] = "alpha-snmf"
    summary: ClassVar[str] = "multiplicative, U R^alpha (He et al. 2011)"

    alpha: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, alpha=(TINY_TO_HUGE[0], 1.0))

    @property
    def shape(self) -> tuple[float, float]:
        return self.alpha, 1.0
