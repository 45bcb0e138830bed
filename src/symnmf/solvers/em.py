"""Expectation-maximisation for likelihoods, with longer steps while they pay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.objectives import Objective
from symnmf.ops import Factor
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, Point, State

#: What a start has at least of the rank-one fit, so that no stored entry has a model of zero.
FLOOR = 0.01


@dataclass(frozen=True)
class ExpectationMaximization(Solver):
    """u_ik = N_ik / sqrt(N_k), N_ik the part of row i that column k explains.

    The step is lengthened by a factor of 1 to ``furthest``, in logarithms. The factor grows a
    little after each step that lowered f, and returns to 1 after a step that would have raised f.
    So f never rises. Entries near zero grow slowly, but none is ever stuck there.

    Parameters
    ----------
    furthest : float
        At least 1 and below 2, beyond which a step may move away from a minimum.
    """

    name: ClassVar[str] = "em"
    summary: ClassVar[str] = "expectation-maximisation for a Poisson or Bernoulli loss"
    needs: ClassVar[str] = "the entries of a sparse X, and loss='poisson' or 'bernoulli'"
    cost: ClassVar[str] = "1 pass over X, 2 if a longer step fails"
    requires: ClassVar[tuple[str, ...]] = ("improved", "nonnegative")

    furthest: float = 1.9

    def memory(self, f: Objective, rank: int) -> Layout:
        return {"power": Kept(least=1.0, most=2.0)}

    def start(self, f: Objective, U0: Factor) -> State:
        values = np.asarray(U0, dtype=np.float64)
        degrees = np.asarray(f.storage.matmul(np.ones((len(values), 1), f.dtype)))
        even = degrees / np.sqrt(max(float(degrees.sum()), 1e-300) * values.shape[1])
        raised = np.maximum(values, FLOOR * even).astype(f.dtype)
        state = super().start(f, raised)
        state.memory["power"] = np.array(1.0)
        return state

    def step(self, f: Objective, state: State) -> None:
        here, power = state.U, float(state.memory["power"])
        ahead = Point(f.ops, f.improved(here, power))  # type: ignore[attr-defined]
        if power > 1.0 and not f.value(ahead) <= f.value(here):
            power = 1.0
            ahead = Point(f.ops, f.improved(here, 1.0))  # type: ignore[attr-defined]
        else:
            power = min(1.0 + 1.3 * (power - 1.0) + 0.1, self.furthest)
        state.memory["power"] = np.array(power)
        state.U = state.V = ahead


@dataclass(frozen=True)
class RowNewton(ExpectationMaximization):
    """A projected Newton step for each row in turn, which is a convex problem given the others.

    f never rises, and entries can become zero and leave it again. Rows are done one after another
    on one thread. Where X has entries on its diagonal a row is not convex, and the step is that of
    expectation-maximisation.
    """

    name: ClassVar[str] = "row-newton"
    summary: ClassVar[str] = "Newton on rows for a Poisson or Bernoulli loss"
    cost: ClassVar[str] = "2 passes over X, and O(nnz r^2)"
    requires: ClassVar[tuple[str, ...]] = ("improved", "swept", "nonnegative")

    def step(self, f: Objective, state: State) -> None:
        if f.has_diagonal:  # type: ignore[attr-defined]
            super().step(f, state)
            return
        ahead = Point(f.ops, f.swept(state.U))  # type: ignore[attr-defined]
        if f.value(ahead) <= f.value(state.U):
            state.U = state.V = ahead
        else:  # by rounding: sums over all rows are carried from row to row
            super().step(f, state)
