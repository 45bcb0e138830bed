"""Hidden and weighted entries: the arithmetic against dense formulas, and what a user sees."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import symnmf
from conftest import synthetic_problem
from symnmf.objectives import Weighted
from symnmf.objectives.observing import by_hidden, by_observed
from symnmf.objectives.parts import Parts
from symnmf.solvers import SOLVERS
from symnmf.state import Point, State
from symnmf.storage import as_symmetric

WEIGHING = [name for name, solver in SOLVERS.items() if "plain_misfit" not in solver.requires]


def symmetric(A):
    return np.triu(A) + np.triu(A, 1).T


def drawn_weights(n, hidden, seed, *, binary=False):
    rng = np.random.default_rng(seed)
    W = symmetric(rng.random((n, n)))
    W = np.where(symmetric(rng.random((n, n))) < hidden, 0.0, 1.0 if binary else W)
    W[0, 0] = 1.0
    return W


def both_forms(X, W):
    """Yield X by its observed pairs, as a whole without its hidden pairs, and part by part."""
    yield by_observed(as_symmetric(X), sp.csr_array(W))
    yield by_hidden(as_symmetric(X, n_jobs=2), sp.csr_array(1 - W))
    yield by_hidden(as_symmetric(sp.csr_array(X)), sp.csr_array(1 - W))
    parts = Parts(as_symmetric(X), W)
    yield Weighted(parts.storage, parts, False, *parts.row_sums())


def misfit(X, W, U, V=None):
    return np.sum(W * (X - U @ (U if V is None else V).T) ** 2)


problems = st.tuples(st.integers(3, 20), st.integers(1, 4), st.floats(0, 0.9), st.integers(0, 999))


@given(problems)
def test_products_misfits_and_lines_are_those_of_dense_formulas(problem):
    n, r, hidden, seed = problem
    X, W = synthetic_problem(n, r, 0.3, seed), drawn_weights(n, hidden, seed)
    rng = np.random.default_rng(seed + 1)
    U, V = rng.random((n, r)), rng.random((n, r))
    near = 1e-9 * np.sum(X**2)
    for matrix in both_forms(X, W):
        if not isinstance(matrix, Weighted):
            continue
        S = W * (X - U @ V.T)
        product = matrix.product_at(U, V)
        np.testing.assert_allclose(product, U @ (V.T @ V) + S @ V, atol=near)
        for known in (None, matrix.product_at(U, U)):
            sums = Point(matrix.ops, U, known).sums(matrix)
            np.testing.assert_allclose(
                sums,
                [misfit(X, W, U), np.sum(W * X * (U @ U.T)), np.sum(W * (U @ U.T) ** 2)],
                atol=near,
            )
        state = State.at(matrix, U, V)
        assert matrix.twice_split(state) == pytest.approx(misfit(X, W, U, V), abs=near)
        assert matrix.sqnorm == pytest.approx(np.sum(W * X**2), abs=near)
        T = rng.random((n, 2))
        np.testing.assert_allclose(matrix.residual_times(U, V, T), 0.5 * (S + S.T) @ T, atol=near)
        here = matrix.product_at(U, U)
        line, c = matrix.along(U, here, U.T @ U, V.copy(), np.empty_like(U))
        for t in (0.3, 1.0):
            change = 0.5 * (misfit(X, W, U + t * (V - U)) - misfit(X, W, U))
            assert sum(ck * t**k for k, ck in enumerate(c, 1)) == pytest.approx(change, abs=near)
        moved, product, _ = matrix.advance(U.copy(), here, line, 0.3)
        np.testing.assert_allclose(moved, U + 0.3 * (V - U), atol=1e-12)
        if product is not None:
            np.testing.assert_allclose(product, matrix.product_at(moved, moved), atol=near)


@pytest.mark.parametrize("solver", WEIGHING)
@pytest.mark.parametrize("hidden", [0.1, 0.6])
def test_the_weighted_objective_never_rises_and_is_the_one_recorded(solver, hidden):
    X, W = synthetic_problem(30, 3, 0.2, seed=4), drawn_weights(30, hidden, seed=5)
    W /= W.max()
    found = symnmf.factorize(
        X, 3, weights=W, solver=solver, max_iter=40, tol=0, random_state=0,
        coupling=0.5 if SOLVERS[solver].has_coupling else None,
    )  # fmt: skip
    objective = found.history["objective"]
    assert np.all(np.diff(objective) <= 1e-10 * objective[0])
    value = 0.5 * misfit(X, W, found.U, found.V) + 0.25 * np.sum((found.U - found.V) ** 2)
    assert objective[-1] == pytest.approx(value, rel=1e-8)
    assert found.error == pytest.approx(misfit(X, W, found.U) / np.sum(W * X**2), rel=1e-8)


@pytest.mark.parametrize("hidden", [0.1, 0.6])
def test_the_end_is_as_good_as_scipys_from_there(hidden):
    X, W = synthetic_problem(40, 3, 0.3, seed=6), drawn_weights(40, hidden, seed=7)
    W /= W.max()
    found = symnmf.factorize(X, 3, weights=W, random_state=0, tol=1e-9, max_iter=3000)

    def evaluate(flat):
        U = flat.reshape(40, 3)
        return 0.5 * misfit(X, W, U), (-2 * (W * (X - U @ U.T)) @ U).ravel()

    end = minimize(
        evaluate, found.U.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 120,
        options={"ftol": 1e-15, "gtol": 1e-12},
    )  # fmt: skip
    assert found.history["objective"][-1] <= end.fun * (1 + 1e-9)
    assert found.certificate().certified
    assert found.certificate(symnmf.Problem(X, weights=W)).certified
    with pytest.raises(symnmf.InputError, match="was not fitted to"):
        found.certificate(X)


@pytest.mark.parametrize("hidden", [0.05, 0.6])
@pytest.mark.parametrize("solver", WEIGHING)
def test_what_is_hidden_has_no_say(solver, hidden):
    X, mask = synthetic_problem(30, 3, 0.2, seed=9), drawn_weights(30, hidden, 10, binary=True) > 0
    options = {"solver": solver, "max_iter": 5, "tol": 0, "random_state": 0}
    plain = symnmf.factorize(X, 3, mask=mask, **options)
    garbage = np.where(mask, X, 1e6)
    np.testing.assert_array_equal(symnmf.factorize(garbage, 3, mask=mask, **options).U, plain.U)
    nan = np.where(mask, X, np.nan)
    np.testing.assert_array_equal(symnmf.factorize(nan, 3, missing="nan", **options).U, plain.U)
    sparse = symnmf.factorize(X, 3, mask=sp.csr_array(mask), **options)
    np.testing.assert_allclose(sparse.U, plain.U, rtol=1e-6, atol=1e-8)
    weighted = symnmf.factorize(X, 3, weights=7.0 * mask, **options)
    np.testing.assert_array_equal(weighted.U, plain.U)


def test_hidden_entries_are_found_again():
    X = synthetic_problem(120, 3, seed=11)
    for hidden in (0.2, 0.7):
        mask = drawn_weights(120, hidden, seed=12, binary=True) > 0
        found = symnmf.factorize(np.where(mask, X, np.nan), 3, missing="nan", random_state=0)
        assert found.status == "converged"
        missed = np.linalg.norm((X - found.U @ found.U.T)[~mask]) / np.linalg.norm(X[~mask])
        assert missed < 1e-3


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"mask": np.ones((3, 3))}, "mask must have the shape"),
        ({"mask": np.zeros((4, 4))}, "mask hides every entry"),
        ({"mask": np.triu(np.ones((4, 4)))}, "mask is not symmetric"),
        ({"weights": -np.ones((4, 4))}, "weights must be finite and at least 0"),
        ({"weights": np.full((4, 4), np.nan)}, "weights must be finite"),
        ({"weights": "much"}, "weights must be an array"),
        ({"mask": np.ones((4, 4)), "weights": np.ones((4, 4))}, "mask and weights"),
        ({"missing": "zero"}, "missing must be"),
        ({"missing": "unstored"}, "needs a sparse X"),
        ({"ignore_diagonal": 2}, "ignore_diagonal must be"),
        ({"mask": 1 - np.eye(4), "solver": "admm"}, "solver 'admm' needs a plain .* does not have"),
        ({"mask": 1 - np.eye(4), "solver": "cd"}, "solver 'cd' needs a plain .* does not have"),
    ],
)
def test_wrong_masks_are_refused_in_one_sentence(told, says):
    with pytest.raises(symnmf.InputError, match=says):
        symnmf.factorize(np.ones((4, 4)), 2, **told)
