"""SymHALS and A-SymHALS: the paper's Algorithms 2 and 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from symnmf.arguments import check_ranges
from symnmf.ops import Hals
from symnmf.solvers.solver import SplitSolver


@dataclass(frozen=True)
class SymHALS(SplitSolver):
    """One sweep over the columns of U, then one over those of V."""

    name: ClassVar[str] = "symhals"
    summary: ClassVar[str] = "one column at a time (the paper's Algorithm 2)"
    cost: ClassVar[str] = "2 products, 2 sweeps of 2nr^2"

    rows = Hals(1)


@dataclass(frozen=True)
class ASymHALS(SplitSolver):
    """L sweeps over each factor before the other one moves.

    Parameters
    ----------
    inner_sweeps : int
        L of Algorithm 3; the paper uses 2.
    """

    name: ClassVar[str] = "a-symhals"
    summary: ClassVar[str] = "several sweeps over each factor (the paper's Algorithm 3)"
    cost: ClassVar[str] = "2 products, 2L sweeps of 2nr^2"

    inner_sweeps: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, inner_sweeps=(1, 1e6))

    @property
    def rows(self) -> Hals:
        return Hals(self.inner_sweeps)
