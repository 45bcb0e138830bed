"""Figure 1: ||U_k - V_k||_F^2 and lambda_k against iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reproduction.claims import Claim, Part
from reproduction.drawing import curves, panels, shared_legend
from reproduction.experiment import Experiment
from reproduction.runs import LABELS, OURS, Curve, Runs, Table, histories
from reproduction.tasks import Instance, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEM = Instance(50, 5, 0.0)
ITERATIONS = 3000


def plan(quick: bool, seeds: Sequence[int]) -> list[Task]:
    return [Task(method, PROBLEM, seed, ITERATIONS, 1) for method in OURS for seed in seeds]


def table(runs: Runs) -> Table:
    rows = histories(runs, ("iteration", "consensus", "coupling", "error"))
    if rows:
        rows["consensus_squared"] = rows.pop("consensus") ** 2
    return rows


def draw(runs: Runs) -> Figure:
    squared = Runs([Curve(c.task, {**c.record, "squared": c["consensus"] ** 2}) for c in runs])
    figure, axes = panels(2, 1)
    labels = (r"$\|U_k - V_k\|_F^2$", r"$\lambda_k$")
    for number, (ax, column) in enumerate(zip(axes, ("squared", "coupling"), strict=True)):
        title = f"(a{number + 1}) n = 50, r = 5, σ = 0"
        curves(ax, squared, PROBLEM, OURS, column, title=title, ylabel=labels[number])
    axes[1].set_xscale("symlog", linthresh=10)  # lambda does all it does within 100 iterations
    shared_legend(figure, axes)
    return figure


def _check(runs: Runs, seed: int) -> list[Part]:
    parts = []
    for method, curve in runs.of(OURS, PROBLEM, seed).items():
        gap = curve["consensus"] ** 2
        share = gap[-1] / gap.max()
        half, end = curve.at(curve["iteration"][-1] // 2, "coupling"), curve.last("coupling")
        parts += [
            Part(
                f"{LABELS[method]}: ||U - V||^2 to 0",
                share <= 1e-8,
                f"from at most {gap.max():.3g} to {gap[-1]:.3g}",
            ),
            Part(
                f"{LABELS[method]}: lambda to a finite value",
                end <= 1.001 * half,
                f"{half:.6g} halfway, {end:.6g} at the end",
            ),
        ]
    return parts


CLAIMS = [
    Claim(
        "figure1-converges",
        "One can observe that the term ||U_k - V_k||_F^2 converges to 0 and lambda_k converges to "
        "a finite value for our proposed algorithms.",
        f"After {ITERATIONS} iterations ||U - V||^2 is at most 1e-8 of its greatest value, and "
        "lambda grew by at most 0.1 % over the second half.",
        _check,
    )
]


def settings(quick: bool) -> str:
    return (
        f"n = 50, r = 5, sigma = 0, lambda_0 = 1e-5, uniform start, {ITERATIONS} iterations. The "
        f"paper does not say how many it shows."
    )


EXPERIMENT = Experiment(
    "figure1",
    "The coupling term and the coupling parameter",
    settings,
    plan,
    (3, 2),
    table,
    draw,
    CLAIMS,
)
