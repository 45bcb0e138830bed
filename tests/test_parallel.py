"""Work that several threads share is that of one thread, whoever else is at work."""

from __future__ import annotations

import itertools
import os
import threading
import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
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
