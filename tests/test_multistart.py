"""Several starts: the best is kept, and they stop, resume and share their time as one call."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from symnmf.errors import ConvergenceWarning, InputError
from symnmf.objectives import Frobenius
from symnmf.run import multistart
from symnmf.run.multistart import Plan
from symnmf.run.settings import Settings
from symnmf.storage import LowRank, as_symmetric


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
    errors = [
        symnmf.factorize(X, 4, random_state=g, solver="a-symhals", **options).error
        for g in multistart._generators(7, 5)
    ]
    assert plan(options=options).best(X).error == pytest.approx(min(errors), rel=1e-6)
    assert len(set(np.round(errors, 6))) > 1


@pytest.mark.parametrize("n_jobs", [1, 5])
def test_an_exception_in_one_start_reaches_the_caller(X, n_jobs):
    def broken(start, now):
        if start == 2 and now.iteration == 3:
            raise LookupError("from the callback")

    with pytest.raises(LookupError, match="from the callback"):
        plan(progress=broken, n_jobs=n_jobs).best(X)


@pytest.mark.skipif(os.name == "nt", reason="os.kill would end the process on Windows")
def test_ctrl_c_ends_the_starts_under_way(X):
    def interrupt(start, now):
        if start == 1 and now.iteration == 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    best = plan(progress=interrupt, options={"tol": 0, "max_iter": 10**7}).best(X)
    assert best.status == "stopped"
    assert best.n_iter < 10**6  # far from the limit; how soon is up to the threads
    assert signal.getsignal(signal.SIGINT) is before


def test_the_time_limit_is_that_of_the_whole_fit(X):
    best = plan(max_time=0.2, options={"tol": 0, "max_iter": 10**7}).best(X)
    assert best.status == "max_time"


def test_starts_run_apart_where_that_keeps_every_core_busy(monkeypatch):
    dense = Frobenius(as_symmetric(np.ones((600, 600)), n_jobs=2))
    assert plan(rank=20, n_jobs=2)._apart(dense)
    assert not plan(rank=20, n_init=1, n_jobs=2)._apart(dense)
    small = Frobenius(as_symmetric(np.ones((50, 50)), n_jobs=2))
    assert plan(rank=2, n_init=1, n_jobs=2)._apart(small)
    monkeypatch.setattr(multistart, "APART_UP_TO", 0)
    assert not plan(rank=20, n_jobs=2)._apart(dense)


def test_a_low_rank_matrix_keeps_its_threads_through_several_starts():
    X = LowRank(np.random.default_rng(0).random((60, 3)))
    before = X.ops.threads
    best = plan(rank=3, n_init=3).best(X)
    assert X.ops.threads is before
    assert best.error < 1e-4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callback_that_stops_ends_all_starts(X, n_jobs):
    seen = []

    def progress(start, now):
        seen.append(start)
        return now.iteration >= 3

    options = {"tol": 0, "max_iter": 500}
    best = plan(n_init=6, n_jobs=n_jobs, progress=progress, options=options).best(X)
    assert best.status == "stopped"
    assert len(set(seen)) <= n_jobs


def test_a_fit_that_runs_out_of_time_says_so():
    points = np.random.default_rng(0).random((60, 3))
    with pytest.warns(ConvergenceWarning, match="raise max_time or tol"):
        symnmf.SymNMF(4, max_time=0.0, random_state=0).fit(points)


def test_a_later_fit_does_not_take_the_starts_of_an_earlier_one_for_its_own(X, tmp_path):
    """The file that says which fit it is was removed; those of its starts were not."""
    options = {"tol": 0, "max_iter": 12}
    for path in (tmp_path / "e[1].npz", tmp_path / "fit.npz"):
        first = plan(checkpoint=path, random_state=1, n_jobs=1, options=options).best(X)
        path.unlink()
        other = plan(checkpoint=path, random_state=2, n_jobs=1, options=options).best(X)
        expected = plan(random_state=2, n_jobs=1, options=options).best(X)
        assert np.array_equal(other.U, expected.U)
        assert not np.array_equal(other.U, first.U)


def test_a_start_moved_from_one_fit_to_another_is_refused(X, tmp_path):
    options = {"tol": 0, "max_iter": 4}
    files = []
    for seed in (1, 2):
        path = tmp_path / f"fit{seed}.npz"
        plan(checkpoint=path, random_state=seed, options=options).best(X)
        files.append(next(tmp_path.glob(f"fit{seed}.*.start-0.npz")))
    files[0].replace(files[1])
    with pytest.raises(InputError, match=r"another run.*owner"):
        plan(checkpoint=tmp_path / "fit2.npz", random_state=2, options=options).best(X)


def test_what_the_search_found_can_be_looked_at_afterwards(X):
    search = plan(options={"max_iter": 2000}).search(X)
    assert all(result.certificate().certified for result in search.finished)
    assert search.best.bound().error <= search.best.error
