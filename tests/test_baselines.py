"""Each rival method against an independent check of its own, and all of them alike."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import nnls

import symnmf
from conftest import synthetic_problem
from reference import gradient
from symnmf.kernels.coordinate import best_entry
from symnmf.objectives import Frobenius
from symnmf.parallel import Threads
from symnmf.solvers import ADMM, LBFGS, SOLVERS, AlphaSNMF, BetaSNMF, Newton, as_solver
from symnmf.state import State
from symnmf.storage import DenseMatrix, as_symmetric

NEVER_RISING = ("pgd", "lbfgs", "newton", "cd", "beta-snmf", "alpha-snmf")


def run(X, rank, solver, max_iter, **options):
    """A run to the iteration limit from a seeded start, on one thread."""
    settings = {"tol": 0.0, "random_state": 0, "n_jobs": 1, "init": "random", **options}
    return symnmf.factorize(X, rank, solver=solver, max_iter=max_iter, **settings)


def error(X, U):
    return np.sum((X - U @ U.T) ** 2) / np.sum(X**2)


def projected_gradient_norm(X, U):
    G = gradient(X, U)
    return np.linalg.norm(np.where(U > 0, G, np.minimum(G, 0)))


def clustered(n=30, r=3, seed=0):
    """A well conditioned problem: r groups that hardly overlap, and noise."""
    rng = np.random.default_rng(seed)
    B = 0.05 * rng.random((n, r))
    B[np.arange(n), np.arange(n) % r] += 1 + rng.random(n)
    noise = 0.05 * rng.random((n, n))
    return B @ B.T + noise + noise.T


def thinned(n=40, seed=0):
    """A symmetric X with most entries zero, as an array."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n)) * (rng.random((n, n)) < 0.2)
    return X + X.T


# --- one check of its own for each method


@pytest.mark.parametrize(("solver", "limit"), [("pgd", 4000), ("lbfgs", 20)])
def test_reaches_a_stationary_point(solver, limit):
    X = clustered()
    result = run(X, 3, solver, limit, tol=1e-7, init="scaled-random")
    start = run(X, 3, solver, 0, init="scaled-random").U
    assert projected_gradient_norm(X, result.U) <= 1e-6 * projected_gradient_norm(X, start)


@pytest.mark.parametrize("solver", ["pgd", "newton"])
def test_a_start_that_is_much_too_large_does_not_end_at_zero(solver):
    start = 30 * np.random.default_rng(0).random((40, 4))
    result = run(thinned(), 4, solver, 300, init=start)
    assert result.U.any(axis=0).all()
    assert result.error < run(thinned(), 4, "lbfgs", 10).error + 0.1


def quartic(x, a, b):
    return x**4 / 4 + a * x**2 / 2 + b * x


@example(a=-3.7767481032915777e-296, b=0.0, near=1.0)
@example(a=1e-38, b=-1.0, near=1e-38)
@given(
    st.floats(-1e3, 1e3, allow_subnormal=False),
    st.floats(-1e3, 1e3, allow_subnormal=False),
    st.floats(0, 1e3),
)
def test_an_entry_goes_to_the_minimum_of_its_quartic(a, b, near):
    x = best_entry(a, b, near)
    assert x >= 0
    grid = np.linspace(0, 2 + np.sqrt(abs(a)) + np.cbrt(abs(b)), 20001)
    slack = 1e-12 * (1 + a * a + abs(b) ** (4 / 3))
    assert quartic(x, a, b) <= quartic(grid, a, b).min() + slack
    assert quartic(x, a, b) <= 0


@pytest.mark.parametrize("scale", [1e-40, 1.0, 1e40])
@pytest.mark.parametrize("near", [0.0, 1e-3, 50.0])
@pytest.mark.parametrize(("a", "b"), [(3.0, -1e-9), (1e8, -1.0), (-3.0, 2.0), (-3.0, -2.0)])
def test_an_entry_is_a_root_to_the_last_digits(a, b, scale, near):
    a, b, near = a * scale**2, b * scale**3, near * scale
    x = best_entry(a, b, near)
    expected = max(np.roots([1.0, 0.0, a, b]).real)
    if (a, b) == (-3.0 * scale**2, 2.0 * scale**3):  # x^4 is beaten by x = 0
        expected = 0.0
    assert x == pytest.approx(expected, rel=1e-7)
    # the residual is what rounding of its three terms leaves
    assert abs(x**3 + a * x + b) <= 1e-14 * (x**3 + abs(a * x) + abs(b)) or x == 0


