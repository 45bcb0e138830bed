"""Passes that several threads share have the results of the same pass on one thread."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from symnmf.kernels.compiling import compiled
from symnmf.kernels.team import do_parts, handed_over, together
from symnmf.ops import Hals, Nnls
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.storage import as_symmetric


@compiled()
def _squares(given: Any, part: int, first: int, last: int) -> None:
    values, out, fails = given
    if part == fails:
        raise MemoryError
    for i in range(first, last):
        out[i] = values[i] * values[i]


@compiled()
def squares(
    shared: np.ndarray,
    threads: int,
    bounds: np.ndarray,
    values: np.ndarray,
    out: np.ndarray,
    fails: int,
) -> None:
    function, given = handed_over(_squares, (values, out, fails))  # type: ignore[call-arg]
    do_parts(shared, threads, function, given, bounds)


def cut(n: int, parts: int) -> np.ndarray:
    return np.array([n * part // parts for part in range(parts + 1)], np.int64)


@pytest.mark.parametrize("parts", [1, 2, 7, 256])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_row_is_done_once(parts: int, threads: int) -> None:
    values = np.arange(1000.0)
    for _ in range(20):
        out = np.zeros(1000)
        together(squares, threads, cut(1000, parts), values, out, -1)
        np.testing.assert_array_equal(out, values**2)


@pytest.mark.parametrize("parts", [1, 6])
def test_a_part_that_fails_is_not_passed_over_in_silence(parts: int) -> None:
    values, out = np.arange(100.0), np.zeros(100)
    for fails in range(parts):
        with pytest.raises(MemoryError, match="no memory"):
            together(squares, 3, cut(100, parts), values, out, fails)
    together(squares, 3, cut(100, parts), values, out, -1)
    np.testing.assert_array_equal(out, values**2)


def test_callers_in_several_threads_do_not_get_each_others_rows() -> None:
    wrong: list[int] = []

    def call(number: int) -> None:
        values = np.full(5000, float(number))
        for _ in range(200):
            out = np.zeros(5000)
            together(squares, 3, cut(5000, 12), values, out, -1)
            if not (out == values**2).all():
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(1, 6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(120)
    assert not any(caller.is_alive() for caller in callers)
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_helpers_of_its_own() -> None:
    values, out = np.arange(1000.0), np.zeros(1000)
    together(squares, 3, cut(1000, 9), values, out, -1)
    child = os.fork()
    if child == 0:
        again = np.zeros(1000)
        together(squares, 3, cut(1000, 9), values, again, -1)
        os._exit(0 if (again == values**2).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[HostOps, HostOps]:
    """Operations on one thread, and on four that share every pass however small."""
    monkeypatch.setattr("symnmf.parallel.SMALLEST_PART", 1)
    monkeypatch.setattr("symnmf.parallel.LEAST_SHARED", 0)
    monkeypatch.setattr("symnmf.parallel.available_cores", lambda: 4)
    return HostOps(Threads(1)), HostOps(Threads(4))


@pytest.mark.parametrize("width", [5, 50], ids=["", "sums-shared-too"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_operations_are_those_of_one_thread(
    both: tuple[HostOps, HostOps], dtype: Any, width: int
) -> None:
    rng = np.random.default_rng(0)
    U, V, P, Z, image = (rng.random((203, width)).astype(dtype) for _ in range(5))
    gram = (U.astype(float).T @ U).astype(float)
    close = 2e-5 if dtype is np.float32 else 1e-12

    def results(ops: HostOps) -> list[Any]:
        line = ops.line(U, P, Z.copy(), image.copy())
        moved = ops.advance(U.copy(), P.copy(), line, 0.3)
        return [
            ops.inner(U, V), *ops.pair(U, V), ops.cross(U, V),
            ops.natural_residual(U, P, gram, 0.1),
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
