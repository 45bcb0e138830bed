"""A table of attributes beside X: its objective, its weight, and what clusters are about."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import symnmf
from symnmf.metrics import clustering_accuracy
from symnmf.run.choosing import HeldOut, hold_out
from symnmf.state import Point


def small(seed=0, n=24, m=13, share=0.5):
    rng = np.random.default_rng(seed)
    A = rng.random((n, n))
    F = rng.random((n, m)) * (rng.random((n, m)) < share)
    mask = np.triu(rng.random((n, n)) < 0.8)
    return A + A.T, F, mask | mask.T


def literal(A, F, Z, *, weight=1.0, observed=1.0, l1=0.0, ridge=0.0):
    """Return f at U and W, its gradient by both, and the unit of the table, from the formula."""
    n = len(A)
    U, W = Z[:n], Z[n:]
    unit = weight * np.sum(observed * A**2) / np.sum(F**2)
    S, R = observed * (A - U @ U.T), F - U @ W.T
    value = 0.5 * np.sum(observed * (A - U @ U.T) ** 2) + 0.5 * unit * np.sum(R**2)
    value += l1 * U.sum() + 0.5 * ridge * np.sum(U**2)
    slope_U = -2 * S @ U - unit * R @ W + l1 + ridge * U
    return value, np.vstack([slope_U, -unit * R.T @ U]), unit


def planted(n=300, k=3, links=(0.1, 0.02), words=(0.15, 0.03), m=120, seed=0):
    """Return a graph, a table and labels that both follow."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    upper = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, *links), 1)
    topic = np.arange(m) % k
    F = (rng.random((n, m)) < np.where(y[:, None] == topic, *words)).astype(float)
    return sp.csr_array((upper | upper.T).astype(float)), sp.csr_array(F), y


OPTIONS = {
    "plain": {},
    "weight": {"weight": 0.3},
    "mask": {"observed": True},
    "terms": {"l1": 0.3, "ridge": 0.2},
}


def problem_of(A, F, mask, told):
    names = {name: told[name] for name in ("l1", "ridge") if name in told}
    hidden = {"mask": mask} if "observed" in told else {}
    weight = told.get("weight", 1.0)
    return symnmf.Problem(A, attributes=F, attribute_weight=weight, **names, **hidden)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_value_gradient_and_line_are_those_of_the_formula(name, sparse):
    A, F, mask = small()
    told = OPTIONS[name]
    f = problem_of(A, sp.csr_array(F) if sparse else F, mask, told).objective
    literal_told = told | ({"observed": mask} if "observed" in told else {})
    rng = np.random.default_rng(1)
    Z, target = rng.random((2, len(A) + F.shape[1], 3))

    def exact(Z):
        below = Z.copy()
        below[len(A) :] /= f.weight  # W in the table's units
        return literal(A, F, below, **literal_told)

    point = Point(f.ops, Z.copy())
    value, slope, _ = exact(Z)
    slope[len(A) :] /= f.weight
    assert f.value(point) == pytest.approx(value, rel=1e-12)
    own = 2 * (Z @ point.gram - point.product(f))
    np.testing.assert_allclose(own, slope, atol=1e-9)
    buffer = np.empty_like(Z)
    line, change = f.along(Z.copy(), point.product(f).copy(), point.gram, target.copy(), buffer)
    t = 0.37
    moved = exact(Z + t * (target - Z))[0] - value
    assert sum(c * t**p for p, c in enumerate(change, 1)) == pytest.approx(moved, rel=1e-10)
    there, product, _ = f.advance(Z.copy(), point.product(f).copy(), line, t)
    if product is not None:
        np.testing.assert_allclose(product, f.product_at(there, there), atol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "symhals", "a-symhals", "symanls", "lbfgs", "pgd"])
def test_every_method_ends_where_no_descent_is_left_in_u_and_w(solver):
    rng = np.random.default_rng(0)
    B, C = rng.random((24, 3)) ** 3, rng.random((13, 3)) ** 3
    A, noise, _ = small()
    A, F = B @ B.T + 0.05 * A, B @ C.T + 0.05 * noise
    problem = symnmf.Problem(A, attributes=F, attribute_weight=0.5)
    result = symnmf.factorize(problem, 3, solver=solver, random_state=0, tol=1e-6, max_iter=5000)
    assert result.U.shape == (24, 3)
    assert result.W.shape == (13, 3)
    Z = np.vstack([result.U, result.W])

    def evaluate(flat):
        value, slope, _ = literal(A, F, flat.reshape(Z.shape), weight=0.5)
        return value, slope.ravel()

    assert evaluate(Z.ravel())[0] == pytest.approx(result.value, rel=1e-9)
    end = minimize(evaluate, Z.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * Z.size)
    assert result.value - end.fun <= 1e-6 * result.value
    assert result.certificate(tol=1e-4).stationarity < 1e-4


