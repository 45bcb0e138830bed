"""The inequalities of docs/theory, each on random problems, with weights where it has them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from symnmf.ops import Hals
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.solvers import hals_newton as module

pytestmark = pytest.mark.filterwarnings("ignore::symnmf.errors.ConvergenceWarning")
Array = np.ndarray
Drawn = tuple[Array, Array, Array, Array]


@st.composite
def weighted(draw: st.DrawFn) -> Drawn:
    """Draw X with entries of any sign, weights with zeros among them, and two factors."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, r = draw(st.integers(2, 9)), draw(st.integers(1, 3))
    X = rng.standard_normal((n, n)) + draw(st.sampled_from([0.0, 1.0]))
    W = rng.random((n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.4, 1.0])))
    W = np.triu(W) + np.triu(W, 1).T
    if draw(st.booleans()):
        np.fill_diagonal(W, 0.0)
    if not W.any():
        W[0, 1] = W[1, 0] = 1.0
    U, V = (rng.random((n, r)) * (rng.random((n, r)) < 0.7) for _ in range(2))
    return (X + X.T) / 2, W / W.max(), U, V


def split(X: Array, W: Array, U: Array, V: Array, coupling: float) -> float:
    return 0.5 * float(np.sum(W * (X - U @ V.T) ** 2) + coupling * np.sum((U - V) ** 2))


def slopes(X: Array, W: Array, U: Array, V: Array, coupling: float) -> tuple[Array, Array]:
    R = W * (U @ V.T - X)
    return R @ V + coupling * (U - V), R.T @ U - coupling * (U - V)


def curvature(X: Array, W: Array, U: Array, V: Array) -> float:
    R = W * (U @ V.T - X)
    return float(np.linalg.eigvalsh((R + R.T) / 2)[-1])


def held_back(U: Array, slope: Array) -> Array:
    return np.where(U > 0, slope, np.minimum(slope, 0.0))


@settings(max_examples=150, deadline=None)
@given(weighted(), st.floats(0.0, 5.0))
def test_gradients_of_the_split_problem_tell_how_far_apart_the_factors_are(
    drawn: Drawn, coupling: float
) -> None:
    X, W, U, V = drawn
    D, skew = U - V, U @ V.T - V @ U.T
    first, second = slopes(X, W, U, V, coupling)
    R = W * (U @ V.T - X)
    left = float(np.vdot(first - second, D))
    right = 2 * coupling * np.vdot(D, D) + 0.5 * np.sum(W * skew**2)
    right -= np.vdot((R + R.T) / 2, D @ D.T)
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)
    mu = curvature(X, W, U, V)
    apart = np.linalg.norm(held_back(U, first) - held_back(V, second))
    assert (2 * coupling - mu) * np.linalg.norm(D) <= apart + 1e-9
    misfit = np.sqrt(np.sum(W * (X - U @ V.T) ** 2))
    assert mu <= misfit + 1e-9
    assert misfit <= np.sqrt(2 * split(X, W, U, V, coupling)) + 1e-9


@settings(max_examples=60, deadline=None)
@given(weighted(), st.integers(0, 2**32 - 1), st.floats(0.0, 5.0))
def test_added_terms_enter_the_residual_by_half(drawn: Drawn, seed: int, coupling: float) -> None:
    """1/2 <Q U, V> + 1/2 <B, U + V>: with R + Q/2 instead of R, and a quarter of ||Q||."""
    X, W, U, V = drawn
    rng = np.random.default_rng(seed)
    N, B = rng.standard_normal(X.shape), rng.random(U.shape)
    Q, D = N @ N.T, U - V
    first, second = slopes(X, W, U, V, coupling)
    first, second = first + 0.5 * (Q @ V + B), second + 0.5 * (Q @ U + B)
    R = W * (U @ V.T - X)
    residual = (R + R.T) / 2 + Q / 2
    skew = U @ V.T - V @ U.T
    left = float(np.vdot(first - second, D))
    right = 2 * coupling * np.vdot(D, D) + 0.5 * np.sum(W * skew**2) - np.vdot(residual, D @ D.T)
    assert left == pytest.approx(right, rel=1e-9, abs=1e-8)
    mu = float(np.linalg.eigvalsh(residual)[-1])
    plain = split(X, W, U, V, coupling)
    assert mu <= np.sqrt(2 * plain) + 0.5 * np.linalg.norm(Q, 2) + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 0.499))
