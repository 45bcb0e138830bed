"""What the zeros of U say of other factors of U U^T."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symnmf.run.uniqueness import uniqueness


@given(st.integers(0, 2**32), st.integers(2, 4))
def test_what_is_called_unique_is(seed: int, rank: int) -> None:
    """Every rotation of U that stays nonnegative is a permutation, by brute force over angles."""
    rng = np.random.default_rng(seed)
    U = rng.random((12, rank)) * (rng.random((12, rank)) < 0.5)
    found = uniqueness(U)
    for i in range(rank):
        for j in range(rank):
            if i == j:
                continue
            for angle in (1e-6, 1e-3, 0.1, 0.7):
                turned = U.copy()
                turned[:, i] = np.cos(angle) * U[:, i] - np.sin(angle) * U[:, j]
                turned[:, j] = np.sin(angle) * U[:, i] + np.cos(angle) * U[:, j]
                if found.verdict == "unique":
                    assert (turned < -1e-12).any()
    if found.verdict == "not unique":
        inner, outer = found.within
        ratio = U[:, inner] / np.where(U[:, outer] > 0, U[:, outer], np.inf)
        angle = 0.5 * np.arctan(1 / max(ratio.max(), 1e-300))
        turned = U.copy()
        turned[:, outer] = np.cos(angle) * U[:, outer] - np.sin(angle) * U[:, inner]
        turned[:, inner] = np.sin(angle) * U[:, outer] + np.cos(angle) * U[:, inner]
        assert (turned >= 0).all()
        np.testing.assert_allclose(turned @ turned.T, U @ U.T, atol=1e-12)
        assert not np.allclose(turned, U)


def test_each_of_the_three_answers() -> None:
    unique = np.array([[1, 0], [0, 2], [1, 1.0]])
    assert uniqueness(unique).verdict == "unique"
    assert uniqueness(unique).own_rows == (1, 1)
    nested = np.array([[1, 0], [1, 2], [1, 1.0]])
    assert uniqueness(nested).verdict == "not unique"
    assert uniqueness(nested).within == (1, 0)
    # each pair of columns shares a row and has one the other lacks, and no row is of one alone
    overlapping = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1.0]])
    assert uniqueness(overlapping).verdict == "open"
    # a zero column and another can share what the other has
    with_zero = np.array([[1, 0, 0], [0, 2, 0], [1, 1.0, 0]])
    assert uniqueness(with_zero).verdict == "not unique"
    assert uniqueness(with_zero).within == (2, 0)
    for U in (unique, nested, overlapping, with_zero):
        assert "U U^T" in str(uniqueness(U))
