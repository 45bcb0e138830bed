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
from symnmf.ops import Factor, Hals, RowSolver
from symnmf.solvers import Solver, as_solver
from symnmf.solvers.admm import ADMM, RHO
from symnmf.solvers.symhals import ASymHALS, SymHALS
from symnmf.state import Kept, Layout, State

LABELS_FROM_V = ("symanls", "symhals", "a-symhals")
LAMBDA = 0.66
REFILL = 1e-16  # of the largest entry

FIRST_RHO = "admm_first_rho"
#: The authors' rule of ADMM: rho grows by about CREEP per iteration up to so often its first value.
CREEP, RHO_LIMIT = 1e-3, 6.1
#: Rows that are too long are brought to their bound by projected gradients, to this share of it.
BOUND_TOL, BOUND_STEPS = 1e-12, 1000


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


@dataclass(frozen=True)
class PublishedADMM(ADMM):
    """ADMM with the settings of Lu, Hong and Wang.

    rho_0 = n tau and rho_{k+1} = min(rho_k / (1 - 1e-3 / rho_k), 6.1 n tau), with the whole
    proximal term, and no row of Y longer than sqrt(tau). tau = max_k (X_kk + ||x_k||) / 2,
    which no squared row of a critical U exceeds: with a_i = <u_k, u_i>, a critical point has
    ||a||^2 = <x_k, a>, a sphere on which a_k is at most that.

    The rule is written down from memory of their paper; tau follows as above.
    """

    every: int = 1
    proximal: float = 1.0

    def memory(self, f: Objective, rank: int) -> Layout:
        return {**super().memory(f, rank), FIRST_RHO: Kept(least=0.0)}

    def start(self, f: Objective, U0: Factor) -> State:
        state = super().start(f, U0)
        assert f.entries is not None
        entries = f.entries.residual(f.ops.zeros((f.shape[0], 1), f.dtype))  # X - 0
        tau = np.max(np.diagonal(entries) + np.linalg.norm(entries, axis=1)) / 2.0
        state.memory[RHO] = state.memory[FIRST_RHO] = np.array(len(U0) * float(tau))
        return state

    def adjust(self, f: Objective, state: State) -> None:
        rho, first = float(state.memory[RHO]), float(state.memory[FIRST_RHO])
        if state.iteration > 0:
            state.memory[RHO] = np.array(min(rho / (1.0 - CREEP / rho), RHO_LIMIT * first))

    def solved(self, f: Objective, state: State, cross: Factor, gram: np.ndarray) -> Factor:
        Y = super().solved(f, state, cross, gram)
        bound = float(state.memory[FIRST_RHO]) / len(Y)
        return f.ops.put(shortened(f.ops.get(Y), f.ops.get(cross), gram, bound))


def shortened(Y: np.ndarray, cross: np.ndarray, gram: np.ndarray, bound: float) -> np.ndarray:
    """Minimise 1/2 <y, gram y> - <cross, y> over y >= 0 with ||y||^2 <= bound, for every row.

    ``Y`` has the minimisers without the bound, which are right where they are short enough.
    """
    long = np.flatnonzero(np.einsum("ij,ij->i", Y, Y) > bound)
    if not len(long):
        return Y
    radius, step = np.sqrt(bound), 1.0 / np.linalg.eigvalsh(gram)[-1]
    rows, target = Y[long], cross[long]
    for _ in range(BOUND_STEPS):
        before = rows
        rows = np.maximum(rows - step * (rows @ gram - target), 0.0)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= radius / np.maximum(length, radius)
        if np.abs(rows - before).max() <= BOUND_TOL * radius:
            break
    Y = Y.copy()
    Y[long] = rows
    return Y


def solver(method: str) -> Solver:
    """Return a method as its authors publish it."""
    if method == "symhals":
        return RefillingSymHALS()
    if method == "a-symhals":
        return RefillingASymHALS()
    if method == "admm":
        return PublishedADMM()
    return as_solver(method)
