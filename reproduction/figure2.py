"""Figure 2: the penalised objective against iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reproduction import synthetic
from reproduction.checks import LEVELS, REST_TEXT, listed
from reproduction.claims import Claim, Part
from reproduction.drawing import curves, panels, shared_legend
from reproduction.experiment import Experiment
from reproduction.runs import LABELS, OURS, Curve, Runs, Table, histories
from reproduction.synthetic import R20, R20_NOISY
from reproduction.tasks import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBJECTIVE = r"$\frac{1}{2}\|X - UV^T\|_F^2 + \frac{\lambda}{2}\|U - V\|_F^2$"
PROBLEMS = (R20, R20_NOISY)
SAME_FIT = 1e-3  # two R^2 that differ by less do not tell a straight line from a power law


def plan(quick: bool, seeds: Sequence[int]) -> list[Task]:
    return synthetic.tasks(OURS, PROBLEMS, quick, seeds)


def table(runs: Runs) -> Table:
    return histories(runs, ("iteration", "objective", "coupling"))


def draw(runs: Runs) -> Figure:
    figure, axes = panels(2, 1)
    for number, (ax, problem) in enumerate(zip(axes, PROBLEMS, strict=True), 1):
        title = f"(a{number}) {synthetic.described(problem)}"
        curves(ax, runs, problem, OURS, "objective", title=title, ylabel=OBJECTIVE)
    shared_legend(figure, axes)
    return figure


def _converges(runs: Runs, seed: int) -> list[Part]:
    near = 1e-3 if runs.quick else 1e-5
    parts = []
    for method, curve in runs.of(OURS, R20, seed).items():
        share = curve.last("objective") / curve["objective"][0]
        holds = None if share > near and not curve.settled else share <= near
        figures = f"the objective at the end is {share:.2g} of the start's"
        parts.append(Part(f"{LABELS[method]}, sigma = 0", holds, figures))
    for method, curve in runs.of(OURS, R20_NOISY, seed).items():
        fall = 1 - curve.last("objective") / curve.at(0.9 * curve["iteration"][-1], "objective")
        figures = f"the objective fell by {100 * fall:.2g} % over the last tenth"
        holds = None if fall > 0.01 else bool(fall >= -0.01)
        parts.append(Part(f"{LABELS[method]}, sigma = 0.1", holds, figures))
    return parts


def _faster(runs: Runs, seed: int) -> list[Part]:
    parts = []
    for problem in PROBLEMS:
        pair = runs.of(("symhals", "a-symhals"), problem, seed)
        start = pair["symhals"]["objective"][0]
        least = min(curve.last("objective") for curve in pair.values())
        goals = {f"{level:.0e} of the start's": level * start for level in LEVELS}
        if problem.noise:
            goals["1.5 x the lesser end"] = 1.5 * least
        for name, goal in goals.items():
            if goal < least:
                continue
            need = {m: curve.needs(goal, column="objective") for m, curve in pair.items()}
            sooner = need["a-symhals"].no_more_than(need["symhals"])
            holds = sooner and need["a-symhals"].value != need["symhals"].value
            what = f"sigma = {problem.noise:g}, {name.replace('e-0', 'e-')}"
            parts.append(Part(what, holds, f"iterations: {listed(need)}"))
    return parts


def _late(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Return the second half of a run, or all of it where that is down to rounding."""
    k, objective = curve["iteration"], curve["objective"]
    alive = objective > 1e-22 * objective[0]
    late = (k >= k[-1] / 2) & alive
    if late.sum() < 10:
        late = (k > 0) & alive
    return k[late], objective[late]


def _linear_to_zero(runs: Runs, seed: int) -> list[Part]:
    limit = 1e-4 if runs.quick else 1e-6
    linear_parts, zero_parts = [], []
    for method, curve in runs.of(OURS, R20, seed).items():
        k, objective = _late(curve)
        log = np.log(objective)
        moves = np.ptp(log) > 0
        linear = np.corrcoef(k, log)[0, 1] ** 2 if moves else 0.0
        power = np.corrcoef(np.log(k), log)[0, 1] ** 2 if moves else 0.0
        fall = objective[0] / objective[-1]
        figures = f"R^2 {linear:.4f} against k, {power:.4f} against log k; fell {fall:.3g} times"
        close = linear >= 0.98 and abs(linear - power) < SAME_FIT
        straight = None if close else bool(linear >= 0.98 and linear > power and fall >= 1.5)
        linear_parts.append(Part(f"{LABELS[method]}: linear rate", straight, figures))
        # E_0 ||X||^2 / 2 is the objective of the start, where U = V
        relative = curve.last("objective") / (curve["objective"][0] / curve["error"][0])
        holds = None if relative > limit and not curve.settled else relative <= limit
        figures = f"final objective over ||X||^2 / 2: {relative:.3g}"
        zero_parts.append(Part(f"{LABELS[method]}: nearly zero", holds, figures))
    return linear_parts + zero_parts


CLAIMS = [
    Claim(
        "figure2-converges",
        "One can observe that our algorithms converge in both noise-free (sigma = 0) and noisy "
        "(sigma = 0.1) cases, which corroborates our theoretical results.",
        "Without noise the objective falls to 1e-5 of the start's (1e-3 in the quick run); with "
        "noise it changed by at most 1 % over the last tenth of the iterations. Undecided where it "
        "was still falling.",
        _converges,
    ),
    Claim(
        "figure2-faster",
        "It is also worth noting that A-SymHALS converges slightly faster than SymHALS, which "
        "supports the acceleration technique used in A-SymHALS.",
        "A-SymHALS gets to each level of the objective in fewer iterations.",
        _faster,
    ),
    Claim(
        "figure2-linear",
        "Interestingly, in the noise-free case, all the three proposed algorithms have a linear "
        "rate of convergence and can find a nearly globally optimal minimizer of problem (3) "
        "(asserted by achieving nearly zero function value) even if the problem is nonconvex.",
        "Linear: over the second half of the run the logarithm of the objective is a straight line "
        "in k (R^2 of at least 0.98, and more than against log k; undecided where the two differ "
        "by less than 0.001). Nearly zero: at most 1e-6 of "
        "||X||^2 / 2 (1e-4 in the quick run).",
        _linear_to_zero,
    ),
]


def settings(quick: bool) -> str:
    return (
        f"n = 300, r = 20, sigma = 0 and 0.1, uniform start, {synthetic.iterations(quick)} "
        f"iterations. The paper does not say how many it shows. {REST_TEXT}"
    )


EXPERIMENT = Experiment(
    "figure2",
    "Convergence of the penalised objective",
    settings,
    plan,
    (3, 1),
    table,
    draw,
    CLAIMS,
)
