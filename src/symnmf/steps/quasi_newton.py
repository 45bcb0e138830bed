"""The memory of a limited-memory quasi-Newton method under U >= 0, and the point it aims at."""

from __future__ import annotations

import functools
import math

import numpy as np

from symnmf.kernels import pairs as kernels
from symnmf.objectives import Objective
from symnmf.ops import Factor
from symnmf.state import Kept, Layout, State

FLATTEST = 1e-10  # curvature of a step worth keeping, in units of the mean diagonal of U^T U

# places in memory["counters"]: pairs in use, the slot written next, whether it holds a step
USED, SLOT, PENDING = range(3)


def layout_of_pairs(depth: int, n: int, rank: int, dtype: np.dtype) -> Layout:
    """Declare what ``State.memory`` needs for ``depth`` pairs of a step and its change."""
    most = (depth, max(depth - 1, 0), 1 if depth else 0)
    return {
        "steps": Kept((depth, n, rank), dtype, tall=True),
        "changes": Kept((depth, n, rank), dtype, tall=True),
        "gradient": Kept((n if depth else 0, rank), dtype, tall=True),
        "pair_dots": Kept((2, depth, depth)),
        "counters": Kept((3,), np.dtype(np.int64), 0, most),
    }


def forget(state: State) -> None:
    """Drop all pairs."""
    state.memory["counters"][[USED, PENDING]] = 0


def leave_out(state: State) -> None:
    """Keep no pair of the latest step, since U has moved otherwise after it."""
    state.memory["counters"][PENDING] = 0


def next_slot(state: State) -> Factor:
    """Return where the next target may be written; the step found there is remembered."""
    return state.memory["steps"][int(state.memory["counters"][SLOT]), ...]


def stepped(state: State, step: Factor) -> None:
    """Say that U has moved by ``step``."""
    counters = state.memory["counters"]
    state.memory["steps"][int(counters[SLOT]), ...] = step
    counters[PENDING] = 1


@functools.cache
def _slots(first: int, count: int, depth: int) -> np.ndarray:
    """Return the numbers of so many slots of a ring from the first one on."""
    return (first + np.arange(count)) % depth


def look(f: Objective, state: State, level: float) -> tuple[np.ndarray, float]:
    """Bring gradient and pairs up to date, for a ``level`` of the mean diagonal of U^T U.

    Return the dot products of each slot's step and change with the gradient on the free entries,
    and <g, U - max(U - g / level, 0)>, g = U U^T U - X U: what a projected gradient step would
    gain to first order, and what every step has to gain a share of. U then knows its natural
    residual too, so a look at a point at the end of the step that leads there is not for nothing,
    whatever comes next; and it is not repeated.
    """
    if state.looked is not None and state.looked[0] is state.U:
        slopes, promise = state.looked[1]
        return slopes, promise
    memory, U = state.memory, state.U
    step_change, change_change = memory["pair_dots"]
    counters = memory["counters"]
    used, slot, pending = counters.tolist()
    depth = len(step_change)
    used = min(used, depth - pending)  # the oldest gave its slot up
    sums = f.ops.pair_sums(
        U.values,
        U.product(f),
        f.curvature(U.gram),
        level,
        f.reach(),
        memory["gradient"],
        memory["steps"],
        memory["changes"],
        slot if pending else -1,
        _slots(slot - used, used + pending, depth),
    )
    length, promise, residual = sums[kernels.NUMBERS, :3].tolist()
    U.natural_residual, U.slope = math.sqrt(residual), memory["gradient"]
    if pending:
        counters[PENDING] = 0
        step_change[slot] = sums[kernels.STEP_CHANGE, :depth]
        step_change[:, slot] = sums[kernels.CHANGE_STEP, :depth]
        change_change[slot] = change_change[:, slot] = sums[kernels.CHANGE_CHANGE, :depth]
        if step_change[slot, slot] > FLATTEST * level * length:
            used += 1
            counters[SLOT] = (slot + 1) % depth
        counters[USED] = used
    slopes = sums[kernels.STEP_SLOPE : kernels.CHANGE_SLOPE + 1, :depth]
    state.looked = U, (slopes, promise)
    return slopes, promise


def quasi_newton_target(f: Objective, state: State, slopes: np.ndarray) -> Factor:
    """Return max(U - H g, 0), written to the next slot where it may be; there must be a pair."""
    memory = state.memory
    dots = memory["pair_dots"]
    used, slot, _ = memory["counters"].tolist()
    order = _slots(slot - used, used, len(dots[0]))
    own, along, across = kernels.direction_weights(dots[0], dots[1], slopes[0], slopes[1], order)
    return f.ops.pair_target(
        state.U.values,
        memory["gradient"],
        memory["steps"],
        memory["changes"],
        own,
        along,
        across,
        next_slot(state),
    )
