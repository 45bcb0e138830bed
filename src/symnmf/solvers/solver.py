"""What a solver is: parameters, a start and a step. The loop around it is in ``run/loop.py``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.ops import RowSolver, Tall
from symnmf.run.memory import Layout
from symnmf.run.state import Point, State
from symnmf.storage import SymmetricMatrix


class Solver(ABC):
    """One algorithm. Instances hold parameters only, are small and can be pickled."""

    #: the name users type
    name: ClassVar[str]
    #: one line each, shown by ``symnmf.solvers.available()``
    summary: ClassVar[str]
    needs: ClassVar[str] = "products with X"
    cost: ClassVar[str]
    #: whether a coupling lambda holds the factors together
    has_coupling: ClassVar[bool] = False
    #: the schedule used when the caller names none
    default_coupling: ClassVar[str] = "rising"
    #: whether this is a method of the literature, whose runs begin from random numbers
    starts_at_random: ClassVar[bool] = True
    #: whether single rows of X are read, not only products with it
    reads_entries: ClassVar[bool] = False
    #: whether the argument for the method holds where entries have weights, or are hidden
    takes_weights: ClassVar[bool] = False
    #: whether the argument for the method needs X >= 0
    needs_nonnegative: ClassVar[bool] = False
    #: whether V is a second factor, and whether it may have negative entries
    second_factor: ClassVar[bool] = False
    free_second_factor: ClassVar[bool] = False
    #: the orders of X that this method takes
    orders: ClassVar[tuple[int, ...]] = (2,)

    @property
    def rows(self) -> RowSolver | None:
        """How this method solves rows of a factor; None where it does not."""
        return None

    def check(self, X: SymmetricMatrix) -> None:
        """Refuse a matrix this method cannot work on, before any work is done."""
        if X.order not in self.orders:
            raise InputError(
                f"solver {self.name!r} is not for X of order {X.order}; symnmf.factorize takes "
                f"matrices, symnmf.factorize_tensor tensors."
            )
        if X.weighted and not self.takes_weights:
            raise InputError(
                f"solver {self.name!r} does not take a mask or weights; use 'auto', 'a-symhals' or "
                f"another that does, or fill the missing entries of X."
            )
        if self.reads_entries and X.entries is None:
            raise InputError(
                f"solver {self.name!r} needs the entries of X, which {type(X).__name__} cannot "
                f"give; use 'a-symhals' or another method that needs products only."
            )
        if X.signed and self.needs_nonnegative:
            raise InputError(
                f"solver {self.name!r} needs X >= 0 and X has negative entries; use 'auto', or "
                f"clip them, for instance with np.maximum(X, 0)."
            )
        if self.rows is not None and not X.ops.supports(self.rows):
            raise InputError(
                f"solver {self.name!r} solves rows by {type(self.rows).__name__}, which "
                f"{type(X).__name__} does not offer; use 'auto' or 'a-symhals'."
            )

    def start(self, X: SymmetricMatrix, U0: Tall) -> State:
        """Return the state before the first iteration; V_0 = U_0 always."""
        return State.at(X, U0, X.ops.copy(U0) if self.second_factor else None)

    def settled(self, state: State) -> bool:
        """Return whether a stationary point is where this method ends; no to what it can leave."""
        return True

    def memory(self, n: int, rank: int, dtype: np.dtype) -> Layout:
        """Return what ``State.memory`` holds for an n x n matrix X of ``dtype``."""
        return {}

    def precisions(self, n: int, rank: int, dtype: np.dtype) -> tuple[np.dtype, ...]:
        """Return the types that U may have for such an X."""
        return (dtype,)

    @abstractmethod
    def step(self, X: SymmetricMatrix, state: State) -> None:
        """Do one iteration, in place."""


@dataclass(frozen=True)
class SplitSolver(Solver):
    """The paper's frame: minimise over U with V fixed, then over V with U fixed.

    g(U, V) = 1/2 ||X - U V^T||_F^2 + lambda/2 ||U - V||_F^2 over U, V >= 0.
    """

    has_coupling: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    second_factor: ClassVar[bool] = True

    @property
    @abstractmethod
    def rows(self) -> RowSolver:
        """Return how the rows of the two subproblems are solved."""

    def step(self, X: SymmetricMatrix, state: State) -> None:
        old, room = state.V, state.U.known_product
        U, room = X.update(
            self.rows, state.U.values, old.values, lambda: old.gram, state.coupling, out=room
        )
        gram = X.ops.gram_ahead(U)
        # what is left in `product` is X U for the new U: the fitting error costs no product
        V, product = X.update(self.rows, old.values, U, gram, state.coupling, out=room)
        state.U, state.V = Point(X.ops, U, product, gram()), Point(X.ops, V)
