"""Work that several threads share is that of one thread, whoever else is at work."""

from __future__ import annotations

import _thread
import itertools
import os
import threading
import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import MINUTES
from symnmf import parallel
from symnmf.ops import Hals, Nnls
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.storage import as_symmetric


def cut(n: int, parts: int) -> list[tuple[int, int]]:
    edges = [n * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(edges))


def squares(threads: int, parts: int, values: Any, fails: int = -1) -> Any:
    out = np.zeros(len(values))

    def task(begin: int, end: int) -> int:
        if begin <= fails < end:
            raise ZeroDivisionError
        out[begin:end] += values[begin:end] ** 2
        return begin

    begins = Threads(threads).run(task, cut(len(values), parts))
    assert begins == [begin for begin, _ in cut(len(values), parts)]
    return out


@pytest.mark.parametrize("parts", [1, 2, 7, 250])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_part_is_done_once(parts: int, threads: int) -> None:
    values = np.arange(1000.0)
    for _ in range(20):
        np.testing.assert_array_equal(squares(threads, parts, values), values**2)


@pytest.mark.parametrize("fails", [0, 50, 99])
def test_an_error_in_a_part_reaches_the_caller(fails: int) -> None:
    with pytest.raises(ZeroDivisionError):
        squares(3, 6, np.arange(100.0), fails)
    np.testing.assert_array_equal(squares(3, 6, np.ones(100)), np.ones(100))


def test_callers_in_several_threads_do_not_get_each_others_rows() -> None:
    wrong: list[int] = []

    def call(number: int) -> None:
        values = np.full(500, float(number))
        wrong.extend(number for _ in range(200) if not (squares(3, 12, values) == values**2).all())

    callers = [threading.Thread(target=call, args=(number,)) for number in range(1, 6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(MINUTES)
    assert not any(caller.is_alive() for caller in callers)
    assert wrong == []


def test_work_inside_of_work_ends() -> None:
    def outer(begin: int, end: int) -> float:
        return float(squares(3, 4, np.arange(float(begin), float(end))).sum())

    found = sum(Threads(3).run(outer, cut(1000, 9)))
    assert found == np.sum(np.arange(1000.0) ** 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own() -> None:
    values = np.arange(1000.0)
    squares(3, 9, values)
    child = os.fork()
    if child == 0:
        seen: set[int] = set()

        def task(begin: int, end: int) -> None:
            seen.add(threading.get_ident())
            time.sleep(0.01)

        right = (squares(3, 9, values) == values**2).all()
        Threads(3).run(task, cut(9, 9))
        os._exit(0 if right and len(seen) > 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_nothing_is_at_work_when_a_call_has_failed() -> None:
    """No thread writes into an array that the caller has left."""
    at_work, begun = threading.Event(), threading.Event()
    caller = threading.get_ident()

    def task(begin: int, end: int) -> None:
        if threading.get_ident() == caller:
            assert begun.wait(MINUTES)
            raise ZeroDivisionError
        at_work.set()
        begun.set()
        time.sleep(0.05)
        at_work.clear()

    with pytest.raises(ZeroDivisionError):
        Threads(2).run(task, [(0, 1), (1, 2)])
    assert not at_work.is_set()


def test_the_caller_does_the_work_where_no_thread_can_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cannot_start(*_: Any) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", cannot_start)
    monkeypatch.setattr(parallel, "_workers", parallel._Workers())
    np.testing.assert_array_equal(squares(4, 9, np.arange(50.0)), np.arange(50.0) ** 2)


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[HostOps, HostOps]:
    """Operations on one thread, and on four that share everything however small."""
    monkeypatch.setattr("symnmf.parallel.SMALLEST_SHARE", 1)
    monkeypatch.setattr("symnmf.parallel.available_cores", lambda: 4)
    return HostOps(Threads(1)), HostOps(Threads(4))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_operations_are_those_of_one_thread(both: tuple[HostOps, HostOps], dtype: Any) -> None:
    rng = np.random.default_rng(0)
    U, V, P, Z, image = (rng.random((203, 5)).astype(dtype) for _ in range(5))
    gram = (U.astype(float).T @ U).astype(float)
    close = 2e-5 if dtype is np.float32 else 1e-12

    def results(ops: HostOps) -> list[Any]:
        line = ops.line(U, P, Z.copy(), image.copy())
        moved = ops.advance(U.copy(), P.copy(), line, 0.3)
        return [
            ops.inner(U, V), ops.apart(U, V), ops.cross(U, V), ops.times(U, gram),
            ops.combine((0.5, U), (2.0, V)), ops.natural_residual(U, P, gram, 0.1),
            ops.solve_rows(Hals(2), U.copy(), P, V, gram, 0.5),
            ops.solve_rows(Nnls(), U.copy(), P, V, gram, 0.5),
            line.slope, line.bend, line.cross, line.gram, *moved,
        ]  # fmt: skip

    for alone, shared in zip(*map(results, both), strict=True):
        largest = np.abs(alone).max()  # sums of both signs are as precise as their terms
        np.testing.assert_allclose(shared, alone, rtol=0, atol=close * largest)


def test_gauss_newton_steps_are_those_of_one_thread(both: tuple[HostOps, HostOps]) -> None:
    U, P = np.random.default_rng(0).random((2, 203, 5))
    gram = U.T @ U
    eigen = np.linalg.eigh(gram)
    one, four = (
        ops.gauss_newton(U, P, gram, eigen, (1.0, 1.1, 1.6), np.zeros_like(U), 4) for ops in both
    )
    np.testing.assert_allclose(one, four, atol=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solver", ["auto", "a-symhals", "symanls"])
def test_runs_end_where_those_on_one_thread_end(solver: str, sparse: bool) -> None:
    rng = np.random.default_rng(1)
    W = rng.random((300, 4)) * (rng.random((300, 4)) < 0.4)
    X: Any = W @ W.T
    if sparse:
        X = sp.csr_array(np.where(X > 0.4, X, 0.0))
    options = {"solver": solver, "init": "scaled-random", "random_state": 0, "max_iter": 30}
    one, four = (symnmf.factorize(X, 4, n_jobs=jobs, **options) for jobs in (1, 4))
    assert four.error == pytest.approx(one.error, rel=1e-6)
    product = as_symmetric(X, n_jobs=4).matmul(W)
    np.testing.assert_allclose(product, X @ W, rtol=1e-12)
