"""HALS-Newton: what its guarantee rests on, inequality by inequality, and what users rely on."""

from __future__ import annotations

from pathlib import Path
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
from symnmf.kernels.dense_products import multiplier
from symnmf.kernels.directions import couple
from symnmf.kernels.pairs import direction_weights
from symnmf.kernels.quartics import quartic_step
from symnmf.objectives import Frobenius, Objective
from symnmf.ops import Hals
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.run import solving
from symnmf.solvers import HalsNewton
from symnmf.solvers import hals_newton as module
from symnmf.state import Point, State
from symnmf.steps import gauss_newton, quasi_newton
from symnmf.steps.gauss_newton import gauss_newton_target
from symnmf.steps.line_search import line_step
from symnmf.storage import DenseMatrix, as_symmetric

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
@settings(deadline=None, max_examples=120)
def test_sweep_is_a_descent_direction(problem: tuple[Array, Array], sweeps: int) -> None:
    X, U = problem
    Z, weight = sweep(X, U, sweeps)
    F = Z - U
    slope = float(np.vdot(gradient(X, U), F))
    rounding = 1e-12 * np.linalg.norm(gradient(X, U)) * np.linalg.norm(F)
    assert slope <= -(1.0 + 1.0 / sweeps) * weight * float(np.vdot(F, F)) + rounding


@given(problems())
@settings(deadline=None, max_examples=80)
def test_line_search_towards_the_sweep_gains_its_bound(problem: tuple[Array, Array]) -> None:
    X, U = problem
    Z, weight = sweep(X, U)
    d, u = float(np.linalg.norm(Z - U)), float(np.linalg.norm(U))
    bound = max(0.0, -float(np.linalg.eigvalsh(X)[0])) + 3 * u**2 + 2 * u * d + 0.5 * d**2
    if d == 0.0 or weight == 0.0:
        return
    matrix = Frobenius(as_symmetric(X, n_jobs=1))
    state = HalsNewton().start(matrix, U.copy())
    line_step(matrix, state, Z.copy())
    gain = objective(X, U) - objective(X, state.U.values)
    assert gain >= min(weight, weight**2 / bound) * d**2 - 1e-12 * objective(X, U)


@given(problems(), st.booleans(), st.sampled_from([np.float64, np.float32]))
@settings(deadline=None, max_examples=40)
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


@given(problems())
@settings(deadline=None, max_examples=60)
def test_shortcuts_gain_at_least_what_the_guarantee_asks(problem: tuple[Array, Array]) -> None:
    """Neither kind of step that is no sweep may gain less than what keeps limits critical."""
    X, U0 = problem
    matrix = Frobenius(as_symmetric(X, n_jobs=1))
    solver = HalsNewton(newton_below=1.0)
    state = solver.start(matrix, U0.copy())
    for _ in range(40):
        solver.step(matrix, state)
        state.iteration += 1
        before = state.U.values.copy()
        level = float(np.sum(before**2)) / before.shape[1]
        product, gram = X @ before, before.T @ before
        state.moved(before.copy())
        reach = before - np.maximum(before - (before @ gram - product) / max(level, 1e-300), 0.0)
        asked = 1e-4 * float(np.vdot(before @ gram - product, reach))
        target, _ = gauss_newton_target(matrix, state.U, 0.03 * level, np.zeros_like(before))
        line_step(matrix, state, target, enough=asked, per_length=1e-8 * level)
        moved = float(np.sum((state.U.values - before) ** 2))
        gain = objective(X, before) - objective(X, state.U.values)
        if moved:
            assert gain >= max(asked, 1e-8 * level * moved) - 1e-12 * float(np.sum(X * X))


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=300)
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


def test_quartic_step_stays_where_nothing_is_gained() -> None:
    assert quartic_step(0.0, 0.0, 0.0, 0.0) == (0.0, 0.0)
    assert quartic_step(1.0, 1.0, 1.0, 1.0) == (0.0, 0.0)
    assert quartic_step(-1.0, 0.0, 0.0, 0.0) == (1.0, -1.0)


