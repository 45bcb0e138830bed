"""The nearest rotation, by products alone."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.linalg import polar

from symnmf.run.spectral import nearest_rotation


@given(st.integers(1, 60), st.floats(0.0, 8.0), st.integers(-100, 100), st.integers(0, 2**32 - 1))
@example(60, 0.0, 0, 0)
def test_the_nearest_rotation_is_the_polar_factor(
    r: int, digits: float, size: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((r, r)))[0] for _ in range(2))
    M = 10.0**size * (left * np.logspace(0, -digits, r)) @ right
    found = nearest_rotation(M)
    np.testing.assert_allclose(found.T @ found, np.eye(r), atol=1e-12 * r)
    # a direction that is 10^-d of the longest is known to so many digits less
    np.testing.assert_allclose(found, polar(M)[0], atol=1e-13 * r * 10.0**digits)