def test_below_a_half_no_minimum_of_the_sharp_example_has_equal_factors(coupling: float) -> None:
    X, W = np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((2, 2))
    root = np.sqrt(1 - 2 * coupling)
    a, c = (1 + root) / 2, (1 - root) / 2
    U, V = np.array([[a, c], [c, a]]), np.array([[c, a], [a, c]])
    for slope in slopes(X, W, U, V, coupling):
        np.testing.assert_allclose(slope, 0.0, atol=1e-12)
    assert curvature(X, W, U, V) == pytest.approx(2 * coupling)
    assert np.linalg.norm(U - V) == pytest.approx(2 * root)
    value = split(X, W, U, V, coupling)
    assert value == pytest.approx(2 * coupling * (1 - coupling))
    assert 0.5 - value == pytest.approx(0.5 * (1 - 2 * coupling) ** 2, abs=1e-12)
    best = np.full((2, 2), 0.5)
    assert split(X, W, best, best, coupling) == pytest.approx(0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 1))
def test_a_critical_point_splits_where_lambda_is_below_what_the_residual_asks(
    seed: int, dependent: int
) -> None:
    """A positive critical U by construction: X = U U^T - mu v v^T with v orthogonal to U."""
    rng = np.random.default_rng(seed)
    U = rng.random((6, 3)) + 0.1
    if dependent:
        U[:, 2] = U[:, 1]
    v = np.linalg.svd(U)[0][:, -1]
    mu = float(rng.uniform(0.5, 3.0))
    X = U @ U.T - mu * np.outer(v, v)
    W = np.ones_like(X)
    _, values, turned = np.linalg.svd(U)
    sigma = 0.0 if dependent else values[-1]
    Z = np.outer(v, turned[-1])
    for share, falls in ((0.9, True), (1.1, False)):
        coupling = share * (mu - sigma**2) / 2
        if coupling <= 0:
            continue
        step = 1e-3
        change = split(X, W, U + step * Z, U - step * Z, coupling) - split(X, W, U, U, coupling)
        expected = step**2 * (sigma**2 - mu + 2 * coupling) + 0.5 * step**4
        assert change == pytest.approx(expected, rel=1e-3, abs=1e-13)
        assert (change < 0) == falls


def run_with_rule(
    drawn: Drawn, rule: str, iterations: int
) -> tuple[list[float], list[float], Drawn]:
    """A-SymHALS on the majoriser in plain NumPy, with the rules of docs/theory/rules.md."""
    X, W, U, _ = drawn
    V, before = U.copy(), U.copy()
    misfit = np.sqrt(np.sum(W * (X - U @ U.T) ** 2))
    coupling = 1.01 / 2 * misfit if rule == "shrinking" else 0.01 * misfit
    couplings, values = [coupling], [0.5 * misfit**2]
    for k in range(iterations):
        for target, other, transposed in ((U, V, False), (V, U, True)):
            model = U @ V.T
            filled = model + W * (X - model)
            gram, cross = other.T @ other, (filled.T if transposed else filled) @ other
            for _ in range(2):
                for j in range(U.shape[1]):
                    slope = target @ gram[:, j] - cross[:, j] + coupling * (target - other)[:, j]
                    target[:, j] = np.maximum(target[:, j] - slope / (gram[j, j] + coupling), 0)
        value = split(X, W, U, V, coupling)
        couplings.append(coupling)
        values.append(value)
        safe = 2 * coupling > np.sqrt(2 * value)
        if rule == "shrinking":
            candidate = 1.01 / 2 * np.sqrt(2 * value)
            coupling = candidate if candidate <= 0.9 * coupling else coupling
        elif not safe and k > 5 and np.sum((U - V) ** 2) > 25 * np.sum((U - before) ** 2):
            coupling *= 1.5
        before = U.copy()
    return couplings, values, (X, W, U, V)


