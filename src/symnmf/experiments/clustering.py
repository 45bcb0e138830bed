"""The runs on similarity graphs that figure 7 and table 1 share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from symnmf.experiments.runs import METHODS, Curve
from symnmf.experiments.tasks import Problem, Task

ORL, COIL20 = Problem(dataset="orl"), Problem(dataset="coil20")
TRAIN, TDT2 = Problem(dataset="mnist_train3147"), Problem(dataset="tdt2")
TEST = Problem(dataset="mnist_test_sorted3147")
TITLES = {ORL: "ORL", COIL20: "COIL-20", TRAIN: "MNIST train", TDT2: "TDT2", TEST: "MNIST test"}

#: full, quick; ADMM is given more where the paper says it needs more
ITERATIONS = {
    ORL: (8000, 800),
    COIL20: (8000, 800),
    TRAIN: (3000, 300),
    TDT2: (3000, 300),
    TEST: (3000, 300),
}
ADMM_FACTOR = 2
RECORD_EVERY = 10
TOL = 1e-8
COMPARABLE = 0.02  # accuracies that differ by at most this much are comparable

START_TEXT = (
    "The paper names no start for the graphs. The uniform start at its raw scale empties nearly "
    "all columns under SymHALS on these normalised graphs, so all methods set out from the "
    "uniform start scaled to X."
)


def tasks(problems: Iterable[Problem], quick: bool, seeds: Sequence[int]) -> list[Task]:
    """Return the tasks, with exactly the parameters that make the two share them."""
    small = (ORL, COIL20)  # these have enough iterations for ADMM already
    return [
        Task(
            method,
            problem,
            seed,
            ITERATIONS[problem][quick]
            * (ADMM_FACTOR if method == "admm" and problem not in small else 1),
            RECORD_EVERY,
            TOL,
        )
        for problem in problems
        for method in METHODS
        for seed in seeds
    ]


def steady(curve: Curve, unit: str = "iteration") -> float:
    """Return from where on the accuracy is comparable to the last one, for good."""
    away = np.flatnonzero(np.abs(curve["accuracy"] - curve.last("accuracy")) > COMPARABLE)
    first = int(away[-1]) + 1 if len(away) else 0
    return float(curve[unit][first])
