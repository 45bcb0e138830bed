"""One file per algorithm; :func:`available` lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from symnmf.errors import InputError
from symnmf.lazily import offered
from symnmf.naming import lookup
from symnmf.solvers.solver import Solver as Solver
from symnmf.solvers.solver import SplitSolver as SplitSolver

if TYPE_CHECKING:
    from symnmf.solvers.admm import ADMM
    from symnmf.solvers.auto import Auto as Auto
    from symnmf.solvers.coordinate_descent import CoordinateDescent as CoordinateDescent
    from symnmf.solvers.em import ExpectationMaximization as ExpectationMaximization
    from symnmf.solvers.em import RowNewton as RowNewton
    from symnmf.solvers.hals_newton import HalsNewton
    from symnmf.solvers.kuang import KuangANLS as KuangANLS
    from symnmf.solvers.lbfgs import LBFGS as LBFGS
    from symnmf.solvers.multiplicative import AlphaSNMF as AlphaSNMF
    from symnmf.solvers.multiplicative import BetaSNMF as BetaSNMF
    from symnmf.solvers.newton import Newton
    from symnmf.solvers.pgd import PGD
    from symnmf.solvers.symanls import SymANLS
    from symnmf.solvers.symhals import ASymHALS, SymHALS
    from symnmf.solvers.tsvd import TSVD as TSVD

__all__ = ["ADMM", "PGD", "ASymHALS", "HalsNewton", "Newton", "SymANLS", "SymHALS", "available"]

#: The methods of each module, by the names that users type.
_METHODS = {
    "symanls": {"symanls": "SymANLS"},
    "symhals": {"symhals": "SymHALS", "a-symhals": "ASymHALS"},
    "kuang": {"kuang-anls": "KuangANLS"},
    "admm": {"admm": "ADMM"},
    "tsvd": {"tsvd": "TSVD"},
    "multiplicative": {"beta-snmf": "BetaSNMF", "alpha-snmf": "AlphaSNMF"},
    "pgd": {"pgd": "PGD"},
    "lbfgs": {"lbfgs": "LBFGS"},
    "newton": {"newton": "Newton"},
    "coordinate_descent": {"cd": "CoordinateDescent"},
    "hals_newton": {"hals-newton": "HalsNewton"},
    "auto": {"auto": "Auto"},
}
#: Methods for ``loss="poisson"`` and ``"bernoulli"``, which no method above takes.
_OF_LIKELIHOODS = {"em": {"em": "ExpectationMaximization", "row-newton": "RowNewton"}}

__getattr__, __dir__ = offered(
    __name__,
    {module: tuple(names.values()) for module, names in (_METHODS | _OF_LIKELIHOODS).items()},
)


class Known(Mapping[str, type[Solver]]):
    """Methods by name; the class of one is loaded when it is asked for."""

    def __init__(self, modules: dict[str, dict[str, str]]) -> None:
        self.classes = {name: cls for names in modules.values() for name, cls in names.items()}

    def __getitem__(self, name: str) -> type[Solver]:
        method: type[Solver] = __getattr__(self.classes[name])
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(self.classes)

    def __len__(self) -> int:
        return len(self.classes)


SOLVERS, LIKELIHOOD_SOLVERS = Known(_METHODS), Known(_OF_LIKELIHOODS)


@dataclass(frozen=True)
class SolverInfo:
    """What a solver does, what it needs of X and what one iteration costs."""

    name: str
    summary: str
    needs: str
    cost: str

    def __str__(self) -> str:
        return f"{self.name:12} {self.summary}; needs {self.needs}; per iteration {self.cost}"


def available() -> list[SolverInfo]:
    """List the solvers, a line each."""
    return [
        SolverInfo(solver.name, solver.summary, solver.needs, solver.cost)
        for solver in SOLVERS.values()
    ]


def as_solver(solver: str | Solver) -> Solver:
    """Return the solver a name or an object stands for."""
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str):
        raise InputError(
            f"solver must be a name or a symnmf.extending.Solver, got {type(solver).__name__}."
        )
    called = lookup(solver, SOLVERS.classes | LIKELIHOOD_SOLVERS.classes, "solver")
    chosen: type[Solver] = __getattr__(called)
    return chosen()
