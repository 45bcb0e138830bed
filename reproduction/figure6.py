"""Figure 6: uniform and lognormal noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reproduction import synthetic
from reproduction.checks import LEVEL_TEXT, first_to_levels, together
from reproduction.claims import Claim
from reproduction.drawing import curves, panels, shared_legend
from reproduction.experiment import Experiment
from reproduction.runs import METHODS, OTHERS, OURS, Runs, Table, histories
from reproduction.tasks import Instance, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITERATIONS = (4000, 600)
PROBLEMS = tuple(
    Instance(300, rank, 0.1, kind) for rank in (20, 40) for kind in ("uniform", "lognormal")
)


def plan(quick: bool, seeds: Sequence[int]) -> list[Task]:
    return [
        Task(method, problem, seed, ITERATIONS[quick], 5)
        for problem, seed in synthetic.both_ways(PROBLEMS, seeds)
        for method in METHODS
    ]


def table(runs: Runs) -> Table:
    return histories(runs, ("iteration", "error"))


def draw(runs: Runs) -> Figure:
    figure, axes = panels(2, 2)
    for number, (ax, problem) in enumerate(zip(axes, PROBLEMS, strict=True), 1):
        title = f"(a{number}) r = {problem.rank}, {problem.kind} noise"
        curves(ax, runs, problem, METHODS, title=title)
    shared_legend(figure, axes)
    return figure


CLAIMS = [
    Claim(
        "figure6-better",
        "We can observe similar phenomena that our proposed algorithms perform better than others "
        "in these cases.",
        f"Each of the three needs no more iterations than each of the other four. {LEVEL_TEXT}",
        together(
            *(first_to_levels(OURS, OTHERS, p, f"r = {p.rank}, {p.kind} noise") for p in PROBLEMS)
        ),
    )
]


def settings(quick: bool) -> str:
    return (
        f"n = 300, r = 20 and 40, sigma = 0.1, {ITERATIONS[quick]} iterations, uniform start. The "
        f"paper names the families only: here the noise is U(0, 1) and exp N(0, 1)."
    )


EXPERIMENT = Experiment(
    "figure6",
    "Other kinds of noise",
    settings,
    plan,
    (2, 1),
    table,
    draw,
    CLAIMS,
)
