"""HALS-Newton: what its guarantee rests on, inequality by inequality, and what users rely on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import symnmf
from symnmf import datasets
from symnmf.errors import InputError
from symnmf.kernels.pairs import direction_weights
from symnmf.kernels.quartics import quartic_step
from symnmf.objectives import Frobenius, Objective
from symnmf.ops import Hals
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.solvers import HalsNewton
from symnmf.solvers import hals_newton as module
from symnmf.state import Point, State
from symnmf.steps import gauss_newton
from symnmf.steps.gauss_newton import gauss_newton_target
from symnmf.storage import DenseMatrix

Array = np.ndarray


def objective(X: Array, U: Array) -> float:
    return 0.5 * float(np.sum((X - U @ U.T) ** 2))


def gradient(X: Array, U: Array) -> Array:
    return 2.0 * (U @ U.T - X) @ U


@st.composite
def problems(draw: st.DrawFn) -> tuple[Array, Array]:
    """Draw a symmetric nonnegative X, not necessarily definite, and a start with zeros in it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 12))
    r = draw(st.integers(1, min(n, 4)))
    X = rng.random((n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.3, 1.0])))
    X[0, 0] += not X.any()  # the zero matrix never reaches a solver
    X = (X + X.T) * 10.0 ** draw(st.integers(-3, 3))
    U = rng.random((n, r)) * (rng.random((n, r)) < 0.8) * np.sqrt(max(X.mean(), 1e-3))
    U[0, 0] += not U.any()
    return X, U


def sweep(X: Array, U: Array, sweeps: int = 1) -> tuple[Array, float]:
    """Return Z of proximal sweeps at U, and lambda."""
    gram = U.T @ U
    weight = module.PROXIMAL * float(np.trace(gram)) / U.shape[1]
    Z = U.copy()
    HostOps(Threads(1)).solve_rows(Hals(sweeps), Z, X @ U, U, gram, weight)
    return Z, weight


@given(problems(), st.sampled_from([1, module.SWEEPS_ALONE]))
@settings(deadline=None, max_examples=60)
def test_sweep_is_a_descent_direction(problem: tuple[Array, Array], sweeps: int) -> None:
    X, U = problem
    Z, weight = sweep(X, U, sweeps)
    F = Z - U
    slope = float(np.vdot(gradient(X, U), F))
    rounding = 1e-12 * np.linalg.norm(gradient(X, U)) * np.linalg.norm(F)
    assert slope <= -(1.0 + 1.0 / sweeps) * weight * float(np.vdot(F, F)) + rounding


@given(problems(), st.booleans(), st.sampled_from([np.float64, np.float32]))
@settings(deadline=None, max_examples=15)
def test_objective_never_rises(problem: tuple[Array, Array], sparse: bool, kind: Any) -> None:
    X, U = problem
    X = X.astype(kind)
    seen: list[float] = []
    symnmf.factorize(
        sp.csr_array(X) if sparse else X,
        U.shape[1],
        init=U,
        solver="hals-newton",
        tol=0.0,
        max_iter=60,
        callback=lambda now: seen.append(objective(X.astype(float), now.U.astype(float))),
    )
    assert np.isfinite(seen).all()
    # f near zero is a difference of numbers of the size of ||X||^2
    assert (np.diff(seen) <= 200 * np.finfo(kind).eps * max(np.sum(X * X), seen[0])).all()


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=100)
def test_quartic_step_finds_the_lowest_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    c = rng.standard_normal(4) * 10.0 ** rng.uniform(-4, 4, 4)
    c[3] = abs(c[3]) * (rng.random() < 0.9)
    t, value = quartic_step(*map(float, c))
    grid = np.linspace(0.0, 1.0, 2001)
    stationary = np.roots([4 * c[3], 3 * c[2], 2 * c[1], c[0]])
    trials = np.concatenate(
        [grid, stationary.real[(stationary.real >= 0) & (stationary.real <= 1)]]
    )
    lowest = np.polyval([*c[::-1], 0.0], trials).min()
    assert 0.0 <= t <= 1.0
    assert value == pytest.approx(np.polyval([*c[::-1], 0.0], t), rel=1e-9, abs=1e-12 * max(abs(c)))
    assert value <= min(lowest, 0.0) + 1e-12 * max(abs(c))


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_direction_weights_give_the_bfgs_direction(seed: int, used: int) -> None:
    """The two loops on coefficients against the inverse Hessian built update by update."""
    rng = np.random.default_rng(seed)
    size, depth = 12, 4
    root = rng.standard_normal((size, size))
    steps = rng.standard_normal((depth, size))
    changes = steps @ (root @ root.T + np.eye(size))
    slope = rng.standard_normal(size)
    order = (int(rng.integers(depth)) + np.arange(used)) % depth
    newest = order[-1]
    inverse = np.eye(size) * (steps[newest] @ changes[newest]) / (changes[newest] @ changes[newest])
    for j in order:
        s, y = steps[j], changes[j]
        shift = np.eye(size) - np.outer(s, y) / (s @ y)
        inverse = shift @ inverse @ shift.T + np.outer(s, s) / (s @ y)
    own, along, across = direction_weights(
        steps @ changes.T, changes @ changes.T, steps @ slope, changes @ slope, order
    )
    direction = own * slope + along @ steps + across @ changes
    np.testing.assert_allclose(direction, -inverse @ slope, rtol=1e-6, atol=1e-8)


