"""What the authors' published MATLAB does and the paper does not say.

Z. Zhu, X. Li, K. Liu and Q. Li put the code of the conference version ("Dropping symmetry for fast
symmetric nonnegative matrix factorization", 2018) at
github.com/lixiao0982/Dropping-Symmetric-for-Symmetric-NMF. It starts at the raw uniform(0, 1),
sets a column of HALS that has become zero to 1e-16 times the largest entry of the factor, takes
labels from V and keeps lambda = 0.66.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symnmf.objectives import Frobenius, Objective
from symnmf.ops import Hals, RowSolver
from symnmf.solvers import Solver, as_solver
from symnmf.solvers.admm import ADMM
from symnmf.solvers.symhals import ASymHALS, SymHALS
from symnmf.state import State

LABELS_FROM_V = ("symanls", "symhals", "a-symhals")
LAMBDA = 0.66
REFILL = 1e-16  # of the largest entry


class Refilling(Frobenius):
    """The objective, but after an update by HALS no column of the factor is zero.

    The MATLAB sets a column as soon as it is zero, to a share of the largest entry that the factor
    has then: columns before it are new, those after it are old. Its value plays no part in the
    sweep itself, so it can be set afterwards.
    """

    def update(
        self,
        rows: RowSolver,
        factor: np.ndarray,
        other: np.ndarray,
        gram: np.ndarray,
        coupling: float,
        out: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        assert isinstance(rows, Hals)
        if rows.sweeps > 1:
            before = Hals(rows.sweeps - 1)
            factor, product = super().update(before, factor, other, gram, coupling, out)
            old = factor.max(axis=0)
            assert product is not None
            factor = self.ops.solve_rows(Hals(1), factor, product, other, gram, coupling)
        else:
            old = factor.max(axis=0)
            factor, product = super().update(rows, factor, other, gram, coupling, out)
        new = factor.max(axis=0)
        for k in np.flatnonzero(new == 0.0):
            largest = max(new[:k].max(initial=0.0), old[k + 1 :].max(initial=0.0))
            factor[:, k] = REFILL * largest
        return factor, product


@dataclass(frozen=True)
class RefillingSymHALS(SymHALS):
    """SymHALS as published in MATLAB."""

    def step(self, f: Objective, state: State) -> None:
        super().step(Refilling(f.storage), state)


@dataclass(frozen=True)
class RefillingASymHALS(ASymHALS):
    """A-SymHALS with the same safeguard."""

    def step(self, f: Objective, state: State) -> None:
        super().step(Refilling(f.storage), state)


def solver(method: str) -> Solver:
    """Return a method as its authors publish it."""
    if method == "symhals":
        return RefillingSymHALS()
    if method == "a-symhals":
        return RefillingASymHALS()
    if method == "admm":
        return ADMM.published()
    return as_solver(method)
