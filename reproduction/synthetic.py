"""The runs that figures 2, 3 and 4 share: n = 300, with and without Gaussian noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from reproduction.tasks import Instance, Task

ITERATIONS = (6000, 1000)  # full, quick
KUANG_ITERATIONS = (4000, 3000)
RECORD_EVERY = 5

R20, R20_NOISY = Instance(300, 20, 0.0), Instance(300, 20, 0.1)
R40, R40_NOISY = Instance(300, 40, 0.0), Instance(300, 40, 0.1)
PROBLEMS = (R20, R20_NOISY, R40, R40_NOISY)


def iterations(quick: bool) -> int:
    return ITERATIONS[quick]


def described(problem: Instance) -> str:
    return f"n = {problem.n}, r = {problem.rank}, σ = {problem.noise:g}"


def both_ways(problems: Iterable[Instance], seeds: Sequence[int]) -> list[tuple[Instance, int]]:
    """Return every problem with every seed, and the mirrored ones with the first seed."""
    problems = tuple(problems)
    mirrored = [replace(problem, mirrored=True) for problem in problems if problem.noise]
    pairs = [(problem, seed) for problem in problems for seed in seeds]
    return pairs + [(problem, seed) for problem in mirrored for seed in seeds[:1]]


def tasks(
    methods: Iterable[str], problems: Iterable[Instance], quick: bool, seeds: Sequence[int]
) -> list[Task]:
    """Return the tasks, with exactly the parameters that make figures share them."""
    methods = tuple(methods)
    return [
        Task(
            method,
            problem,
            seed,
            (KUANG_ITERATIONS if method == "kuang-anls" else ITERATIONS)[quick],
            RECORD_EVERY,
            alone=True,
        )
        for problem, seed in both_ways(problems, seeds)
        for method in methods
    ]


def again(tasks: Iterable[Task], times: int) -> list[Task]:
    """Return the tasks of the first seed with literal noise, to be run ``times`` more times."""
    first = [task for task in tasks if task.seed == 0 and not task.problem.mirrored]
    return [replace(task, repetition=k) for k in range(1, times + 1) for task in first]
