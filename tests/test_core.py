"""The three algorithms of the paper: the same iterates, and what the theorems promise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import symnmf
from conftest import synthetic_problem
from reference import accelerated_hals, adaptive_hals, anls, gradient, objective
from symnmf.coupling import Adaptive
from symnmf.solvers import ASymHALS, SymHALS

PAPER = ("symanls", "symhals", "a-symhals")


def sparse_problem(n, density, seed):
    X = sp.random_array((n, n), density=density, rng=np.random.default_rng(seed), format="csr")
    return sp.csr_array(X + X.T)


def run(X, U0, **options):
    settings = {"solver": "a-symhals", "tol": 0.0, "init": U0, "max_iter": 50, "n_jobs": 1}
    settings |= options
    return symnmf.factorize(X, U0.shape[1], **settings)


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize("sweeps", [1, 2, 3])
@pytest.mark.parametrize("coupling", [0.05, 3.0])
def test_dense_iterates_are_those_of_the_residual_form(sweeps, coupling):
    X = synthetic_problem(40, 6, 0.1, seed=1)
    U0 = np.random.default_rng(2).random((40, 6))
    U, V = accelerated_hals(X, U0, [coupling] * 50, sweeps)
    found = run(X, U0, solver=SymHALS() if sweeps == 1 else ASymHALS(sweeps), coupling=coupling)
    assert relative(found.U, U) < 1e-9
    assert relative(found.V, V) < 1e-9


@pytest.mark.parametrize("sweeps", [1, 2])
def test_sparse_iterates_are_those_of_the_residual_form(sweeps):
    X = sparse_problem(60, 0.1, seed=3)
    U0 = np.random.default_rng(4).random((60, 5))
    U, V = accelerated_hals(X.toarray(), U0, [0.3] * 50, sweeps)
    found = run(X, U0, solver=SymHALS() if sweeps == 1 else ASymHALS(sweeps), coupling=0.3)
    assert relative(found.U, U) < 1e-9
    assert relative(found.V, V) < 1e-9


def test_adaptive_coupling_follows_the_papers_formula():
    X = synthetic_problem(30, 4, 0.1, seed=5)
    U0 = np.random.default_rng(6).random((30, 4))
    U, _, coupling = adaptive_hals(X, U0, 1e-5, 50, sweeps=2)
    found = run(X, U0, coupling="adaptive")
    assert found.coupling == pytest.approx(coupling, rel=1e-9)
    assert relative(found.U, U) < 1e-8


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_symanls_is_exact_alternating_least_squares(kind):
    X = sparse_problem(25, 0.3, seed=7)
    U0 = np.random.default_rng(8).random((25, 4))
    U, V = anls(X.toarray(), U0, 0.5, 15)
    found = run(
        X.toarray() if kind == "dense" else X, U0, solver="symanls", coupling=0.5, max_iter=15
    )
    assert relative(found.U, U) < 1e-8
    assert relative(found.V, V) < 1e-8


problems = st.tuples(
    st.integers(2, 25), st.integers(1, 5), st.floats(0, 0.5), st.integers(0, 10_000)
)


def drawn(problem):
    n, r, noise, seed = problem
    r = min(n, r)
    X = synthetic_problem(n, r, noise, seed)
    return X, np.random.default_rng(seed + 1).random((n, r))


@given(problems, st.floats(1e-3, 50.0), st.sampled_from(PAPER))
def test_objective_falls_by_what_the_sufficient_decrease_lemma_says(problem, coupling, solver):
    X, U0 = drawn(problem)
    L = 2 if solver == "a-symhals" else 1
    seen = []
    run(
        X,
        U0,
        solver=solver,
        coupling=coupling,
        max_iter=6,
        callback=lambda now: seen.append((now.U.copy(), now.V.copy())),
    )
    for (U, V), (U1, V1) in itertools.pairwise(seen):
        before, after = objective(X, U, V, coupling), objective(X, U1, V1, coupling)
        moved = np.sum((U1 - U) ** 2) + np.sum((V1 - V) ** 2)
        # the lemma also has the inner moves, whose squares sum to at least moved / L
        assert before - after >= coupling / (4 * L) * (1 + 1 / L) * moved - 1e-9 * np.sum(X**2)


@given(problems, st.floats(0.01, 50.0), st.sampled_from(PAPER))
def test_iterates_stay_within_the_bounds_of_lemma_1(problem, coupling, solver):
    X, U0 = drawn(problem)
    r = U0.shape[1]
    found = run(X, U0, solver=solver, coupling=coupling, max_iter=10)
    misfit, size = np.linalg.norm(X - U0 @ U0.T), np.linalg.norm(X)
    product = np.linalg.norm(found.U @ found.V.T, 2)
    assert product <= (misfit + np.linalg.norm(X, 2)) * (1 + 1e-9)
    # ||U V^T||_F <= misfit + ||X||_F, not misfit^2 + ||X||_F as the paper prints
    bound = misfit**2 / coupling + 2 * np.sqrt(r) * (misfit + size)
    assert np.sum(found.U**2) + np.sum(found.V**2) <= bound * (1 + 1e-9)


@given(problems, st.sampled_from(PAPER))
def test_theory_coupling_ends_with_equal_factors_at_a_critical_point(problem, solver):
    X, U0 = drawn(problem)
    found = symnmf.factorize(
        X,
        U0.shape[1],
        solver=solver,
        coupling="theory-paper",
        init=U0,
        tol=1e-6,
        max_iter=20_000,
        record_every=20,
    )
    ends = np.linalg.eigvalsh(X)
    bound = 0.5 * (abs(ends).max() + np.linalg.norm(X - U0 @ U0.T) - ends[0])
    assert bound < found.coupling <= 1.02 * bound + 1e-12
    if found.status == "converged":
        assert np.linalg.norm(found.U - found.V) <= 1e-6 * np.linalg.norm(found.V)
        slope = gradient(X, found.U)
        projected = np.where(found.U > 0, slope, np.minimum(slope, 0))
        start = gradient(X, U0)
        assert np.linalg.norm(projected * (found.U > 1e-8)) <= 1e-3 * max(
            np.linalg.norm(start), np.linalg.norm(X)
        )
        assert found.certificate(X).theorem1
    else:
        assert found.status == "max_iter"
        assert found.history["consensus"][-1] < 1e-3 * np.linalg.norm(found.V)


@pytest.mark.parametrize("solver", PAPER)
def test_adaptive_coupling_settles_and_the_factors_meet(solver):
    X = synthetic_problem(50, 5, seed=13)
    found = symnmf.factorize(
        X,
        5,
        solver=solver,
        coupling="adaptive",
        init="random",
        tol=0,
        max_iter=4000,
        random_state=0,
    )
    coupling, apart = found.history["coupling"], found.history["consensus"] ** 2
    assert apart[-1] < 1e-12 < apart[5]
    assert coupling[-1] / coupling[len(coupling) // 2] < 1.001
    assert 1e-5 < coupling[-1] < 1e4


@pytest.mark.parametrize("solver", ["auto", *PAPER])
@pytest.mark.parametrize("exponent", range(-14, 15, 7))
def test_defaults_follow_the_scale_of_X(exponent, solver):
    c = 1.7 * 10.0**exponent
    X = synthetic_problem(30, 4, 0.1, seed=15)
    U0 = np.random.default_rng(16).random((30, 4))
    options = {"solver": solver, "max_iter": 60, "tol": 0}
    plain = symnmf.factorize(X, 4, init=U0, **options)
    scaled = symnmf.factorize(c**2 * X, 4, init=c * U0, **options)
    assert relative(scaled.U, c * plain.U) < 1e-8


@given(problems, st.sampled_from([np.float32, np.float64]))
def test_recorded_error_and_objective_are_those_of_the_factors(problem, dtype):
    X, U0 = drawn(problem)
    X = X.astype(dtype)
    found = run(X, U0, coupling=Adaptive(0.1), max_iter=4)
    U, V = found.U.astype(float), found.V.astype(float)
    wide = X.astype(float)
    rel = 1e-3 if dtype == np.float32 else 1e-8
    expected = np.sum((wide - U @ U.T) ** 2) / np.sum(wide**2)
    assert found.error == pytest.approx(expected, rel=rel, abs=1e-12 if rel < 1e-5 else 1e-6)
    value = objective(wide, U, V, found.coupling)
    assert found.history["objective"][-1] == pytest.approx(
        value, rel=rel, abs=rel * np.sum(wide**2) * 1e-3
    )
    assert found.U.dtype == found.V.dtype == dtype
