"""Whatever valid matrix comes: never NaN, never negative, never worse than the start."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import symnmf
from symnmf.errors import ConvergenceWarning
from symnmf.solvers import SOLVERS

#: methods whose objective may rise on the way by design
FREE = {"admm", "tsvd"}


@st.composite
def matrices(draw):
    n = draw(st.integers(1, 30))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    density = draw(st.sampled_from([0.0, 0.05, 0.3, 1.0]))
    kind = draw(st.sampled_from(["uniform", "integer", "heavy", "low-rank", "identity", "blocks"]))
    if kind == "uniform":
        X = rng.random((n, n))
    elif kind == "integer":
        X = rng.integers(0, 3, (n, n)).astype(float)
    elif kind == "heavy":
        X = np.exp(4.0 * rng.standard_normal((n, n)))
    elif kind == "low-rank":
        B = rng.random((n, draw(st.integers(1, 3))))
        X = B @ B.T
    elif kind == "identity":
        X = np.eye(n)
    else:
        labels = rng.integers(0, 3, n)
        X = (labels[:, None] == labels).astype(float)
    X = np.triu(X * (rng.random((n, n)) < density))
    X = X + np.triu(X, 1).T
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    exponent = draw(st.integers(-24, 24) if dtype == np.float64 else st.integers(-12, 12))
    X = (X * 10.0**exponent).astype(dtype)
    if draw(st.booleans()):
        return sp.csr_array(X)
    return X


def check(X, data):
    n = X.shape[0]
    rank = data.draw(st.integers(1, min(n, 12)))
    solver = data.draw(st.sampled_from(sorted(SOLVERS)))
    init = data.draw(st.sampled_from(["random", "scaled-random", "spectral"]))
    iterations = data.draw(st.integers(0, 12))
    options = {}
    if SOLVERS[solver].has_coupling:
        unit = max(float(abs(X).max()), 1e-300)
        options["coupling"] = data.draw(st.floats(1e-3, 10.0)) * unit
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = symnmf.factorize(
            X, rank, solver=solver, init=init, random_state=0, max_iter=iterations, **options
        )
    assert result.status != "diverged"
    for factor in (result.U, result.V):
        assert factor.dtype == X.dtype
        assert np.isfinite(factor).all()
    assert (result.U >= 0).all()
    assert np.isfinite(result.error)
    if solver not in FREE:
        objective = result.history["objective"]
        slack = 1e-9 if X.dtype == np.float64 else 1e-4
        scale = objective[0] + float((X.astype(np.float64) ** 2).sum()) / 2
        if np.isfinite(scale):
            assert objective[-1] <= objective[0] + slack * scale


@given(matrices(), st.data())
def test_factorize_on_anything_valid(X, data):
    check(X, data)


@pytest.mark.long
@settings(max_examples=3000, suppress_health_check=list(HealthCheck))
@given(matrices(), st.data())
def test_factorize_on_anything_valid_at_length(X, data):
    check(X, data)
