"""Checks that several claims share. Every threshold here is this library's choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from symnmf.experiments.claims import Check, Outcome
from symnmf.experiments.runs import LABELS, METHODS, OTHERS, OURS, Curve, Runs
from symnmf.experiments.tasks import Problem

SAME = 1.05  # errors within 5 % of each other are "the same"
CLEARLY = 1.01  # an error is lower than another when the other is more than 1 % above it
SETTLED = 0.01  # a run has come to rest when its error fell by at most 1 % over the last tenth
NEAR = 1.5  # under noise a run "gets there" at 1.5 times the least final error of all methods

SAME_TEXT = "The same: within 5 % of each other."
LEVEL_TEXT = (
    "The level: without noise E = 1e-5 (1e-4 in the quick run), under noise 1.5 times the least "
    "final E of all methods."
)


def level(curves: Mapping[str, Curve], problem: Problem, quick: bool) -> float:
    """Return the error at which a run has got there."""
    if problem.noise == 0:
        return 1e-4 if quick else 1e-5
    return NEAR * min(curve.last() for curve in curves.values())


def listed(values: Mapping[str, float], digits: str = ".3g") -> str:
    """Write values with the names of the methods; infinite is never."""
    return ", ".join(
        f"{LABELS[name]} {value:{digits}}" if np.isfinite(value) else f"{LABELS[name]} never"
        for name, value in values.items()
    )


def ordered_before(
    first: Iterable[str], others: Iterable[str], problem: Problem, unit: str = "iteration"
) -> Check:
    """Each of ``first`` gets to the level no later than every one of ``others``."""
    first, others = tuple(first), tuple(others)

    def check(runs: Runs, seed: int) -> Outcome:
        curves = runs.of(dict.fromkeys((*first, *others)), problem, seed)
        goal = level(curves, problem, runs.quick)
        when = {name: curve.reaches(goal, unit) for name, curve in curves.items()}
        slowest = max(when[name] for name in first)
        holds = np.isfinite(slowest) and slowest <= min(when[name] for name in others)
        what = "seconds" if unit == "seconds" else "iterations"
        return Outcome(bool(holds), f"{what} to E = {goal:.2g}: {listed(when, '.4g')}")

    return check


def ends_equal(methods: Iterable[str], problem: Problem, factor: float = SAME) -> Check:
    """The final errors of ``methods`` are within ``factor``."""
    methods = tuple(methods)

    def check(runs: Runs, seed: int) -> Outcome:
        final = {name: curve.last() for name, curve in runs.of(methods, problem, seed).items()}
        holds = max(final.values()) <= factor * min(final.values())
        return Outcome(holds, f"final E: {listed(final, '.4g')}")

    return check


def stuck_higher(method: str, problem: Problem) -> Check:
    """``method`` has come to rest at an error above that of all three of the paper's."""

    def check(runs: Runs, seed: int) -> Outcome:
        ours = max(curve.last() for curve in runs.of(OURS, problem, seed).values())
        curve = runs.get(method, problem, seed)
        fall = curve.late_fall()
        figures = (
            f"final E {curve.last():.4g} against {ours:.4g} of the worst of the three; it still "
            f"fell by {100 * fall:.2g} % over the last tenth of {int(curve['iteration'][-1])} "
            f"iterations"
        )
        return Outcome(curve.last() > SAME * ours and fall <= SETTLED, figures)

    return check


STUCK_TEXT = (
    "Larger: more than 5 % above the worst of the three. Stuck: E fell by at most 1 % over the "
    "last tenth of the iterations."
)


def better_almost_everywhere(
    better: Iterable[str], worse: Iterable[str], problems: Iterable[Problem], all_but: int
) -> Check:
    """Every one of ``better`` ends clearly below every one of ``worse``, but for some settings."""
    better, worse, problems = tuple(better), tuple(worse), tuple(problems)

    def check(runs: Runs, seed: int) -> Outcome:
        present = [problem for problem in problems if problem in runs.problems]
        lower = equal = 0
        for problem in present:
            highest = max(c.last() for c in runs.of(better, problem, seed).values())
            lowest = min(c.last() for c in runs.of(worse, problem, seed).values())
            tiny = 1e-12  # below this, errors are rounding
            if lowest > CLEARLY * highest and lowest > tiny:
                lower += 1
            elif highest <= max(CLEARLY * lowest, tiny):
                equal += 1
        count = len(present)
        figures = (
            f"worst of {', '.join(LABELS[name] for name in better)} against the best of the "
            f"others: lower in {lower}, equal within 1 % in {equal}, higher in "
            f"{count - lower - equal} of {count} settings"
        )
        return Outcome(count > 0 and lower >= count - all_but, figures)

    return check


def settled(methods: Iterable[str]) -> Check:
    """All runs of ``methods`` have come to rest."""
    methods = tuple(methods)

    def check(runs: Runs, seed: int) -> Outcome:
        curves = [c for c in runs if c.task.seed == seed and c.task.method in methods]
        moving = [c for c in curves if c.late_fall() > SETTLED]
        counts = {m: sum(c.task.method == m for c in moving) for m in methods}
        return Outcome(
            not moving,
            f"{len(moving)} of {len(curves)} runs still fall by more than 1 % over the last tenth: "
            f"{listed(counts)}",
        )

    return check


__all__ = [
    "LEVEL_TEXT",
    "METHODS",
    "OTHERS",
    "SAME_TEXT",
    "STUCK_TEXT",
    "better_almost_everywhere",
    "ends_equal",
    "level",
    "listed",
    "ordered_before",
    "settled",
    "stuck_higher",
]
