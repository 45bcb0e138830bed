"""Sweeps, then quasi-Newton or Gauss-Newton steps: one product with X per iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.ops import Hals, Tall
from symnmf.run.memory import Kept, Layout
from symnmf.run.objective import best_multiple, quick_sqnorm
from symnmf.run.state import State
from symnmf.solvers.solver import Solver
from symnmf.steps import quasi_newton
from symnmf.steps.gauss_newton import gauss_newton_target
from symnmf.steps.line_search import line_step
from symnmf.steps.revival import column_from_residual, dead_columns
from symnmf.storage import SymmetricMatrix

PROXIMAL = 0.01  # lambda of the sweep, in units of the mean diagonal of U^T U
SUFFICIENT_DECREASE = 1e-4  # of what a projected gradient step would gain to first order
STEP_DECREASE = 1e-8  # of mean diagonal times the squared length of a step that is no sweep
FIRST_SWEEPS = 3  # before the gradient of one point says anything about the next
DEPTH = 3  # pairs kept by the quasi-Newton steps
GUARD = 9  # Gauss-Newton steps between two others
REFRESH = 50  # iterations between fresh products X U
FIRST_WEIGHT = 0.03  # of the Gauss-Newton steps, in units of the mean diagonal of U^T U
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 1e6
IN_CACHE = 32 * 2**20  # bytes of a factor
SWEEPS_ALONE = 3  # where no steps are kept: rows once read are cheap to sweep again
SINGLE_GAIN = 1e-5  # relative fall of E per step under which float32 is given up for float64
BY_ENTRIES = 2**20  # entries of U up to which a sweep on one thread costs little


@dataclass(frozen=True)
class HalsNewton(Solver):
    r"""Minimise :math:`f(U) = \tfrac12\|X - UU^\top\|_F^2` itself, from products kept up to date.

    The first step is a sweep of exact coordinate descent, where U is small, and the next are
    proximal HALS sweeps on :math:`\|X - Z U^\top\|`. Then come limited-memory BFGS directions on
    the free entries, clipped at zero, each with an exact line search; a HALS sweep where that
    does not pay. Below the relative error ``newton_below``, steps are Gauss-Newton steps under
    U >= 0 with the same line search, and every tenth is one of the others. f never rises and
    every limit point is critical; see docs/hals-newton.md.

    Parameters
    ----------
    depth : int or None
        Steps the quasi-Newton method remembers, each at the memory of two factors; 0 for sweeps
        alone, three at a step. None for 3, and for 0 where a factor no longer fits in cache and
        reading the history would cost more than it saves.
    newton_below : float
        Relative error E from which Gauss-Newton takes over; 0 for never.
    """

    name: ClassVar[str] = "hals-newton"
    summary: ClassVar[str] = "sweeps, then quasi-Newton or Gauss-Newton, on the original problem"
    cost: ClassVar[str] = "1 product and 6nr^2, or 10 inner steps of 6nr^2"
    starts_at_random: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True

    depth: int | None = None
    newton_below: float = 0.05

    def __post_init__(self) -> None:
        depth = self.depth
        if depth is not None and (type(depth) is not int or depth < 0):
            raise InputError(f"depth must be None or a whole number of at least 0, got {depth!r}.")
        if not (isinstance(self.newton_below, int | float) and 0 <= self.newton_below <= 1):
            raise InputError(
                f"newton_below must be a relative error from 0 to 1, got {self.newton_below!r}."
            )

    @property
    def rows(self) -> Hals:
        return Hals()

    def _layout(self, n: int, rank: int, dtype: np.dtype) -> tuple[int, bool]:
        """Return the steps remembered, and whether the run begins in float32 where X can."""
        in_cache = n * rank * dtype.itemsize <= IN_CACHE
        depth = self.depth
        if depth is None:
            depth = DEPTH if in_cache else 0
        return depth, depth == 0 and not in_cache

    def memory(self, n: int, rank: int, dtype: np.dtype) -> Layout:
        depth, _ = self._layout(n, rank, dtype)
        return {
            **quasi_newton.layout_of_pairs(depth, n, rank, dtype),
            "weight": Kept(least=LEAST_WEIGHT, most=MOST_WEIGHT),
            "newton_steps": Kept((), np.dtype(np.int64), 0, GUARD),
            "error": Kept(infinite=True),
            "left_dead": Kept((), np.dtype(np.int64), 0, rank),
            "dual": Kept((n, rank), dtype, tall=True, optional=True),
        }

    def precisions(self, n: int, rank: int, dtype: np.dtype) -> tuple[np.dtype, ...]:
        narrows = self._layout(n, rank, dtype)[1]
        return (dtype, np.dtype(np.float32)) if narrows else (dtype,)

    def start(self, X: SymmetricMatrix, U0: Tall) -> State:
        depth, narrows = self._layout(X.shape[0], U0.shape[1], X.dtype)
        single = X.single if narrows else None
        if single is not None:
            X, U0 = single, X.ops.cast(U0, single.dtype)
        memory = {
            **quasi_newton.room_for_pairs(X, depth, U0),
            "weight": np.array(FIRST_WEIGHT),
            "newton_steps": np.array(0, np.int64),
            "error": np.array(np.inf),
            "left_dead": np.array(0, np.int64),
        }
        state = State.at(X, U0, memory=memory)
        state.U.product(X)
        return state

    def step(self, X: SymmetricMatrix, state: State) -> None:
        fits = state.iteration == 0 and _rescale(X, state)
        X, error = self._ready(X, state)
        if not self.settled(state) and _revive(X, state):
            return
        level = float(state.U.gram.trace()) / state.rank
        since = state.memory["newton_steps"]
        if fits and error >= self.newton_below and _sweeps_by_entries(X, state):
            assert X.entries is not None
            room = state.U.known_product
            U = X.entries.coordinate_sweep(state.U.values, state.U.gram.copy())
            state.moved(U, product=X.product_at(U, U, out=room))
        elif state.iteration > 0 and error < self.newton_below and since < GUARD:
            quasi_newton.forget(state)  # pairs from before are no longer neighbours
            since += 1
            if not self._newton_step(X, state, level):
                since[...] = GUARD
        else:
            since[...] = 0
            self._sweep_step(X, state, level)

    def settled(self, state: State) -> bool:
        return len(dead_columns(state.U)) <= int(state.memory["left_dead"])

    def _ready(self, X: SymmetricMatrix, state: State) -> tuple[SymmetricMatrix, float]:
        """Bring X U and U^T U up to date; return X in the precision of this step, and E.

        Float32 is kept for as long as the error falls by far more than it rounds.
        """
        if X.ops.dtype(state.U.values) != X.dtype:
            assert X.single is not None
            error = _refresh(X.single, state, X)
            gain = float(state.memory["error"]) - error
            state.memory["error"] = np.array(error)
            if gain > SINGLE_GAIN * error and error > self.newton_below:
                return X.single, error
            state.spare.clear()
            state.moved(X.ops.cast(state.U.values, X.dtype))
        return X, _refresh(X, state, X)

    def _newton_step(self, X: SymmetricMatrix, state: State, level: float) -> bool:
        memory, ops = state.memory, X.ops
        weight = float(memory["weight"])
        if "dual" not in memory:  # on most graphs never needed, so not kept from the start
            memory["dual"] = ops.zeros(state.U.values.shape, X.dtype)
        target, dual = gauss_newton_target(X, state.U, weight * level, memory["dual"])
        step, _ = line_step(X, state, target, per_length=STEP_DECREASE * level)
        factor = 0.7 if step >= 0.9 else 1.0 if step >= 0.5 else 1.5 if step > 0.0 else 10.0
        following = min(max(factor * weight, LEAST_WEIGHT), MOST_WEIGHT)
        if following != weight:
            dual = ops.combine((weight / following, dual))  # the multiplier itself stays
        memory["dual"], memory["weight"] = dual, np.array(following)
        return step > 0.0

    def _sweep_step(self, X: SymmetricMatrix, state: State, level: float) -> None:
        """Step towards what the pairs kept so far say, or else towards a sweep."""
        depth = len(state.memory["pair_dots"][0])
        if depth and state.iteration >= FIRST_SWEEPS:
            slopes, promise = quasi_newton.look(X, state, level)
            if state.memory["counters"][quasi_newton.USED]:
                target = quasi_newton.quasi_newton_target(X, state, slopes)
                t, step = line_step(
                    X,
                    state,
                    target,
                    enough=SUFFICIENT_DECREASE * promise,
                    per_length=STEP_DECREASE * level,
                )
                if t > 0.0:
                    quasi_newton.stepped(state, step)
                    return
                quasi_newton.forget(state)
        out = quasi_newton.next_slot(state) if depth else state.room()
        sweeps = Hals(1 if depth else SWEEPS_ALONE)
        U = state.U
        product = X.aim(U.values, U.product(X), U.gram)
        target = X.ops.sweep(sweeps, U.values, product, U.gram, PROXIMAL * level, out)
        t, step = line_step(X, state, target)
        if not depth:
            state.spare.append(step)
        elif t > 0.0 and state.iteration >= FIRST_SWEEPS:
            quasi_newton.stepped(state, step)


def _revive(X: SymmetricMatrix, state: State) -> bool:
    """Put a column from the residual in place of a zero one; where none is found remember that."""
    dead, column = dead_columns(state.U), column_from_residual(X, state.U)
    state.memory["left_dead"] = np.array(len(dead) if column is None else 0, np.int64)
    if column is None:
        return False
    U = X.ops.get(state.U.values).copy()
    U[:, dead[0]] = column
    quasi_newton.forget(state)
    state.moved(X.ops.put(U))
    return True


def _sweeps_by_entries(X: SymmetricMatrix, state: State) -> bool:
    """Whether a sweep on one thread, entry by entry, is worth the better ends it leads to."""
    return X.entries is not None and X.shape[0] * state.rank <= BY_ENTRIES


def _refresh(X: SymmetricMatrix, state: State, full: SymmetricMatrix) -> float:
    """Compute X U and U^T U where that is due; return E, for ||X|| of the ``full`` precision."""
    if state.iteration > 0 and state.iteration % REFRESH == 0:
        _settle(X, state)
        U = state.U
        product = X.product_at(U.values, U.values, out=U.known_product)
        state.moved(U.values, product=product)
    return quick_sqnorm(X, state.U, full) / full.sqnorm


def _settle(X: SymmetricMatrix, state: State) -> None:
    """Set entries to zero that tend to it, so that the zeros of the limit are found.

    A step ends at its target only where the line search goes all the way, so an entry whose
    target is 0 may halve again and again. With g = U G - X U and C an upper bound on the
    curvature, f(U + D) <= f(U) + 2 <g, D> + C ||D||^2 where ||D|| <= ||U||. So f falls by at
    least C ||D||^2 where all entries 0 < u <= g / C become zero. This is called where X U is
    computed afresh in any case; docs/theory/hals-newton.md has what it proves.
    """
    U = state.U
    size, longest = float(np.trace(U.gram)), float(np.linalg.eigvalsh(U.gram)[-1])
    misfit = np.sqrt(max(quick_sqnorm(X, U, X), 0.0))
    # the last term is more than a ridge on rows of which little is observed can add
    curvature = misfit + 2.0 * longest + 2.0 * np.sqrt(longest * size) + 0.5 * size + 0.01 * X.norm
    if X.ops.put_at_zero(U.values, U.product(X), U.gram, float(curvature)):
        quasi_newton.leave_out(state)


def _rescale(X: SymmetricMatrix, state: State) -> bool:
    """Bring the start to the multiple of itself that fits X best, without a product.

    Return False where no multiple fits better than 0: entry by entry such a start would end there.
    """
    scale = best_multiple(X, state.U)
    if scale > 0.0:
        state.U = state.V = state.U.scaled(scale, X)
    return scale > 0.0