def slow_sweep(X, U):
    """Coordinate descent word by word, everything recomputed for every entry."""
    U = U.copy()
    n, r = U.shape
    for i in range(n):
        for j in range(r):
            h = U[i, j]
            a = U[:, j] @ U[:, j] + U[i] @ U[i] - 2 * h**2 - X[i, i]
            b = U[i] @ (U.T @ U)[:, j] - (X @ U)[i, j] - h**3 - h * a
            roots = np.roots([1.0, 0.0, a, b])
            real = roots[np.abs(roots.imag) < 1e-7 * (1 + np.abs(roots))].real
            candidates = np.concatenate([[0.0], real[real > 0]])
            U[i, j] = candidates[np.argmin(quartic(candidates, a, b))]
    return U


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_sweep_of_coordinate_descent_equals_the_slow_one(kind):
    X = thinned(n=15)
    X[3] = X[:, 3] = 0.0
    start = np.random.default_rng(1).random((15, 4))
    expected = slow_sweep(X, slow_sweep(X, start))
    found = run(kind(X), 4, "cd", 2, init=start).U
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@given(st.integers(0, 10**6), st.sampled_from([BetaSNMF, AlphaSNMF]), st.floats(0.01, 30.0))
def test_multiplicative_updates_never_raise_the_objective(seed, solver, scale):
    rng = np.random.default_rng(seed)
    X = rng.random((8, 8)) ** 4
    X = X + X.T
    start = scale * rng.random((8, 3)) * (rng.random((8, 3)) < 0.8)
    reached = [error(X, start)]
    run(
        X,
        3,
        solver(),
        15,
        init=start,
        callback=lambda now: reached.append(error(X, now.U)) or False,
    )
    assert np.all(np.diff(reached) <= 1e-13 * max(reached))


@pytest.mark.parametrize("solver", [BetaSNMF(), AlphaSNMF()])
def test_the_safeguard_takes_the_cube_root(solver):
    X = clustered()
    start = np.full((30, 3), 1e-2)  # so small that the bold update overshoots
    ratio = (X @ start) / (start @ (start.T @ start))
    power, share = solver.shape
    bold = start * (1 - share + share * ratio**power)
    assert error(X, bold) > error(X, start)
    np.testing.assert_allclose(run(X, 3, solver, 1, init=start).U, start * np.cbrt(ratio))


def test_tsvd_recovers_orthogonal_columns():
    rng = np.random.default_rng(0)
    B = np.zeros((24, 3))
    B[np.arange(24), np.arange(24) % 3] = rng.random(24) + 0.5
    result = run(B @ B.T, 3, "tsvd", 200)
    assert result.error < 1e-20
    order = np.argmax(B.T @ result.U, axis=1)
    np.testing.assert_allclose(result.U[:, order], B, atol=1e-9)


def test_tsvd_brings_the_factor_nearer_to_the_rotated_root():
    X = synthetic_problem(40, 4, 0.1)
    values, vectors = np.linalg.eigh(X)
    root = vectors[:, -4:] * np.sqrt(values[-4:])
    distances = []

    def watch(now):
        left, _, right = np.linalg.svd(now.U.T @ root)
        distances.append(np.linalg.norm(now.U - root @ right.T @ left.T))

    run(X, 4, "tsvd", 50, callback=watch)
    assert np.all(np.diff(distances[1:]) <= 1e-12)
    assert distances[-1] < 0.5 * distances[1]


def test_one_newton_step_is_quadratic_for_one_column():
    # with one column the block is the whole Hessian, so a wrong factor in it costs the rate
    u = np.random.default_rng(0).random(20) + 0.5
    X = np.outer(u, u)
    distances = [
        np.linalg.norm(run(X, 1, "newton", k, init=1.01 * u[:, None]).U[:, 0] - u) for k in range(3)
    ]
    assert distances[1] <= 0.05 * distances[0]
    assert distances[2] <= 1e-3 * distances[1]


