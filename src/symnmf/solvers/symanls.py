"""SymANLS: the paper's Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from symnmf.ops import Nnls
from symnmf.solvers.solver import SplitSolver


@dataclass(frozen=True)
class SymANLS(SplitSolver):
    """Both subproblems solved exactly, by block principal pivoting."""

    name: ClassVar[str] = "symanls"
    summary: ClassVar[str] = "alternating exact nonnegative least squares (the paper's Algorithm 1)"
    cost: ClassVar[str] = "2 products, 2n small nonnegative least squares of size r"
    requires: ClassVar[tuple[str, ...]] = ("split_step", "exact_rows")

    rows = Nnls()
