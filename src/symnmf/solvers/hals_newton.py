"""Sweeps, then quasi-Newton or Gauss-Newton steps: one product with X per iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.arguments import check_ranges
from symnmf.objectives import Objective
from symnmf.ops import Factor, Hals
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, State
from symnmf.steps import quasi_newton
from symnmf.steps.gauss_newton import damping_factor, gauss_newton_target
from symnmf.steps.line_search import line_step

PROXIMAL = 0.01  # lambda of the sweep, in units of the mean diagonal of U^T U
SUFFICIENT_DECREASE = 1e-4  # of what a projected gradient step would gain to first order
STEP_DECREASE = 1e-8  # of mean diagonal times the squared length of a step that is no sweep
FIRST_SWEEPS = 3  # before the gradient of one point says anything about the next
DEPTH = 3  # pairs kept by the quasi-Newton steps
GUARD = 9  # Gauss-Newton steps between two others
REFRESH = 50  # iterations between fresh products X U
FIRST_WEIGHT = 0.03  # of the Gauss-Newton steps, in units of the mean diagonal of U^T U
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 1e6
REMEMBERED = 2**26  # entries of U up to which steps are remembered, at seven times its memory
SWEEPS_ALONE = 3  # where no steps are kept: rows once read are cheap to sweep again
ROUNDED = 100.0  # roundings by which the scale of a start may be off


@dataclass(frozen=True)
class HalsNewton(Solver):
    r"""Minimise :math:`f(U) = \tfrac12\|X - UU^\top\|_F^2` itself, from products kept up to date.

    The first steps are proximal HALS sweeps on :math:`\|X - Z U^\top\|`. Then come limited-memory
    BFGS directions on the free entries, clipped at zero, each with an exact line search; a HALS
    sweep where that does not pay. Below the relative error ``newton_below``, steps are Gauss-Newton
    steps under U >= 0 with the same line search, and every tenth is one of the others. f never
    rises and every limit point is critical; see docs/theory/hals-newton.md.

    Parameters
    ----------
    depth : int or None
        Steps the quasi-Newton method remembers, each at the memory of two factors; 0 for sweeps
        alone, three at a step. None for 3, and for 0 if U has more than 2^26 entries, where the
        steps would take more memory than most machines have.
    newton_below : float
        Relative error E from which Gauss-Newton takes over; 0 for never.
    """

    name: ClassVar[str] = "hals-newton"
    summary: ClassVar[str] = "sweeps, then quasi-Newton or Gauss-Newton, on the original problem"
    cost: ClassVar[str] = "1 product and 6nr^2, or 10 inner steps of 6nr^2"
    starts_at_random: ClassVar[bool] = False
    requires: ClassVar[tuple[str, ...]] = ("along",)
    rows = Hals()

    depth: int | None = None
    newton_below: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, newton_below=(0.0, 1.0))
        if self.depth is not None:
            check_ranges(self, depth=(0, 1e6))

    def _pairs(self, f: Objective, rank: int) -> int:
        """Return the steps remembered."""
        if self.depth is not None:
            return self.depth
        return DEPTH if f.shape[0] * rank <= REMEMBERED else 0

    def memory(self, f: Objective, rank: int) -> Layout:
        n = f.shape[0]
        return {
            **quasi_newton.layout_of_pairs(self._pairs(f, rank), n, rank, f.dtype),
            "weight": Kept(least=LEAST_WEIGHT, most=MOST_WEIGHT),
            "newton_steps": Kept((), np.dtype(np.int64), 0, GUARD),
            "dual": Kept((n, rank), f.dtype, tall=True, optional=True),
        }

    def start(self, f: Objective, U0: Factor) -> State:
        state = super().start(f, U0)
        state.memory["weight"] = np.array(FIRST_WEIGHT)
        return state

    def step(self, f: Objective, state: State) -> None:
        if state.iteration == 0:
            _rescale(f, state)
        error = _refresh(f, state)
        level = _level(f, state)
        since = state.memory["newton_steps"]
        if since < GUARD and state.iteration > 0 and error < self.newton_below:
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

    def _newton_step(self, f: Objective, state: State, level: float) -> bool:
        memory, ops = state.memory, f.ops
        weight = float(memory["weight"])
        if "dual" not in memory:  # on most graphs never needed, so not kept from the start
            memory["dual"] = ops.zeros(state.U.values.shape, f.dtype)
        target, dual = gauss_newton_target(f, state.U, weight * level, memory["dual"], state.spare)
        step, _ = line_step(f, state, target, per_length=STEP_DECREASE * level)
        following = min(max(damping_factor(step) * weight, LEAST_WEIGHT), MOST_WEIGHT)
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


def _refresh(f: Objective, state: State) -> float:
    """Compute the product and U^T U where that is due; return E."""
    if state.iteration > 0 and state.iteration % REFRESH == 0:
        _settle(f, state)
        U = state.U
        product = f.product_at(U.values, U.values, out=U.known_product)
        state.moved(U.values, product=product)
    return state.U.sums(f)[0] / f.sqnorm


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


def _rescale(f: Objective, state: State) -> None:
    """Bring the start to the multiple of itself that fits X best, without a product."""
    scale = f.best_multiple(state.U)
    # most starts are at their scale already, and a copy of a large one takes as long as a product
    if scale > 0.0 and abs(scale - 1.0) > ROUNDED * np.finfo(f.dtype).eps:
        state.U = state.V = state.U.scaled(scale, f)