def test_newton_needs_fewer_iterations_than_pgd_near_a_solution():
    # columns that share no rows: what the blocks leave out is then zero
    rng = np.random.default_rng(0)
    groups = np.arange(30) % 3
    noise = rng.random((30, 30))
    X = (1.0 + noise + noise.T) * (groups[:, None] == groups)
    solution = run(X, 3, "cd", 200, init="scaled-random").U
    near = np.maximum(solution + 1e-2 * rng.standard_normal((30, 3)), 0)
    needed = {}
    for solver in ("newton", "pgd"):
        result = run(X, 3, solver, 1000, init=near, tol=1e-6)
        assert result.status == "converged"
        needed[solver] = result.n_iter
    assert needed["newton"] < needed["pgd"] / 5


def test_an_iteration_of_admm_is_the_one_of_its_definition():
    X, rho = clustered(n=12), 2.0
    rng = np.random.default_rng(0)
    Y, A, L = rng.random((12, 3)), rng.random((12, 3)), rng.standard_normal((12, 3))
    solver, matrix = ADMM(proximal=0.5), Frobenius(as_symmetric(X))
    memory = {
        "admm_multiplier": L.copy(),
        "admm_rho": np.array(rho),
        "admm_apart": np.array(np.inf),
    }
    state = State.at(matrix, Y.copy(), A.copy(), iteration=1, memory=memory)
    solver.step(matrix, state)

    beta = 0.5 * 6 / rho * np.sum((X - A @ Y.T) ** 2)
    gram = A.T @ A + (rho + beta) * np.eye(3)
    root = np.linalg.cholesky(gram)
    cross = X @ A + rho * A - L + beta * Y
    Y = np.array([nnls(root.T, np.linalg.solve(root, row))[0] for row in cross])
    A = (X @ Y + rho * Y + L) @ np.linalg.inv(Y.T @ Y + rho * np.eye(3))
    np.testing.assert_allclose(state.U.values, Y, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.V.values, A, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.memory["admm_multiplier"], L + rho * (Y - A), rtol=1e-8)


@pytest.mark.parametrize("X", [clustered(), thinned()], ids=["clusters", "graph"])
def test_admm_brings_its_two_factors_together(X):
    result = run(X, 3, "admm", 1500, record_every=10)
    apart = result.history["consensus"]
    assert apart.max() > 1e-2
    assert apart[-1] <= 1e-6 * np.linalg.norm(result.U)
    assert np.linalg.norm(result.U - result.V) == pytest.approx(apart[-1], rel=1e-6)
    assert result.history["stationarity"][-1] < 1e-4


def test_kuang_anls_is_symanls_with_the_geometric_coupling():
    X = clustered()
    kuang = run(X, 3, "kuang-anls", 30)
    ours = run(X, 3, "symanls", 30, coupling="geometric")
    np.testing.assert_array_equal(kuang.U, ours.U)
    np.testing.assert_array_equal(kuang.V, ours.V)
    assert kuang.coupling == pytest.approx(1e-5 * 1.01**29)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_kuangs_published_coupling_is_the_largest_entry_squared(kind):
    X = thinned()
    result = run(kind(X), 3, "kuang-anls", 5, coupling="kuang-fixed")
    np.testing.assert_allclose(result.history["coupling"], X.max() ** 2)


# --- all of them alike

every_solver = pytest.mark.parametrize("solver", list(SOLVERS))


@every_solver
def test_factors_are_never_negative_and_finite(solver):
    def check(now):
        assert np.isfinite(now.U).all()
        assert now.U.min() >= 0

    result = run(thinned(), 4, solver, 12, callback=check)
    assert result.n_iter == 12
    assert np.isfinite(result.history.to_array()).all()


@every_solver
def test_one_factor_methods_have_one_factor(solver):
    result = run(thinned(), 4, solver, 3)
    assert (result.V is not result.U) == as_solver(solver).second_factor
    assert (result.coupling > 0) == as_solver(solver).has_coupling


@every_solver
def test_the_same_seed_gives_the_same_bits(solver):
    first, second = (run(thinned(), 4, solver, 5) for _ in range(2))
    np.testing.assert_array_equal(first.U, second.U)