@settings(max_examples=12, deadline=None)
@given(weighted(), st.sampled_from(["shrinking", "rising"]))
def test_the_rules_bring_the_factors_together_with_weights(drawn: Drawn, rule: str) -> None:
    X, W, U0, _ = drawn
    np.fill_diagonal(W, np.maximum(np.diag(W), 0.2))  # bounded level sets
    if not np.sum(W * X * (U0 @ U0.T)) > 0:
        return
    couplings, values, (_, _, U, V) = run_with_rule(drawn, rule, 2500)
    couplings_, values_ = np.array(couplings), np.array(values)
    ratios = couplings_[1:] / couplings_[:-1]
    if rule == "shrinking":
        assert np.all((ratios == 1.0) | (ratios <= 0.9))
        assert np.all(np.diff(values_) <= 1e-12 * values_[0])
        assert np.all(2 * couplings_[1:] >= 1.0 * np.sqrt(2 * values_[1:]))
    else:
        first = couplings_[0]
        most = 1 + np.log(max(values_[0] / (2 * first**2), 1.0)) / np.log(1.1)
        assert np.sum(ratios > 1) <= most
        assert np.all(values_ <= values_[0] * couplings_ / first * (1 + 1e-12))
    rho = np.sqrt(2 * values_[0])
    bound = rho**2 / couplings_.min() + 2 * np.sum(
        np.abs(np.diag(X)) + rho / np.sqrt(np.diag(W))
    ) * (couplings_.max() / couplings_.min())
    assert np.sum(U**2) + np.sum(V**2) <= bound
    distance = np.linalg.norm(U - V)
    if curvature(X, W, U, V) < 1.9 * couplings_[-1]:
        first_slope, second_slope = slopes(X, W, U, V, couplings_[-1])
        apart = np.linalg.norm(held_back(U, first_slope) - held_back(V, second_slope))
        assert distance <= apart / (2 * couplings_[-1] - curvature(X, W, U, V)) + 1e-12
    assert distance <= 0.02 * (1 + np.linalg.norm(V))


# --- the default method


def objective(X: Array, W: Array, U: Array) -> float:
    return 0.5 * float(np.sum(W * (X - U @ U.T) ** 2))


def half_gradient(X: Array, W: Array, U: Array) -> Array:
    return (W * (U @ U.T - X)) @ U


@settings(max_examples=100, deadline=None)
@given(weighted())
def test_a_sweep_gains_a_share_of_what_a_projected_gradient_step_promises(drawn: Drawn) -> None:
    X, _, U, _ = drawn
    U[0, 0] += not U.any()
    W = np.ones_like(X)
    gram, h = U.T @ U, half_gradient(X, W, U)
    r = U.shape[1]
    m = float(np.trace(gram)) / r
    tau = module.PROXIMAL * m
    Z = U.copy()
    HostOps(Threads(1)).solve_rows(Hals(), Z, X @ U, U, gram, tau)
    F = Z - U
    d = float(np.linalg.norm(F))
    model = float(np.vdot(h, F) + 0.5 * np.vdot(F @ (gram + tau * np.eye(r)), F))
    fall = -model
    rounding = 1e-11 * (1 + np.sum(X * X))
    assert fall >= 0.5 * tau * d**2 - rounding
    promise = float(np.sum(h * np.minimum(U, h / m)))
    assert promise >= m * np.sum(np.minimum(U, h / m) ** 2) - rounding
    share = (r + 1) * (4 + 4 * np.sum(gram**2) / tau**2)
    assert promise <= share * (fall + rounding)
    f, norm = objective(X, W, U), float(np.linalg.norm(U, 2))
    reach = np.sqrt(2 * f) + 2 * norm**2 + 2 * norm * d + 0.5 * d**2
    steps = np.append(np.linspace(0, 1, 401), np.geomspace(1e-12, 1, 241))
    lowest = min(objective(X, W, U + t * F) for t in steps)
    if d > 0:
        asked = min(1.0, tau / (2 * reach)) * fall
        assert f - lowest >= asked * (1 - 1e-2) - rounding


