"""Exact nonnegative least squares rows, held against scipy and against the KKT conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

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
