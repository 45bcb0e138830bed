"""Figure 2: the penalised objective against iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from symnmf.experiments import synthetic
from symnmf.experiments.checks import listed
from symnmf.experiments.claims import Check, Claim, Outcome
from symnmf.experiments.drawing import curves, panels, shared_legend
from symnmf.experiments.experiment import Experiment
from symnmf.experiments.runs import LABELS, OURS, Runs, Table, histories
from symnmf.experiments.synthetic import R20, R20_NOISY
from symnmf.experiments.tasks import Problem, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBJECTIVE = r"$\frac{1}{2}\|X - UV^T\|_F^2 + \frac{\lambda}{2}\|U - V\|_F^2$"


def plan(quick: bool, seeds: Sequence[int]) -> list[Task]:
    return synthetic.tasks(OURS, (R20, R20_NOISY), quick, seeds)


def table(runs: Runs) -> Table:
    return histories(runs, ("iteration", "objective", "penalty"))


def draw(runs: Runs) -> Figure:
    figure, axes = panels(1, 2)
    for ax, problem in zip(axes, (R20, R20_NOISY), strict=True):
        title = synthetic.described(problem)
        curves(ax, runs, problem, OURS, "objective", title=title, ylabel=OBJECTIVE)
    shared_legend(figure, axes)
    return figure


def _converges(method: str, problem: Problem) -> Check:
    def check(runs: Runs, seed: int) -> Outcome:
        curve = runs.get(method, problem, seed)
        end = curve.last("objective")
        before = curve.at(0.9 * curve["iteration"][-1], "objective")
        share, fall = end / curve["objective"][0], 1 - end / before
        near, rest = (1e-3, 0.05) if runs.quick else (1e-5, 0.01)
        figures = f"{share:.2g} of the start's; it fell by {100 * fall:.2g} % over the last tenth"
        return Outcome(fall <= rest if problem.noise else share <= near, figures)

    return check


def _zero(method: str) -> Check:
    def check(runs: Runs, seed: int) -> Outcome:
        curve = runs.get(method, R20, seed)
        # E_0 ||X||^2 / 2 is the objective of the start, where U = V
        relative = curve.last("objective") / (curve["objective"][0] / curve["error"][0])
        limit = 1e-4 if runs.quick else 1e-6
        return Outcome(relative <= limit, f"final objective over ||X||^2 / 2: {relative:.3g}")

    return check


def _linear(method: str) -> Check:
    def check(runs: Runs, seed: int) -> Outcome:
        curve = runs.get(method, R20, seed)
        k, objective = curve["iteration"], curve["objective"]
        late = (k >= k[-1] / 2) & (objective > 1e-22 * objective[0])
        if late.sum() < 10:  # down to rounding before half of the iterations: take what there is
            late = (k > 0) & (objective > 1e-22 * objective[0])
        log = np.log(objective[late])
        linear = np.corrcoef(k[late], log)[0, 1] ** 2
        power = np.corrcoef(np.log(k[late]), log)[0, 1] ** 2
        fall = objective[late][0] / objective[late][-1]
        return Outcome(
            bool(linear >= 0.98 and linear > power and fall >= 1.5),
            f"log objective over iterations {k[late][0]} to {k[late][-1]}: R^2 = {linear:.4f} "
            f"against k, {power:.4f} against log k; it fell {fall:.3g} times",
        )

    return check


def _faster(problem: Problem) -> Check:
    def check(runs: Runs, seed: int) -> Outcome:
        pair = runs.of(("symhals", "a-symhals"), problem, seed)
        if problem.noise:
            goal = 1.5 * min(curve.last("objective") for curve in pair.values())
        else:
            goal = (1e-4 if runs.quick else 1e-5) * pair["symhals"]["objective"][0]
        when = {}
        for method, curve in pair.items():
            below = np.flatnonzero(curve["objective"] <= goal)
            when[method] = float(curve["iteration"][below[0]]) if len(below) else np.inf
        return Outcome(
            when["a-symhals"] < when["symhals"],
            f"iterations to objective {goal:.3g}: {listed(when, '.4g')}",
        )

    return check


CONVERGES = (
    "our algorithms converge in both noise-free (sigma = 0) and noisy (sigma = 0.1) cases, which "
    "corroborates our theoretical results."
)
FASTER = (
    "A-SymHALS converges slightly faster than SymHALS, which supports the acceleration technique "
    "used in A-SymHALS."
)
LINEAR = (
    "in the noise-free case, all the three proposed algorithms have a linear rate of convergence"
)
ZERO = (
    "and can find a nearly globally optimal minimizer [...] (asserted by achieving nearly zero "
    "function value) even if the problem is nonconvex."
)

CLAIMS = (
    [
        Claim(
            f"figure2-converges-{method}-{problem.noise:g}",
            CONVERGES,
            f"{LABELS[method]}, sigma = {problem.noise:g}: the objective "
            f"{'has come to rest' if problem.noise else 'is near zero'} by the last iteration.",
            "Rest: it fell by at most 1 % over the last tenth of the iterations (5 % in the quick "
            "run)."
            if problem.noise
            else "Near zero: 1e-5 of the start's (1e-3 in the quick run).",
            _converges(method, problem),
        )
        for problem in (R20, R20_NOISY)
        for method in OURS
    ]
    + [
        Claim(
            f"figure2-faster-{problem.noise:g}",
            FASTER,
            f"sigma = {problem.noise:g}: iterations until the objective is at the level.",
            "The level: without noise 1e-5 of the start's (1e-4 in the quick run), under noise 1.5 "
            "times the lesser of the two final values.",
            _faster(problem),
        )
        for problem in (R20, R20_NOISY)
    ]
    + [
        Claim(
            f"figure2-linear-{method}",
            LINEAR,
            f"{LABELS[method]}, sigma = 0: the logarithm of the objective is a straight falling "
            f"line in k over the second half of the iterations.",
            "Straight: R^2 of at least 0.98 against k and above that against log k (a power law), "
            "with a fall by at least a factor of 1.5.",
            _linear(method),
        )
        for method in OURS
    ]
    + [
        Claim(
            f"figure2-zero-{method}",
            ZERO,
            f"{LABELS[method]}, sigma = 0: the final objective relative to ||X||_F^2 / 2.",
            "Nearly zero: at most 1e-6 (1e-4 in the quick run).",
            _zero(method),
        )
        for method in OURS
    ]
)


def settings(quick: bool) -> str:
    return (
        f"n = 300, r = 20, sigma = 0 and 0.1, uniform start, "
        f"{synthetic.iterations(quick)} iterations. The paper does not say how many it shows."
    )


EXPERIMENT = Experiment(
    "figure2",
    "Convergence of the penalised objective",
    settings,
    plan,
    (3, 2),
    table,
    draw,
    CLAIMS,
)
