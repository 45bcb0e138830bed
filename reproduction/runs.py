"""What the tasks left, for the tables, the figures and the claims to read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reproduction.tasks import Instance, Record, Task, load
from symnmf.outputs import write_atomically

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

SETTLED = 0.01  # a run has come to rest when its error fell by at most 1 % over the last tenth

#: Rows of a run in the CSV and points of a curve; the files of the tasks hold all of them.
ROWS_OF_A_RUN = 150


class Absent(LookupError):
    """A run that a claim needs is not among those done."""


class Needs(NamedTuple):
    """What a run needs to get to a level: ``value`` if ``known``, and more than that if not.

    A run that is at rest above the level needs infinitely much, known; one that was still falling
    when it ended needs more than it had.
    """

    value: float
    known: bool

    def no_more_than(self, other: Needs) -> bool | None:
        """Whether this is at most ``other``; None where the runs do not say."""
        if self.known and other.known:
            return None if self.value == other.value == np.inf else self.value <= other.value
        if self.known:
            return True if self.value <= other.value else None
        if other.known and other.value < self.value:
            return False
        return None

    def __str__(self) -> str:
        if not self.known:
            return f"> {self.value:.4g}"
        return f"{self.value:.4g}" if np.isfinite(self.value) else "never"


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

    def needs(self, level: float, unit: str = "iteration", column: str = "error") -> Needs:
        """Return where a column first is at most ``level``."""
        below = np.flatnonzero(self[column] <= level)
        if len(below):
            return Needs(float(self[unit][below[0]]), True)
        return Needs(np.inf, True) if self.settled else Needs(self.last(unit), False)

    def late_fall(self) -> float:
        """Return by which share the error still fell over the last tenth of the iterations."""
        if str(self.record["status"]) in ("converged", "at rest") or self.last() <= 0:
            return 0.0
        return 1.0 - self.last() / self.at(0.9 * self["iteration"][-1])

    @property
    def settled(self) -> bool:
        """Whether the error has come to rest."""
        return self.late_fall() <= SETTLED

    def thinned(self) -> np.ndarray:
        """Return the rows to show: all of the first, then ever wider apart."""
        rows = len(self["iteration"])
        if rows <= ROWS_OF_A_RUN:
            return np.arange(rows)
        even = np.linspace(0, rows - 1, ROWS_OF_A_RUN // 2)
        early = np.geomspace(1, rows, ROWS_OF_A_RUN // 2) - 1
        return np.unique(np.concatenate([even, early]).astype(int))


def with_median_clock(curves: Iterable[Curve]) -> list[Curve]:
    """Return one curve for all repetitions of a run: the median of seconds, and all ``spent``."""
    groups: dict[Task, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(replace(curve.task, repetition=0), []).append(curve)
    merged = []
    for task, group in groups.items():
        clocks = [curve["seconds"] for curve in group if "seconds" in curve.record]
        seconds = {"seconds": np.median(clocks, axis=0)} if clocks else {}
        spent = np.array([clock[-1] for clock in clocks])
        merged.append(Curve(task, {**group[0].record, **seconds, "spent": spent}))
    return merged


@dataclass(eq=False)
class Runs:
    """All runs of one experiment.

    ``get`` and ``of`` give the run with the paper's settings and the fewest iterations, which is
    the one a figure shows; ``longest`` the one with the most.
    """

    curves: list[Curve] = field(default_factory=list)
    quick: bool = False

    def __post_init__(self) -> None:
        ordered = sorted(self.curves, key=lambda curve: curve.task.max_iter)
        paper = [curve for curve in ordered if curve.task.setting == "paper"]
        self._longest = {_key(curve): curve for curve in paper}
        self._index = {_key(curve): curve for curve in reversed(paper)}
        self.seeds = sorted({curve.task.seed for curve in paper})
        self.problems = list(dict.fromkeys(curve.task.problem for curve in self.curves))

    def __iter__(self) -> Iterator[Curve]:
        return iter(self.curves)

    def get(self, method: str, problem: Instance, seed: int) -> Curve:
        try:
            return self._index[method, problem, seed]
        except KeyError:
            raise Absent(f"no run of {LABELS[method]} on {problem} with seed {seed}") from None

    def of(self, methods: Iterable[str], problem: Instance, seed: int) -> dict[str, Curve]:
        return {method: self.get(method, problem, seed) for method in methods}

    def longest(self, methods: Iterable[str], problem: Instance, seed: int) -> dict[str, Curve]:
        self.of(methods := tuple(methods), problem, seed)
        return {method: self._longest[method, problem, seed] for method in methods}

    def shown(self) -> Runs:
        """Return the runs that figures show: the paper's settings and iterations."""
        return Runs([c for c in self.curves if self._index.get(_key(c)) is c], self.quick)

    def literal(self) -> Runs:
        """Return the runs on data as the paper writes them."""
        return Runs([c for c in self.curves if not c.task.problem.mirrored], self.quick)

    def mirrored(self) -> Runs:
        """Return the runs on mirrored noise, as if their problems were the literal ones.

        Runs without noise, of the same seeds, come along, since they are the same either way.
        """
        seeds = {c.task.seed for c in self.curves if c.task.problem.mirrored}
        kept = []
        for curve in self.curves:
            problem = curve.task.problem
            if problem.mirrored or (curve.task.seed in seeds and not problem.noise):
                task = replace(curve.task, problem=replace(problem, mirrored=False))
                kept.append(Curve(task, curve.record))
        return Runs(kept if seeds else [], self.quick)

    @classmethod
    def read(cls, tasks: Iterable[Task], folder: Path, quick: bool) -> Runs:
        """Read what finished tasks left."""
        found = ((task, load(task, folder)) for task in dict.fromkeys(tasks))
        curves = [Curve(task, record) for task, record in found if record is not None]
        return cls(with_median_clock(curves), quick)


def _key(curve: Curve) -> tuple[str, Instance, int]:
    return curve.task.method, curve.task.problem, curve.task.seed


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
        else {
            "n": problem.n,
            "rank": problem.rank,
            "noise": problem.noise,
            "kind": problem.kind,
            "mirrored": str(problem.mirrored),
        }
    )
    return {"method": task.method, **where, "seed": task.seed, "setting": task.setting}


def write_csv(table: Table, path: Path) -> None:
    """Write a table as comma-separated text, every number with all its digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    content = text.getvalue().encode()
    write_atomically(path, lambda stream: stream.write(content))
