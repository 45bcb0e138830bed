"""What belongs to the whole process is as it was after runs that overlap in threads, and meanwhile.

Warning filters above all: ``warnings.catch_warnings`` puts others in their place for every thread,
and two that overlap leave the wrong ones behind.
"""

from __future__ import annotations

import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import symnmf
from conftest import MINUTES, synthetic_problem
from symnmf.errors import ConvergenceWarning

X = synthetic_problem(40, 3, 0.1, seed=0)
POINTS = np.random.default_rng(0).standard_normal((40, 3))
EARLY = {"random_state": 0, "max_iter": 3, "tol": 1e-12, "n_jobs": 1}

#: Calls of several entry points of the library, each with a callback that may make it wait.
CALLS = {
    "factorize": lambda wait: symnmf.factorize(X, 3, callback=wait, **EARLY),
    "split": lambda wait: symnmf.factorize(X, 3, solver="a-symhals", callback=wait, **EARLY),
    "estimator": lambda wait: symnmf.SymNMF(
        3, affinity="precomputed", n_init=2, callback=wait, **EARLY
    ).fit(X),
    "points": lambda wait: (
        symnmf.SymNMF(3, n_neighbors=5, n_init=2, callback=wait, **EARLY)
        .fit(POINTS)
        .predict(POINTS[:3])
    ),
    "communities": lambda wait: symnmf.communities(X, 3, callback=wait, **EARLY),
    "tensor": lambda wait: symnmf.factorize(
        symnmf.tensors.as_tensor(np.ones((4, 4, 4))), 2, random_state=0, max_iter=2, callback=wait
    ),
}


def of_this_thread() -> dict[str, Any]:
    """What NumPy keeps for each thread."""
    return {"errors": np.geterr(), "error call": np.geterrcall()}


def of_the_process() -> dict[str, Any]:
    """What a library may change under its caller."""
    root, own = logging.getLogger(), logging.getLogger("symnmf")
    generator = np.random.get_state(legacy=False)  # noqa: NPY002
    return {
        **of_this_thread(),
        "filters": list(warnings.filters),
        "place of the filters": id(warnings.filters),
        "showwarning": warnings.showwarning,
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "threads": [
            (pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info()
        ],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "handlers": (list(root.handlers), root.level, list(own.handlers), own.level),
        "random": random.getstate(),
        "numpy.random": (generator["state"]["pos"], generator["state"]["key"].tolist()),
        "printing": np.get_printoptions(),
        "streams": (sys.stdout, sys.stderr, sys.stdin),
        "hooks": (sys.excepthook, threading.excepthook),
        "limits": (sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled()),
        "locale": locale.setlocale(locale.LC_ALL),
    }


class Staggered:
    """Calls that come one after another and go in the same order, so that none holds all others."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.inside = [threading.Event() for _ in calls]
        self.gone = [threading.Event() for _ in calls]
        self.own: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def run(self, place: int) -> None:
        def wait(*_: object) -> None:
            self.inside[place].set()
            if place + 1 < len(self.calls):
                assert self.inside[place + 1].wait(MINUTES)
            if place:
                assert self.gone[place - 1].wait(MINUTES)

        before = of_this_thread()
        try:
            if place:
                assert self.inside[place - 1].wait(MINUTES)
            CALLS[self.calls[place]](wait)
        finally:
            self.own.append((before, of_this_thread()))
            self.inside[place].set()
            self.gone[place].set()


@pytest.fixture(scope="module")
def alone() -> int:
    """How often the calls say that they ended early, one after another.

    Whatever is imported or compiled is so from then on; libraries do what they like on import.
    """
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for call in CALLS.values():
            call(lambda *_: None)
    return sum(warning.category is ConvergenceWarning for warning in seen)


def test_overlapping_calls_leave_the_process_as_it_was(alone: int) -> None:
    staggered = Staggered([*CALLS, *CALLS])
    count = len(staggered.calls)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        before = of_the_process()
        with ThreadPoolExecutor(count) as pool:
            runs = [pool.submit(staggered.run, place) for place in range(count)]
            for place, run in enumerate(runs):
                assert staggered.inside[place].wait(MINUTES)
                warnings.warn(f"caller {place}", RuntimeWarning, stacklevel=1)
                run.result()
                warnings.warn(f"after {place}", RuntimeWarning, stacklevel=1)
        after = of_the_process()
    for name, value in before.items():
        assert after[name] == value, name
    assert len(staggered.own) == count
    for one, other in staggered.own:
        assert one == other
    told = [str(warning.message) for warning in seen if warning.category is RuntimeWarning]
    assert told == [f"{when} {place}" for place in range(count) for when in ("caller", "after")]
    # each call that ended early said so: no other thread had switched it off
    assert alone >= len(CALLS) // 2
    assert sum(warning.category is ConvergenceWarning for warning in seen) == 2 * alone


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_the_process_as_it_was(name: str) -> None:
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        before = of_the_process()
        CALLS[name](lambda *_: None)
        after = of_the_process()
    for what, value in before.items():
        assert after[what] == value, what
