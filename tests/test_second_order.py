"""Saddles are seen and left; certificates say what is true of where a run ended."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag

import symnmf
from symnmf.objectives.observing import observed
from symnmf.state import Point
from symnmf.steps.second_order import Hessian, lowest_curvature


def exact(n: int = 60, rank: int = 4) -> np.ndarray:
    rng = np.random.default_rng(0)
    B = rng.random((n, rank)) * (rng.random((n, rank)) < 0.7)
    return B @ B.T


def gradient(f, U: np.ndarray) -> np.ndarray:
    tall = f.ops.put(np.ascontiguousarray(U))
    return -2.0 * f.residual_times(tall, tall, U)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from(["plain", "weights", "diagonal", "ridge"]))
def test_the_hessian_is_the_derivative_of_the_gradient(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    X = rng.random((9, 9))
    X += X.T
    W = rng.random((9, 9))
    options = {
        "plain": {},
        "weights": {"weights": W + W.T},
        "diagonal": {"ignore_diagonal": True},
        "ridge": {"ridge": 0.3},
    }[kind]
    f = symnmf.Problem(X, **options).objective
    U, D = rng.random((9, 3)), rng.standard_normal((9, 3))
    step = 1e-5
    numeric = (gradient(f, U + step * D) - gradient(f, U - step * D)) / (2 * step)
    np.testing.assert_allclose(Hessian(f, U)(D), numeric, rtol=1e-5, atol=1e-5)


def test_the_lowest_curvature_is_that_of_the_whole_hessian() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((7, 7))
    f = observed(X + X.T)
    U = np.where(rng.random((7, 2)) < 0.7, rng.random((7, 2)), 0.0)
    free = U > 0
    hessian = Hessian(f, U)
    units = np.eye(U.size)[free.ravel()].reshape(-1, *U.shape)
    whole = np.array([hessian(unit)[free] for unit in units])
    found = lowest_curvature(f, Point(f.ops, U))
    assert found is not None
    assert found.lowest * f.norm == pytest.approx(np.linalg.eigvalsh(whole)[0], rel=1e-8)
    assert not found.direction[~free].any()


def saddles() -> dict[str, np.ndarray]:
    """Starts of four columns that first-order steps do not leave, at the best of three."""
    rng = np.random.default_rng(1)
    three = symnmf.factorize(exact(), 3, random_state=0, tol=1e-7).U
    half = three[:, 2:] / np.sqrt(2)
    return {
        "a doubled column": np.hstack([three[:, :2], half, half]),
        **{
            f"a column of 1e-{power}": np.hstack([three, 10.0**-power * rng.random((60, 1))])
            for power in (6, 9, 12)
        },
    }


@pytest.mark.parametrize("name", list(saddles()))
def test_a_run_does_not_end_at_a_saddle(name: str) -> None:
    X, start = exact(), saddles()[name]
    stuck = symnmf.factorize(X, 4, init=start, max_iter=0)
    assert stuck.status == "max_iter"
    certificate = stuck.certificate()
    assert certificate.falls
    assert not certificate.certified
    assert "saddle" in certificate.verdict
    found = symnmf.factorize(X, 4, init=start)
    assert found.status == "converged"
    assert found.error < 1e-9 < 1e-3 < stuck.error
    assert found.certificate().certified


def test_a_faint_saddle_is_left_too() -> None:
    """The curvature of the way out is a hundredth of the largest eigenvalue."""
    even, uneven = np.full(4, 0.5), np.array([0.5, 0.5, -0.5, -0.5])
    X = np.outer(even, even) + 0.01 * np.outer(uneven, uneven)
    start = np.column_stack([even, even]) / np.sqrt(2)
    stuck = symnmf.factorize(X, 2, init=start, max_iter=0).certificate()
    assert -0.1 < stuck.lowest_curvature < -0.001
    assert not stuck.certified
    assert symnmf.factorize(X, 2, init=start, tol=1e-7).error < 1e-9


def small_and_large(link: float = 0.0) -> tuple[sp.csr_array, np.ndarray]:
    """Two components, one ten thousand times the other, and a start that is wrong in the small.

    An entry ``link`` may join them.
    """
    rng = np.random.default_rng(0)
    large, small = rng.random((40, 2)), 1e-2 * rng.random((30, 2))
    X = sp.lil_array(sp.block_diag([large @ large.T, small @ small.T]))
    X[0, 45] = X[45, 0] = link
    X = sp.csr_array(X)
    start = np.zeros((70, 4))
    start[:40, :2] = large
    start[40:, 2:] = 1e-2 * rng.random((30, 2))
    return X, start


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("link", [0.0, 1e-12, 1e-8])
def test_a_small_component_counts(dense: bool, link: float) -> None:
    X, start = small_and_large(link)
    X = X.toarray() if dense else X
    stuck = symnmf.factorize(X, 4, init=start, max_iter=0)
    certificate = stuck.certificate()
    assert certificate.stationarity < 1e-5
    assert certificate.components == 2
    assert certificate.worst_component > 1e-2
    assert not certificate.certified
    assert "component" in certificate.verdict
    small = np.asarray(X[40:, 40:].todense() if not dense else X[40:, 40:])
    found = symnmf.factorize(X, 4, init=start, max_iter=300)
    left = small - found.U[40:] @ found.U[40:].T
    began = small - start[40:] @ start[40:].T
    assert np.linalg.norm(left) < 0.01 * np.linalg.norm(began)


@pytest.mark.parametrize("kind", ["entries", "eigenvalues"])
def test_zero_can_be_the_answer(kind: str) -> None:
    rng = np.random.default_rng(0)
    A = rng.random((20, 20))
    X = -(A + A.T) if kind == "entries" else -(A - 0.5) @ (A - 0.5).T
    result = symnmf.factorize(X, 3, allow_negative=True, random_state=0)
    assert result.status == "converged"
    assert not result.U.any()
    assert result.error == 1.0
    certificate = result.certificate()
    assert certificate.certified
    assert certificate.zero_is_best
    assert "U = 0 is the answer" in str(certificate)
    assert result.bound().proved_global


def test_growth_under_a_hidden_diagonal_is_said() -> None:
    X = np.zeros((12, 12))
    X[0, 1:] = X[1:, 0] = 1.0  # a star: the centre can take all, and the better the larger it is
    with pytest.warns(symnmf.errors.ConvergenceWarning, match="grow without limit"):
        result = symnmf.factorize(X, 2, ignore_diagonal=True, random_state=0, max_iter=5000)
    certificate = result.certificate()
    assert not certificate.certified
    assert certificate.grown_rows == (0,)
    assert "ridge" in certificate.verdict
    held = symnmf.factorize(X, 2, ignore_diagonal=True, ridge=0.2, random_state=0)
    assert held.certificate().certified
    assert not held.certificate().grown_rows


def entering() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Matrices with starts whose entries that are 0 with gradient 0 can rise and lower f."""
    ones = np.ones((4, 4))
    apart, mixed = np.zeros((12, 2)), np.zeros((12, 2))
    apart[:4, 0], apart[8:, 1] = np.sqrt(10), 1.0
    pair = np.kron([[10.0, 3.0], [3.0, 9.0]], ones)
    values, vectors = np.linalg.eigh(pair)
    mixed[:8, 0] = np.sqrt(values[-1]) * np.abs(vectors[:, -1])
    mixed[8:, 1] = np.sqrt(0.5)
    return {
        "a block that no column has": (block_diag(10 * ones, 9 * ones, ones), apart),
        "half of an eigenvector": (block_diag(pair, 0.5 * ones), mixed),
    }


@pytest.mark.parametrize("name", list(entering()))
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_entries_at_zero_with_gradient_zero_are_looked_at(name: str, kind: type) -> None:
    X, start = entering()[name]
    stuck = symnmf.factorize(kind(X), 2, init=start, max_iter=0)
    certificate = stuck.certificate()
    assert certificate.stationarity < 1e-12
    assert certificate.falls
    assert not certificate.certified
    found = symnmf.factorize(kind(X), 2, init=start)
    assert found.status == "converged"
    assert found.value < stuck.value - 10.0
    assert found.certificate().certified
