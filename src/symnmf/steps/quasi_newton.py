"""The memory of a limited-memory quasi-Newton method under U >= 0, and the point it aims at."""

from __future__ import annotations

import numpy as np

from symnmf.kernels import pairs as kernels
from symnmf.matrices import SymmetricMatrix
from symnmf.run.state import State

FLATTEST = 1e-10  # curvature of a step worth keeping, in units of the mean diagonal of U^T U

# places in memory["counters"]: pairs in use, the slot written next, whether it holds a step
USED, SLOT, PENDING = range(3)


def room_for_pairs(depth: int, U0: np.ndarray) -> dict[str, np.ndarray]:
    """Return what ``State.memory`` needs for ``depth`` pairs of a step and its change."""
    ring = (depth, *U0.shape)
    return {
        "steps": np.zeros(ring, U0.dtype),
        "changes": np.zeros(ring, U0.dtype),
        "gradient": np.zeros_like(U0) if depth else U0[:0],
        "pair_dots": np.zeros((2, depth, depth)),
        "counters": np.zeros(3, np.int64),
    }


def forget(state: State) -> None:
    """Drop all pairs."""
    state.memory["counters"][[USED, PENDING]] = 0


def next_slot(state: State) -> np.ndarray:
    """Return where the next target is to be written; the step found there is remembered."""
    return state.memory["steps"][state.memory["counters"][SLOT]]


def stepped(state: State) -> None:
    """Say that U has moved by what :func:`next_slot` holds."""
    state.memory["counters"][PENDING] = 1


def look(X: SymmetricMatrix, state: State, level: float) -> tuple[np.ndarray, float]:
    """Bring gradient and pairs up to date, for a ``level`` of the mean diagonal of U^T U.

    Return the dot products of each slot's step and change with the gradient on the free entries,
    and the squared distance ||U - max(U - g / level, 0)||^2, g = U U^T U - X U.
    """
    memory, U, product = state.memory, state.U, state.product
    assert product is not None
    assert state.gram_U is not None
    gram = state.gram_U.astype(U.dtype)
    steps, changes, gradient = memory["steps"], memory["changes"], memory["gradient"]
    step_change, change_change = memory["pair_dots"]
    counters = memory["counters"]
    depth, slot = len(steps), int(counters[SLOT])
    n, r = U.shape
    used = min(int(counters[USED]), depth - int(counters[PENDING]))  # the oldest gave its slot up
    newest = slot if counters[PENDING] else -1
    slots = (slot - used + np.arange(used + int(counters[PENDING]))) % depth

    def rows(begin: int, end: int) -> np.ndarray:
        return kernels.gradient_rows(
            U, product, gram, level, gradient, steps, changes, newest, slots, begin, end
        )

    sums = np.sum(X.threads.run(rows, X.threads.split(n, 2.0 * r * (r + 6 * depth))), axis=0)
    length, distance = sums[kernels.NUMBERS, :2]
    if counters[PENDING]:
        counters[PENDING] = 0
        step_change[slot] = sums[kernels.STEP_CHANGE, :depth]
        step_change[:, slot] = sums[kernels.CHANGE_STEP, :depth]
        change_change[slot] = change_change[:, slot] = sums[kernels.CHANGE_CHANGE, :depth]
        if step_change[slot, slot] > FLATTEST * level * length:
            used += 1
            counters[SLOT] = (slot + 1) % depth
        counters[USED] = used
    return sums[kernels.STEP_SLOPE : kernels.CHANGE_SLOPE + 1, :depth], float(distance)


def quasi_newton_target(X: SymmetricMatrix, state: State, slopes: np.ndarray) -> np.ndarray:
    """Write max(U - H g, 0) to the next slot and return it; there must be a pair."""
    memory, U = state.memory, state.U
    n, r = U.shape
    steps, changes, counters = memory["steps"], memory["changes"], memory["counters"]
    used, depth = int(counters[USED]), len(steps)
    order = (int(counters[SLOT]) - used + np.arange(used)) % depth
    own, along, across = kernels.direction_weights(*memory["pair_dots"], *slopes, order)
    target = next_slot(state)
    X.threads.run(
        lambda begin, end: kernels.target_rows(
            U, memory["gradient"], steps, changes, own, along, across, target, begin, end
        ),
        X.threads.split(n, 4.0 * r * (depth + 1)),
    )
    return target
