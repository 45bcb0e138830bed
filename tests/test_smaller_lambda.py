"""The theorems of docs/theory/coupling.md, on random problems and at their sharp example."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from conftest import synthetic_problem
from symnmf import InputError
from symnmf.coupling import Rising
from symnmf.objectives import Frobenius
from symnmf.solvers import as_solver
from symnmf.state import State
from symnmf.storage import as_symmetric

PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])
pytestmark = pytest.mark.filterwarnings("ignore::symnmf.errors.ConvergenceWarning")

problems = st.tuples(
    st.integers(3, 10), st.integers(1, 3), st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0])
)


def drawn(problem):
    n, r, seed, density = problem
    rng = np.random.default_rng(seed)
    X = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density))
    X[0, 1] = 1.0
    return X + np.triu(X, 1).T, rng.random((n, r)), rng.random((n, r))


def mu(X, U, V):
    mixed = U @ V.T
    return np.linalg.eigvalsh((mixed + mixed.T) / 2 - X)[-1]


def slopes(X, U, V, coupling):
    return (
        U @ (V.T @ V) - X @ V + coupling * (U - V),
        V @ (U.T @ U) - X @ U - coupling * (U - V),
    )


@settings(max_examples=200)
@given(problems, st.floats(0.0, 10.0))
def test_difference_of_gradients_bounds_the_distance_of_the_factors(problem, coupling):
    X, U, V = drawn(problem)
    D, skew = U - V, U @ V.T - V @ U.T
    slope_U, slope_V = slopes(X, U, V, coupling)
    left = np.vdot(slope_U - slope_V, D)
    square = np.vdot(D, D)
    right = 2 * coupling * square + 0.5 * np.vdot(skew, skew)
    right -= np.vdot((U @ V.T + V @ U.T) / 2 - X, D @ D.T)
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9 * (1 + abs(right)))
    assert left >= (2 * coupling - mu(X, U, V)) * square - 1e-9 * (1 + abs(right))


@settings(max_examples=200)
@given(problems, st.sampled_from(["symhals", "a-symhals", "symanls"]))
def test_a_constant_lambda_above_half_the_misfit_ends_with_equal_factors(problem, solver):
    X, U0, _ = drawn(problem)
    result = symnmf.factorize(
        X,
        U0.shape[1],
        init=U0,
        solver=solver,
        coupling="theory",
        tol=1e-5,
        max_iter=3000,
        record_every=25,
    )
    misfit = np.linalg.norm(X - U0 @ U0.T)
    assert 0.5 * misfit < result.coupling <= 0.51 * misfit
    assert np.linalg.norm(result.U - result.V) <= 1e-3 * np.linalg.norm(result.V)
    certificate = result.certificate(X)
    assert certificate.theorem1
    assert certificate.theorem3
    assert certificate.curvature <= misfit * (1 + 1e-9)
    if result.status == "converged":
        assert np.linalg.norm(result.U - result.V) <= 1e-5 * np.linalg.norm(result.V)


@pytest.mark.parametrize("coupling", [0.05, 0.3, 0.45, 0.499])
def test_below_a_half_the_two_by_two_example_stays_apart(coupling):
    a, c = (1 + np.sqrt(1 - 2 * coupling)) / 2, (1 - np.sqrt(1 - 2 * coupling)) / 2
    U, V = np.array([[a, c], [c, a]]), np.array([[c, a], [a, c]])
    for slope in slopes(PAIR, U, V, coupling):
        np.testing.assert_allclose(slope, 0.0, atol=1e-12)
    assert mu(PAIR, U, V) == pytest.approx(2 * coupling, abs=1e-12)
    X = Frobenius(as_symmetric(PAIR))
    for name in ("symhals", "symanls"):
        state = State.at(X, X.ops.put(U), X.ops.put(V), coupling=coupling)
        for _ in range(5):
            as_solver(name).step(X, state)
        np.testing.assert_allclose(X.ops.get(state.U.values), U, atol=1e-9)
        np.testing.assert_allclose(X.ops.get(state.V.values), V, atol=1e-9)


@given(problems, st.integers(1, 40), st.floats(0.05, 3.0))
def test_the_bound_of_the_certificate_is_one(problem, iterations, coupling):
    X, U0, _ = drawn(problem)
    result = symnmf.factorize(
        X, U0.shape[1], init=U0, solver="symhals", coupling=coupling, tol=0, max_iter=iterations
    )
    certificate = result.certificate(X)
    assert certificate.curvature == pytest.approx(mu(X, result.U, result.V), rel=1e-6, abs=1e-9)
    assert certificate.theorem1 == (certificate.curvature < 2 * result.coupling)
    assert certificate.consensus <= certificate.consensus_bound * (1 + 1e-9) + 1e-12


@given(problems, st.sampled_from(["symhals", "a-symhals"]))
def test_shrinking_lambda_stays_above_what_theorem_1_asks_for(problem, solver):
    X, U0, _ = drawn(problem)
    result = symnmf.factorize(
        X, U0.shape[1], init=U0, solver=solver, coupling="shrinking", max_iter=2000
    )
    history = result.history
    lambdas, objectives = history["coupling"], history["objective"]
    assert np.all(np.diff(lambdas) <= 0.0)
    assert np.all(np.diff(objectives) <= 1e-12 * objectives[0])
    assert np.all(2.0 * lambdas >= np.sqrt(2.0 * objectives) * (1 - 1e-9))
    certificate = result.certificate(X)
    assert certificate.theorem1
    assert certificate.monotone
    assert certificate.consensus < 1e-3


@given(problems, st.sampled_from([1e-6, 1e-3, 0.1, 1.0]))
def test_rising_lambda_brings_the_factors_together_however_low_it_begins(problem, low):
    X, U0, _ = drawn(problem)
    rule = Rising(share=0.1 * low, curvature=0.55 * low)
    result = symnmf.factorize(
        X, U0.shape[1], init=U0, solver="a-symhals", coupling=rule, max_iter=20_000, record_every=5
    )
    lambdas = result.history["coupling"]
    assert np.all(np.diff(lambdas) >= 0.0)
    changes = np.unique(lambdas)
    assert np.all(changes[1:] >= 1.1 * changes[:-1] * (1 - 1e-12))
    first = 0.5 * np.linalg.norm(X - U0 @ U0.T) ** 2
    assert lambdas[-1] <= 1.5 * max(lambdas[0], first / (2 * lambdas[0])) + 0.1 * np.sum(X)
    assert result.status == "converged"
    certificate = result.certificate(X)
    assert certificate.certified or certificate.falls  # a saddle is critical too


def test_rising_lambda_rises_on_evidence_on_a_complete_graph():
    X = 1.0 - np.eye(12)  # eleven eigenvalues of -1
    low = symnmf.factorize(
        X, 3, coupling=Rising(share=1e-3, curvature=0.01), solver="a-symhals", random_state=0,
        max_iter=5000,
    )  # fmt: skip
    assert low.history["coupling"][-1] > low.history["coupling"][0]
    assert low.status == "converged"
    assert low.certificate(X).certified
    default = symnmf.factorize(X, 3, solver="a-symhals", random_state=0, max_iter=5000)
    assert default.status == "converged"
    assert default.certificate(X).theorem1


def test_the_two_bounds_are_those_of_dense_arithmetic():
    X = synthetic_problem(90, 3, 0.3, seed=2)
    U0 = np.random.default_rng(0).random((90, 3))
    ends, misfit = np.linalg.eigvalsh(X), np.linalg.norm(X - U0 @ U0.T)
    options = {"init": U0, "solver": "symhals", "tol": 0, "max_iter": 1}
    new = symnmf.factorize(X, 3, coupling="theory", **options).coupling
    paper = symnmf.factorize(X, 3, coupling="theory-paper", **options).coupling
    assert new == pytest.approx(1.01 * 0.5 * misfit, rel=1e-9)
    assert paper == pytest.approx(1.01 * 0.5 * (abs(ends).max() + misfit - ends[0]), rel=1e-5)


def test_a_share_that_is_none_is_refused():
    with pytest.raises(InputError, match="trusted of Shrinking must be from 0 to 1"):
        symnmf.coupling.Shrinking(trusted=1e300)
