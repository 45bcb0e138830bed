"""What methods on the original problem share: f(U) = 1/2 ||X - U U^T||_F^2 over U >= 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symnmf.kernels import reductions
from symnmf.matrices import SymmetricMatrix
from symnmf.run.state import State
from symnmf.solvers.solver import Solver


@dataclass(frozen=True)
class OriginalSolver(Solver):
    """A method with one factor, V is U, whose steps begin with X U known and leave X U behind."""

    def start(self, X: SymmetricMatrix, U0: np.ndarray) -> State:
        # here, so that the clock counts the first product as it counts all others
        return State(U=U0, V=U0, product=X.matmul(U0))


@dataclass(frozen=True)
class Move:
    """A point that a step may go to: U, X U and by how much f changes."""

    U: np.ndarray
    product: np.ndarray
    change: float

    def take(self, state: State) -> None:
        """Go there."""
        state.moved(self.U, product=self.product)


def gradient(X: SymmetricMatrix, state: State) -> np.ndarray:
    """Return grad f(U) = 2 (U U^T U - X U)."""
    assert state.product is not None
    weights = state.known_gram_U(X.threads).astype(X.dtype)
    descent = state.U @ weights
    descent -= state.product
    descent *= 2
    return descent


def move_to(X: SymmetricMatrix, state: State, U: np.ndarray) -> Move:
    """Try a point, at the cost of one product.

    With D = U_new - U, S = U^T D + D^T U and K = D^T D,

        f(U + D) - f(U) = -2 <X U, D> + <U^T U, S>
                          - <X D, D> + 1/2 ||S||^2 + <U^T U, K> + <S, K> + 1/2 ||K||^2.

    Every term vanishes with D, so the sign is right long after the difference of two objectives
    would be rounding.
    """
    threads = X.threads
    assert state.product is not None
    product = X.matmul(U)
    D = U - state.U
    gram = state.known_gram_U(threads)
    half = reductions.cross_gram(state.U, D, threads)
    S, K = half + half.T, reductions.gram(D, threads)
    linear = float(np.vdot(gram, S)) - 2.0 * reductions.inner(state.product, D, threads)
    curved = float(np.vdot(S, S)) / 2.0 + float(np.vdot(gram, K))
    curved -= reductions.inner(product - state.product, D, threads)
    higher = float(np.vdot(S, K)) + float(np.vdot(K, K)) / 2.0
    return Move(U, product, linear + curved + higher)


def projected_move(X: SymmetricMatrix, state: State, direction: np.ndarray, step: float) -> Move:
    """Try max(U - step * direction, 0)."""
    return move_to(X, state, np.maximum(state.U - X.dtype.type(step) * direction, 0))


def enough(X: SymmetricMatrix, state: State, move: Move, slope: np.ndarray, share: float) -> bool:
    """Armijo's test along a projected path: f(U+) - f(U) <= share * <grad f(U), U+ - U>.

    A move that empties a column is refused however far it descends: the gradient of a column of
    zeros is zero, so nothing leads back, and from a start that is much too large the first long
    step would end at U = 0.
    """
    if np.any(state.U.any(axis=0) & ~move.U.any(axis=0)):
        return False
    expected = reductions.inner(slope, move.U - state.U, X.threads)
    return move.change <= share * expected
