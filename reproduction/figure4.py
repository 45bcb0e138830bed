"""Figure 4: all seven methods, against iterations and against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reproduction import figure5, synthetic
from reproduction.checks import (
    LEVEL_TEXT,
    REST_TEXT,
    SAME_TEXT,
    first_to_levels,
    levels,
    listed,
    same_end,
    stuck,
    together,
)
from reproduction.claims import Check, Claim, Part
from reproduction.drawing import curves, panels, shared_legend
from reproduction.experiment import Experiment
from reproduction.runs import LABELS, METHODS, OTHERS, OURS, Runs, Table, histories
from reproduction.synthetic import PROBLEMS, R20, R20_NOISY, R40, R40_NOISY
from reproduction.tasks import Instance, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HALS = ("symhals", "a-symhals")
AGREE = (*OURS, "admm", "pgd")
NOISY = (R20_NOISY, R40_NOISY)
REPETITIONS = 3


def plan(quick: bool, seeds: Sequence[int]) -> list[Task]:
    once = synthetic.tasks(METHODS, PROBLEMS, quick, seeds)
    more = synthetic.again(once, 0 if quick else REPETITIONS - 1)
    return once + more + figure5.long_runs(METHODS, quick, seeds)


def table(runs: Runs) -> Table:
    return histories(runs.shown(), ("iteration", "seconds", "error"))


def draw(runs: Runs) -> Figure:
    figure, axes = panels(4, 2)
    for row, problem in enumerate(PROBLEMS):
        title = _panel(problem)
        curves(axes[2 * row], runs, problem, METHODS, title=f"(a{row + 1}) {title}")
        beside = axes[2 * row + 1]
        curves(beside, runs, problem, METHODS, x="time", title=f"(b{row + 1}) {title}")
        beside.set_xscale("log")
        beside.set_ylabel("")
    shared_legend(figure, axes)
    return figure


def _panel(problem: Instance) -> str:
    return f"r = {problem.rank}, σ = {problem.noise:g}"


def _by_panel(first: Sequence[str], others: Sequence[str], problems: Sequence[Instance]) -> Check:
    return together(*(first_to_levels(first, others, p, _panel(p)) for p in problems))


def _each_first_in_time(problems: Sequence[Instance]) -> Check:
    """Each of the HALS pair needs no more seconds than each of the other five."""
    return together(
        *(
            first_to_levels(
                (method,), ("symanls", *OTHERS), p, f"{LABELS[method]}, {_panel(p)}", "seconds"
            )
            for method in HALS
            for p in problems
        )
    )


def _comparable(runs: Runs, seed: int) -> list[Part]:
    """The three end together and get to each level in similar numbers of iterations."""
    parts = []
    for problem in NOISY:
        holds, figures = same_end(runs.longest(OURS, problem, seed))
        parts.append(Part(f"{_panel(problem)}: same end", holds, figures))
        everyone = runs.of(METHODS, problem, seed)
        for name, goal in levels(everyone, problem).items():
            need = {method: everyone[method].needs(goal) for method in OURS}
            known = [value.value for value in need.values() if value.known]
            least = min(value.value for value in need.values())
            near = len(known) == len(need) and max(known) <= 3 * least
            open_end = not near and least * 3 > max(value.value for value in need.values())
            what = f"{_panel(problem)}, {name}"
            figures = f"iterations: {listed(need)}"
            parts.append(Part(what, None if open_end else near, figures))
    return parts


def _tsvd_well(runs: Runs, seed: int) -> list[Part]:
    everyone = runs.of(METHODS, R20, seed)
    parts = []
    for name, goal in levels(everyone, R20).items():
        need = {m: everyone[m].needs(goal, "seconds") for m in (*HALS, "tsvd")}
        slower = max((need[m] for m in HALS), key=lambda needs: needs.value)
        holds = need["tsvd"].no_more_than(slower._replace(value=2 * slower.value))
        parts.append(Part(f"(b1), {name}", holds, f"seconds: {listed(need)}"))
    return parts


def _ends(runs: Runs, seed: int) -> list[Part]:
    """The five end together and the two above them, after the iterations of figure 5."""
    parts = []
    for problem in NOISY:
        everyone = runs.longest(METHODS, problem, seed)
        if everyone["symanls"].task.max_iter < figure5.ITERATIONS[runs.quick]:
            continue  # not run as long with this seed
        agree, figures = same_end({name: everyone[name] for name in AGREE})
        parts.append(Part(f"{_panel(problem)}: the five agree", agree, figures))
        for method in ("tsvd", "beta-snmf"):
            above, figures = stuck(method, everyone)
            parts.append(Part(f"{_panel(problem)}: {LABELS[method]} stuck", above, figures))
    return parts


def _cost_order(runs: Runs, seed: int) -> list[Part]:
    parts = []
    for problem in PROBLEMS:
        each = {
            name: 1e6 * curve.last("seconds") / curve["iteration"][-1]
            for name, curve in runs.of(("symhals", "a-symhals", "symanls"), problem, seed).items()
        }
        holds = each["symhals"] < each["a-symhals"] < each["symanls"]
        figures = f"microseconds per iteration: {listed(each, '.0f')}"
        parts.append(Part(_panel(problem), holds, figures))
    return parts


CLAIMS = [
    Claim(
        "figure4-iterations",
        "From the top row of Figure 4 (i.e., (a1)-(a4)), it can be observed that our proposed "
        "SymANLS, SymHALS, and A-SymHALS outperform the others in terms of iteration number.",
        f"Each of the three needs no more iterations than each of the other four. {LEVEL_TEXT}",
        _by_panel(OURS, OTHERS, PROBLEMS),
    ),
    Claim(
        "figure4-best",
        "A-SymHALS performs the best in the noise free settings, while SymANLS, SymHALS, and "
        "A-SymHALS have comparable performances in the noisy cases.",
        "Best: A-SymHALS needs the fewest iterations of all seven. Comparable: the three end at "
        f"the same E and need iterations within a factor of 3. {SAME_TEXT} {LEVEL_TEXT}",
        together(
            _by_panel(("a-symhals",), [m for m in METHODS if m != "a-symhals"], (R20, R40)),
            _comparable,
        ),
    ),
    Claim(
        "figure4-time",
        "The bottom row of Figure 4 (i.e., (b1)-(b4)) demonstrates the evolution of E^k versus "
        "wall clock running time. It can be observed that SymHALS and A-SymHALS have the best "
        "performances among other algorithms.",
        f"Each of the two needs no more seconds than each of the other five. {LEVEL_TEXT}",
        _each_first_in_time(PROBLEMS),
    ),
    Claim(
        "figure4-tsvd-well",
        "In (b1), where the factorization rank is small (r = 20) and the data is not contaminated "
        "by noise, the tSVD algorithm also performs well.",
        "Well: in at most twice the seconds of the slower of SymHALS and A-SymHALS.",
        _tsvd_well,
    ),
    Claim(
        "figure4-time-hard",
        "However, when noise is presented and the factorization rank r becomes larger, SymHALS and "
        "A-SymHALS have the best running time performance.",
        f"r = 40, sigma = 0.1: each of the two needs no more seconds than each of the other five. "
        f"{LEVEL_TEXT}",
        _each_first_in_time((R40_NOISY,)),
    ),
    Claim(
        "figure4-ends",
        "one can observe from the experiments where noise is added (i.e., (a2), (b2), (a4), (b4)), "
        "the alternating-type algorithms, ADMM, and PGD can converge to solutions with almost the "
        "same fitting error E^k after enough iterations, while tSVD and beta-SNMF likely get stuck "
        "at local minima with lager fitting errors.",
        f"After figure 5's many iterations. {SAME_TEXT} Stuck: at rest more than 5 % "
        f"above each of the three. {REST_TEXT} Undecided where a run was not.",
        _ends,
    ),
    Claim(
        "figure4-cost",
        "A-SymHALS has higher computational complexity than SymHALS in each iteration, but less "
        "than SymANLS since the latter requires to solve relatively computationally expensive "
        "nonnegative least squares in each iteration. (section 3, to be compared in section 4)",
        "Seconds of the solver per iteration.",
        _cost_order,
    ),
    Claim(
        "figure4-speed",
        "A-SymHALS is supposed to converge faster than SymHALS since the former decreases more "
        "function value in each iteration, while SymANLS can decrease the most function value "
        "among them in each iteration. (section 3, to be compared in section 4)",
        f"SymANLS needs no more iterations than A-SymHALS, and A-SymHALS than SymHALS. "
        f"{LEVEL_TEXT}",
        together(
            *(
                first_to_levels((a,), (b,), p, f"{_panel(p)}, {LABELS[a]} before {LABELS[b]}")
                for p in PROBLEMS
                for a, b in (("symanls", "a-symhals"), ("a-symhals", "symhals"))
            )
        ),
    ),
]


def settings(quick: bool) -> str:
    timed = (
        ""
        if quick
        else f", {REPETITIONS} times in turn on the first seed, of which the median is shown"
    )
    return (
        f"n = 300, r = 20 and 40, sigma = 0 and 0.1, uniform start, "
        f"{synthetic.iterations(quick)} iterations. Seconds are processor time in the solver on "
        f"one thread, one run at a time in one process{timed}; evaluation is not counted. "
        f"ADMM follows the rule of its authors (Lu, Hong and Wang), written down from memory."
    )


EXPERIMENT = Experiment(
    "figure4",
    "Seven methods on synthetic data",
    settings,
    plan,
    (3, 1),
    table,
    draw,
    CLAIMS,
)
