"""No start makes a run say "converged" where it is not, or a certificate refuse a solution."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from conftest import synthetic_problem
from symnmf.errors import ConvergenceWarning
from symnmf.solvers import SOLVERS, as_solver

TOL = 1e-5
PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])
every_solver = pytest.mark.parametrize("solver", sorted(SOLVERS))

pytestmark = pytest.mark.filterwarnings("ignore::symnmf.errors.ConvergenceWarning")


def kkt(X, U):
    """||min(||X|| U, grad f(U))|| over ||X|| ||U||, in exact scale; infinite at U = 0."""
    X = X.toarray() if sp.issparse(X) else X
    size, largest = np.linalg.norm(X), U.max(initial=0.0)
    if size == 0.0 or largest == 0.0:
        return 0.0 if size == 0.0 else np.inf
    # squares of the entries of U may be too small or too large to be numbers: those of W are not
    X, W, unit = X / size, U / largest, largest / np.sqrt(size)
    with np.errstate(over="ignore"):
        slope = 2.0 * (unit * (unit * (W @ (W.T @ W))) - X @ W)
    return np.linalg.norm(np.minimum(W, slope)) / np.linalg.norm(W)


def independent_set(X, rng):
    """Nodes no two of which are joined, found greedily."""
    chosen: list[int] = []
    for i in rng.permutation(len(X)):
        if X[i, i] == 0.0 and not X[i, chosen].any():
            chosen.append(int(i))
    return chosen


@st.composite
def hostile(draw):
    """A graph or a dense matrix, and a start that nobody sane would choose."""
    n, r = draw(st.integers(2, 14)), draw(st.integers(1, 3))
    r = min(n, r)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.2, 0.5, 1.0]))
    X = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), draw(st.integers(0, 1)))
    X = X + np.triu(X, 1).T
    X *= 10.0 ** draw(st.integers(-27, 28))
    U = rng.random((n, r)) * np.sqrt(X.max(initial=0.0))
    kind = draw(
        st.sampled_from(["rows", "columns", "huge", "tiny", "independent", "optimal", "lopsided"])
    )
    if kind == "rows":
        U[rng.random(n) < 0.6] = 0.0
    elif kind == "columns":
        U[:, : r - 1] = 0.0
    elif kind == "huge":
        U *= 10.0 ** draw(st.integers(1, 100))
    elif kind == "tiny":
        U *= 10.0 ** -draw(st.integers(1, 100))
    elif kind == "lopsided":
        U[:, 0] *= 1e8
    elif kind == "independent":
        keep = np.zeros(n, bool)
        keep[independent_set(X, rng)] = True
        U[~keep] = 0.0
    else:
        U = symnmf.factorize(X, r, random_state=0, tol=1e-9, max_iter=2000).U
    if not U.any():
        U[0, 0] = np.sqrt(X.max(initial=0.0)) or 1.0
    return X, U


def judge(X, U0, solver, max_iter):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = symnmf.factorize(
            X, U0.shape[1], init=U0, solver=solver, tol=TOL, max_iter=max_iter
        )
    certificate = result.certificate(X)
    residual = kkt(X, result.U)
    assert result.status != "diverged"
    if result.status == "converged" or certificate.certified:
        assert residual <= 10 * TOL
    if residual <= TOL / 10:
        # a saddle is refused, and so is what is not stationary in a small component
        refused = certificate.falls or certificate.worst_component > TOL
        assert certificate.certified or refused
    return result


@every_solver
@settings(max_examples=20)
@given(hostile(), st.sampled_from([3, 200]))
def test_no_start_makes_a_wrong_word(solver, problem, max_iter):
    X, U0 = problem
    judge(X, U0, solver, max_iter)


def test_a_factor_that_fades_away_is_not_an_answer():
    """Rows without a common edge: each multiplicative step takes 99% of U, until squares vanish."""
    X, U0 = np.zeros((5, 5)), np.zeros((5, 2))
    X[0, 4] = X[4, 0] = 0.04
    X[2, 3] = X[3, 2] = 0.7
    X[1, 1] = 0.3
    U0[0], U0[3] = (0.1, 0.8), (0.5, 0.2)
    result = judge(X, U0, "beta-snmf", 200)
    # where nothing is left of it the run goes on from a column that lowers f
    assert result.U.any()
    assert result.error < 1.0
    assert (result.status == "converged") == result.certificate(X).certified


@every_solver
@pytest.mark.parametrize(
    "U0",
    [5 * np.ones((2, 1)), np.array([[1e9], [0.0]]), np.array([[1e150], [2e150]])],
    ids=["five", "one-sided", "beyond-squares"],
)
def test_starts_that_were_once_certified_as_they_stood(solver, U0):
    result = judge(PAIR, U0, solver, 1000)
    if not solver.endswith("-snmf"):  # zeros of a multiplicative method stay zero
        assert result.status == "converged"
        assert result.error == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("solver", ["auto", "pgd", "beta-snmf", "lbfgs", "a-symhals"])
def test_a_start_on_an_independent_set_is_no_solution(solver):
    rng = np.random.default_rng(3)
    X = np.triu((rng.random((30, 30)) < 0.2).astype(float), 1)
    X += X.T
    U0 = np.zeros((30, 2))
    U0[independent_set(X, rng)] = rng.random(2)
    result = judge(X, U0, solver, 500)
    if solver != "beta-snmf":
        assert result.error < 0.95


@every_solver
def test_a_run_from_its_own_solution_ends_at_once(solver):
    X = synthetic_problem(30, 3, 0.1, seed=4)
    first = symnmf.factorize(X, 3, solver="a-symhals", random_state=0, tol=1e-5, max_iter=20_000)
    again = symnmf.factorize(X, 3, solver=solver, init=first.U)
    assert first.certificate(X).certified
    assert (again.status, again.n_iter) == ("converged", 0)
    assert again.certificate(X).certified


def test_a_factor_that_overflowed_is_refused_in_a_sentence():
    result = symnmf.factorize(PAIR, 1, random_state=0)
    for broken in (1e200, np.inf, np.nan):
        result.U[...] = broken
        certificate = result.certificate()
        assert not certificate.certified
        assert certificate.verdict.startswith("Not certified")


def relative(A, B):
    return np.linalg.norm(A - B) / np.linalg.norm(B)


@every_solver
@pytest.mark.parametrize("exponent", [-28, -7, 7, 28])
def test_every_solver_follows_the_scale_of_X(solver, exponent):
    X = synthetic_problem(25, 3, 0.1, seed=5)
    U0 = np.random.default_rng(6).random((25, 3)) + 0.1
    options = {"solver": solver, "max_iter": 6, "tol": 0}
    if as_solver(solver).has_coupling:
        options["coupling"] = "theory"
    plain = symnmf.factorize(X, 3, init=U0, **options)
    c = 10.0 ** (exponent / 2)
    scaled = symnmf.factorize(10.0**exponent * X, 3, init=c * U0, **options)
    assert relative(scaled.U, c * plain.U) < (1e-4 if solver == "lbfgs" else 1e-8)
    assert plain.error < plain.history["error"][0]
