"""HALS with Anderson acceleration, then Gauss-Newton: one product with X per iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.kernels import anderson, newton, reductions
from symnmf.kernels.hals import hals_rows
from symnmf.matrices import SymmetricMatrix
from symnmf.objective import best_multiple
from symnmf.solvers.base import Solver
from symnmf.solvers.gauss_newton import gauss_newton_target
from symnmf.solvers.line_search import quartic_step
from symnmf.state import State

PROXIMAL = 0.01  # lambda of the sweep, in units of the mean diagonal of U^T U
SWEEP_DECREASE = 1e-4  # of mean diagonal times ||F||^2, asked of an accelerated step
STEP_DECREASE = 1e-8  # of mean diagonal times the squared step length, asked of every shortcut
MIX_AFTER = 10  # mixing sweeps while the factor still changes its shape wastes them
GUARD = 9  # Gauss-Newton steps between two sweeps
REFRESH = 50  # iterations between fresh products X U
FIRST_WEIGHT = 0.03  # of the Gauss-Newton steps, in units of the mean diagonal of U^T U
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 1e6
IN_CACHE = 32 * 2**20  # bytes of a factor
LARGE_SWEEPS = 3  # beyond: sweeps over rows once read cost less than reading all factors again

# places in memory["counters"]
USED, SLOT, SINCE_SWEEP = range(3)


@dataclass(frozen=True)
class HalsNewton(Solver):
    r"""Minimise :math:`f(U) = \tfrac12\|X - UU^\top\|_F^2` itself, from products kept up to date.

    Far from a small error, a step is a proximal HALS sweep Z of :math:`\|X - Z U^\top\|`,
    mixed with the ``depth`` before it (Anderson), and an exact line search towards the mixture.
    Where it does not pay, the line search goes towards Z. Below the relative error
    ``newton_below``, steps are Gauss-Newton steps under U >= 0 with the same line search, and
    every tenth is a sweep. f never rises and every limit point is critical; see
    docs/hals-newton.md.

    Parameters
    ----------
    depth : int or None
        Sweeps that are mixed, each at the memory of two factors; 1 for no mixing. None for 5, and
        for 1 where a factor no longer fits in cache and reading the history would cost more than
        it saves: there a step makes three sweeps at once instead.
    newton_below : float
        Relative error E from which Gauss-Newton takes over; 0 for never.
    """

    name: ClassVar[str] = "hals-newton"
    summary: ClassVar[str] = "accelerated HALS, then Gauss-Newton, on the original problem"
    cost: ClassVar[str] = "1 product, and a sweep or 10 inner steps of 6nr^2"

    depth: int | None = None
    newton_below: float = 0.05

    def __post_init__(self) -> None:
        depth = self.depth
        if depth is not None and (type(depth) is not int or depth < 1):
            raise InputError(f"depth must be None or a whole number of at least 1, got {depth!r}.")
        if not (isinstance(self.newton_below, int | float) and 0 <= self.newton_below <= 1):
            raise InputError(
                f"newton_below must be a relative error from 0 to 1, got {self.newton_below!r}."
            )

    def start(self, X: SymmetricMatrix, U0: np.ndarray) -> State:
        depth = self.depth or (5 if U0.nbytes <= IN_CACHE else 1)
        depth = depth if depth > 1 else 0  # one sweep is no mixture, and needs no history
        ring = (depth, *U0.shape)
        return State(
            U=U0,
            V=U0,
            product=X.matmul(U0),
            memory={
                "images": np.zeros(ring, U0.dtype),
                "moves": np.zeros(ring, U0.dtype),
                "dots": np.zeros((depth, depth)),
                "counters": np.zeros(3, np.int64),
                "weight": np.array(FIRST_WEIGHT),
            },
        )

    def step(self, X: SymmetricMatrix, state: State) -> None:
        if state.iteration == 0:
            _rescale(X, state)
        elif state.product is None or state.iteration % REFRESH == 0:
            state.product = X.matmul(state.U, out=state.product)
        gram = state.known_gram_U(X.threads)
        level = float(np.trace(gram)) / gram.shape[0]
        counters = state.memory["counters"]
        if self._newton_due(X, state, gram) and counters[SINCE_SWEEP] < GUARD:
            counters[USED] = 0  # sweeps from before are no longer neighbours
            counters[SINCE_SWEEP] += 1
            if not self._newton_step(X, state, level):
                counters[SINCE_SWEEP] = GUARD
        else:
            counters[SINCE_SWEEP] = 0
            self._sweep_step(X, state, level)

    def _newton_due(self, X: SymmetricMatrix, state: State, gram: np.ndarray) -> bool:
        if state.iteration == 0 or self.newton_below == 0.0:
            return False
        assert state.product is not None
        explained = 2.0 * reductions.inner(state.product, state.U, X.threads)
        misfit = X.sqnorm - explained + float(np.vdot(gram, gram))
        return misfit < self.newton_below * X.sqnorm

    def _newton_step(self, X: SymmetricMatrix, state: State, level: float) -> bool:
        assert state.product is not None
        assert state.gram_U is not None
        memory = state.memory
        weight = float(memory["weight"])
        if "dual" not in memory:  # on most graphs never needed, so not kept from the start
            memory["dual"] = np.zeros_like(state.U)
        dual = memory["dual"]
        target = gauss_newton_target(
            state.U, state.product, state.gram_U, weight * level, dual, X.threads
        )
        step = _line_step(X, state, target, enough=0.0, per_length=STEP_DECREASE * level)
        factor = 0.7 if step >= 0.9 else 1.0 if step >= 0.5 else 1.5 if step > 0.0 else 10.0
        following = min(max(factor * weight, LEAST_WEIGHT), MOST_WEIGHT)
        if following != weight:
            dual *= state.U.dtype.type(weight / following)  # the multiplier itself stays
        memory["weight"] = np.array(following)
        return step > 0.0

    def _sweep_step(self, X: SymmetricMatrix, state: State, level: float) -> None:
        """Sweep, mix with the sweeps before where they are kept, and go where f is lower."""
        target = state.room()
        if len(state.memory["images"]) == 0:
            n, r = target.shape
            X.threads.run(
                lambda begin, end: _sweep_rows(state, target, level, begin, end),
                X.threads.split(n, 2.0 * r * r),
            )
        elif self._mixed_step(X, state, target, level):
            return
        _line_step(X, state, target, enough=0.0, per_length=0.0)

    def _mixed_step(
        self, X: SymmetricMatrix, state: State, target: np.ndarray, level: float
    ) -> bool:
        """Sweep and go towards the mixture; failing that, leave the sweep in ``target``."""
        memory, U, threads = state.memory, state.U, X.threads
        n, r = U.shape
        images, moves, dots = memory["images"], memory["moves"], memory["dots"]
        counters = memory["counters"]
        slot = int(counters[SLOT]) if counters[USED] else 0
        depth = len(images)
        used = min(int(counters[USED]) + 1, depth)

        def sweep(begin: int, end: int) -> np.ndarray:
            _sweep_rows(state, images[slot], level, begin, end)
            return anderson.remember_rows(U, images, moves, slot, used, begin, end)

        bounds = threads.split(n, 2.0 * r * (r + used))
        row = np.sum(threads.run(sweep, bounds), axis=0)
        dots[slot], dots[:, slot] = row, row
        counters[USED], counters[SLOT] = used, (slot + 1) % depth
        if used > 1 and state.iteration >= MIX_AFTER:
            weights = anderson.mixing_weights(dots, slot, used)
            threads.run(lambda b, e: anderson.mix_rows(images, weights, target, b, e), bounds)
            enough = SWEEP_DECREASE * level * float(row[slot])
            if _line_step(X, state, target, enough, STEP_DECREASE * level) > 0.0:
                return True
            counters[USED] = 0
        np.copyto(target, images[slot])
        return False


def _sweep_rows(state: State, out: np.ndarray, level: float, begin: int, end: int) -> None:
    """Write the proximal HALS sweeps from U to rows ``begin..end`` of ``out``."""
    out[begin:end] = state.U[begin:end]
    sweeps = 1 if out.nbytes <= IN_CACHE else LARGE_SWEEPS
    weight = PROXIMAL * level
    hals_rows(out, state.product, state.U, state.gram_U, weight, sweeps, begin, end)


def _rescale(X: SymmetricMatrix, state: State) -> None:
    """Bring the start to the multiple of itself that fits X best; no product needed."""
    scale = best_multiple(X, state)
    if scale > 0.0:
        assert state.product is not None
        kind = state.U.dtype.type
        state.moved(kind(scale) * state.U, product=kind(scale) * state.product)


def _line_step(
    X: SymmetricMatrix, state: State, target: np.ndarray, enough: float, per_length: float
) -> float:
    r"""Move U towards ``target`` to where f is lowest, by one product; return the fraction t.

    With D = target - U, S = U^T D + D^T U and K = D^T D,

    .. math:: f(U + tD) - f(U) = t(-2\langle XU, D\rangle + \langle G, S\rangle)
        + t^2(-\langle XD, D\rangle + \tfrac12\|S\|^2 + \langle G, K\rangle)
        + t^3\langle S, K\rangle + \tfrac12 t^4\|K\|^2 .

    U stays (t = 0) unless f falls by ``enough`` and by ``per_length`` ||t D||^2. ``target`` is
    overwritten.
    """
    U, product, gram, threads = state.U, state.product, state.gram_U, X.threads
    n, r = U.shape
    assert product is not None
    image = X.matmul(target, out=state.room())
    bounds = threads.split(n, 4.0 * r * (r + 2))
    parts = threads.run(lambda b, e: newton.direction_rows(U, product, target, image, b, e), bounds)
    slope, bend, cross, length = (sum(part[1:], start=part[0]) for part in zip(*parts, strict=True))
    mixed = cross + cross.T
    step, change = quartic_step(
        -2.0 * slope + float(np.vdot(gram, mixed)),
        -bend + 0.5 * float(np.vdot(mixed, mixed)) + float(np.vdot(gram, length)),
        float(np.vdot(mixed, length)),
        0.5 * float(np.vdot(length, length)),
    )
    if step == 0.0 or -change < max(enough, per_length * step**2 * float(np.trace(length))):
        state.spare.append(image)
        return 0.0
    threads.run(lambda b, e: newton.advance_rows(U, product, target, image, step, b, e), bounds)
    state.moved(target, product=image)
    state.spare += [U, product]
    return float(step)
