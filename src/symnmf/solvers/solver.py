"""What a solver is: parameters, a start and a step. The loop around it is in ``run/loop.py``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, is_dataclass
from typing import ClassVar

from symnmf.arguments import check_fields
from symnmf.errors import InputError
from symnmf.objectives import Objective
from symnmf.ops import Factor, RowSolver
from symnmf.state import Layout, Point, State, zeros_of

#: What attributes of an objective mean to a user.
NEEDED = {
    "plain_misfit": "a plain 1/2 ||X - U U^T||^2 over all entries",
    "along": "f along every line",
    "split_step": "rows of a factor that can be solved on their own",
    "entries": "the entries of X",
    "nonnegative": "X >= 0",
    "improved": "loss='poisson' or 'bernoulli'",
    "change_along": "a tensor",
    "exact_rows": "rows of a factor that can be solved exactly",
    "swept": "a loss that is a sum over pairs of rows",
}


class Solver(ABC):
    """One algorithm. Instances hold parameters only, are small and can be pickled."""

    #: the name users type
    name: ClassVar[str]
    #: one line each, shown by ``symnmf.solvers.available()``
    summary: ClassVar[str]
    needs: ClassVar[str] = "products with X"
    cost: ClassVar[str]
    #: whether a coupling lambda holds the factors together
    has_coupling: ClassVar[bool] = False
    #: the rule for lambda when the caller names none; None for the objective's own
    default_coupling: ClassVar[str | None] = None
    #: whether this is a method of the literature, whose runs begin from random numbers
    starts_at_random: ClassVar[bool] = True
    #: attributes that an objective or its operations must have, not None or False: see NEEDED
    requires: ClassVar[tuple[str, ...]] = ("plain_misfit",)
    #: whether V is a second factor, and whether it may have negative entries
    second_factor: ClassVar[bool] = False
    free_second_factor: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if is_dataclass(self):
            check_fields(self)

    def check(self, f: Objective) -> None:
        """Refuse an objective this method cannot work on, before any work is done."""
        for name in self.requires:
            value = getattr(f if hasattr(f, name) else f.ops, name, None)
            if value is None or value is False:
                raise InputError(
                    f"solver {self.name!r} needs {NEEDED.get(name, name)}, which this problem does "
                    f"not have (minimise {f.describe()} for a {type(f.storage).__name__}); use "
                    f"'auto' or another solver."
                )

    def start(self, f: Objective, U0: Factor) -> State:
        """Return the state before the first iteration; V_0 = U_0 always, and the memory is zero."""
        memory = zeros_of(self.memory(f, U0.shape[1]), f.ops)
        if not self.second_factor:
            state = State.at(f, U0, memory=memory)
            state.U.product(f)  # here, so that the clock counts the first product as all others
            return state
        state = State.at(f, U0, f.ops.copy(U0), memory=memory)
        state.others = [Point(f.ops, f.ops.copy(U0)) for _ in range(f.split_factors - 2)]
        return state

    def memory(self, f: Objective, rank: int) -> Layout:
        """Return what ``State.memory`` holds for factors of ``rank`` columns."""
        return {}

    @abstractmethod
    def step(self, f: Objective, state: State) -> None:
        """Do one iteration, in place."""


@dataclass(frozen=True)
class SplitSolver(Solver):
    """The paper's frame: minimise over each factor in turn, the others fixed.

    For a matrix there are two,
    g(U, V) = 1/2 ||X - U V^T||_F^2 + lambda/2 ||U - V||_F^2 over U, V >= 0.
    """

    requires: ClassVar[tuple[str, ...]] = ("split_step",)
    has_coupling: ClassVar[bool] = True
    second_factor: ClassVar[bool] = True

    @property
    @abstractmethod
    def rows(self) -> RowSolver:
        """Return how the rows of the subproblems are solved."""

    def step(self, f: Objective, state: State) -> None:
        f.split_step(self.rows, state)
