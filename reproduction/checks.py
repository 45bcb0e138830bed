"""Checks that several sentences share. Every threshold here is this library's choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from reproduction.claims import Check, Part
from reproduction.runs import LABELS, OURS, Absent, Curve, Needs, Runs
from reproduction.tasks import Instance

SAME = 1.05  # errors within 5 % of each other are "the same"
CLEARLY = 1.01  # an error is lower than another when the other is more than 1 % above it
NEAR = 1.5  # under noise a run "gets there" at 1.5 times the least final error of all methods
LEVELS = (1e-3, 1e-4, 1e-5)
TINY = 1e-12  # below this, errors are rounding

SAME_TEXT = "The same: within 5 % of each other."
LEVEL_TEXT = (
    "At each of E = 1e-3, 1e-4 and 1e-5 that some method reaches and, under noise, at 1.5 times "
    "the least final E of all. A run that ended while E was still falling needs more than it had; "
    "one at rest above the level never gets there."
)
REST_TEXT = "At rest: E fell by at most 1 % over the last tenth of the iterations."


def levels(curves: Mapping[str, Curve], problem: Instance) -> dict[str, float]:
    """Return the errors at which runs are compared, with what to call them."""
    least = min(curve.last() for curve in curves.values())
    found = {f"E = {level:.0e}".replace("e-0", "e-"): level for level in LEVELS if level >= least}
    if problem.noise:
        found["E = 1.5 x the least"] = NEAR * least
    return found


def listed(values: Mapping[str, float | Needs], digits: str = ".3g") -> str:
    """Write values with the names of the methods."""
    return ", ".join(
        f"{LABELS[name]} {value if isinstance(value, Needs) else format(value, digits)}"
        for name, value in values.items()
    )


def every(outcomes: Iterable[bool | None]) -> bool | None:
    """False where one is false, else None where one is undecided, else true."""
    found = list(outcomes)
    if any(outcome is False for outcome in found):
        return False
    return None if not found or any(outcome is None for outcome in found) else True


def first_to_levels(
    first: Iterable[str],
    others: Iterable[str],
    problem: Instance,
    where: str,
    unit: str = "iteration",
    factor: float = 1.0,
) -> Check:
    """Each of ``first`` gets to each level in at most ``factor`` times what ``others`` need."""
    first, others = tuple(first), tuple(others)

    def check(runs: Runs, seed: int) -> list[Part]:
        curves = runs.of(dict.fromkeys((*first, *others)), problem, seed)
        parts = []
        for name, goal in levels(curves, problem).items():
            need = {method: curve.needs(goal, unit) for method, curve in curves.items()}
            relaxed = {m: need[m]._replace(value=factor * need[m].value) for m in others}
            holds = every(need[a].no_more_than(relaxed[b]) for a in first for b in others if a != b)
            what = "seconds" if unit == "seconds" else "iterations"
            parts.append(Part(f"{where}, {name}", holds, f"{what}: {listed(need)}"))
        return parts

    return check


def together(*checks: Check) -> Check:
    """All parts of several checks."""

    def check(runs: Runs, seed: int) -> list[Part]:
        return [part for each in checks for part in each(runs, seed)]

    return check


def same_end(curves: Mapping[str, Curve], factor: float = SAME) -> tuple[bool | None, str]:
    """Whether runs end within ``factor``; undecided where one that is above is not at rest."""
    final = {name: curve.last() for name, curve in curves.items()}
    least = min(final.values())
    above = [curve for name, curve in curves.items() if final[name] > factor * least]
    moving = [LABELS[name] for name, curve in curves.items() if not curve.settled]
    figures = f"final E: {listed(final, '.4g')}"
    figures += f"; not at rest: {', '.join(moving)}" if moving else ""
    if not above:
        return True, figures
    return (False if all(curve.settled for curve in above) else None), figures


def ends_lower(mine: Curve, other: Curve) -> bool | None:
    """Whether a run ends clearly below another, as far as unfinished runs can say."""
    low, high = mine.last(), other.last()
    if max(low, high) < TINY:
        return None
    if high > CLEARLY * low:  # below now: for good if the other one is at rest
        return True if other.settled else None
    return False if mine.settled else None


def lower_in_settings(
    better: Iterable[str],
    worse: Iterable[str],
    problems: Iterable[Instance],
    where: Callable[[Instance], str],
) -> Check:
    """Every one of ``better`` ends below every one of ``worse``: one part for each setting."""
    better, worse, problems = tuple(better), tuple(worse), tuple(problems)

    def check(runs: Runs, seed: int) -> list[Part]:
        parts = []
        for problem in problems:
            try:
                curves = runs.of((*better, *worse), problem, seed)
            except Absent:
                continue  # not run, with this seed
            outcomes = {(a, b): ends_lower(curves[a], curves[b]) for a in better for b in worse}
            counts = Counter(outcomes.values())
            figures = (
                f"of {len(outcomes)} pairs lower in {counts[True]}, not lower in {counts[False]}, "
                f"undecided in {counts[None]}; final E: "
                f"{listed({m: c.last() for m, c in curves.items()})}"
            )
            unfinished = [LABELS[m] for m, c in curves.items() if not c.settled]
            figures += f"; not at rest: {', '.join(unfinished)}" if unfinished else ""
            parts.append(Part(where(problem), every(outcomes.values()), figures))
        return parts

    return check


def stuck(method: str, curves: Mapping[str, Curve]) -> tuple[bool | None, str]:
    """Whether ``method`` has come to rest above all three of the paper's methods."""
    curve = curves[method]
    highest = max(curves[name].last() for name in OURS)
    above = curve.last() > SAME * highest
    figures = f"final E {curve.last():.4g} against {highest:.4g} of the worst of the three"
    if not curve.settled:
        figures += f", still falling ({100 * curve.late_fall():.2g} % over the last tenth)"
    decided = curve.settled if above else all(curves[name].settled for name in OURS)
    return (above if decided else None), figures


def within(value: float, goal: float, share: float) -> bool:
    return bool(np.isfinite(value) and abs(value / goal - 1) <= share)