@settings(max_examples=25, deadline=None)
@given(weighted(), st.sampled_from(["hals-newton", "symhals"]))
def test_a_hidden_diagonal_lets_nothing_grow_but_columns_on_one_node(
    drawn: Drawn, solver: str
) -> None:
    X, _, U0, _ = drawn
    X, U0 = np.abs(X), U0 + 0.1
    if U0.shape[1] > len(X) - 1:
        return
    W = 1.0 - np.eye(len(X))
    result = symnmf.factorize(
        X, U0.shape[1], init=U0, solver=solver, ignore_diagonal=True, tol=0, max_iter=150
    )
    V = result.U if result.V is None else result.V
    bound = np.max(W * X) + np.sqrt(2 * objective(X, W, U0))
    if solver == "symhals":  # a coupling that rises may raise g with it
        bound += np.sqrt(2 * np.max(result.history["objective"]))
    pairs = np.einsum("ik,jk->ijk", result.U, V)[W > 0]
    assert pairs.max() <= bound * (1 + 1e-9)
    assert np.all(np.isfinite(result.U))


@settings(max_examples=100, deadline=None)
@given(weighted(), st.integers(0, 2**32 - 1), st.floats(0.01, 2.0))
def test_the_majoriser_of_the_weighted_objective_is_one(
    drawn: Drawn, seed: int, coupling: float
) -> None:
    X, W, U, V = drawn
    Z = np.random.default_rng(seed).random(U.shape)
    filled = U @ V.T + W * (X - U @ V.T)
    ones = np.ones_like(W)
    above = split(filled, ones, Z, V, coupling) - split(filled, ones, U, V, coupling)
    assert split(X, W, Z, V, coupling) - split(X, W, U, V, coupling) <= above + 1e-9
    full = slopes(filled, ones, U, V, coupling)[0]
    np.testing.assert_allclose(full, slopes(X, W, U, V, coupling)[0], atol=1e-9)
    at_Z = slopes(filled, ones, Z, V, coupling)[0] - slopes(X, W, Z, V, coupling)[0]
    assert np.linalg.norm(at_Z) <= np.sum(V**2) * np.linalg.norm(Z - U) + 1e-9


@settings(max_examples=150, deadline=None)
@given(weighted(), st.integers(0, 2**32 - 1), st.floats(-6, 1))
def test_bounds_on_the_quartic_along_a_line(drawn: Drawn, seed: int, size: float) -> None:
    X, W, U, _ = drawn
    D = np.random.default_rng(seed).standard_normal(U.shape) * 10.0**size
    f, d, norm = objective(X, W, U), float(np.linalg.norm(D)), float(np.linalg.norm(U, 2))
    A, K = U @ D.T + D @ U.T, D @ D.T
    c2 = 0.5 * np.sum(W * A**2) - np.sum(W * (X - U @ U.T) * K)
    c3, c4 = np.sum(W * A * K), 0.5 * np.sum(W * K**2)
    slope = 2 * float(np.vdot(half_gradient(X, W, U), D))
    total = objective(X, W, U + D)
    assert total == pytest.approx(f + slope + c2 + c3 + c4, rel=1e-9, abs=1e-9)
    assert -np.sqrt(2 * f) * d**2 <= c2 + 1e-12
    assert c2 <= (np.sqrt(2 * f) + 2 * norm**2) * d**2 * (1 + 1e-9)
    assert abs(c3) <= 2 * norm * d**3 * (1 + 1e-9)
    assert 0 <= c4 <= 0.5 * d**4 * (1 + 1e-9)
