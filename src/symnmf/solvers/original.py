"""What methods on the original problem share: f(U) = 1/2 ||X - U U^T||_F^2 over U >= 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symnmf.objectives import Objective
from symnmf.ops import Factor, quartic
from symnmf.state import Point, State


@dataclass(frozen=True)
class Move:
    """A point that a step may go to: U, X U where it is known, and by how much f changes."""

    U: Factor
    product: Factor | None
    change: float

    def take(self, state: State) -> None:
        """Go there."""
        state.moved(self.U, product=self.product)


def gradient(f: Objective, U: Point) -> Factor:
    """Return grad f(U) = 2 (U U^T U - X U)."""
    return f.ops.gradient(U.values, U.product(f), U.gram)


def move_to(f: Objective, state: State, U: Factor) -> Move:
    """Try a point, at the cost of one product: f on the way is a quartic, and this is its end."""
    ops, here = f.ops, state.U
    if not f.plain_misfit:
        way = f.along(here.values, here.product(f), here.gram, ops.copy(U), ops.empty(U))
        return Move(U, None, sum(way[1]))
    product = f.product_at(U, U)
    line = ops.line(here.values, here.product(f), ops.copy(U), ops.copy(product))
    return Move(U, product, sum(quartic(here.gram, line)))


def projected_move(f: Objective, state: State, direction: Factor, step: float) -> Move:
    """Try max(U - step * direction, 0)."""
    return move_to(f, state, f.ops.descend(state.U.values, direction, step))


def enough(f: Objective, state: State, move: Move, slope: Factor, share: float) -> bool:
    """Armijo's test along a projected path: f(U+) - f(U) <= share * <grad f(U), U+ - U>.

    A move that empties a column is refused however far it descends: the gradient of a column of
    zeros is zero, so nothing leads back, and from a start that is much too large the first long
    step would end at U = 0.
    """
    ops, U = f.ops, state.U.values
    if np.any((ops.column_sums(U) > 0.0) & (ops.column_sums(move.U) == 0.0)):
        return False
    expected = ops.inner(slope, ops.combine((1.0, move.U), (-1.0, U)))
    return move.change <= share * expected
