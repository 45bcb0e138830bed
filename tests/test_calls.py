"""What a call says of itself: digits of its errors, seconds by part, readings of X, its limit."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from symnmf import calls
from symnmf.objectives.frobenius import CARRIED_WITHIN


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
