"""Columns of zeros: named by the certificate, brought back to life by the default solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from symnmf.state import Point
from symnmf.steps.revival import column_from_residual

pytestmark = pytest.mark.filterwarnings("ignore::symnmf.errors.ConvergenceWarning")


def blocks():
    return np.kron(np.eye(3), np.ones((5, 5)))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_auto_revives_columns_that_are_zero_at_a_critical_point(kind, dtype):
    X = kind(blocks().astype(dtype))
    saddle = np.zeros((15, 3))
    saddle[:5, 1] = 1.0  # the first block exactly, and nothing else: grad f = 0
    found = symnmf.factorize(X, 3, init=saddle)
    assert found.status == "converged"
    assert found.error < 1e-8
    assert found.dead_columns.size == 0
    assert np.all(np.diff(found.history["error"]) <= 1e-6)


def test_a_column_that_nothing_asks_for_stays_zero_and_the_run_ends():
    B = np.random.default_rng(0).random((12, 2))
    start = np.hstack([B, np.zeros((12, 2))])
    found = symnmf.factorize(B @ B.T, 4, init=start)
    assert found.status == "converged"
    assert found.error < 1e-12


def test_certificate_and_result_name_the_dead_columns():
    X = blocks()
    start = np.random.default_rng(1).random((15, 3))
    start[:, [0, 2]] = 0.0
    found = symnmf.factorize(X, 3, init=start, solver="a-symhals", max_iter=5000)
    assert found.dead_columns.tolist() == [0, 2]
    certificate = found.certificate(X)
    assert certificate.dead_columns == (0, 2)
    assert certificate.falls  # a column there lowers the objective, so this is no minimum
    assert not certificate.certified
    assert "0, 2: a column there lowers" in str(certificate)
    alive = symnmf.factorize(X, 3, random_state=0).certificate(X)
    assert alive.dead_columns == ()
    assert "zero column" not in str(alive)


def test_a_revived_run_resumes_bit_for_bit(tmp_path):
    X = synthetic_problem(20, 4, 0.1, seed=3)
    start = np.random.default_rng(4).random((20, 4))
    start[:, 1:3] = 0.0
    options = {"tol": 0, "n_jobs": 1}
    whole = symnmf.factorize(X, 4, init=start, max_iter=12, **options)
    for stop in (1, 2, 5):
        file = tmp_path / f"{stop}.npz"
        symnmf.factorize(X, 4, init=start, max_iter=stop, checkpoint=file, **options)
        rest = symnmf.factorize(X, 4, init=start, max_iter=12, checkpoint=file, **options)
        np.testing.assert_array_equal(rest.U, whole.U)


@pytest.mark.parametrize("price", [0.0, 0.1, 1.0])
def test_a_column_that_is_put_in_lowers_f(price):
    f = symnmf.Problem(blocks(), l1=price).objective
    U = np.zeros((15, 3))
    U[:5, 1] = 1.0
    column = column_from_residual(f, Point(f.ops, U))
    revived = U.copy()
    revived[:, 0] = column
    assert f.value(Point(f.ops, revived)) < f.value(Point(f.ops, U)) - 1.0


@pytest.mark.parametrize("price", [3.0, 3.5, 5.0])
def test_no_column_is_put_in_where_it_costs_more_than_it_brings(price):
    """The best length with a price may be a local minimum above 0."""
    f = symnmf.Problem(blocks(), l1=price).objective
    U = np.zeros((15, 3))
    column = column_from_residual(f, Point(f.ops, U))
    if column is not None:
        revived = U.copy()
        revived[:, 0] = column
        assert f.value(Point(f.ops, revived)) < f.value(Point(f.ops, U))
