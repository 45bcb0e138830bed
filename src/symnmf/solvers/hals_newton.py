"""Sweeps, then quasi-Newton or Gauss-Newton steps: one product with X per iteration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.objectives import Objective
from symnmf.objectives.objective import rounding_level
from symnmf.ops import Factor, Hals
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, Point, State
from symnmf.steps import quasi_newton
from symnmf.steps.gauss_newton import gauss_newton_target
from symnmf.steps.line_search import line_step
from symnmf.steps.revival import column_from_residual, dead_columns
from symnmf.storage.border import in_range

PROXIMAL = 0.01  # lambda of the sweep, in units of the mean diagonal of U^T U
SUFFICIENT_DECREASE = 1e-4  # of what a projected gradient step would gain to first order
STEP_DECREASE = 1e-8  # of mean diagonal times the squared length of a step that is no sweep
FIRST_SWEEPS = 3  # before the gradient of one point says anything about the next
DEPTH = 3  # pairs kept by the quasi-Newton steps
GUARD = 9  # Gauss-Newton steps between two others
REFRESH = 50  # iterations between fresh products X U
FIRST_WEIGHT = 0.03  # of the Gauss-Newton steps, in units of the mean diagonal of U^T U
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 1e6
IN_CACHE = 2**22  # entries of U that stay in a cache; with more a run begins in float32
REMEMBERED = 2**26  # entries of U up to which steps are remembered, at seven times its memory
SWEEPS_ALONE = 3  # where no steps are kept: rows once read are cheap to sweep again
SINGLE_LOOKS = 5  # iterations between two looks at whether float32 is still enough
SINGLE_GAIN = 1e-9  # relative fall of E between two looks under which it is not
ROUNDED = 100.0  # roundings by which the scale of a start may be off
BY_ENTRIES = 2**20  # entries of U up to which a sweep on one thread costs little


@dataclass(frozen=True)
class HalsNewton(Solver):
    r"""Minimise :math:`f(U) = \tfrac12\|X - UU^\top\|_F^2` itself, from products kept up to date.

    If U is small, the first step is a sweep of exact coordinate descent. The next ones are
    proximal HALS sweeps on :math:`\|X - Z U^\top\|`. Then come limited-memory BFGS directions on
    the free entries, clipped at zero, each with an exact line search; a HALS sweep where that
    does not pay. Below the relative error ``newton_below``, steps are Gauss-Newton steps under
    U >= 0 with the same line search, and every tenth is one of the others. f never rises and
    every limit point is critical; see docs/theory/hals-newton.md.

    Parameters
    ----------
    depth : int or None
        Steps the quasi-Newton method remembers, each at the memory of two factors; 0 for sweeps
        alone, three at a step. None for 3, and for 0 if U has more than 2^26 entries, where the
        steps would take more memory than most machines have.
    newton_below : float
        Relative error E from which Gauss-Newton takes over; 0 for never.
    single_from : int or None
        Entries of U beyond which a run on a sparse X in float64 begins in float32; None for 2^22,
        which are more than a cache holds.
    """

    name: ClassVar[str] = "hals-newton"
    summary: ClassVar[str] = "sweeps, then quasi-Newton or Gauss-Newton, on the original problem"
    cost: ClassVar[str] = "1 product and 6nr^2, or 10 inner steps of 6nr^2"
    starts_at_random: ClassVar[bool] = False
    asks: ClassVar[frozenset[str]] = frozenset({"line"})

    depth: int | None = None
    newton_below: float = 0.05
    # a checkpoint does not depend on it: a run may continue in another precision
    single_from: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
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

    def _layout(self, f: Objective, rank: int) -> tuple[int, bool]:
        """Return the steps remembered, and whether the run begins in float32 where X can."""
        entries = f.shape[0] * rank
        depth = self.depth
        if depth is None:
            depth = DEPTH if entries <= REMEMBERED else 0
        return depth, entries > (IN_CACHE if self.single_from is None else self.single_from)

    def memory(self, f: Objective, rank: int) -> Layout:
        n, dtype = f.shape[0], f.dtype
        depth, _ = self._layout(f, rank)
        return {
            **quasi_newton.layout_of_pairs(depth, n, rank, dtype),
            "weight": Kept(least=LEAST_WEIGHT, most=MOST_WEIGHT),
            "newton_steps": Kept((), np.dtype(np.int64), 0, GUARD),
            "error": Kept(infinite=True),
            "left_dead": Kept((), np.dtype(np.int64), 0, rank),
            "dual": Kept((n, rank), dtype, tall=True, optional=True),
        }

    def warmups(self) -> tuple[HalsNewton, ...]:
        return (self, replace(self, newton_below=1.0))

    def precisions(self, f: Objective, rank: int) -> tuple[np.dtype, ...]:
        return (f.dtype,) if f.as_float32 is None else (f.dtype, np.dtype(np.float32))

    def start(self, f: Objective, U0: Factor) -> State:
        depth, narrows = self._layout(f, U0.shape[1])
        single = f.as_float32 if narrows and in_range(f.largest(), np.dtype(np.float32)) else None
        if single is not None:
            f, U0 = single, f.ops.cast(U0, single.dtype)
        memory = {
            **quasi_newton.buffers_for_pairs(f, depth, U0),
            "weight": np.array(FIRST_WEIGHT),
            "newton_steps": np.array(0, np.int64),
            "error": np.array(np.inf),
            "left_dead": np.array(0, np.int64),
        }
        state = State.at(f, U0, memory=memory)
        state.U.product(f)
        return state

    def step(self, f: Objective, state: State) -> None:
        dtype = f.ops.dtype(state.U.values)
        fits = state.iteration == 0 and _rescale(f.in_precision(dtype), state)
        f, error = self._ready(f, state)
        if not self.settled(state) and _revive(f, state):
            return
        level = _level(f, state)
        since = state.memory["newton_steps"]
        if fits and error >= self.newton_below and _sweeps_by_entries(f, state):
            assert f.entries is not None
            buffer = state.U.known_product
            U = f.entries.coordinate_sweep(state.U.values, state.U.gram.copy())
            state.moved(U, product=f.product_at(U, U, out=buffer))
        elif since < GUARD and self._newton_pays(f, state, error):
            quasi_newton.forget(state)  # pairs from before are no longer neighbours
            since += 1
            if not self._newton_step(f, state, level):
                since[...] = GUARD
        else:
            since[...] = 0
            self._sweep_step(f, state, level)
            if error >= self.newton_below:
                self._look_ahead(f, state)

    def _look_ahead(self, f: Objective, state: State) -> None:
        """Do what the next step begins with: it forms the gradient, which U is measured by too."""
        following = state.iteration + 1
        pairs = len(state.memory["pair_dots"][0])
        if pairs and following >= FIRST_SWEEPS and following % REFRESH:
            quasi_newton.look(f, state, _level(f, state))

    def _newton_pays(self, f: Objective, state: State, error: float) -> bool:
        return state.iteration > 0 and error < self.newton_below

    def settled(self, state: State) -> bool:
        return len(dead_columns(state.U)) <= int(state.memory["left_dead"])

    def _ready(self, f: Objective, state: State) -> tuple[Objective, float]:
        """Bring the product and U^T U up to date; return f in the precision of this step, and E.

        Float32 is kept until the gradient is down to its rounding or E no longer falls.
        """
        used = f.in_precision(f.ops.dtype(state.U.values))
        error = _refresh(used, state)
        if used is f or (error > self.newton_below and _single_is_enough(used, state, error)):
            return used, error
        self.widen(f, state)
        return f, _refresh(f, state)

    def widen(self, f: Objective, state: State) -> None:
        state.spare.clear()
        state.moved(f.ops.cast(state.U.values, f.dtype))
        depth, _ = self._layout(f, state.rank)
        state.memory |= quasi_newton.buffers_for_pairs(f, depth, state.U.values)

    def _newton_step(self, f: Objective, state: State, level: float) -> bool:
        memory, ops = state.memory, f.ops
        weight = float(memory["weight"])
        if "dual" not in memory:  # on most graphs never needed, so not kept from the start
            memory["dual"] = ops.zeros(state.U.values.shape, f.dtype)
        target, dual = gauss_newton_target(f, state.U, weight * level, memory["dual"], state.spare)
        step, _ = line_step(f, state, target, per_length=STEP_DECREASE * level)
        factor = 0.7 if step >= 0.9 else 1.0 if step >= 0.5 else 1.5 if step > 0.0 else 10.0
        following = min(max(factor * weight, LEAST_WEIGHT), MOST_WEIGHT)
        memory["weight"] = np.array(following)
        same = following == weight  # the multiplier itself stays
        memory["dual"] = dual if same else ops.combine((weight / following, dual))
        return step > 0.0

    def _sweep_step(self, f: Objective, state: State, level: float) -> None:
        """Step towards what the pairs kept so far say, or else towards a sweep."""
        depth = len(state.memory["pair_dots"][0])
        if depth and state.iteration >= FIRST_SWEEPS:
            slopes, promise = quasi_newton.look(f, state, level)
            if state.memory["counters"][quasi_newton.USED]:
                target = quasi_newton.quasi_newton_target(f, state, slopes)
                t, step = line_step(
                    f,
                    state,
                    target,
                    enough=SUFFICIENT_DECREASE * promise,
                    per_length=STEP_DECREASE * level,
                )
                if t > 0.0:
                    quasi_newton.stepped(state, step)
                    return
                quasi_newton.forget(state)
        out = quasi_newton.next_slot(state) if depth else state.scratch()
        sweeps = Hals(1 if depth else SWEEPS_ALONE)
        U = state.U
        K = f.curvature(U.gram)
        target = f.ops.sweep(sweeps, U.values, f.aim(U), K, PROXIMAL * level, out)
        t, step = line_step(f, state, target)
        if not depth:
            state.spare.append(step)
        elif t > 0.0 and state.iteration >= FIRST_SWEEPS:
            quasi_newton.stepped(state, step)


def _level(f: Objective, state: State) -> float:
    """Return the unit of all constants: the mean diagonal of U^T U."""
    gram = state.U.gram
    curvature = f.curvature(gram)
    return (state.U.size if curvature is gram else float(curvature.trace())) / state.rank


def _revive(f: Objective, state: State) -> bool:
    """Put a column from the residual in place of a zero one; where none is found remember that."""
    dead, column = dead_columns(state.U), column_from_residual(f, state.U)
    state.memory["left_dead"] = np.array(len(dead) if column is None else 0, np.int64)
    if column is None:
        return False
    U = f.ops.get(state.U.values).copy()
    U[:, dead[0]] = column
    found = Point(f.ops, f.ops.put(U))
    if f.value(found) > f.value(state.U):  # a term that was added costs more than it brings
        state.memory["left_dead"] = np.array(len(dead), np.int64)
        return False
    quasi_newton.forget(state)
    state.U = state.V = found
    return True


def _sweeps_by_entries(f: Objective, state: State) -> bool:
    """Whether a sweep on one thread, entry by entry, is worth the better ends it leads to."""
    return f.entries is not None and f.shape[0] * state.rank <= BY_ENTRIES


def _refresh(f: Objective, state: State) -> float:
    """Compute the product and U^T U where that is due; return E."""
    if state.iteration > 0 and state.iteration % REFRESH == 0:
        _settle(f, state)
        U = state.U
        product = f.product_at(U.values, U.values, out=U.known_product)
        state.moved(U.values, product=product)
    return state.U.sums(f)[0] / f.sqnorm


def _single_is_enough(single: Objective, state: State, error: float) -> bool:
    """Whether a run in float32 still gains more than it rounds; it is looked at now and then."""
    if state.iteration % SINGLE_LOOKS:
        return True
    gain = float(state.memory["error"]) - error
    state.memory["error"] = np.array(error)
    level = rounding_level(single.dtype)
    return gain > SINGLE_GAIN * error and state.U.stationarity(single) > level


def _settle(f: Objective, state: State) -> None:
    """Set entries to zero that tend to it, so that the zeros of the limit are found.

    A step ends at its target only where the line search goes all the way, so an entry whose
    target is 0 may halve again and again. With g = U G - X U and C an upper bound on the
    curvature, f(U + D) <= f(U) + 2 <g, D> + C ||D||^2 where ||D|| <= ||U||. So f falls by at
    least C ||D||^2 where all entries 0 < u <= g / C become zero. This is called where X U is
    computed afresh in any case; docs/theory/hals-newton.md has what it proves.
    """
    U = state.U
    size, longest = float(np.trace(U.gram)), float(np.linalg.eigvalsh(U.gram)[-1])
    misfit = np.sqrt(max(U.sums(f)[0], 0.0))
    curvature = misfit + 2.0 * longest + 2.0 * np.sqrt(longest * size) + 0.5 * size
    if f.ops.put_at_zero(U.values, U.product(f), U.gram, float(curvature) + f.term_curvature):
        quasi_newton.leave_out(state)


def _rescale(f: Objective, state: State) -> bool:
    """Bring the start to the multiple of itself that fits X best, without a product.

    Return False where no multiple fits better than 0: entry by entry such a start would end there.
    """
    scale = f.best_multiple(state.U)
    # most starts are at their scale already, and a copy of a large one takes as long as a product
    if scale > 0.0 and abs(scale - 1.0) > ROUNDED * np.finfo(f.dtype).eps:
        state.U = state.V = state.U.scaled(scale, f)
    return scale > 0.0
