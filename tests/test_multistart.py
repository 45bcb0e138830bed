"""Several starts: the best is kept, and they stop, resume and share their time as one call."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from symnmf.errors import InputError
from symnmf.run.multistart import Plan
from symnmf.run.settings import Settings
from symnmf.run.start import as_generator


@pytest.fixture(scope="module")
def X():
    return synthetic_problem(120, 5, 0.5, seed=0)


def plan(rank=4, n_init=5, **more):
    options = {"solver": "a-symhals", "tol": 1e-4, "max_iter": 200} | more.pop("options", {})
    more = {"init": "scaled-random", "random_state": 7, **more}
    settings = Settings.of(**options, max_time=more.pop("max_time", None))
    return Plan(rank, settings, n_init=n_init, **more)


def test_the_best_is_the_best_of_separate_starts(X):
    options = {"tol": 0, "max_iter": 60}
    first = as_generator(7)
    errors = [
        symnmf.factorize(X, 4, random_state=g, solver="a-symhals", **options).error
        for g in [first, *first.spawn(4)]
    ]
    assert plan(options=options).search(X).best.error == pytest.approx(min(errors), rel=1e-6)
    assert len(set(np.round(errors, 6))) > 1


@pytest.mark.skipif(os.name == "nt", reason="os.kill would end the process on Windows")
def test_ctrl_c_ends_the_starts_under_way(X):
    def interrupt(start, now):
        if start == 1 and now.iteration == 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    best = plan(progress=interrupt, options={"tol": 0, "max_iter": 10**7}).search(X).best
    assert best.status == "stopped"
    assert best.n_iter < 10**6  # far from the limit; how soon is up to the threads
    assert signal.getsignal(signal.SIGINT) is before


def test_the_time_limit_is_that_of_the_whole_fit(X):
    best = plan(max_time=0.2, options={"tol": 0, "max_iter": 10**7}).search(X).best
    assert best.status == "max_time"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callback_that_stops_ends_all_starts(X, n_jobs):
    seen = []

    def progress(start, now):
        seen.append(start)
        return now.iteration >= 3

    options = {"tol": 0, "max_iter": 500}
    best = plan(n_init=6, n_jobs=n_jobs, progress=progress, options=options).search(X).best
    assert best.status == "stopped"
    assert len(set(seen)) <= n_jobs


def test_a_start_moved_from_one_fit_to_another_is_refused(X, tmp_path):
    options = {"tol": 0, "max_iter": 4}
    files = []
    for seed in (1, 2):
        path = tmp_path / f"fit{seed}.npz"
        plan(checkpoint=path, random_state=seed, options=options).search(X)
        files.append(path)
    files[0].replace(files[1])
    with pytest.raises(InputError, match=r"another run.*random_state 2 .it has 1"):
        plan(checkpoint=tmp_path / "fit2.npz", random_state=2, options=options).search(X)
