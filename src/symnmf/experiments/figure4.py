"""Figure 4: all seven methods, against iterations and against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from symnmf.experiments import synthetic
from symnmf.experiments.checks import (
    LEVEL_TEXT,
    SAME,
    SAME_TEXT,
    STUCK_TEXT,
    ends_equal,
    level,
    listed,
    ordered_before,
    stuck_higher,
)
from symnmf.experiments.claims import Check, Claim, Outcome
from symnmf.experiments.drawing import curves, panels, shared_legend
from symnmf.experiments.experiment import Experiment
from symnmf.experiments.runs import LABELS, METHODS, OTHERS, OURS, Runs, Table, histories
from symnmf.experiments.synthetic import PROBLEMS, R20, R20_NOISY, R40, R40_NOISY
from symnmf.experiments.tasks import Problem, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HALS = ("symhals", "a-symhals")


def plan(quick: bool, seeds: Sequence[int]) -> list[Task]:
    return synthetic.tasks(METHODS, PROBLEMS, quick, seeds)


def table(runs: Runs) -> Table:
    return histories(runs, ("iteration", "seconds", "error"))


def draw(runs: Runs) -> Figure:
    figure, axes = panels(2, 4)
    for column, problem in enumerate(PROBLEMS):
        title = f"r = {problem.rank}, σ = {problem.noise:g}"
        curves(axes[column], runs, problem, METHODS, title=f"(a{column + 1}) {title}")
        below = axes[4 + column]
        curves(below, runs, problem, METHODS, x="time", title=f"(b{column + 1}) {title}")
    shared_legend(figure, axes)
    return figure


def _comparable(problem: Problem) -> Check:
    same = ends_equal(OURS, problem)

    def check(runs: Runs, seed: int) -> Outcome:
        everyone = runs.of(METHODS, problem, seed)
        goal = level(everyone, problem, runs.quick)
        when = {name: everyone[name].reaches(goal) for name in OURS}
        equal, figures = same(runs, seed)
        near = max(when.values()) <= 3 * min(when.values()) and np.isfinite(max(when.values()))
        return Outcome(
            bool(equal and near),
            f"{figures}; iterations to E = {goal:.2g}: {listed(when, '.4g')}",
        )

    return check


def _tsvd_well(runs: Runs, seed: int) -> Outcome:
    everyone = runs.of(METHODS, R20, seed)
    goal = level(everyone, R20, runs.quick)
    when = {name: everyone[name].reaches(goal, "seconds") for name in (*HALS, "tsvd")}
    slower = max(when[name] for name in HALS)
    return Outcome(
        bool(np.isfinite(when["tsvd"]) and when["tsvd"] <= 2 * slower),
        f"seconds to E = {goal:.2g}: {listed(when)}",
    )


def _cost_order(problem: Problem) -> Check:
    def check(runs: Runs, seed: int) -> Outcome:
        each = {
            name: 1e6 * curve.last("seconds") / curve["iteration"][-1]
            for name, curve in runs.of(("symhals", "a-symhals", "symanls"), problem, seed).items()
        }
        return Outcome(
            each["symhals"] < each["a-symhals"] < each["symanls"],
            f"microseconds per iteration: {listed(each, '.0f')}",
        )

    return check


def _speed_order(problem: Problem) -> Check:
    def check(runs: Runs, seed: int) -> Outcome:
        three = runs.of(OURS, problem, seed)
        goal = level(three, problem, runs.quick)
        when = {name: curve.reaches(goal) for name, curve in three.items()}
        return Outcome(
            bool(when["symanls"] <= when["a-symhals"] < when["symhals"]),
            f"iterations to E = {goal:.2g}: {listed(when, '.4g')}",
        )

    return check


ITERATION = (
    "our proposed SymANLS, SymHALS, and A-SymHALS outperform the others in terms of iteration "
    "number."
)
NOISE_FREE = "A-SymHALS performs the best in the noise free settings,"
COMPARABLE = (
    "while SymANLS, SymHALS, and A-SymHALS have comparable performances in the noisy cases."
)
TIME = "SymHALS and A-SymHALS have the best performances among other algorithms."
TSVD_WELL = (
    "In (b1), where the factorization rank is small (r = 20) and the data is not contaminated by "
    "noise, the tSVD algorithm also performs well."
)
TIME_HARD = (
    "However, when noise is presented and the factorization rank r becomes larger, SymHALS and "
    "A-SymHALS have the best running time performance."
)
SAME_END = (
    "where noise is added (i.e., (a2), (b2), (a4), (b4)), the alternating-type algorithms, ADMM, "
    "and PGD can converge to solutions with almost the same fitting error E^k after enough "
    "iterations,"
)
STUCK = "while tSVD and beta-SNMF likely get stuck at local minima with larger fitting errors."
COST = (
    "A-SymHALS has higher computational complexity than SymHALS in each iteration, but less than "
    "SymANLS (remark of section 3, compared in section 4)"
)
SPEED = (
    "A-SymHALS is supposed to converge faster than SymHALS [...], while SymANLS can decrease the "
    "most function value among them in each iteration. (remark of section 3, compared in section 4)"
)
AGREE = ("symanls", "symhals", "a-symhals", "admm", "pgd")


def _panel(problem: Problem) -> str:
    return f"r = {problem.rank}, sigma = {problem.noise:g}"


def _key(problem: Problem) -> str:
    return f"{problem.rank}-{problem.noise:g}"


def _claims() -> list[Claim]:
    claims = [
        Claim(
            f"figure4-iterations-{_key(problem)}",
            ITERATION,
            f"{_panel(problem)}: each of the three gets to the level in no more iterations than "
            f"each of the other four.",
            LEVEL_TEXT,
            ordered_before(OURS, OTHERS, problem),
        )
        for problem in PROBLEMS
    ]
    claims += [
        Claim(
            f"figure4-best-{problem.rank}",
            NOISE_FREE,
            f"{_panel(problem)}: A-SymHALS gets to the level in the fewest iterations of all.",
            LEVEL_TEXT,
            ordered_before(("a-symhals",), [m for m in METHODS if m != "a-symhals"], problem),
        )
        for problem in (R20, R40)
    ]
    claims += [
        Claim(
            f"figure4-comparable-{problem.rank}",
            COMPARABLE,
            f"{_panel(problem)}: the three end at the same E and get to the level in similar "
            f"numbers of iterations.",
            f"{SAME_TEXT} Similar: within a factor of 3. {LEVEL_TEXT}",
            _comparable(problem),
        )
        for problem in (R20_NOISY, R40_NOISY)
    ]
    claims += [
        Claim(
            f"figure4-time-{_key(problem)}",
            TIME_HARD if problem == R40_NOISY else TIME,
            f"{_panel(problem)}: SymHALS and A-SymHALS both get to the level in no more seconds of "
            f"the solver than each of the other five.",
            LEVEL_TEXT,
            ordered_before(HALS, ("symanls", *OTHERS), problem, "seconds"),
        )
        for problem in PROBLEMS
    ]
    claims.append(
        Claim(
            "figure4-tsvd-well",
            TSVD_WELL,
            "r = 20, sigma = 0: seconds of tSVD to the level against the slower of SymHALS and "
            "A-SymHALS.",
            f"Well: in at most twice as long. {LEVEL_TEXT}",
            _tsvd_well,
        )
    )
    for problem in (R20_NOISY, R40_NOISY):
        claims.append(
            Claim(
                f"figure4-same-{problem.rank}",
                SAME_END,
                f"{_panel(problem)}: the final E of the three, ADMM and PGD.",
                f"Almost the same: within {100 * (SAME - 1):.0f} %.",
                ends_equal(AGREE, problem),
            )
        )
        claims += [
            Claim(
                f"figure4-stuck-{method}-{problem.rank}",
                STUCK,
                f"{LABELS[method]}, {_panel(problem)}: it has come to rest at a larger E than the "
                f"three.",
                STUCK_TEXT,
                stuck_higher(method, problem),
            )
            for method in ("tsvd", "beta-snmf")
        ]
    for problem in (R20_NOISY, R40_NOISY):
        claims += [
            Claim(
                f"figure4-cost-{problem.rank}",
                COST,
                f"{_panel(problem)}: seconds of the solver per iteration.",
                "",
                _cost_order(problem),
            ),
            Claim(
                f"figure4-speed-{problem.rank}",
                SPEED,
                f"{_panel(problem)}: iterations to the level (of the three): SymANLS no more than "
                f"A-SymHALS, A-SymHALS fewer than SymHALS.",
                LEVEL_TEXT,
                _speed_order(problem),
            ),
        ]
    return claims


def settings(quick: bool) -> str:
    return (
        f"n = 300, r = 20 and 40, sigma = 0 and 0.1, uniform start, "
        f"{synthetic.iterations(quick)} iterations. Seconds are those in the solver, on one thread "
        f"and beside another worker where there are several; evaluation is not counted."
    )


EXPERIMENT = Experiment(
    "figure4",
    "Seven methods on synthetic data",
    settings,
    plan,
    (3, 2),
    table,
    draw,
    _claims(),
)
