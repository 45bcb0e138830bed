"""What a solver is: parameters, a start and a step. The loop around it is in ``run/loop.py``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.errors import InputError
from symnmf.matrices import InnerSolver, SymmetricMatrix
from symnmf.run.state import State


class Solver(ABC):
    """One algorithm. Instances hold parameters only, are small and can be pickled."""

    #: the name users type
    name: ClassVar[str]
    #: one line each, shown by ``symnmf.solvers.available()``
    summary: ClassVar[str]
    needs: ClassVar[str] = "products with X"
    cost: ClassVar[str]
    #: whether U and V are two factors held together by a penalty
    splits: ClassVar[bool] = False
    #: the schedule used when the caller names none
    default_penalty: ClassVar[str] = "robust"
    #: whether single rows of X are read, not only products with it
    reads_entries: ClassVar[bool] = False

    def check(self, X: SymmetricMatrix) -> None:
        """Refuse a matrix this method cannot work on, before any work is done."""
        if self.reads_entries and not X.has_entries:
            raise InputError(
                f"solver {self.name!r} needs the entries of X, which {type(X).__name__} cannot "
                f"give; use 'a-symhals' or another method that needs products only."
            )

    def start(self, X: SymmetricMatrix, U0: np.ndarray) -> State:
        """Return the state before the first iteration; V_0 = U_0 always."""
        return State(U=U0, V=U0.copy() if self.splits else U0)

    @abstractmethod
    def step(self, X: SymmetricMatrix, state: State) -> None:
        """Do one iteration, in place."""


@dataclass(frozen=True)
class SplitSolver(Solver):
    """The paper's frame: minimise over U with V fixed, then over V with U fixed.

    g(U, V) = 1/2 ||X - U V^T||_F^2 + lambda/2 ||U - V||_F^2 over U, V >= 0.
    """

    splits: ClassVar[bool] = True

    @property
    @abstractmethod
    def inner(self) -> InnerSolver:
        """Return the row-wise solver of the two subproblems."""

    def step(self, X: SymmetricMatrix, state: State) -> None:
        gram_V = state.known_gram_V(X.threads)
        state.gram_U = None
        state.product = X.update(
            self.inner, state.U, state.V, gram_V, state.penalty, out=state.product
        )
        gram_U = state.known_gram_U(X.threads)
        state.gram_V = None
        # what is left in `product` is X U for the new U: the fitting error costs no product
        state.product = X.update(
            self.inner, state.V, state.U, gram_U, state.penalty, out=state.product
        )