def model_matrix(U: Array, shift: float) -> Array:
    """Return the matrix of D -> D G + U D^T U + shift D, column by column."""
    units = np.eye(U.size).reshape(U.size, *U.shape)
    return np.column_stack([(E @ (U.T @ U) + U @ (E.T @ U) + shift * E).ravel() for E in units])


@pytest.mark.parametrize("held", [False, True])
def test_gauss_newton_target_minimises_its_model(
    monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    rng = np.random.default_rng(0)
    U = rng.random((9, 2)) * (rng.random((9, 2)) < 0.6) if held else rng.random((9, 2)) + 1.0
    X = U @ U.T + (0.5 if held else 0.05) * rng.standard_normal((9, 9))
    X = (X + X.T) / 2
    weight = 0.03
    system = model_matrix(U, gauss_newton.DAMPING_SHARE * weight)
    root = np.linalg.cholesky(system)
    pull = (X @ U - U @ (U.T @ U)).ravel()
    best, _ = nnls(root.T, np.linalg.solve(root, pull + system @ U.ravel()), maxiter=1000)
    assert (best == 0.0).any() == held
    monkeypatch.setattr(gauss_newton, "INNER_STEPS", 20_000)
    matrix = Frobenius(DenseMatrix(X, Threads(1)))
    Z, dual = gauss_newton_target(matrix, Point(matrix.ops, U), weight, np.zeros_like(U))
    np.testing.assert_allclose(Z.ravel(), best, atol=1e-6)
    multiplier = system @ (Z - U).ravel() - pull
    np.testing.assert_allclose(-weight * dual.ravel(), multiplier, atol=1e-6)


def test_gauss_newton_steps_reach_the_last_digits() -> None:
    rng = np.random.default_rng(3)
    U = rng.random((60, 4)) * (rng.random((60, 4)) < 0.8)
    noise = rng.random((60, 60))
    X = U @ U.T + 0.02 * (noise + noise.T)
    result = symnmf.factorize(X, 4, tol=1e-12, max_iter=400, random_state=0)
    assert result.status == "converged"
    assert result.error > 1e-6


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_ends_at_a_critical_point_of_the_original_problem(kind: Any, noise: float) -> None:
    X, _ = datasets.synthetic(80, 5, noise, random_state=3)
    result = symnmf.factorize(
        kind(X), 5, solver="hals-newton", tol=1e-7, max_iter=3000, random_state=1
    )
    assert result.status == "converged"
    assert result.V is result.U
    step = 1.0 / np.linalg.norm(X)
    moved = result.U - np.maximum(result.U - step * gradient(X, result.U), 0.0)
    assert np.linalg.norm(moved) <= 1e-6 * np.linalg.norm(result.U)


def test_exact_data_are_fitted_to_rounding() -> None:
    X, _ = datasets.synthetic(120, 6, 0.0, random_state=0)
    errors = [
        symnmf.factorize(
            X,
            6,
            solver="hals-newton",
            tol=1e-9,
            max_iter=500,
            init="scaled-random",
            random_state=seed,
        ).error
        for seed in range(3)
    ]
    assert min(errors) < 1e-12


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_scale_of_x_and_start_is_followed_exactly(kind: Any) -> None:
    X, _ = datasets.synthetic(40, 3, 0.1, random_state=0)
    U0 = np.random.default_rng(0).random((40, 3))

    def run(c: float) -> Array:
        return symnmf.factorize(
            kind(c * c * X), 3, init=c * U0, solver="hals-newton", tol=0.0, max_iter=60
        ).U

    np.testing.assert_array_equal(run(8.0), 8.0 * run(1.0))  # a power of two: bit for bit
    np.testing.assert_array_equal(run(2.0**-7), 2.0**-7 * run(1.0))


def types_of_a_run(X: Any, rank: int, **options: Any) -> tuple[list[str], symnmf.Result]:
    """Return the type of U after each step, and the result."""
    seen: list[str] = []
    step = HalsNewton.step

    def spied(self: HalsNewton, f: Objective, state: State) -> None:
        step(self, f, state)
        seen.append(str(state.U.values.dtype))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HalsNewton, "step", spied)
        return seen, symnmf.factorize(X, rank, **options)


