"""How a factorization is to be done: the method, its coupling and its limits, checked once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from symnmf.arguments import check_options
from symnmf.errors import InputError
from symnmf.objectives.objective import Objective
from symnmf.solvers import Solver, as_solver

if TYPE_CHECKING:
    from symnmf.coupling import Coupling


@dataclass(frozen=True)
class Limits:
    """When to stop, how often to look, and what counts the seconds."""

    tol: float = 1e-4
    max_iter: int = 1000
    max_time: float | None = None
    record_every: int = 1
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        check_options({name: value for name, value in vars(self).items() if name != "clock"})


@dataclass(frozen=True)
class Settings:
    """The method, the schedule of its lambda and the limits of a run."""

    solver: Solver
    coupling: Coupling | None  # None: what the solver or the objective has by default
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(
        cls,
        solver: str | Solver = "auto",
        coupling: str | float | Coupling | None = None,
        **limits: Any,
    ) -> Settings:
        """Return what names and numbers stand for, or say what is wrong with them.

        A coupling of None is the solver's own, or the objective's; ``limits`` are those of
        :class:`Limits`.
        """
        method = as_solver(solver)
        if coupling is not None and not method.has_coupling:
            raise InputError(
                f"coupling is lambda of methods that split U into U and V, and solver "
                f"{method.name!r} does not; leave it out, or use 'a-symhals', 'symhals' or "
                f"'symanls'."
            )
        chosen = method.default_coupling if coupling is None else coupling
        rule = None if chosen is None else _rule_of(chosen)
        return cls(method, rule, Limits(**limits))

    def checked(self, f: Objective) -> Self:
        """Return what a run on f uses, or say in one sentence why it cannot be used on f."""
        if self.solver.name == "auto" and f.default_solver != "auto":
            return replace(self, solver=as_solver(f.default_solver))
        self.solver.check(f)
        if not self.solver.has_coupling:
            return self
        rule = _rule_of(f.default_coupling) if self.coupling is None else self.coupling
        rule.check(f)
        return replace(self, coupling=rule)

    def within(self, **limits: Any) -> Self:
        """Return the same with other limits."""
        return replace(self, limits=replace(self.limits, **limits))


def _rule_of(coupling: str | float | Coupling) -> Coupling:
    from symnmf.coupling import as_coupling

    return as_coupling(coupling)
