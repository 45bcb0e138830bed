"""What one figure or table of the paper is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reproduction.claims import Claim
from reproduction.runs import Runs, Table
from reproduction.tasks import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Experiment:
    """A figure or table: its runs, its table, its picture and its claims.

    Attributes
    ----------
    name, title : str
    settings : callable
        From ``quick`` to a sentence or two on what is run and what differs from the paper.
    plan : callable
        From ``quick`` and a list of seeds to the tasks.
    seeds : (int, int)
        How many seeds by default: full run, quick run.
    table, draw : callable
        From the runs to a tidy table and to a picture.
    claims : sequence of Claim
    needs : tuple of str
        Data sets; a task on one that is absent is left out.
    compared : callable or None
        From the runs to a table for the report itself (rows of cells, the first a header).
    """

    name: str
    title: str
    settings: Callable[[bool], str]
    plan: Callable[[bool, Sequence[int]], list[Task]]
    seeds: tuple[int, int]
    table: Callable[[Runs], Table]
    draw: Callable[[Runs], Figure]
    claims: Sequence[Claim]
    needs: tuple[str, ...] = ()
    compared: Callable[[Runs], list[list[str]]] | None = None

    def seed_list(self, quick: bool, seeds: int | None = None) -> list[int]:
        """Return the seeds 0, 1, ..."""
        return list(range(self.seeds[1 if quick else 0] if seeds is None else seeds))
