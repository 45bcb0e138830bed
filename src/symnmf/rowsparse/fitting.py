"""The run of a row-sparse factor: its objective, a step with a growth of the support now and then.

The factor that the loop sees are the places of the rows, n x width; which columns they belong to
changes on the way, and is in the memory of the solver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from symnmf.objectives import Measurement
from symnmf.objectives.likelihood import Likelihood
from symnmf.ops import Factor
from symnmf.rowsparse.factor import RowSparse
from symnmf.rowsparse.sparse_loss import Loss, Point
from symnmf.run.loop import Run
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, State
from symnmf.state import Point as Factored
from symnmf.storage.sparse import SparseMatrix

#: Iterations between two growths of the support.
GROW_EVERY = 8
#: Columns that may enter a row at once.
GROW_BY = 2
#: How often the new entries are tried, a quarter as large every time.
TRIES = 12
#: An entry below this part of the root mean square has left the support.
LEAST = 1e-6
#: How far a step may go beyond that of expectation-maximisation; below 2, where it may diverge.
FURTHEST = 1.9


class RowSparseLikelihood(Likelihood):
    """The Poisson loss above a background, for factors that begin with the support of ``start``."""

    beyond = "row-sparse factors"

    def __init__(self, loss: Loss, start: RowSparse) -> None:
        A = loss.A
        super().__init__(SparseMatrix(A.indptr, A.indices, A.data, loss.threads))
        self.poisson, self.start = loss, start
        self._latest: Point | None = None

    def describe(self) -> str:
        b = self.poisson.background
        return f"1/2 sum_ij <u_i, u_j> - x_ij log({b:.6g} + <u_i, u_j>)"

    def digest(self) -> str:
        return f"{self.storage.digest()} row-sparse {self.start.rank} {self.poisson.background!r}"

    def point(self, state: State) -> Point:
        """Return the loss at a state, computed once."""
        values, memory = state.U.values, state.memory
        if self._latest is None or self._latest.U.values is not values:
            U = RowSparse(memory["columns"], values, memory["counts"], self.start.rank)
            self._latest = self.poisson.at(U)
        return self._latest

    def move(self, state: State, point: Point) -> None:
        """Put a point in the place of the latest one."""
        self._latest, U = point, point.U
        state.moved(U.values)
        state.memory |= {"columns": U.columns, "counts": U.counts}

    def measure(self, state: State) -> Measurement:
        """Evaluate a state; the residual off the support is that of the latest growth."""
        point = self.point(state)
        residual = point.residual + float(state.memory["outside"])
        return Measurement(
            objective=point.value,
            value=point.value,
            error=self.poisson.deviance_left(point.value),
            consensus=0.0,
            disagreement=0.0,
            stationarity=float(np.sqrt(residual / point.sqnorm)) if point.sqnorm else 0.0,
        )


@dataclass(frozen=True)
class RowSparseSteps(Solver):
    """Expectation-maximisation on the support, which grows every few iterations."""

    name: ClassVar[str] = "row-sparse"
    summary: ClassVar[str] = "expectation-maximisation on rows of few entries"
    cost: ClassVar[str] = "a few operations for each edge and place"
    starts_at_random: ClassVar[bool] = False

    def memory(self, f: Any, rank: int) -> Layout:
        n = f.shape[0]
        return {
            "columns": Kept((n, rank), np.dtype(np.int32), 0, max(f.start.rank - 1, 0)),
            "counts": Kept((n,), np.dtype(np.int32), 0, rank),
            "power": Kept(least=1.0, most=FURTHEST),
            "outside": Kept(least=0.0, infinite=True),
            "before": Kept(infinite=True),  # f at the latest growth
            "decrease": Kept(infinite=True),  # of f in one iteration, relative, since then
        }

    def start(self, f: Any, U0: Factor) -> State:
        numbers = {"power": 1.0, "outside": np.inf, "before": np.inf, "decrease": np.inf}
        support = {"columns": f.start.columns, "counts": f.start.counts}
        memory = support | {name: np.array(value) for name, value in numbers.items()}
        return State.at(f, U0, memory=memory)

    def step(self, f: Any, state: State) -> None:
        memory, point = state.memory, f.point(state)
        if (state.iteration + 1) % GROW_EVERY == 0:
            self._grow(f, state)
            value, before = f.point(state).value, float(memory["before"])
            per_step = (before - value) / GROW_EVERY
            memory["decrease"] = np.array(per_step / max(abs(value), 1e-300))
            memory["before"] = np.array(value)
            return
        power = float(memory["power"])
        ahead = f.poisson.at(point.step(power, LEAST))
        if ahead.value > point.value and power > 1.0:
            power = 1.0
            ahead = f.poisson.at(point.step(power, LEAST))
        else:
            power = min(1.0 + 1.3 * (power - 1.0) + 0.1, FURTHEST)
        memory["power"] = np.array(power)
        f.move(state, ahead)

    def _grow(self, f: Any, state: State) -> None:
        """Widen the support; rows grow at the same time, so the new entries are tried in part."""
        point = f.point(state)
        larger, fresh, outside = f.poisson.grown(point, GROW_BY)
        state.memory["outside"] = np.array(outside)
        fraction = 0.5
        for _ in range(TRIES if fresh.any() else 0):
            ahead = f.poisson.at(replace(larger, values=larger.values + fraction * fresh))
            if ahead.value <= point.value:
                f.move(state, ahead)
                state.memory["power"] = np.array(1.0)
                return
            fraction /= 4.0


class SparseRun(Run):
    """A run that ends where f hardly falls, and shows U as a sparse matrix."""

    f: RowSparseLikelihood

    def _shown(self, point: Factored, rows: int | None = None) -> Any:
        return self.f.point(self.state).U.to_csr()

    def _seen(self, point: Factored) -> Any:
        return self._shown(point)

    def _converged(self, *, may_go_on: bool) -> bool:
        tol = self.limits.tol
        fallen = tol > 0.0 and float(self.state.memory["decrease"]) <= tol
        return fallen or self.f.point(self.state).sqnorm == 0.0
