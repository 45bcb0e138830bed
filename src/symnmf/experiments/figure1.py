"""Figure 1: ||U_k - V_k||_F^2 and lambda_k against iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symnmf.experiments.claims import Check, Claim, Outcome
from symnmf.experiments.drawing import curves, panels, shared_legend
from symnmf.experiments.experiment import Experiment
from symnmf.experiments.runs import LABELS, OURS, Curve, Runs, Table, histories
from symnmf.experiments.tasks import Problem, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEM = Problem(50, 5, 0.0)
ITERATIONS = 3000


def plan(quick: bool, seeds: Sequence[int]) -> list[Task]:
    return [Task(method, PROBLEM, seed, ITERATIONS, 1) for method in OURS for seed in seeds]


def table(runs: Runs) -> Table:
    rows = histories(runs, ("iteration", "consensus", "penalty", "error"))
    if rows:
        rows["consensus_squared"] = rows.pop("consensus") ** 2
    return rows


def draw(runs: Runs) -> Figure:
    squared = Runs([Curve(c.task, {**c.record, "squared": c["consensus"] ** 2}) for c in runs])
    figure, axes = panels(1, 2)
    labels = (r"$\|U_k - V_k\|_F^2$", r"$\lambda_k$")
    for ax, column, label in zip(axes, ("squared", "penalty"), labels, strict=True):
        curves(ax, squared, PROBLEM, OURS, column, title="n = 50, r = 5, σ = 0", ylabel=label)
    axes[1].set_xscale("symlog", linthresh=10)  # lambda does all it does within 100 iterations
    shared_legend(figure, axes)
    return figure


def _gap(method: str) -> Check:
    def check(runs: Runs, seed: int) -> Outcome:
        gap = runs.get(method, PROBLEM, seed)["consensus"] ** 2
        share = gap[-1] / gap.max()
        return Outcome(
            share <= 1e-8, f"from at most {gap.max():.3g} to {gap[-1]:.3g}, {share:.2g} of it"
        )

    return check


def _finite(method: str) -> Check:
    def check(runs: Runs, seed: int) -> Outcome:
        curve = runs.get(method, PROBLEM, seed)
        half, end = curve.at(ITERATIONS // 2, "penalty"), curve.last("penalty")
        return Outcome(
            end <= 1.001 * half, f"lambda {half:.6g} after {ITERATIONS // 2}, {end:.6g} at the end"
        )

    return check


GAP = "One can observe that the term ||U_k - V_k||_F^2 converges to 0"
FINITE = "and lambda_k converges to a finite value for our proposed algorithms."

CLAIMS = [
    Claim(
        f"figure1-gap-{method}",
        GAP,
        f"{LABELS[method]}: ||U_k - V_k||_F^2 after {ITERATIONS} iterations, as a share of its "
        f"greatest value.",
        "Zero: at most 1e-8 of the greatest value.",
        _gap(method),
    )
    for method in OURS
] + [
    Claim(
        f"figure1-lambda-{method}",
        FINITE,
        f"{LABELS[method]}: lambda_k over the second half of {ITERATIONS} iterations.",
        "Finite: it grows by at most 0.1 %.",
        _finite(method),
    )
    for method in OURS
]


def settings(quick: bool) -> str:
    return (
        f"n = 50, r = 5, sigma = 0, lambda_0 = 1e-5, uniform start, {ITERATIONS} iterations. The "
        f"paper does not say how many it shows."
    )


EXPERIMENT = Experiment(
    "figure1",
    "The penalty term and the penalty parameter",
    settings,
    plan,
    (3, 2),
    table,
    draw,
    CLAIMS,
)