def test_quartic_step_takes_the_deeper_of_two_valleys() -> None:
    # q' = (t - 0.1)(t - 0.5)(t - 0.9): valleys at 0.1 and 0.9, equally deep until tilted
    def tilted(tilt: float) -> float:
        cubic = np.poly([0.1, 0.5, 0.9])
        return quartic_step(cubic[3] + tilt, cubic[2] / 2, cubic[1] / 3, cubic[0] / 4)[0]

    assert tilted(-1e-3) == pytest.approx(0.9, abs=0.01)
    assert tilted(1e-3) == pytest.approx(0.1, abs=0.01)


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


class LooksLate(HalsNewton):
    """The method with pairs that are brought up to date by whoever looks first."""

    def _look_ahead(self, f: Any, state: Any) -> None:
        pass


@given(problems(), st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_pairs_and_target_are_those_of_the_definition(
    problem: tuple[Array, Array], depth: int
) -> None:
    """After every step: s and y are what U and its gradient did, and the target is max(U - Hg)."""
    X, U0 = problem
    matrix = Frobenius(as_symmetric(X, n_jobs=1))
    solver = LooksLate(depth=depth, newton_below=0.0)
    state = solver.start(matrix, U0.copy())
    points: list[Array] = []
    slopes: list[Array] = []
    for _ in range(12):
        solver.step(matrix, state)
        state.iteration += 1
        U = state.U.values
        points.append(U.copy())
        slopes.append(gradient(X, U) / 2.0)
        counters = state.memory["counters"]
        if not counters[quasi_newton.PENDING] or not U.any():
            continue
        level = float(np.sum(U**2)) / U.shape[1]
        slot = int(counters[quasi_newton.SLOT])
        dots, promise = quasi_newton.look(matrix, state, level)
        s, y = points[-1] - points[-2], slopes[-1] - slopes[-2]
        unit = float(np.sum(X * X)) ** 0.25  # of U; a gradient has its cube
        size = unit**3
        np.testing.assert_allclose(state.memory["steps"][slot], s, atol=1e-9 * unit)
        kept = state.memory["changes"][slot]
        np.testing.assert_allclose(kept[s != 0], y[s != 0], atol=1e-6 * size)
        reach = U - np.maximum(U - slopes[-1] / level, 0.0)
        first_order = float(np.vdot(slopes[-1], reach))
        assert promise == pytest.approx(first_order, rel=1e-3, abs=1e-12 * unit**4)
        moved = U - np.maximum(U - 2.0 * slopes[-1] / matrix.norm, 0.0)
        assert state.U.natural_residual == pytest.approx(
            np.linalg.norm(moved), rel=1e-3, abs=1e-9 * unit
        )
        free = np.where((U > 0) | (state.memory["gradient"] < 0), state.memory["gradient"], 0)
        used = int(counters[quasi_newton.USED])
        kept_slots = (int(counters[quasi_newton.SLOT]) - used + np.arange(used)) % depth
        for row, ring in zip(dots, ("steps", "changes"), strict=True):
            expected = np.sum(state.memory[ring] * free, axis=(1, 2))
            scale = size if ring == "steps" else size * unit**2
            np.testing.assert_allclose(
                row[kept_slots], expected[kept_slots], rtol=1e-6, atol=1e-6 * scale
            )
        if counters[quasi_newton.USED]:
            target = quasi_newton.quasi_newton_target(matrix, state, dots)
            assert (target >= 0.0).all()
            held = (U == 0) & (state.memory["gradient"] >= 0)
            assert (target[held] == 0.0).all()


def test_one_gradient_serves_a_step_and_the_measurement_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    A = sp.random_array((90, 90), density=0.1, rng=np.random.default_rng(0), format="csr")
    X = sp.csr_array(A + A.T)
    counted = dict.fromkeys(("pair_sums", "natural_residual"), 0)
    for name in counted:
        done = getattr(HostOps, name)

        def count(*given: Any, name: str = name, done: Any = done) -> Any:
            counted[name] += 1
            return done(*given)

        monkeypatch.setattr(HostOps, name, count)
    found = symnmf.factorize(X, 4, tol=0.0, max_iter=49, solver="hals-newton")
    gradients, residuals = counted.values()
    assert gradients == 49 - module.FIRST_SWEEPS + 1  # of the last U too, to measure it
    assert residuals == module.FIRST_SWEEPS  # of U_0 and the first ones
    f, U = Frobenius(as_symmetric(X)), found.U.copy()
    measured = f.stationarity(Point(f.ops, U))
    assert found.history["stationarity"][-1] == pytest.approx(measured, rel=1e-9)


def model_matrix(U: Array, shift: float) -> Array:
    """Return the matrix of D -> D G + U D^T U + shift D, column by column."""
    units = np.eye(U.size).reshape(U.size, *U.shape)
    return np.column_stack([(E @ (U.T @ U) + U @ (E.T @ U) + shift * E).ravel() for E in units])


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.1, 10.0]))
@settings(deadline=None, max_examples=40)
def test_closed_form_of_the_half_without_bounds(seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    U, V = rng.random((7, 3)), rng.standard_normal((7, 3))
    U[:, 2] = U[:, 1] * (seed % 2)  # a Gram matrix without an inverse
    values, vectors = np.linalg.eigh(U.T @ U)
    address, moment = multiplier(np.dtype(np.float64)), (U @ vectors).T @ V
    coupling = np.empty((3, 3))
    couple(address, moment, np.ascontiguousarray(vectors), values, shift, coupling)
    D = V @ np.linalg.inv(U.T @ U + shift * np.eye(3)) + U @ vectors @ coupling
    direct = np.linalg.solve(model_matrix(U, shift), V.ravel())
    np.testing.assert_allclose(D.ravel(), direct, rtol=1e-7, atol=1e-7 * abs(direct).max())


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


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1e-12, 1e-18, 1e-22, 0.0])
def test_next_to_zero_there_is_no_gauss_newton_step_or_a_finite_one(kind: Any, size: float) -> None:
    U = (size * np.random.default_rng(0).random((30, 3))).astype(kind)
    f = Frobenius(DenseMatrix(np.full((30, 30), 1 / 30, kind), Threads(1)))
    weight = 0.03 * float(np.trace(U.T.astype(float) @ U.astype(float))) / 3
    Z, dual = gauss_newton_target(f, Point(f.ops, U.copy()), weight, np.zeros_like(U))
    assert np.isfinite(Z).all()
    assert np.isfinite(dual).all()
    assert (Z >= 0).all()


