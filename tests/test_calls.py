"""What a call says of itself: digits of its errors, seconds by part, readings of X, its limit."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from symnmf import calls
from symnmf.objectives.frobenius import CARRIED_WITHIN, Frobenius
from symnmf.storage import as_symmetric
from symnmf.storage.host import HostMatrix
from symnmf.storage.misfit import SINGLE_ABOVE
from symnmf.storage.misfit import STRIP_ROWS as SIDE


def exact_error(X, U):
    """E in long double, from the entries."""
    X, U = X.astype(np.longdouble), U.astype(np.longdouble)
    return float(np.sum((X - U @ U.T) ** 2) / np.sum(X**2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("noise", [0.1, 0.0])
def test_every_error_of_a_history_has_the_digits_it_promises(dtype, noise):
    X = synthetic_problem(150, 8, noise).astype(dtype)
    seen = []
    result = symnmf.factorize(
        X,
        8,
        init="scaled-random",
        random_state=0,
        callback=lambda now: seen.append((now.error, now.U.copy())),
    )
    assert len(seen) > 10
    assert result.error < 1e-3  # far below where the trace identity is trusted in float32
    allowed = CARRIED_WITHIN[np.dtype(dtype)]
    for error, U in seen:
        exact = exact_error(X, U)
        # what float64 cannot tell from 0 in X is not asked for
        assert abs(error - exact) <= 2 * allowed * exact + 1e-25
    # the last one comes from X, not from changes
    digits = 1e-9 if dtype == np.float64 else 1e-6
    assert result.error == pytest.approx(exact_error(X, result.U), rel=digits)
    assert result.history["error"][-1] == result.error
    assert result.history["objective"][-1] == pytest.approx(
        0.5 * result.error * np.sum(X.astype(float) ** 2), rel=1e-6
    )


def test_errors_are_carried_for_most_of_a_run(monkeypatch):
    formed = []
    kept = HostMatrix.residual_sqnorm

    def counted(self, U, V):
        formed.append(1)
        return kept(self, U, V)

    monkeypatch.setattr("symnmf.storage.dense.DenseMatrix.residual_sqnorm", counted)
    for dtype, share in ((np.float64, 0.3), (np.float32, 0.5)):
        formed.clear()
        X = synthetic_problem(200, 10, 0.01 if dtype == np.float64 else 0.1).astype(dtype)
        result = symnmf.factorize(X, 10, init="scaled-random", random_state=0)
        assert result.error < 1e-6 if dtype == np.float64 else 1e-4
        assert 1 <= len(formed) <= share * result.n_iter


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [7, SIDE, SIDE + 1, 4 * SIDE + 77])
def test_a_misfit_in_tiles_is_that_of_all_entries(dtype, n):
    rng = np.random.default_rng(n)
    U = rng.random((n, 3)).astype(dtype)
    X = (U @ U.T + 0.01 * (rng.random((n, 1)) @ rng.random((1, n)))).astype(dtype)
    X = (X + X.T) / 2
    V = (U + 0.01 * rng.random(U.shape)).astype(dtype)
    matrix = as_symmetric(X, n_jobs=2)
    for other in (U, V):
        exact = float(np.sum((X.astype(np.longdouble) - U.astype(np.longdouble) @ other.T) ** 2))
        close = 1e-11 if dtype == np.float64 else 2e-5
        assert matrix.residual_sqnorm(U, other) == pytest.approx(exact, rel=close)


def test_a_tiny_misfit_in_float32_is_formed_in_float64():
    rng = np.random.default_rng(0)
    U = rng.random((300, 4)).astype(np.float32)
    # rounded products: what is left is the rounding of X, which only float64 sees
    X = (U.astype(np.float64) @ U.T).astype(np.float32)
    exact = exact_error(X, U)
    assert exact < SINGLE_ABOVE
    matrix = as_symmetric(X)
    assert matrix.residual_sqnorm(U, U) / matrix.sqnorm == pytest.approx(exact, rel=1e-5)


def test_seconds_are_told_by_part():
    X = synthetic_problem(300, 5, 0.1)

    def slow_start(matrix, rank, random_state):
        time.sleep(0.05)
        return np.random.default_rng(0).random((300, rank))

    began = time.perf_counter()
    result = symnmf.factorize(X, 5, init=slow_start, callback=lambda now: time.sleep(0.002))
    waited = time.perf_counter() - began
    parts = result.seconds
    assert 0 < parts.total <= waited
    assert parts.start >= 0.05
    assert min(parts.check, parts.solve, parts.evaluate) > 0
    summed = parts.check + parts.start + parts.solve + parts.evaluate
    assert summed + 0.002 * len(result.history) <= parts.total  # callbacks are in no part
    assert parts.solve == pytest.approx(result.history["seconds"][-1], rel=0.2)


def test_seconds_and_passes_are_kept_in_a_file(tmp_path):
    result = symnmf.factorize(synthetic_problem(30, 3), 3)
    result.save(tmp_path / "result.npz")
    loaded = symnmf.Result.load(tmp_path / "result.npz")
    assert loaded.seconds == result.seconds
    assert loaded.passes == result.passes > 0


@pytest.mark.parametrize("kind", ["dense", "sparse", "lowrank"])
def test_passes_count_every_product_and_the_check(kind, monkeypatch):
    X = synthetic_problem(120, 4, 0.3)
    if kind == "sparse":
        X = sp.csr_array(np.where(np.quantile(X, 0.5) < X, X, 0))
    if kind == "lowrank":
        B = np.random.default_rng(0).random((120, 6))
        X = symnmf.storage.LowRank(B)
    owner = type(as_symmetric(X))
    products, kept = [], owner.matmul

    def counted(self, V, out=None):
        products.append(1)
        return kept(self, V, out)

    monkeypatch.setattr(owner, "matmul", counted)
    result = symnmf.factorize(X, 4, solver="pgd", init="random", random_state=0, max_iter=5, tol=0)
    check = 0 if kind == "lowrank" else 1  # a low-rank X has been checked when it was made
    assert result.error > 1e-6  # so the trace identity gives it, without a pass
    assert result.passes == len(products) + check


def test_max_time_counts_from_the_call():
    X = synthetic_problem(300, 5, 0.1)

    def slow_start(matrix, rank, random_state):
        time.sleep(0.3)
        return np.random.default_rng(0).random((300, rank))

    with pytest.warns(symnmf.errors.ConvergenceWarning):
        result = symnmf.factorize(X, 5, init=slow_start, max_time=0.2, tol=1e-12)
    assert result.status == "max_time"
    assert result.n_iter == 0  # the start took it all, and is what there is
    assert result.U.any()


def test_evaluation_counts_towards_max_time(monkeypatch):
    kept = Frobenius.measure

    def slow(f, state):
        time.sleep(0.1)
        return kept(f, state)

    monkeypatch.setattr(Frobenius, "measure", slow)
    result = symnmf.factorize(
        synthetic_problem(50, 3, 0.1), 3, tol=0, max_iter=10**6, max_time=0.35
    )
    assert result.status == "max_time"
    assert result.n_iter <= 4


def test_the_tightest_limit_around_a_call_holds_and_sums_reach_the_outer_one():
    with calls.opened(100.0) as outer:
        with calls.opened(1000.0) as inner:
            assert inner.deadline == outer.deadline
            calls.read_once()
            with calls.timed("solve"), calls.timed("evaluate"):  # a part within one is no other
                pass
            assert inner.seconds.evaluate == 0 < inner.seconds.solve
        assert outer.passes == 1
        assert outer.seconds.solve == inner.seconds.solve
        with calls.opened(apart=True):
            calls.read_once()
        assert outer.passes == 1
        seen = []
        thread = threading.Thread(target=calls.in_this_call(lambda: seen.append(calls.read_once())))
        thread.start()
        thread.join()
        assert seen == [None]
        assert outer.passes == 2
    assert calls.seconds_left() == float("inf")
    assert not calls.out_of_time()


def test_a_search_counts_all_its_starts():
    X = synthetic_problem(60, 3, 0.1)
    found = symnmf.communities(sp.csr_array(np.where(X > 4, 1.0, 0.0)), 3, random_state=0)
    alone = symnmf.factorize(X, 3, random_state=0)
    assert found.result.passes > alone.passes / 10
    assert found.result.seconds.total > 0


def test_a_run_from_a_sketch_is_not_taken_for_one_that_has_hardly_begun():
    X = synthetic_problem(300, 6, 0.1)
    result = symnmf.factorize(X, 6, init="sketch", tol=1e-3, random_state=0)
    assert result.status == "converged"
    assert result.n_iter <= 2  # where a run from anywhere else is looked at for a saddle
    assert result.passes <= 10  # forty steps of Lanczos would each read X once
