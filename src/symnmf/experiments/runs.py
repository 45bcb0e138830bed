"""What the tasks left, for the tables, the figures and the claims to read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from symnmf.archives import write_atomically
from symnmf.experiments.tasks import Problem, Record, Task, load

OURS = ("symanls", "symhals", "a-symhals")
OTHERS = ("admm", "tsvd", "beta-snmf", "pgd")
METHODS = OURS + OTHERS

LABELS = {
    "symanls": "SymANLS",
    "symhals": "SymHALS",
    "a-symhals": "A-SymHALS",
    "kuang-anls": "Kuang ANLS",
    "admm": "ADMM",
    "tsvd": "tSVD",
    "beta-snmf": "beta-SNMF",
    "pgd": "PGD",
}

Table = dict[str, np.ndarray]

#: Rows of a run in the CSV and points of a curve; the files of the tasks hold all of them.
ROWS_OF_A_RUN = 150


class Absent(LookupError):
    """A run that a claim needs is not among those done."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One run; ``curve["error"]`` is a column."""

    task: Task
    record: Record

    def __getitem__(self, column: str) -> np.ndarray:
        return self.record[column]

    def last(self, column: str = "error") -> float:
        return float(self.record[column][-1])

    def at(self, iteration: float, column: str = "error") -> float:
        """Return the value at the latest recorded iteration up to ``iteration``."""
        index = int(np.searchsorted(self["iteration"], iteration, side="right")) - 1
        return float(self[column][max(index, 0)])

    def reaches(self, level: float, unit: str = "iteration") -> float:
        """Return where the error first is at most ``level``, infinite where it never is."""
        below = np.flatnonzero(self["error"] <= level)
        return float(self[unit][below[0]]) if len(below) else np.inf

    def late_fall(self) -> float:
        """Return by which share the error still fell over the last tenth of the iterations."""
        if str(self.record["status"]) == "converged" or self.last() <= 0:
            return 0.0
        return 1.0 - self.last() / self.at(0.9 * self["iteration"][-1])

    def thinned(self) -> np.ndarray:
        """Return the rows to show: all of the first, then ever wider apart."""
        rows = len(self["iteration"])
        if rows <= ROWS_OF_A_RUN:
            return np.arange(rows)
        even = np.linspace(0, rows - 1, ROWS_OF_A_RUN // 2)
        early = np.geomspace(1, rows, ROWS_OF_A_RUN // 2) - 1
        return np.unique(np.concatenate([even, early]).astype(int))


@dataclass(eq=False)
class Runs:
    """All runs of one experiment."""

    curves: list[Curve] = field(default_factory=list)
    quick: bool = False

    def __post_init__(self) -> None:
        self._index = {(c.task.method, c.task.problem, c.task.seed): c for c in self.curves}
        self.seeds = sorted({curve.task.seed for curve in self.curves})
        self.problems = list(dict.fromkeys(curve.task.problem for curve in self.curves))

    def __iter__(self) -> Iterator[Curve]:
        return iter(self.curves)

    def get(self, method: str, problem: Problem, seed: int) -> Curve:
        try:
            return self._index[method, problem, seed]
        except KeyError:
            raise Absent(f"no run of {LABELS[method]} on {problem} with seed {seed}") from None

    def of(self, methods: Iterable[str], problem: Problem, seed: int) -> dict[str, Curve]:
        return {method: self.get(method, problem, seed) for method in methods}

    @classmethod
    def read(cls, tasks: Iterable[Task], folder: Path, quick: bool) -> Runs:
        """Read what finished tasks left."""
        found = ((task, load(task, folder)) for task in dict.fromkeys(tasks))
        return cls([Curve(task, record) for task, record in found if record is not None], quick)


def histories(runs: Runs, columns: tuple[str, ...]) -> Table:
    """Return a tidy table: one row per recorded iteration (thinned) of every run."""
    parts: dict[str, list[np.ndarray]] = {}
    for curve in runs:
        rows = curve.thinned()
        for name, value in _identity(curve).items():
            parts.setdefault(name, []).append(np.full(len(rows), value))
        for column in columns:
            parts.setdefault(column, []).append(curve[column][rows])
    return {name: np.concatenate(values) for name, values in parts.items()}


def endings(runs: Runs, columns: tuple[str, ...]) -> Table:
    """Return a tidy table: one row per run, with where and how it ended."""
    rows = [
        _identity(curve)
        | {"status": str(curve["status"]), "iterations": int(curve["iteration"][-1])}
        | {column: curve.last(column) for column in columns}
        for curve in runs
    ]
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else {})}


def _identity(curve: Curve) -> dict[str, str | int | float]:
    problem, task = curve.task.problem, curve.task
    where: dict[str, str | int | float] = (
        {"dataset": problem.dataset}
        if problem.dataset
        else {"n": problem.n, "rank": problem.rank, "noise": problem.noise, "kind": problem.kind}
    )
    return {"method": task.method, **where, "seed": task.seed}


def write_csv(table: Table, path: Path) -> None:
    """Write a table as comma-separated text, every number with all its digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    content = text.getvalue().encode()
    write_atomically(path, lambda stream: stream.write(content))