def test_gauss_newton_steps_reach_the_last_digits() -> None:
    rng = np.random.default_rng(3)
    U = rng.random((60, 4)) * (rng.random((60, 4)) < 0.8)
    noise = rng.random((60, 60))
    X = U @ U.T + 0.02 * (noise + noise.T)
    result = symnmf.factorize(X, 4, tol=1e-12, max_iter=400, random_state=0)
    assert result.status == "converged"
    assert result.error > 1e-6


def test_gauss_newton_target_on_two_threads_is_that_on_one() -> None:
    rng = np.random.default_rng(0)
    U = rng.random((3000, 20))
    product = U @ (U.T @ U) + rng.standard_normal(U.shape)
    assert len(Threads(2).split(*U.shape)) < len(Threads(2).split(len(U), 6.0 * 20**2))
    one, two = (
        gauss_newton_target(f, Point(f.ops, U, product), 0.03, np.zeros_like(U))
        for f in (Frobenius(DenseMatrix(np.eye(len(U)), Threads(count))) for count in (1, 2))
    )
    for first, second in zip(one, two, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-10)


def test_a_sweep_comes_at_least_every_tenth_step(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = datasets.synthetic(60, 4, 0.05, random_state=0)
    at: list[int] = []
    newton_steps: list[int] = []
    sweep_step, newton_step = HalsNewton._sweep_step, HalsNewton._newton_step

    def spy_sweep(self: HalsNewton, X: Any, state: Any, level: float) -> None:
        at.append(state.iteration)
        sweep_step(self, X, state, level)

    def spy_newton(self: HalsNewton, X: Any, state: Any, level: float) -> bool:
        newton_steps.append(state.iteration)
        # every seventh is refused, as the line search would: a sweep must follow at once
        return newton_step(self, X, state, level) and state.iteration % 7 != 0

    monkeypatch.setattr(HalsNewton, "_sweep_step", spy_sweep)
    monkeypatch.setattr(HalsNewton, "_newton_step", spy_newton)
    symnmf.factorize(X, 4, solver="hals-newton", tol=0.0, max_iter=100, random_state=0)
    assert len(newton_steps) > 50
    assert max(np.diff(at)) <= 10
    assert {k + 1 for k in newton_steps if k % 7 == 0 and k < 99} <= set(at)


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


def test_product_and_gram_do_not_drift() -> None:
    X, _ = datasets.synthetic(60, 4, 0.5, random_state=0)
    matrix = Frobenius(as_symmetric(X, n_jobs=1))
    solver = HalsNewton()
    state = solver.start(matrix, np.random.default_rng(0).random((60, 4)))
    for _ in range(module.REFRESH * 4 - 1):
        solver.step(matrix, state)
        state.iteration += 1
    U = state.U.values
    np.testing.assert_allclose(state.U.known_product, X @ U, rtol=1e-11)
    np.testing.assert_allclose(state.U.gram, U.T @ U, rtol=1e-11)


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


def test_multiple_of_the_start_does_not_matter() -> None:
    X, _ = datasets.synthetic(40, 3, 0.1, random_state=0)
    U0 = np.random.default_rng(0).random((40, 3))
    runs = [
        symnmf.factorize(X, 3, init=c * U0, solver="hals-newton", tol=0.0, max_iter=8).U
        for c in (1e-3, 1.0, 1e3)
    ]
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(runs[2], runs[1], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("stop", [4, 13, 37, 55])
def test_resumes_bit_for_bit(tmp_path: Path, kind: Any, stop: int) -> None:
    X, _ = datasets.synthetic(50, 4, 0.3, random_state=0)
    options: dict[str, Any] = {"solver": "hals-newton", "tol": 0.0, "random_state": 0}
    whole = symnmf.factorize(kind(X), 4, max_iter=80, **options)
    file = tmp_path / "run.npz"
    symnmf.factorize(kind(X), 4, max_iter=stop, checkpoint=file, **options)
    rest = symnmf.factorize(kind(X), 4, max_iter=80, checkpoint=file, **options)
    np.testing.assert_array_equal(rest.U, whole.U)
    np.testing.assert_array_equal(rest.history["error"], whole.history["error"])


@pytest.fixture
def beyond_the_cache(monkeypatch: pytest.MonkeyPatch) -> sp.csr_array:
    """A random graph, whose E stays far from where Gauss-Newton takes over, treated as large."""
    monkeypatch.setattr(solving, "IN_CACHE", 0)
    A = sp.random_array((60, 60), density=0.1, rng=np.random.default_rng(0), format="csr")
    return sp.csr_array(A + A.T)


def test_very_large_factors_keep_no_history_and_make_three_sweeps_a_step(
    beyond_the_cache: sp.csr_array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 0)
    X = beyond_the_cache
    assert (
        len(HalsNewton().start(Frobenius(as_symmetric(X)), np.ones((60, 3))).memory["steps"]) == 0
    )
    options: dict[str, Any] = {"solver": "hals-newton", "tol": 0.0, "random_state": 0}
    errors = symnmf.factorize(X, 3, max_iter=60, **options).history["error"]
    assert errors[-1] > 0.05
    assert (np.diff(errors) <= 1e-6).all()
    monkeypatch.setattr(module, "SWEEPS_ALONE", 1)
    assert errors[5] < symnmf.factorize(X, 3, max_iter=5, **options).error


@pytest.mark.filterwarnings("ignore::symnmf.errors.ConvergenceWarning")
def test_large_sparse_problems_begin_in_single_precision_and_end_in_double(
    beyond_the_cache: sp.csr_array, tmp_path: Path
) -> None:
    X = beyond_the_cache
    options: dict[str, Any] = {"solver": "hals-newton", "tol": 1e-9, "random_state": 0}
    kinds, whole = types_of_a_run(X, 3, max_iter=5000, **options)
    assert kinds[0] == "float32"
    switch = kinds.index("float64")
    assert kinds == ["float32"] * switch + ["float64"] * (len(kinds) - switch)
    assert whole.status == "converged"  # at a tolerance that float32 cannot reach
    early = symnmf.factorize(X, 3, max_iter=switch - 1, **options)
    assert early.U.dtype == np.float64
    file = tmp_path / "run.npz"
    for stop in (switch - 1, switch + 1):
        symnmf.factorize(X, 3, max_iter=stop, checkpoint=file, **options)
        rest = symnmf.factorize(X, 3, max_iter=5000, checkpoint=file, **options)
        np.testing.assert_array_equal(rest.U, whole.U)
        file.unlink()


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


def test_runs_stay_in_the_precision_of_x_where_float32_would_not_do() -> None:
    X = planted_graph(900, 6)
    for data, rank, options in (
        (X, 6, {"tol": 5e-5}),  # it is rounding in float32
        (X, 6, {"tol": 0.0, "max_iter": 3}),
        (X, 4, {"tol": 1e-4}),  # too few entries to be faster
        (X.toarray(), 6, {"tol": 1e-4}),
    ):
        assert set(types_of_a_run(data, rank, **options)[0]) == {"float64"}


def test_a_start_in_float64_is_not_rounded_where_the_run_ends_with_it() -> None:
    X = planted_graph(900, 6)
    best = symnmf.factorize(X, 6, tol=1e-9)
    again = symnmf.factorize(X, 6, tol=1e-4, init=best.U)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.U, best.U)
    assert again.history["stationarity"][0] <= 1e-9
    assert again.error == pytest.approx(best.error, rel=1e-14)
    none = symnmf.factorize(X, 6, init=0.5 * best.U, max_iter=0, tol=1e-4)
    np.testing.assert_array_equal(none.U, 0.5 * best.U)


@pytest.mark.parametrize("stop", [2, 5, 9])
def test_a_limit_that_ends_a_run_in_float32_leaves_the_digits_of_float64(stop: int) -> None:
    X = planted_graph(900, 6)
    with pytest.warns(symnmf.errors.ConvergenceWarning):
        seen, found = types_of_a_run(
            X, 6, tol=1e-4, init="scaled-random", random_state=0, max_iter=stop
        )
    assert set(seen) == {"float32"}
    true = np.linalg.norm(X.toarray() - found.U @ found.U.T) ** 2 / X.power(2).sum()
    assert found.history["error"][-1] == found.error == pytest.approx(true, rel=1e-13)
    assert found.value == pytest.approx(0.5 * true * X.power(2).sum(), rel=1e-13)


def test_components_are_looked_at_in_float64() -> None:
    try:
        X = symnmf.graphs.self_tuning(datasets.load("orl").data)
    except InputError as absent:
        pytest.skip(str(absent))
    found = symnmf.factorize(X, 40, tol=1e-4)
    assert found.status == "converged"
    assert found.certificate(X).worst_component <= 1e-4  # 6e-4 where the run in float32 ends


def test_a_run_goes_on_in_float32_from_a_checkpoint(tmp_path: Path) -> None:
    X, file = planted_graph(900, 6), tmp_path / "run.npz"
    options: dict[str, Any] = {"tol": 1e-4, "init": "scaled-random", "random_state": 0}
    whole = symnmf.factorize(X, 6, **options)
    with pytest.warns(symnmf.errors.ConvergenceWarning):
        symnmf.factorize(X, 6, max_iter=5, checkpoint=file, **options)
    np.testing.assert_array_equal(symnmf.factorize(X, 6, checkpoint=file, **options).U, whole.U)
    file.unlink()
    with pytest.warns(symnmf.errors.ConvergenceWarning):
        symnmf.factorize(X, 6, max_iter=5, checkpoint=file, **options)
    tighter = symnmf.factorize(X, 6, checkpoint=file, **{**options, "tol": 1e-8})
    assert tighter.status == "converged"
    assert tighter.certificate(X).stationarity <= 1e-8


def test_no_start_ends_in_the_poor_minimum_of_tdt2() -> None:
    try:
        data = datasets.load("TDT2_first3147")
    except InputError as absent:
        pytest.skip(f"needs the data set tdt2: {absent}")
    A = symnmf.graphs.self_tuning(data.data)
    ends = [
        symnmf.factorize(A, 2, tol=1e-4, init="scaled-random", random_state=seed).error
        for seed in range(400, 430)
    ]
    assert max(ends) < 0.98895  # A-SymHALS ends at 0.98913 from a tenth of the starts


def test_same_bits_twice() -> None:
    X, _ = datasets.synthetic(50, 4, 0.3, random_state=0)
    first, second = (
        symnmf.factorize(X, 4, solver="hals-newton", tol=0.0, max_iter=50, random_state=5).U
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_single_precision_stays_single_and_gets_as_far_as_it_can() -> None:
    X, _ = datasets.synthetic(100, 5, 0.5, random_state=0)
    single, double = (
        symnmf.factorize(
            X.astype(kind), 5, solver="hals-newton", tol=1e-6, max_iter=400, random_state=0
        )
        for kind in (np.float32, np.float64)
    )
    assert single.U.dtype == np.float32
    assert single.error == pytest.approx(double.error, rel=1e-2)


@pytest.mark.parametrize(
    ("X", "U0"),
    [
        (np.array([[2.0]]), np.array([[1.0]])),
        (np.eye(4), np.column_stack([np.ones(4), np.zeros(4)])),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0], [0.0]])),
        (np.zeros((3, 3)), np.ones((3, 2))),
    ],
)
def test_degenerate_problems_stay_finite(X: Array, U0: Array) -> None:
    result = symnmf.factorize(X, U0.shape[1], init=U0, solver="hals-newton", tol=0.0, max_iter=30)
    assert np.isfinite(result.U).all()
    assert objective(X, result.U) <= objective(X, U0) * (1 + 1e-12)


