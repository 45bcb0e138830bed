"""Exact coordinate descent (Vandaele, Gillis, Lei, Zhong and Dhillon, 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from symnmf.objectives import Objective
from symnmf.solvers.solver import Solver
from symnmf.state import State


@dataclass(frozen=True)
class CoordinateDescent(Solver):
    """One entry of U at a time, each put exactly where f is smallest; one step is one sweep.

    f along an entry is a quartic, whose minimum over x >= 0 is a root of a cubic or zero. Entries
    are visited row by row, so a row of X U is needed just once per sweep, when its turn comes:
    an entry costs O(r) and a row its r products with U.
    """

    name: ClassVar[str] = "cd"
    summary: ClassVar[str] = "exact coordinate descent, entry by entry (Vandaele et al. 2016)"
    needs: ClassVar[str] = "the entries of X, row by row"
    cost: ClassVar[str] = "the flops of 1 product and at most 4nr^2, on one thread"
    requires: ClassVar[tuple[str, ...]] = ("plain_misfit", "entries")

    def step(self, f: Objective, state: State) -> None:
        assert f.entries is not None
        state.moved(f.entries.coordinate_sweep(state.U.values, state.U.gram.copy()))
