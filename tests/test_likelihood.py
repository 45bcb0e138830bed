"""Poisson and Bernoulli losses: the formula, descent, critical points and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from symnmf import InputError
from symnmf.run.problem import Problem
from symnmf.state import Point

LOSSES = ["poisson", "bernoulli"]


def counts(seed, n=24, rank=3, loss="poisson"):
    rng = np.random.default_rng(seed)
    B = rng.random((n, rank)) * 1.2
    upper = np.triu(rng.poisson(B @ B.T), 1).astype(float)
    if loss == "bernoulli":
        upper = (upper > 0).astype(float)
    return sp.csr_array(upper + upper.T)


def by_definition(X, U, loss, seen):
    M = U @ U.T
    logs = np.log(M) if loss == "poisson" else np.log(np.expm1(M))
    return 0.5 * np.sum(seen * (M - np.where(X > 0, X * logs, 0.0)))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(LOSSES), st.sampled_from(["all", "diagonal", "mask"]))
def test_value_and_gradient_are_those_of_the_formula(seed, loss, hidden):
    X = counts(seed, loss=loss)
    n = X.shape[0]
    rng = np.random.default_rng(seed)
    seen, told = np.ones((n, n)), {}
    if hidden == "diagonal":
        seen, told = 1 - np.eye(n), {"ignore_diagonal": True}
    elif hidden == "mask":
        seen = np.triu(rng.random((n, n)) < 0.8)
        seen = (seen | seen.T).astype(float)
        told = {"mask": seen.astype(bool)}
    f: Any = Problem(X, loss=loss, **told).objective
    U = rng.random((n, 3)) + 0.1
    dense = X.toarray() * seen
    point = Point(f.ops, U)
    assert f.value(point) == pytest.approx(by_definition(dense, U, loss, seen), rel=1e-10)
    slope = f.expected(U) - point.product(f)
    ahead, behind = U.copy(), U.copy()
    ahead[3, 1] += 1e-6
    behind[3, 1] -= 1e-6
    change = by_definition(dense, ahead, loss, seen) - by_definition(dense, behind, loss, seen)
    assert change / 2e-6 == pytest.approx(slope[3, 1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["em", "row-newton"])
@pytest.mark.parametrize("ignore_diagonal", [False, True])
def test_the_likelihood_never_falls(loss, solver, ignore_diagonal):
    X = counts(1, n=40, loss=loss)
    options = {"loss": loss, "solver": solver, "ignore_diagonal": ignore_diagonal}
    with pytest.warns(UserWarning, match="did not converge"):
        result = symnmf.factorize(X, 3, max_iter=40, tol=1e-12, random_state=0, **options)
    objective = result.history["objective"]
    assert (np.diff(objective) <= 1e-10 * np.abs(objective[1:])).all()
    assert objective[-1] < objective[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_newton_on_rows_ends_at_a_critical_point_below_expectation_maximisation(loss):
    X = counts(2, n=60, loss=loss)
    common = {"loss": loss, "random_state": 0}
    newton = symnmf.factorize(X, 3, tol=1e-6, **common)
    assert (newton.status, newton.solver) == ("converged", "row-newton")
    certificate = newton.certificate()
    assert certificate.certified
    assert certificate.monotone
    f: Any = Problem(X, loss=loss).objective
    slope = f.expected(newton.U) - Point(f.ops, newton.U).product(f)
    free = newton.U > 1e-6
    assert np.abs(slope[free]).max() < 1e-3
    assert slope[~free].min(initial=0.0) > -1e-3
    with pytest.warns(UserWarning, match="did not converge"):
        slow = symnmf.factorize(X, 3, tol=1e-6, max_iter=newton.n_iter, solver="em", **common)
    assert newton.history["objective"][-1] < slow.history["objective"][-1]


@pytest.mark.parametrize(
    ("X", "options", "said"),
    [
        (np.ones((3, 3)), {"loss": "gauss"}, "loss must be one of frobenius"),
        (2 * np.ones((3, 3)), {"loss": "bernoulli"}, "entries from 0 to 1, and X has 2"),
        (np.ones((3, 3)), {"loss": "poisson", "ridge": 1.0}, "ridge cannot be combined with loss="),
        (np.ones((3, 3)), {"loss": "poisson", "solver": "symhals"}, "symhals' needs rows"),
        (np.ones((3, 3)), {"solver": "em"}, "needs loss='poisson' or 'bernoulli'"),
        (-np.ones((3, 3)), {"loss": "poisson"}, "negative"),
    ],
)
def test_what_has_no_likelihood_is_refused(X, options, said):
    with pytest.raises(InputError, match=said):
        symnmf.factorize(X, 1, **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 6])
def test_a_matrix_that_its_degrees_explain_has_an_error(n, dtype):
    degrees = 0.5 + np.random.default_rng(0).random(n)
    for X in (np.ones((n, n)), np.outer(degrees, degrees)):
        found = symnmf.factorize(X.astype(dtype), 1, loss="poisson", random_state=0)
        assert found.status == "converged"
        assert found.error == pytest.approx(0.0, abs=1e-5)
