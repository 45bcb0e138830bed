"""Several starts that share one reading of X end where they would have ended alone."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from symnmf.errors import ConvergenceWarning, InputError
from symnmf.objectives import Frobenius
from symnmf.run import multistart
from symnmf.run.multistart import Plan
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.storage import LowRank, as_symmetric, dense
from symnmf.storage.shared import SharedReading


@pytest.fixture(scope="module")
def X():
    return synthetic_problem(120, 5, 0.5, seed=0)


@pytest.fixture
def sharing(monkeypatch):
    """Let small matrices share, and count the columns of every product with X."""
    monkeypatch.setattr(dense, "SHARED_ROWS", 0)
    widths = []
    whole = symnmf.storage.DenseMatrix.matmul

    def counted(self, V, out=None):
        widths.append(V.shape[1])
        return whole(self, V, out)

    monkeypatch.setattr(symnmf.storage.DenseMatrix, "matmul", counted)
    return widths


def plan(rank=4, n_init=5, **more):
    options = {"solver": "a-symhals", "tol": 1e-4, "max_iter": 200} | more.pop("options", {})
    more = {"init": "scaled-random", "random_state": 7, **more}
    settings = Settings.of(**options, max_time=more.pop("max_time", None))
    return Plan(rank, settings, n_init=n_init, **more)


def in_threads(run, count):
    """Run in daemon threads with a limit, so that a start that hangs fails the test."""
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a start waits for ever"


@pytest.mark.parametrize("solver", ["symanls", "a-symhals", "hals-newton", "pgd", "cd"])
def test_starts_that_share_end_where_they_would_alone(X, solver):
    matrix, generators = as_symmetric(X, n_jobs=2), multistart._generators(7, 4)
    # of unequal length, so that the others go on when one leaves
    options = [{"solver": solver, "tol": 0, "max_iter": 5 + 4 * i} for i in range(4)]
    reading, found = SharedReading(matrix, 4), {}

    def run(i):
        with reading.seat(i) as seen:
            found[i] = symnmf.factorize(seen, 4, random_state=generators[i], **options[i])

    in_threads(run, 4)
    for i, generator in enumerate(multistart._generators(7, 4)):
        alone = symnmf.factorize(matrix, 4, random_state=generator, **options[i])
        # as near as rounding, magnified by a few iterations, lets them be
        assert np.linalg.norm(found[i].U - alone.U) < 1e-6 * np.linalg.norm(alone.U)
        assert found[i].error == pytest.approx(alone.error, rel=1e-8)
        assert found[i].n_iter == alone.n_iter


def test_one_wide_product_serves_all_starts(X, sharing):
    options = {"tol": 0, "max_iter": 6}
    wide = plan(options=options).best(X)
    together = sharing.copy()
    # five starts of rank 4, the single vectors of their couplings' estimates, and the row sums
    assert set(together) == {20, 5, 1}
    sharing.clear()
    alone = symnmf.factorize(X, 4, random_state=7, solver="a-symhals", **options)
    assert alone.n_iter == wide.n_iter == 6
    # a single start multiplies twice per iteration within `update`, which is not counted
    assert together.count(20) == 2 * 6 + sharing.count(4)


def test_the_best_is_the_best_of_separate_starts(X, sharing):
    options = {"tol": 0, "max_iter": 60}
    errors = [
        symnmf.factorize(X, 4, random_state=g, solver="a-symhals", **options).error
        for g in multistart._generators(7, 5)
    ]
    sharing.clear()
    assert plan(options=options).best(X).error == pytest.approx(min(errors), rel=1e-6)
    assert max(sharing) == 20
    assert len(set(np.round(errors, 6))) > 1


def test_more_starts_than_seats_run_in_groups(X, sharing):
    options = {"tol": 0, "max_iter": 3}
    best = plan(rank=4, n_init=19, options=options).best(X)
    assert set(sharing) == {64, 16, 12, 3, 1}
    alone = min(
        symnmf.factorize(X, 4, random_state=g, solver="a-symhals", **options).error
        for g in multistart._generators(7, 19)
    )
    assert best.error == pytest.approx(alone, rel=1e-9)


def test_who_comes_first_does_not_change_a_bit(X):
    matrix = as_symmetric(X, n_jobs=2)

    def factor(order):
        reading, found = SharedReading(matrix, 3), {}
        gates = [threading.Event() for _ in range(3)]

        def run(i):
            gates[i].wait(60)
            with reading.seat(i) as seen:
                place = order.index(i)
                if place + 1 < 3:
                    gates[order[place + 1]].set()
                found[i] = symnmf.factorize(seen, 4, random_state=i, tol=0, max_iter=8 + i)

        gates[order[0]].set()
        in_threads(run, 3)
        return [found[i].U for i in range(3)]

    for a, b in zip(factor([0, 1, 2]), factor([2, 0, 1]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_exception_in_one_start_leaves_the_others_running(X):
    reading, found = SharedReading(as_symmetric(X), 3), {}

    def broken(now):
        if now.iteration == 4:
            raise LookupError("from the callback")

    def run(i):
        try:
            with reading.seat(i) as seen:
                found[i] = symnmf.factorize(
                    seen, 4, tol=0, max_iter=9, random_state=i, callback=broken if i == 1 else None
                )
        except LookupError as error:
            found[i] = error

    in_threads(run, 3)
    assert found[0].n_iter == found[2].n_iter == 9
    assert isinstance(found[1], LookupError)


def test_an_exception_in_one_start_reaches_the_caller(X, sharing):
    def broken(start, now):
        if start == 2 and now.iteration == 3:
            raise LookupError("from the callback")

    def run(_):
        with pytest.raises(LookupError, match="from the callback"):
            plan(progress=broken).best(X)
        finished.append(True)

    finished = []
    in_threads(run, 1)
    assert finished


@pytest.mark.parametrize(
    ("error", "seen_as"), [(MemoryError, MemoryError), (OSError, RuntimeError)]
)
def test_a_product_that_fails_fails_every_start_in_it(X, monkeypatch, error, seen_as):
    matrix, failures = as_symmetric(X), []
    reading = SharedReading(matrix, 3)

    def fail(V, out=None):
        raise error("no product")

    def run(i):
        with reading.seat(i) as seen:
            monkeypatch.setattr(matrix, "matmul", fail)
            try:
                seen.matmul(np.ones((120, 2)))
            except seen_as as raised:
                failures.append(type(raised.__cause__))

    in_threads(run, 3)
    assert failures == [error] * 3


def test_a_callback_that_stops_one_start_stops_those_that_share_with_it(X, sharing):
    seen = {}

    def stop_the_second(start, now):
        seen[start] = now.iteration
        return start == 1 and now.iteration == 3

    best = plan(n_init=3, progress=stop_the_second, options={"tol": 0, "max_iter": 90}).best(X)
    assert seen[1] == 3
    assert max(seen.values()) <= 4
    assert best.status == "stopped"


@pytest.mark.skipif(os.name == "nt", reason="os.kill would end the process on Windows")
def test_ctrl_c_ends_the_starts_under_way(X, sharing):
    def interrupt(start, now):
        if start == 1 and now.iteration == 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    best = plan(progress=interrupt, options={"tol": 0, "max_iter": 10**7}).best(X)
    assert best.status == "stopped"
    assert best.n_iter < 10**6  # far from the limit; how soon is up to the threads
    assert signal.getsignal(signal.SIGINT) is before


def test_the_time_limit_is_that_of_the_whole_fit(X, sharing):
    best = plan(max_time=0.2, options={"tol": 0, "max_iter": 10**7}).best(X)
    assert best.status == "max_time"
    assert best.seconds.total >= 0.2


def test_starts_share_only_where_it_pays_and_is_repeatable(tmp_path):
    rng = np.random.default_rng(0)
    large = Frobenius(as_symmetric(np.ones((dense.SHARED_ROWS, dense.SHARED_ROWS))))
    assert plan()._seats(large) == 5
    assert plan(n_init=50)._seats(large) == 16
    assert plan(rank=dense.SHARED_RANK + 1)._seats(large) == 1
    assert plan(checkpoint=tmp_path / "fit.npz")._seats(large) == 1
    assert plan()._seats(Frobenius(as_symmetric(np.ones((50, 50))))) == 1
    assert plan()._seats(Frobenius(LowRank(rng.random((dense.SHARED_ROWS, 3))))) == 1


def test_starts_run_apart_where_that_keeps_every_core_busy(monkeypatch):
    dense = Frobenius(as_symmetric(np.ones((600, 600)), n_jobs=2))
    assert len(dense.storage.chunks(20)) == 2
    assert plan(rank=20)._apart(dense)
    assert not plan(rank=20, n_init=1)._apart(dense)
    assert plan(rank=2, n_init=1)._apart(Frobenius(as_symmetric(np.ones((50, 50)), n_jobs=2)))
    monkeypatch.setattr(multistart, "APART_UP_TO", 0)
    assert not plan(rank=20)._apart(dense)


def test_a_low_rank_matrix_keeps_its_threads_through_several_starts():
    X = LowRank(np.random.default_rng(0).random((60, 3)))
    before = X.threads
    best = plan(rank=3, n_init=3).best(X)
    assert X.threads is before
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


@pytest.mark.parametrize(("n_jobs", "seconds"), [(1, 2.0), (2, 10.0 / 3), (5, 10.0)])
def test_starts_at_the_same_time_have_the_same_seconds(n_jobs, seconds):
    problem = Problem.of(np.ones((50, 50)))
    assert plan(n_jobs=n_jobs, max_time=10.0).seconds_each(problem) == pytest.approx(seconds)
    assert plan(n_jobs=n_jobs).seconds_each(problem) is None


def test_what_the_search_found_can_be_looked_at_afterwards(X, sharing):
    search = plan(options={"max_iter": 2000}).search(X)
    assert max(sharing) == 20
    assert all(result.certificate().certified for result in search.finished)
    assert search.best.bound().error <= search.best.error
