"""The runs that figures 2, 3 and 4 share: n = 300, with and without Gaussian noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symnmf.experiments.tasks import Problem, Task

ITERATIONS = (6000, 1000)  # full, quick
KUANG_ITERATIONS = (6000, 3000)
RECORD_EVERY = 5

R20, R20_NOISY = Problem(300, 20, 0.0), Problem(300, 20, 0.1)
R40, R40_NOISY = Problem(300, 40, 0.0), Problem(300, 40, 0.1)
PROBLEMS = (R20, R20_NOISY, R40, R40_NOISY)


def iterations(quick: bool) -> int:
    return ITERATIONS[quick]


def described(problem: Problem) -> str:
    return f"n = {problem.n}, r = {problem.rank}, σ = {problem.noise:g}"


def tasks(
    methods: Iterable[str], problems: Iterable[Problem], quick: bool, seeds: Sequence[int]
) -> list[Task]:
    """Return the tasks, with exactly the parameters that make figures share them."""
    return [
        Task(
            method,
            problem,
            seed,
            (KUANG_ITERATIONS if method == "kuang-anls" else ITERATIONS)[quick],
            RECORD_EVERY,
        )
        for problem in problems
        for method in methods
        for seed in seeds
    ]
