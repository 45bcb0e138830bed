"""What is minimised: terms on U, lambda under a mask, starts by value, results that remember."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import symnmf
from conftest import synthetic_problem
from symnmf.state import Point


def value(X, U, l1=0.0, ridge=0.0, C=0.0, W=1.0):
    misfit = 0.5 * np.sum(W * (X - U @ U.T) ** 2)
    return misfit + l1 * U.sum() + 0.5 * ridge * np.sum(U**2) - np.sum(C * (U @ U.T))


def from_there(X, U, l1, ridge):
    """Return where L-BFGS-B ends from U."""

    def evaluate(flat):
        V = flat.reshape(U.shape)
        slope = 2 * (V @ (V.T @ V) - X @ V) + l1 + ridge * V
        return value(X, V, l1, ridge), slope.ravel()

    end = minimize(
        evaluate, U.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * U.size,
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 5000, "maxfun": 50_000},
    )  # fmt: skip
    return end.x.reshape(U.shape), end.fun


def karate():
    networkx = pytest.importorskip("networkx")
    return symnmf.graphs.normalize(
        symnmf.graphs.from_graph(networkx.karate_club_graph())[0]
    ).toarray()


def points():
    from sklearn.datasets import load_iris

    return symnmf.graphs.build(load_iris().data).toarray()


DATA = {
    "synthetic": lambda: synthetic_problem(40, 4, 0.3, seed=0),
    "karate": karate,
    "iris": points,
}

drawn = st.tuples(st.integers(3, 15), st.integers(1, 4), st.integers(0, 999))


@settings(deadline=None, max_examples=40)
@given(drawn, st.booleans())
def test_value_gradient_and_lines_are_those_of_the_formula(problem, masked):
    n, r, seed = problem
    rng = np.random.default_rng(seed)
    X = synthetic_problem(n, r, 0.3, seed)
    C = rng.standard_normal((n, n))
    C = C + C.T
    W = np.ones((n, n))
    if masked:
        W[0, n - 1] = W[n - 1, 0] = 0.0
    told = {"mask": W > 0} if masked else {}
    f = symnmf.Problem(X, l1=0.3, ridge=0.7, links=C, **told).objective
    U, Z = rng.random((2, n, r))
    terms = {"l1": 0.3, "ridge": 0.7, "C": C, "W": W}
    point = Point(f.ops, U.copy())
    size = 1e-10 * (1.0 + np.sum(X**2) + np.sum(np.abs(C)))
    assert f.value(point) == pytest.approx(value(X, U, **terms), abs=size)
    assert f.misfit(point) == pytest.approx(np.sum(W * (X - U @ U.T) ** 2), abs=size)
    slope = 2 * (W * (U @ U.T - X)) @ U + 0.3 + 0.7 * U - 2 * C @ U
    found = f.ops.gradient(U, point.product(f), point.gram)
    np.testing.assert_allclose(found, slope, atol=size)
    product = point.product(f).copy()
    line, c = f.along(U.copy(), product, U.T @ U, Z.copy(), np.empty_like(U))
    for t in (0.4, 1.0):
        change = value(X, U + t * (Z - U), **terms) - value(X, U, **terms)
        assert sum(ck * t**k for k, ck in enumerate(c, 1)) == pytest.approx(change, abs=10 * size)
    moved, product, _ = f.advance(U.copy(), product, line, 0.4)
    np.testing.assert_allclose(moved, U + 0.4 * (Z - U), atol=1e-12)
    if product is not None:
        np.testing.assert_allclose(product, f.product_at(moved, moved), atol=10 * size)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("terms", [{"l1": 0.02}, {"ridge": 0.1}, {"l1": 0.01, "ridge": 0.05}])
def test_neither_we_nor_scipy_lower_the_value_where_the_other_ended(data, terms):
    X = DATA[data]()
    size = float(np.linalg.norm(X))
    l1, ridge = terms.get("l1", 0.0) * size**1.5 / 10, terms.get("ridge", 0.0) * size
    ours = symnmf.factorize(X, 3, l1=l1, ridge=ridge, random_state=0, tol=1e-8, max_iter=5000)
    assert ours.certificate().certified
    assert ours.value == pytest.approx(value(X, ours.U, l1, ridge), rel=1e-10)
    assert ours.error == pytest.approx(np.sum((X - ours.U @ ours.U.T) ** 2) / size**2, rel=1e-8)
    _, theirs = from_there(X, ours.U, l1, ridge)
    assert theirs >= ours.value * (1 - 1e-6)
    start = np.random.default_rng(1).random(ours.U.shape) * np.sqrt(X.mean())
    U, end = from_there(X, start, l1, ridge)
    back = symnmf.factorize(X, 3, l1=l1, ridge=ridge, init=U, tol=1e-8, max_iter=5000)
    assert back.value >= end * (1 - 1e-6)
    assert back.value <= end * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["auto", "symanls", "symhals", "a-symhals", "lbfgs"])
def test_every_method_with_terms_descends_and_ends_certified(solver):
    X = synthetic_problem(30, 3, 0.2, seed=2)
    options = {"solver": solver, "random_state": 0, "max_iter": 20_000, "record_every": 20}
    found = symnmf.factorize(X, 3, l1=2.0, ridge=1.0, tol=1e-4, **options)
    certificate = found.certificate()
    assert found.status == "converged"
    assert certificate.certified
    assert certificate.monotone
    assert "2 sum(U)" in str(certificate)
    assert found.history["value"][-1] == pytest.approx(value(X, found.U, 2.0, 1.0), rel=1e-9)


def test_links_draw_together_and_keep_apart():
    X = synthetic_problem(20, 3, 0.5, seed=3)
    base = symnmf.factorize(X, 3, random_state=0)
    C = np.zeros((20, 20))
    C[0, 1] = C[1, 0] = 5.0
    C[2, 3] = C[3, 2] = -50.0
    found = symnmf.factorize(X, 3, links=sp.csr_array(C), random_state=0)
    fitted, before = found.U @ found.U.T, base.U @ base.U.T
    assert fitted[0, 1] > before[0, 1]
    assert fitted[2, 3] < before[2, 3]
    same = symnmf.factorize(X + C, 3, allow_negative=True, init=found.U)
    np.testing.assert_allclose(same.U, found.U, atol=1e-3)
    assert found.error == pytest.approx(np.sum((X - fitted) ** 2) / np.sum(X**2))


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"l1": -1.0}, "l1 must be a number of at least 0"),
        ({"ridge": np.nan}, "ridge must be a number of at least 0"),
        ({"ridge": "much"}, "ridge must be a number"),
        ({"links": np.ones((3, 3))}, "links must have the shape of X"),
        ({"links": np.triu(np.ones((5, 5)))}, "links is not symmetric"),
        ({"l1": 1.0, "solver": "cd"}, r"solver 'cd' needs a plain .* does not have"),
    ],
)
def test_wrong_terms_are_refused_in_one_sentence(told, says):
    with pytest.raises(symnmf.InputError, match=says):
        symnmf.factorize(np.ones((5, 5)), 2, **told)


# --- lambda with weights


def hidden_problem(seed=0):
    """80 x 80, exact rank 4, of which 30% is seen."""
    rng = np.random.default_rng(seed)
    B = rng.random((80, 4))
    mask = rng.random((80, 80)) < 0.3
    return B @ B.T, np.triu(mask) | np.triu(mask, 1).T


@pytest.mark.parametrize("weights", [False, True])
def test_shrinking_under_a_mask_keeps_its_promise(weights):
    X, mask = hidden_problem()
    rng = np.random.default_rng(2)
    W = np.where(mask, 0.2 + 0.8 * rng.random((80, 80)), 0.0)
    told = {"weights": W + W.T} if weights else {"mask": mask}
    found = symnmf.factorize(
        X, 4, solver="a-symhals", coupling="shrinking", random_state=0, init="scaled-random",
        max_iter=400, tol=0, **told,
    )  # fmt: skip
    objective, coupling = found.history["objective"], found.history["coupling"]
    floor = 1e-3 * np.sqrt(found.problem.objective.sqnorm)
    bound = 0.5 * np.maximum(np.sqrt(2 * objective), floor)
    assert np.all(coupling >= bound * (1 - 1e-12))
    assert np.all(np.diff(coupling) <= 0)
    assert np.all(np.diff(objective) <= 1e-10 * objective[0])
    assert np.linalg.norm(found.U - found.V) < 1e-2 * np.linalg.norm(found.V)


@settings(deadline=None, max_examples=30)
@given(drawn, st.floats(0.1, 0.9))
def test_above_the_bound_a_run_with_weights_and_terms_ends_with_equal_factors(problem, hidden):
    n, r, seed = problem
    r = min(n, r)
    rng = np.random.default_rng(seed)
    X = synthetic_problem(n, r, 0.5, seed)
    W = np.where(rng.random((n, n)) < hidden, 0.0, rng.random((n, n)))
    W[0, 0] = 1.0
    f = symnmf.Problem(X, weights=W + W.T, ridge=0.3, l1=0.1).objective
    U0 = rng.random((n, r))
    bound = f.coupling_bound(2 * f.value(Point(f.ops, U0.copy())))
    found = symnmf.factorize(
        symnmf.Problem.around(f), r, solver="symhals", coupling=1.01 * bound, init=U0,
        max_iter=3000, tol=1e-7, record_every=50,
    )  # fmt: skip
    certificate = found.certificate()
    assert certificate.theorem1
    assert np.linalg.norm(found.U - found.V) <= 1e-3 * max(np.linalg.norm(found.V), 1e-3)


# --- E, value, and which start is kept