@every_solver
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_float32_is_kept(solver, kind):
    result = run(kind(thinned().astype(np.float32)), 4, solver, 5)
    assert result.U.dtype == result.V.dtype == np.float32
    assert np.isfinite(result.error)


@every_solver
def test_a_callback_stops_the_run(solver):
    result = run(thinned(), 4, solver, 50, callback=lambda now: now.iteration == 2)
    assert (result.status, result.n_iter) == ("stopped", 2)


@pytest.mark.parametrize("solver", NEVER_RISING)
@pytest.mark.parametrize("init", ["random", "scaled-random"])
@pytest.mark.parametrize("X", [clustered(), thinned()], ids=["clusters", "graph"])
def test_the_error_never_rises(solver, init, X):
    reached = run(X, 3, solver, 15, init=init).history["error"]
    assert np.all(np.diff(reached) <= 1e-13)
    assert reached[-1] < reached[0]


@every_solver
def test_every_method_brings_the_error_down(solver):
    X = synthetic_problem(30, 3, 0.05)
    # from uniform(0, 1) and with lambda = 1e-5 the factors of this one part first
    limit = 2500 if solver == "kuang-anls" else 150
    result = run(X, 3, solver, limit, record_every=limit)
    assert result.error < 0.1 * result.history["error"][0]


@every_solver
def test_a_resumed_run_equals_one_that_never_stopped(solver, tmp_path):
    X, path = thinned(), tmp_path / "state.npz"
    run(X, 4, solver, 4, checkpoint=path)
    resumed = run(X, 4, solver, 25, checkpoint=path)
    whole = run(X, 4, solver, 25)
    np.testing.assert_array_equal(resumed.U, whole.U)
    np.testing.assert_array_equal(resumed.V, whole.V)


@every_solver
def test_dense_and_sparse_agree(solver):
    X = thinned()
    dense, sparse = run(X, 4, solver, 3), run(sp.csr_array(X), 4, solver, 3)
    # a quasi-Newton step is a long chain of branches, on which rounding grows
    tolerance = 1e-4 if solver == "lbfgs" else 1e-9
    np.testing.assert_allclose(sparse.U, dense.U, rtol=tolerance, atol=tolerance)


@every_solver
def test_the_scale_of_the_data_does_not_break_a_method(solver):
    for scale in (1e-29, 1e29):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            result = run(scale * thinned(), 4, solver, 5, init="scaled-random")
        assert np.isfinite(result.error)


@every_solver
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_smallest_problems_run(solver, n):
    X = np.ones((n, n)) + np.eye(n)
    assert np.isfinite(run(X, n, solver, 5).U).all()
    assert run(np.zeros((n, n)), 1, solver, 5).error == 0.0


class ProductsOnly(DenseMatrix):
    entries = None


@every_solver
def test_a_method_that_reads_entries_says_so_before_it_starts(solver):
    X = ProductsOnly(thinned(), Threads(1))
    if "entries" in as_solver(solver).requires:
        with pytest.raises(symnmf.InputError, match=f"{solver}.*needs the entries of X"):
            run(X, 4, solver, 1)
    else:
        assert np.isfinite(run(X, 4, solver, 2).error)


def test_the_list_of_solvers_tells_what_each_needs():
    lines = {info.name: str(info) for info in symnmf.solvers.available()}
    assert list(lines) == list(SOLVERS)
    assert "n x n" in lines["newton"]
    assert "entries of X" in lines["cd"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BetaSNMF(0.0), "beta must be above 0 and at most 1, got 0.0"),
        (lambda: AlphaSNMF(2.0), "alpha must be above 0 and at most 1, got 2.0"),
        (lambda: LBFGS(0), "iterations must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(symnmf.InputError, match=message):
        make()


def test_newton_takes_a_gradient_step_at_its_refresh():
    X = clustered()
    start = run(X, 3, "lbfgs", 1, init="scaled-random").U + 0.01
    newton, plain = run(X, 3, "newton", 1, init=start), run(X, 3, Newton(refresh=1), 1, init=start)
    moved = start - plain.U
    G = gradient(X, start)
    interior = plain.U > 0
    ratio = moved[interior] / G[interior]
    np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-6)
    assert not np.allclose(newton.U, plain.U)