def test_a_start_that_no_multiple_of_fits_does_not_end_at_zero() -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.0]])  # <X U_0, U_0> = 0
    result = symnmf.factorize(X, 1, init=np.array([[1.0], [0.0]]), max_iter=50)
    assert result.error == pytest.approx(0.5)


@pytest.mark.parametrize("depth", [-1, 2.0, True])
def test_refuses_a_depth_that_is_no_count(depth: Any) -> None:
    with pytest.raises(InputError, match="depth"):
        HalsNewton(depth=depth)


def test_refuses_an_error_outside_its_range() -> None:
    with pytest.raises(InputError, match="newton_below"):
        HalsNewton(newton_below=2.0)


def test_auto_is_a_name_of_its_own_for_the_same_steps() -> None:
    X, _ = datasets.synthetic(40, 3, 0.1, random_state=0)
    options: dict[str, Any] = {"tol": 0.0, "max_iter": 20, "random_state": 0}
    auto = symnmf.factorize(X, 3, solver="auto", **options)
    assert auto.solver == "auto"
    np.testing.assert_array_equal(auto.U, symnmf.factorize(X, 3, solver="hals-newton", **options).U)


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


@pytest.mark.long
@pytest.mark.parametrize("name", ["orl", "coil20"])
def test_minima_on_graphs_are_as_good_as_those_of_a_symhals(name: str) -> None:
    try:
        data = datasets.load(name)
    except InputError as absent:
        pytest.skip(f"needs the data set {name}: {absent}")
    A = symnmf.graphs.self_tuning(data.data)

    def ends(**how: Any) -> float:
        return float(
            np.median(
                [
                    symnmf.factorize(
                        A,
                        data.n_clusters,
                        tol=1e-4,
                        max_iter=600,
                        init="scaled-random",
                        random_state=seed,
                        **how,
                    ).error
                    for seed in range(20)
                ]
            )
        )

    paper = ends(solver="a-symhals", coupling="adaptive", init="random")
    assert ends(solver="auto") <= paper + 0.01 * (1.0 - paper)


def test_only_a_start_off_its_scale_is_copied():
    B = np.random.default_rng(0).random((40, 3))
    f = Frobenius(as_symmetric(B @ B.T))
    U = np.random.default_rng(1).random((40, 3))
    U *= f.best_multiple(Point(f.ops, U))
    for factor, copied in ((1.0, False), (1.1, True)):
        state = HalsNewton().start(f, f.ops.put(factor * U))
        begun = state.U
        module._rescale(f, state)
        assert (state.U is not begun) == copied
        np.testing.assert_allclose(state.U.values, U, rtol=1e-12)


def test_spare_factors_do_not_pile_up() -> None:
    matrix = Frobenius(as_symmetric(datasets.synthetic(60, 4, 0.05, random_state=0)[0]))
    solver = HalsNewton()
    state = solver.start(matrix, np.random.default_rng(0).random((60, 4)))
    kept = []
    for iteration in range(40):
        state.iteration = iteration
        solver.step(matrix, state)
        kept.append(len(state.spare))
    assert "dual" in state.memory  # so that there were Gauss-Newton steps
    assert max(kept) <= 4
