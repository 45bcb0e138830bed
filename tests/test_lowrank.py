"""X given by thin factors: the same iterates, norms and refusals as for the n x n matrix."""

from __future__ import annotations

import numpy as np
import pytest

import symnmf
from symnmf.errors import InputError
from symnmf.parallel import Threads
from symnmf.storage import LowRank


def factors(n=90, k=6, indefinite=True, seed=0):
    """B >= 0 and a C with eigenvalues of both signs such that X = B C B^T >= 0."""
    rng = np.random.default_rng(seed)
    B = rng.random((n, k))
    if not indefinite:
        return B, np.eye(k)
    C = rng.random((k, k))
    return B, C + C.T


def full(B, C):
    X = B @ C @ B.T
    return 0.5 * (X + X.T)


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.mark.parametrize("indefinite", [False, True])
@pytest.mark.parametrize("solver", ["symanls", "a-symhals", "hals-newton", "pgd", "cd"])
def test_iterates_are_those_of_the_full_matrix(solver, indefinite):
    B, C = factors(indefinite=indefinite)
    X = LowRank(B, C if indefinite else None)
    options = {"solver": solver, "tol": 0, "max_iter": 15, "random_state": 3}
    low = symnmf.factorize(X, 4, **options)
    dense = symnmf.factorize(full(B, C), 4, **options)
    assert relative(low.U, dense.U) < 1e-9
    assert low.error == pytest.approx(dense.error, rel=1e-9)


def test_products_are_those_of_the_entries_on_any_threads():
    B, C = factors(n=700, k=8)
    V = np.random.default_rng(1).random((700, 300))
    X = LowRank(B, C)
    X = X.with_threads(Threads(3))
    assert relative(X.matmul(V), full(B, C) @ V) < 1e-13


@pytest.mark.parametrize("n", [7, 90, 1500])
def test_norm_and_residual_are_those_of_the_entries(n):
    B, C = factors(n=n)
    X, rng = LowRank(B, C), np.random.default_rng(2)
    U, V = rng.random((n, 4)), rng.random((n, 4))
    entries = full(B, C)
    assert X.sqnorm == pytest.approx(np.sum(entries**2), rel=1e-13)
    assert X.residual_sqnorm(U, V) == pytest.approx(np.sum((entries - U @ V.T) ** 2), rel=1e-13)
    assert X.residual_sqnorm(U, U) == pytest.approx(np.sum((entries - U @ U.T) ** 2), rel=1e-13)
    np.testing.assert_allclose(X.residual(U), entries - U @ U.T, atol=1e-12)


def test_the_certificate_is_that_of_the_full_matrix():
    B, C = factors()
    low = symnmf.factorize(LowRank(B, C), 4, solver="a-symhals", random_state=0, tol=1e-6)
    assert low.status == "converged"
    ours, theirs = low.certificate(LowRank(B, C)), low.certificate(full(B, C))
    assert ours.certified
    assert ours.curvature == pytest.approx(theirs.curvature, rel=1e-6)
    assert ours.consensus_bound == pytest.approx(theirs.consensus_bound, rel=1e-3)
    assert ours.verdict == theirs.verdict


def test_float32_is_kept_and_near_float64():
    B, C = factors()
    options = {"random_state": 0, "tol": 0, "max_iter": 100}
    single = symnmf.factorize(LowRank(B.astype(np.float32), C), 4, **options)
    double = symnmf.factorize(LowRank(B, C), 4, **options)
    assert single.U.dtype == np.float32
    assert single.error == pytest.approx(double.error, rel=1e-3)
    perfect = symnmf.factorize(LowRank(B.astype(np.float32)), 6, init=B, max_iter=0)
    assert perfect.error < 1e-13


def test_bounds_on_the_entries_hold_and_are_attained():
    for indefinite in (False, True):
        B, C = factors(indefinite=indefinite)
        largest = np.abs(full(B, C)).max()
        bound = LowRank(B, C).largest()
        assert bound >= largest * (1 - 1e-12)
        if not indefinite:
            assert bound == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize(
    ("B", "C", "message"),
    [
        (np.ones(4), None, "B must be two-dimensional, got 1 dimension"),
        (np.ones((0, 3)), None, r"B is empty \(0 x 3\)"),
        (np.array([[1.0, np.nan]]), None, "B has NaN or infinite entries"),
        (np.ones((4, 2)), [[1.0, np.inf], [np.inf, 1.0]], "C has NaN or infinite entries"),
        (np.ones((4, 2)), np.eye(3), r"C must be 2 x 2 .* got 3 x 3"),
        (np.ones((4, 2)), [[1.0, 2.0], [0.0, 1.0]], "C is not symmetric: .* up to 2 "),
        (np.ones((4, 2)) + 1j, None, "B must be real"),
        (np.array([["a"]]), None, "B must hold numbers"),
        (np.full((4, 2), 1e200), None, "largest entry of B C B.T is inf"),
        (np.full((4, 2), 1e30, np.float32), None, "from 1e-15 to 1e.15 in float32"),
    ],
)
def test_refusals(B, C, message):
    with pytest.raises(InputError, match=message):
        LowRank(B, C)
