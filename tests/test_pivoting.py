"""Exact nonnegative least squares rows, held against scipy and against the KKT conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from symnmf.kernels import pivoting
from symnmf.kernels.pivoting import pivot_rows

FAMILIES = [
    "gaussian",
    "nonnegative",
    "zero columns",
    "duplicate columns",
    "low rank",
    "nearly low rank",
    "wide",
    "small integers",
    "smooth",
    "all zero",
]
REGULAR = {"gaussian", "nonnegative"}


def design(family: str, rank: int, rng: np.random.Generator) -> np.ndarray:
    """A matrix A of one family; its Gram matrix is the problem."""
    matrix = rng.standard_normal((3 * rank + 2, rank))
    thin = (rank + 1) // 2
    if family == "nonnegative":
        matrix = np.abs(matrix)
    elif family == "zero columns":
        matrix[:, rng.random(rank) < 0.4] = 0
    elif family == "duplicate columns":
        matrix = matrix[:, rng.integers(0, thin, rank)] * rng.uniform(0.5, 2, rank)
    elif family == "low rank":
        matrix = matrix[:, :thin] @ rng.standard_normal((thin, rank))
    elif family == "nearly low rank":
        matrix = matrix[:, :thin] @ rng.random((thin, rank)) + 1e-7 * matrix
    elif family == "wide":
        matrix = np.abs(matrix[:thin])
    elif family == "small integers":
        matrix = rng.integers(-1, 2, matrix.shape).astype(float)
    elif family == "smooth":
        grid = np.linspace(0, 1, matrix.shape[0])
        matrix = np.exp(-20 * np.subtract.outer(grid, np.linspace(0, 1, rank)) ** 2)
    elif family == "all zero":
        matrix[:] = 0
    return matrix


def nnls_rows(gram, cross, start=None) -> np.ndarray:
    """Solve min 1/2 f G f^T - c f^T, f >= 0, for each row c of ``cross``."""
    gram, cross = np.array(gram, float), np.ascontiguousarray(cross)
    factor = np.zeros_like(cross) if start is None else np.array(start, cross.dtype)
    pivot_rows(factor, cross, cross, gram, 0.0, 0, len(cross))
    return factor


def kkt_residual(gram: np.ndarray, cross: np.ndarray, solution: np.ndarray) -> float:
    """Largest violation of optimality in units where every column has norm one.

    The gradient must be nonnegative, and zero where the solution is positive; it is measured
    against the size of the terms that cancel in it.
    """
    norms = np.sqrt(np.diagonal(gram))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    target = cross * scale
    scaled = solution * norms
    gradient = scaled @ (gram * scale * scale[:, None]) - target
    violation = np.where(solution > 0, np.abs(gradient), np.maximum(-gradient, 0))
    size = np.abs(target).max(axis=1) + scaled.sum(axis=1)
    return float(np.max(violation.max(axis=1) / np.where(size > 0, size, 1.0), initial=0.0))


def run_kernel(
    factor: np.ndarray, product: np.ndarray, gram: np.ndarray, coupling: float = 0.0
) -> int:
    return pivot_rows(factor, product, product, gram, coupling, 0, len(factor))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rank", [1, 2, 5, 12, 20])
def test_matches_scipy(family: str, rank: int) -> None:
    rng = np.random.default_rng([rank, FAMILIES.index(family)])
    for _ in range(3):
        matrix = design(family, rank, rng)
        data = rng.standard_normal((10, matrix.shape[0]))
        data[::2] = np.abs(data[::2])
        gram, cross = matrix.T @ matrix, data @ matrix
        ours = nnls_rows(gram, cross)
        assert np.isfinite(ours).all()
        assert ours.min() >= 0
        assert kkt_residual(gram, cross, ours) < 1e-12
        compared = 0
        for row, solution in zip(data, ours, strict=True):
            theirs, norm = nnls(matrix, row, maxiter=100 * rank)
            # On a singular matrix scipy at times runs off to 1e14 along a null direction, and
            # 1.15 at times stops where the gradient is not 0 at a positive number.
            gradient = (matrix @ theirs - row) @ matrix
            wrong = max(-gradient.min(), np.abs(gradient[theirs > 0]).max(initial=0.0))
            if wrong > 1e-8 * np.linalg.norm(matrix) * np.linalg.norm(row):
                continue
            compared += 1
            # Half the digits of A are lost in a Gram matrix that is singular.
            loose = 1e-10 if family in REGULAR else 1e-8
            gap = np.linalg.norm(matrix @ solution - row) - norm
            assert abs(gap) <= loose * np.linalg.norm(row)
            if family in REGULAR:
                np.testing.assert_allclose(solution, theirs, rtol=1e-8, atol=1e-8)
        assert compared >= (10 if family in REGULAR else 8)


@settings(max_examples=80, deadline=None)
@given(
    family=st.sampled_from(FAMILIES),
    rank=st.integers(1, 24),
    seed=st.integers(0, 2**32 - 1),
    spread=st.sampled_from([0, 3, 60]),
    coupling=st.sampled_from([0.0, 1e-200, 1e-12, 1.0, 1e6]),
    guess=st.sampled_from(["zero", "full", "garbage"]),
)
def test_optimality_conditions(
    family: str, rank: int, seed: int, spread: int, coupling: float, guess: str
) -> None:
    rng = np.random.default_rng(seed)
    matrix = design(family, rank, rng) * 10.0 ** rng.uniform(-spread, spread, rank)
    product = rng.standard_normal((5, matrix.shape[0])) @ matrix
    anchor = rng.random((5, rank))
    gram = matrix.T @ matrix
    factor = {
        "zero": np.zeros((5, rank)),
        "full": np.ones((5, rank)),
        "garbage": 1e100 * rng.standard_normal((5, rank)),
    }[guess]
    pivot_rows(factor, product, anchor, gram, coupling, 0, 5)
    assert np.isfinite(factor).all()
    assert factor.min() >= 0
    shifted = gram + coupling * np.eye(rank)
    assert kkt_residual(shifted, product + coupling * anchor, factor) < 1e-12


@pytest.mark.parametrize(
    "family", ["gaussian", "nonnegative", "zero columns", "low rank", "smooth"]
)
def test_active_set_method_agrees_with_pivoting(family: str) -> None:
    """The fallback solves every row on its own, whether or not pivoting needs it."""
    rng = np.random.default_rng(8)
    for rank in (1, 4, 15):
        matrix = design(family, rank, rng)
        gram = matrix.T @ matrix
        cross = rng.standard_normal((20, matrix.shape[0])) @ matrix
        work = pivoting._workspace(rank)
        scale = np.empty(rank)
        pivoting._equilibrate(gram, 0.0, scale, work)
        solution = np.zeros_like(cross)
        for row, target in zip(solution, cross * scale, strict=True):
            work.target[:] = target
            size = pivoting._active_set(work)
            chosen = work.passive[:size]
            row[chosen] = work.values[:size] * scale[chosen]
        assert solution.min() >= 0
        assert kkt_residual(gram, cross, solution) < 1e-12
        if family in REGULAR:
            np.testing.assert_allclose(solution, nnls_rows(gram, cross), rtol=1e-9, atol=1e-12)


def test_reports_rows_that_needed_the_fallback() -> None:
    rng = np.random.default_rng(0)
    for family, expected in [("gaussian", False), ("smooth", True)]:
        matrix = design(family, 30, rng)
        gram = matrix.T @ matrix
        product = np.abs(rng.standard_normal((50, matrix.shape[0]))) @ matrix
        factor = np.zeros_like(product)
        count = run_kernel(factor, product, gram)
        assert (0 < count <= 50) if expected else count == 0
        assert kkt_residual(gram, product, factor) < 1e-12


@pytest.mark.parametrize("guess", ["solution", "zero", "full", "garbage", "not a number"])
def test_start_does_not_change_the_solution(guess: str) -> None:
    rng = np.random.default_rng(3)
    matrix = design("nonnegative", 15, rng)
    gram, cross = matrix.T @ matrix, rng.standard_normal((200, matrix.shape[0])) @ matrix
    cold = nnls_rows(gram, cross)
    start = {
        "solution": cold,
        "zero": np.zeros_like(cold),
        "full": np.ones_like(cold),
        "garbage": 1e200 * rng.standard_normal(cold.shape),
        "not a number": np.full_like(cold, np.nan),
    }[guess]
    before = start.copy()
    np.testing.assert_allclose(nnls_rows(gram, cross, start=start), cold, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize("family", FAMILIES)
def test_single_precision(family: str) -> None:
    rng = np.random.default_rng(4)
    matrix = design(family, 10, rng)
    gram = matrix.T @ matrix
    cross = (rng.standard_normal((50, matrix.shape[0])) @ matrix).astype(np.float32)
    single = nnls_rows(gram, cross)
    double = nnls_rows(gram, cross.astype(np.float64))
    assert single.dtype == np.float32
    assert double.dtype == np.float64
    # The same arithmetic, rounded once at the end.
    np.testing.assert_array_equal(single, double.astype(np.float32))


@pytest.mark.parametrize("exponent", [-150, -140, -75, 75, 140, 150])
@pytest.mark.parametrize("family", ["gaussian", "duplicate columns", "zero columns"])
def test_extreme_scales_only_rescale(family: str, exponent: int) -> None:
    rng = np.random.default_rng(5)
    matrix = design(family, 8, rng)
    data = rng.standard_normal((40, matrix.shape[0]))
    gram, cross = matrix.T @ matrix, data @ matrix
    plain = nnls_rows(gram, cross)
    power = 4.0 ** round(exponent * np.log(10) / np.log(4))
    # The root of a power of four is exact: the solution stays as it is, digit by digit.
    np.testing.assert_allclose(nnls_rows(power * gram, power * cross), plain, rtol=1e-12)
    squared = nnls_rows(power * gram * power, power * cross * power)
    np.testing.assert_allclose(squared, plain, rtol=1e-12)
    np.testing.assert_allclose(nnls_rows(gram, power * cross), power * plain, rtol=1e-12)


def test_columns_of_very_different_scale() -> None:
    rng = np.random.default_rng(6)
    matrix = design("nonnegative", 7, rng)
    data = rng.standard_normal((40, matrix.shape[0]))
    scale = 10.0 ** np.array([-150, 150, 0, -100, 70, -3, 120])
    plain = nnls_rows(matrix.T @ matrix, data @ matrix)
    matrix *= scale
    np.testing.assert_allclose(
        nnls_rows(matrix.T @ matrix, data @ matrix) * scale, plain, rtol=1e-9, atol=1e-12
    )


def test_solution_beyond_the_largest_number_stays_finite() -> None:
    double = nnls_rows([[1e-300]], [[1e300]])
    single = nnls_rows([[1e-30]], np.array([[1e30]], np.float32))
    assert double[0, 0] == np.finfo(np.float64).max
    assert single[0, 0] == np.finfo(np.float32).max


def test_zero_gram_gives_zero() -> None:
    factor = np.ones((4, 3))
    assert run_kernel(factor, np.array([[1.0, -1.0, 0.0]] * 4), np.zeros((3, 3))) == 0
    np.testing.assert_array_equal(factor, 0)


def test_zero_gram_with_coupling_projects_the_anchor() -> None:
    anchor = np.array([[2.0, -1.0, 0.0]])
    factor = np.zeros((1, 3))
    pivot_rows(factor, np.zeros((1, 3)), anchor, np.zeros((3, 3)), 1e-200, 0, 1)
    np.testing.assert_allclose(factor, [[2.0, 0.0, 0.0]], rtol=1e-14)


def test_single_column_is_a_projection() -> None:
    cross = np.array([[3.0], [-3.0], [0.0], [1e-300]])
    np.testing.assert_allclose(nnls_rows([[4.0]], cross), np.maximum(cross, 0) / 4, rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coupling_is_a_shift_of_the_problem(dtype: type) -> None:
    rng = np.random.default_rng(7)
    matrix = design("low rank", 9, rng)
    gram = matrix.T @ matrix
    product = (rng.standard_normal((30, matrix.shape[0])) @ matrix).astype(dtype)
    anchor = rng.random((30, 9)).astype(dtype)
    factor = np.zeros_like(product)
    pivot_rows(factor, product, anchor, gram, 0.7, 0, 30)
    # The same as least squares on the stacked system [A; sqrt(coupling) I].
    stacked = np.vstack([matrix, np.sqrt(0.7) * np.eye(9)])
    target = product.astype(float) @ np.linalg.pinv(matrix)
    for row, fit, pull in zip(factor, target, anchor, strict=True):
        reference, _ = nnls(stacked, np.concatenate([fit, np.sqrt(0.7) * pull]))
        tolerance = 1e-8 if dtype is np.float64 else 1e-5
        np.testing.assert_allclose(row, reference, rtol=tolerance, atol=tolerance)


def test_touches_only_its_rows_and_splits_add_up() -> None:
    rng = np.random.default_rng(9)
    matrix = design("nonnegative", 6, rng)
    gram = matrix.T @ matrix
    product = rng.standard_normal((20, matrix.shape[0])) @ matrix
    anchor = rng.random((20, 6))
    whole = np.zeros((20, 6))
    pivot_rows(whole, product, anchor, gram, 0.1, 0, 20)
    start = rng.standard_normal((20, 6))
    part = start.copy()
    copies = [array.copy() for array in (product, anchor, gram)]
    pivot_rows(part, product, anchor, gram, 0.1, 5, 12)
    np.testing.assert_array_equal(part[:5], start[:5])
    np.testing.assert_array_equal(part[12:], start[12:])
    np.testing.assert_allclose(part[5:12], whole[5:12], rtol=1e-11, atol=1e-13)
    pivot_rows(part, product, anchor, gram, 0.1, 3, 3)
    np.testing.assert_array_equal(part[:5], start[:5])
    for array, copy in zip((product, anchor, gram), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_permuting_columns_permutes_the_solution() -> None:
    rng = np.random.default_rng(10)
    matrix = design("nonnegative", 12, rng)
    data = rng.standard_normal((60, matrix.shape[0]))
    order = rng.permutation(12)
    plain = nnls_rows(matrix.T @ matrix, data @ matrix)
    permuted = nnls_rows(matrix[:, order].T @ matrix[:, order], data @ matrix[:, order])
    np.testing.assert_allclose(permuted, plain[:, order], rtol=1e-10, atol=1e-12)


def test_duplicate_columns_share_evenly() -> None:
    """Among equal minimisers the one of least norm, so the outcome ignores the column order."""
    column = np.random.default_rng(11).random((20, 1))
    matrix = np.repeat(column, 4, axis=1)
    data = np.random.default_rng(12).random((30, 20))
    solution = nnls_rows(matrix.T @ matrix, data @ matrix)
    np.testing.assert_allclose(
        solution.sum(axis=1), (data @ column / (column.T @ column)).ravel(), rtol=1e-10
    )
    assert (solution > 0).all()


def test_planted_solution_is_recovered() -> None:
    """Exact data with many gradient entries at zero: degenerate, and the usual end of a run."""
    rng = np.random.default_rng(13)
    planted = rng.random((300, 20)) * (rng.random((300, 20)) < 0.15)
    gram = planted.T @ planted
    factor = rng.random(planted.shape)
    run_kernel(factor, planted @ gram, gram)
    np.testing.assert_allclose(factor, planted, atol=1e-12)
