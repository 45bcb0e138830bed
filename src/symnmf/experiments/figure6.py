"""Figure 6: uniform and lognormal noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symnmf.experiments.checks import (
    LEVEL_TEXT,
    SAME,
    STUCK_TEXT,
    ends_equal,
    ordered_before,
    stuck_higher,
)
from symnmf.experiments.claims import Claim
from symnmf.experiments.drawing import curves, panels, shared_legend
from symnmf.experiments.experiment import Experiment
from symnmf.experiments.figure4 import AGREE
from symnmf.experiments.runs import LABELS, METHODS, OTHERS, OURS, Runs, Table, histories
from symnmf.experiments.tasks import Problem, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ITERATIONS = (4000, 1000)
PROBLEMS = tuple(
    Problem(300, rank, 0.1, kind) for rank in (20, 40) for kind in ("uniform", "lognormal")
)


def plan(quick: bool, seeds: Sequence[int]) -> list[Task]:
    return [
        Task(method, problem, seed, ITERATIONS[quick], 5)
        for problem in PROBLEMS
        for method in METHODS
        for seed in seeds
    ]


def table(runs: Runs) -> Table:
    return histories(runs, ("iteration", "seconds", "error"))


def draw(runs: Runs) -> Figure:
    figure, axes = panels(1, 4)
    for number, (ax, problem) in enumerate(zip(axes, PROBLEMS, strict=True), 1):
        title = f"(a{number}) r = {problem.rank}, {problem.kind} noise"
        curves(ax, runs, problem, METHODS, title=title)
    shared_legend(figure, axes)
    return figure


BETTER = (
    "We can observe similar phenomena that our proposed algorithms perform better than others in "
    "these cases."
)


def _claims() -> list[Claim]:
    claims = []
    for problem in PROBLEMS:
        where, key = f"r = {problem.rank}, {problem.kind} noise", f"{problem.kind}-{problem.rank}"
        claims += [
            Claim(
                f"figure6-better-{key}",
                BETTER,
                f"{where}: each of the three gets to the level in no more iterations than each of "
                f"the other four.",
                LEVEL_TEXT,
                ordered_before(OURS, OTHERS, problem),
            ),
            Claim(
                f"figure6-same-{key}",
                BETTER,
                f"{where}: as with Gaussian noise, the three, ADMM and PGD end at almost the same "
                f"E.",
                f"Almost the same: within {100 * (SAME - 1):.0f} %.",
                ends_equal(AGREE, problem),
            ),
        ]
        claims += [
            Claim(
                f"figure6-stuck-{method}-{key}",
                BETTER,
                f"{LABELS[method]}, {where}: as with Gaussian noise, it has come to rest at a "
                f"larger E than the three.",
                STUCK_TEXT,
                stuck_higher(method, problem),
            )
            for method in ("tsvd", "beta-snmf")
        ]
    return claims


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
    (3, 2),
    table,
    draw,
    _claims(),
)
