"""One file per algorithm; :func:`available` lists them."""

from __future__ import annotations

from dataclasses import dataclass

from symnmf.errors import InputError
from symnmf.naming import lookup
from symnmf.solvers.admm import ADMM
from symnmf.solvers.auto import Auto
from symnmf.solvers.coordinate_descent import CoordinateDescent
from symnmf.solvers.em import ExpectationMaximization, RowNewton
from symnmf.solvers.hals_newton import HalsNewton
from symnmf.solvers.kuang import KuangANLS
from symnmf.solvers.lbfgs import LBFGS
from symnmf.solvers.multiplicative import AlphaSNMF, BetaSNMF
from symnmf.solvers.newton import Newton
from symnmf.solvers.pgd import PGD
from symnmf.solvers.solver import Solver, SplitSolver
from symnmf.solvers.symanls import SymANLS
from symnmf.solvers.symhals import ASymHALS, SymHALS
from symnmf.solvers.tsvd import TSVD

__all__ = [
    "ADMM",
    "LBFGS",
    "PGD",
    "TSVD",
    "ASymHALS",
    "AlphaSNMF",
    "Auto",
    "BetaSNMF",
    "CoordinateDescent",
    "ExpectationMaximization",
    "HalsNewton",
    "KuangANLS",
    "Newton",
    "RowNewton",
    "Solver",
    "SolverInfo",
    "SplitSolver",
    "SymANLS",
    "SymHALS",
    "as_solver",
    "available",
]

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        SymANLS,
        SymHALS,
        ASymHALS,
        KuangANLS,
        ADMM,
        TSVD,
        BetaSNMF,
        AlphaSNMF,
        PGD,
        LBFGS,
        Newton,
        CoordinateDescent,
        HalsNewton,
        Auto,
    )
}

#: Methods for ``loss="poisson"`` and ``"bernoulli"``, which no method above takes.
LIKELIHOOD_SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (ExpectationMaximization, RowNewton)
}


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
            f"solver must be a name or a symnmf.solvers.Solver, got {type(solver).__name__}."
        )
    return lookup(solver, SOLVERS | LIKELIHOOD_SOLVERS, "solver")()