@given(st.integers(0, 10_000), st.floats(0.05, 20.0))
def test_the_objective_never_rises(seed, weight):
    A, F, _ = small(seed, n=12, m=7)
    problem = symnmf.Problem(A, attributes=sp.csr_array(F) if seed % 2 else F,
                             attribute_weight=weight)  # fmt: skip
    values = symnmf.factorize(problem, 2, random_state=seed, tol=0, max_iter=30).history["value"]
    assert (np.diff(values) <= 1e-9 * values[0]).all()


# --- communities


def test_links_and_words_together_find_what_neither_finds_alone():
    A, F, y = planted(links=(0.075, 0.025), words=(0.12, 0.03), seed=1)
    alone = symnmf.communities(A, 3, random_state=0).labels
    nothing = sp.csr_array(sp.eye_array(len(y)))  # links that say nothing
    words = symnmf.communities(
        nothing, 3, attributes=F, attribute_weight=100.0, degree_offset=0.0, random_state=0
    ).labels
    both = symnmf.communities(A, 3, attributes=F, random_state=0).labels
    scores = [adjusted_rand_score(y, labels) for labels in (alone, words, both)]
    assert scores[2] > max(scores[:2]) + 0.1
    assert scores[2] > 0.7


@pytest.mark.filterwarnings("ignore::symnmf.QualityWarning")
def test_the_weight_follows_what_predicts_held_out_entries():
    noise_links, F, y = planted(links=(0.04, 0.04))
    found = symnmf.communities(noise_links, 3, attributes=F, random_state=0)
    assert adjusted_rand_score(y, found.labels) > 0.85
    assert found.attribute_weight.value.weight >= 1.0
    A, noise_words, y = planted(words=(0.07, 0.07))
    found = symnmf.communities(A, 3, attributes=noise_words, random_state=0)
    links = symnmf.communities(A, 3, random_state=0)
    worse = adjusted_rand_score(y, links.labels) - adjusted_rand_score(y, found.labels)
    assert worse < 0.02
    assert found.attribute_weight.value.weight <= 0.1
    score = dict(found.attribute_weight.tried)
    assert score[found.attribute_weight.value] >= score[found.attribute_weight.tried[0].value]


def test_held_out_entries_are_not_in_what_is_fitted():
    A, F, _ = planted()
    rng = np.random.default_rng(0)
    for M, symmetric in ((A, True), (F, False), (F.toarray() + 0.1, False)):
        held = hold_out(M, rng, symmetric=symmetric)
        full = M.toarray() if sp.issparse(M) else M
        kept = held.kept.toarray() if sp.issparse(held.kept) else held.kept
        i, j = held.present
        assert len(i) > 10
        assert (kept[i, j] < full[i, j]).all()
        if symmetric:
            np.testing.assert_array_equal(kept, kept.T)
    at = np.arange(4.0)[:, None]
    held = HeldOut(None, (np.array([2, 3]), np.zeros(2, int)), (np.array([1, 2]), np.zeros(2, int)))
    np.testing.assert_allclose(held.ranked(at, np.ones((1, 1))), [0.75, 1.0])  # a tie is a half


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"attributes": np.ones((3, 2))}, "one row for each of the 24"),
        ({"attributes": np.full((24, 2), np.nan)}, "NaN or infinite"),
        ({"attributes": np.zeros((24, 2))}, "only zeros"),
        ({"attributes": np.ones((24, 0))}, "no columns"),
        ({"attributes": np.ones((24, 2)), "attribute_weight": 0.0}, "attribute_weight"),
        ({"attributes": np.ones((24, 2)), "loss": "poisson"}, "attributes"),
    ],
)
def test_what_a_problem_refuses(told, message):
    with pytest.raises(symnmf.InputError, match=message):
        symnmf.Problem(small()[0], **told)


@pytest.mark.long
def test_cora_with_words(real_data):
    stored = np.load(real_data / "attributed_cora.npz")
    n, edges, y = int(stored["n"]), stored["edges"], stored["y"]
    A = sp.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    shape = tuple(stored["words_shape"])
    ones = np.ones(len(stored["words_indices"]))
    F = sp.csr_array((ones, stored["words_indices"], stored["words_indptr"]), shape=shape)
    found = symnmf.communities(A + A.T, 7, attributes=F, random_state=0)
    assert normalized_mutual_info_score(y, found.labels) > 0.5
    assert clustering_accuracy(y, found.labels) > 0.62
