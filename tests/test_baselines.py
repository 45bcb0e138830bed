"""Each rival method against an independent check of its own, and all of them alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import nnls

import symnmf
from reference import gradient
from symnmf.kernels.coordinate import best_entry
from symnmf.objectives import Frobenius
from symnmf.solvers import ADMM, PGD, AlphaSNMF, BetaSNMF
from symnmf.state import State
from symnmf.steps.line_search import line_step
from symnmf.storage import as_symmetric

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


def test_tsvd_recovers_orthogonal_columns():
    rng = np.random.default_rng(0)
    B = np.zeros((24, 3))
    B[np.arange(24), np.arange(24) % 3] = rng.random(24) + 0.5
    result = run(B @ B.T, 3, "tsvd", 200)
    assert result.error < 1e-20
    order = np.argmax(B.T @ result.U, axis=1)
    np.testing.assert_allclose(result.U[:, order], B, atol=1e-9)


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


# --- all of them alike


@pytest.mark.parametrize("solver", NEVER_RISING)
@pytest.mark.parametrize("init", ["random", "scaled-random"])
@pytest.mark.parametrize("X", [clustered(), thinned()], ids=["clusters", "graph"])
def test_the_error_never_rises(solver, init, X):
    reached = run(X, 3, solver, 15, init=init).history["error"]
    assert np.all(np.diff(reached) <= 1e-13)
    assert reached[-1] < reached[0]


@pytest.mark.parametrize("first", [1e-5, 1e-2, 1.0, 1e3])
def test_a_step_of_pgd_is_the_longest_of_its_grid_that_lowers_f_enough(first):
    X = clustered()
    U = np.random.default_rng(0).random((len(X), 3))
    slope = 2.0 * (U @ U.T - X) @ U

    def fall(there):
        return 0.5 * (np.sum((X - there @ there.T) ** 2) - np.sum((X - U @ U.T) ** 2))

    lengths = first * 10.0 ** np.arange(-12, 13) / np.linalg.norm(X)
    ends = [np.maximum(U - length * slope, 0.0) for length in lengths]
    good = [fall(there) <= 0.01 * np.vdot(slope, there - U) for there in ends]
    longest = np.flatnonzero(good)[-1]
    solver, f = PGD(first_step=first), Frobenius(as_symmetric(X))
    state = solver.start(f, U)
    solver.step(f, state)
    np.testing.assert_allclose(state.U.values, ends[longest], rtol=1e-9, atol=1e-12)
    # the next search begins there
    assert float(state.memory["pgd_step"]) == pytest.approx(lengths[longest])


def test_where_the_bold_multiplicative_step_rises_the_cube_root_is_taken():
    X, U = clustered(), 1e-3 * np.random.default_rng(0).random((30, 3))
    ratio = (X @ U) / (U @ (U.T @ U))  # so large that U * ratio would overshoot
    found = symnmf.factorize(X, 3, solver=BetaSNMF(beta=1.0), init=U, max_iter=1, tol=0.0)
    np.testing.assert_allclose(found.U, U * np.cbrt(ratio), rtol=1e-12)


def test_a_line_step_that_leaves_little_of_u_knows_its_gram_matrix():
    U = np.random.default_rng(0).random((20, 3))
    f = Frobenius(as_symmetric(1e-16 * np.ones((20, 20))))
    state = State.at(f, U)
    line_step(f, state, 1e-8 * U)
    np.testing.assert_allclose(state.U.gram, state.U.values.T @ state.U.values, rtol=1e-12)
