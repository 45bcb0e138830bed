"""The runs on similarity graphs that figure 7 and table 1 share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reproduction.runs import METHODS, OURS, Curve
from reproduction.tasks import Instance, Task

ORL, COIL20 = Instance(dataset="orl"), Instance(dataset="coil20")
TRAIN, TDT2 = Instance(dataset="mnist_train3147"), Instance(dataset="tdt2")
TEST = Instance(dataset="mnist_test_sorted3147")
TITLES = {ORL: "ORL", COIL20: "COIL-20", TRAIN: "MNIST train", TDT2: "TDT2", TEST: "MNIST test"}

PROBLEMS = (ORL, COIL20, TRAIN, TDT2, TEST)

#: The paper's table, in the order of PROBLEMS.
PAPER = {
    "symanls": (0.8000, 0.8194, 0.6217, 0.9793, 0.8589),
    "symhals": (0.7550, 0.7201, 0.6393, 0.9800, 0.8589),
    "a-symhals": (0.8025, 0.7042, 0.7043, 0.9803, 0.8589),
    "admm": (0.7750, 0.6937, 0.5803, 0.9800, 0.8713),
    "tsvd": (0.8000, 0.6701, 0.6653, 0.6044, 0.9050),
    "beta-snmf": (0.7800, 0.6597, 0.5100, 0.9647, 0.8513),
    "pgd": (0.7850, 0.7278, 0.6287, 0.8313, 0.9136),
}


def paper_figure(method: str, problem: Instance) -> float:
    return PAPER[method][PROBLEMS.index(problem)]


#: full, quick
ITERATIONS = {
    ORL: (8000, 800),
    COIL20: (8000, 800),
    TRAIN: (3000, 300),
    TDT2: (3000, 300),
    TEST: (3000, 300),
}
#: The same for ADMM, which the paper gives "enough iterations".
ADMM_ITERATIONS = {
    ORL: (8000, 1500),
    COIL20: (20_000, 1500),
    TRAIN: (6000, 600),
    TDT2: (6000, 600),
    TEST: (6000, 600),
}
RECORD_EVERY = 10
TOL = 1e-8
COMPARABLE = 0.02  # accuracies that differ by at most this much are comparable

SETTING_TEXT = (
    "Start, safeguard and labels are those of the authors' published MATLAB: uniform(0, 1) at its "
    "raw scale, a column of HALS that becomes zero is set to 1e-16 of the largest entry, labels "
    "from V; lambda is adaptive from 1e-5, as the paper says; ADMM follows the rule of its authors "
    "(Lu, Hong and Wang), written down from memory."
)

#: Settings shown beside the paper's, for its three methods on the two image sets of figure 7.
BESIDE = {"fixed": "lambda = 0.66", "scaled": "start scaled to X"}
BESIDE_PROBLEMS = (ORL, COIL20)
BESIDE_ITERATIONS = (2000, 800)


def tasks(problems: Iterable[Instance], quick: bool, seeds: Sequence[int]) -> list[Task]:
    """Return the tasks, with exactly the parameters that make the two share them."""
    return [
        Task(
            method,
            problem,
            seed,
            (ADMM_ITERATIONS if method == "admm" else ITERATIONS)[problem][quick],
            RECORD_EVERY,
            TOL,
        )
        for problem in problems
        for seed in seeds
        for method in METHODS
    ]


def tasks_beside(quick: bool, seeds: Sequence[int]) -> list[Task]:
    """Return the tasks of the settings beside the paper's."""
    return [
        Task(method, problem, seed, BESIDE_ITERATIONS[quick], RECORD_EVERY, TOL, setting=setting)
        for problem in BESIDE_PROBLEMS
        for seed in seeds
        for setting in BESIDE
        for method in OURS
    ]


def steady(curve: Curve, unit: str = "iteration") -> float:
    """Return from where on the accuracy is comparable to the last one, for good."""
    away = np.flatnonzero(np.abs(curve["accuracy"] - curve.last("accuracy")) > COMPARABLE)
    first = int(away[-1]) + 1 if len(away) else 0
    return float(curve[unit][first])