def planted_graph(n: int, groups: int) -> sp.csr_array:
    of = np.arange(n) % groups
    chance = np.where(np.equal.outer(of, of), 0.08, 0.01)
    A = np.triu(np.random.default_rng(0).random((n, n)) < chance, 1).astype(float)
    return symnmf.graphs.normalize(sp.csr_array(A + A.T))


@pytest.mark.parametrize("groups", [6, 12])  # as many as there are, and more
def test_a_loose_tolerance_is_reached_in_float32_and_holds_in_float64(groups: int) -> None:
    X = planted_graph(900, 6)
    seen, loose = types_of_a_run(X, groups, tol=1e-4)
    assert set(seen) == {"float32"}
    assert loose.status == "converged"
    assert loose.U.dtype == np.float64
    plain, same = types_of_a_run(X.toarray(), groups, tol=1e-4)
    assert set(plain) == {"float64"}
    assert loose.error == pytest.approx(same.error, rel=3e-4)
    # what is said of the end is what float64 says, here and on another storage
    for other in (X, X.toarray()):
        certificate = loose.certificate(other)
        assert certificate.stationarity <= 1e-4
    X = X.toarray()
    true = np.linalg.norm(X - loose.U @ loose.U.T) ** 2 / np.linalg.norm(X) ** 2
    assert loose.history["error"][-1] == loose.error == pytest.approx(true, rel=1e-12)
    assert loose.history["stationarity"][-1] == pytest.approx(certificate.stationarity, rel=1e-6)


@pytest.mark.parametrize("depth", [-1, 2.0, True])
def test_refuses_a_depth_that_is_no_count(depth: Any) -> None:
    with pytest.raises(InputError, match="depth"):
        HalsNewton(depth=depth)


def test_fewer_products_than_a_symhals_to_the_same_error() -> None:
    X, _ = datasets.synthetic(100, 8, 0.1, random_state=0)
    level = 1.01 * min(
        symnmf.factorize(X, 8, solver="auto", tol=1e-7, max_iter=500, random_state=s).error
        for s in range(3)
    )

    def iterations(solver: str) -> float:
        found = []
        for seed in range(3):
            history = symnmf.factorize(
                X, 8, solver=solver, tol=0.0, max_iter=600, init="scaled-random", random_state=seed
            ).history
            found.append(np.append(np.flatnonzero(history["error"] <= level), 600)[0])
        return float(np.median(found))

    # A-SymHALS pays two products an iteration, so this is a factor of four in products
    assert 2.0 * iterations("auto") <= iterations("a-symhals")
