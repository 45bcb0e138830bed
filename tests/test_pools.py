"""Nobody waits for a thread that is not there."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symnmf
from conftest import MINUTES
from symnmf import parallel, pools
from symnmf.pools import Pool, Task


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "PATIENCE", 0.002)


def _dies_at_once(*_: Any) -> int:
    return 1  # a thread was started, and it is never seen


def _cannot_start(*_: Any) -> int:
    raise RuntimeError("can't start new thread")


@pytest.fixture(params=[_dies_at_once, _cannot_start])
def no_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", request.param)


def waited(for_what: Callable[[], bool]) -> None:
    end = time.monotonic() + MINUTES
    while not for_what():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_pool_does_what_it_is_given() -> None:
    with Pool(3) as pool:
        assert list(pool.map(lambda k: k * k, range(100))) == [k * k for k in range(100)]
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 1, 0).result()
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(divmod, 7, 2)


def test_no_more_threads_than_asked_for_and_none_are_left() -> None:
    seen = set()

    def look(_: int) -> None:
        seen.add(threading.get_ident())
        time.sleep(0.001)

    with Pool(3) as pool:
        list(pool.map(look, range(50)))
    started = seen - {threading.get_ident()}
    assert 1 <= len(started) <= 3
    waited(lambda: not started & set(sys._current_frames()))  # they have said that they end


@pytest.mark.usefixtures("no_threads")
def test_whoever_waits_does_the_work_where_no_thread_lives() -> None:
    with Pool(2) as pool:
        assert list(pool.map(lambda k: k + 1, range(5))) == [1, 2, 3, 4, 5]
        assert not pool.gather(0.01)


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("starts", [1, 3])
def test_a_run_ends_where_no_thread_lives(
    starts: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(pools.Pool.gather, "__defaults__", (0.01,))
    monkeypatch.setattr(parallel._workers, "_pool", None)
    monkeypatch.setattr(parallel, "SMALLEST_SHARE", 100)
    B = np.random.default_rng(0).random((40, 3))
    X = B @ B.T
    np.save(tmp_path / "X.npy", X)
    for matrix in (X, symnmf.storage.Blocks(tmp_path / "X.npy", memory=10_000)):
        found = symnmf.factorize(matrix, 3, n_init=starts, n_jobs=2, random_state=0, tol=1e-3)
        assert found.status == "converged"
        assert np.linalg.norm(X - found.U @ found.U.T) < 1e-2 * np.linalg.norm(X)


def test_a_task_that_could_not_report_is_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Task, "set_result", no_memory)
    with Pool(1) as pool:
        task = pool.submit(int)
        waited(task.running)  # or whoever waits would do the work
        with pytest.raises(MemoryError, match="before it could report"):
            task.result()


def test_nothing_is_at_work_when_a_run_has_failed() -> None:
    """No thread writes into an array that the caller has left."""
    at_work, begun = threading.Event(), threading.Event()

    def task(begin: int, end: int) -> None:
        if begin == 0:
            assert begun.wait(MINUTES)
            raise ZeroDivisionError
        at_work.set()
        begun.set()
        time.sleep(0.05)
        at_work.clear()

    with pytest.raises(ZeroDivisionError):
        parallel.Threads(2).run(task, [(0, 1), (1, 2)])
    assert not at_work.is_set()
