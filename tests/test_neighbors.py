"""The filtered search for neighbours, against distances of all pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symnmf.graphs import neighbors
from symnmf.graphs.filtering import FilteredSearch

Kind = Callable[[np.random.Generator, int, int], np.ndarray]


def _blobs(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    centres = 5.0 * rng.standard_normal((10, d))
    return centres[rng.integers(10, size=n)] + rng.standard_normal((n, d))


def _thin(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.standard_normal((n, 4)) @ rng.standard_normal((4, d)) + 1e-3 * rng.random((n, d))


def _grid(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Whole numbers, so that many distances are equal."""
    return rng.integers(0, 2, size=(n, d)).astype(float)


def _far(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Pairs at a millionth of the distance between groups: float32 cannot tell them apart."""
    return 1e6 * rng.standard_normal((n // 8, d))[np.arange(n) % (n // 8)] + rng.random((n, d))


KINDS: dict[str, Kind] = {
    "flat": lambda rng, n, d: rng.standard_normal((n, d)),
    "blobs": _blobs,
    "thin": _thin,
    "equal distances": _grid,
    "far groups": _far,
    "tiny numbers": lambda rng, n, d: 1e-120 * _blobs(rng, n, d),
    "huge numbers": lambda rng, n, d: 1e120 * _blobs(rng, n, d),
    "one outlier": lambda rng, n, d: _blobs(rng, n, d) + 1e5 * (np.arange(n) == 3)[:, None],
}


def all_pairs(points: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours from every difference, equal distances ordered by index."""
    unit = 2.0 ** np.floor(np.log2(np.abs(points).max()))  # a power of two rounds nothing
    scaled = points / unit
    indices = np.empty((len(points), wanted), np.intp)
    distances = np.empty((len(points), wanted))
    for i, point in enumerate(scaled):
        length = np.sqrt(np.einsum("ij,ij->i", scaled - point, scaled - point))
        length[i] = np.inf
        indices[i] = np.argsort(length, kind="stable")[:wanted]
        distances[i] = length[indices[i]]
    return indices, distances * unit


@pytest.fixture
def filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "FILTERED_FROM", 1)


@pytest.mark.usefixtures("filtered")
@pytest.mark.parametrize("kind", KINDS)
def test_the_filtered_search_is_exact(kind: str) -> None:
    points = KINDS[kind](np.random.default_rng(1), 700, 40)
    indices, distances = neighbors.nearest(points, 9, False, 2)
    expected, lengths = all_pairs(points, 9)
    np.testing.assert_allclose(distances, lengths, rtol=1e-12)
    if kind != "equal distances":  # else the rounding of the reference decides
        np.testing.assert_array_equal(indices, expected)


@pytest.mark.usefixtures("filtered")
def test_equal_distances_are_ordered_by_index() -> None:
    points = _grid(np.random.default_rng(0), 400, 40)
    indices, distances = neighbors.nearest(points, 12, False, None)
    tied = distances[:, 1:] == distances[:, :-1]
    assert tied.any()
    assert (np.diff(indices, axis=1)[tied] > 0).all()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(20, 300),
    st.integers(1, 70),
    st.sampled_from(["flat", "blobs", "thin"]),
)
def test_no_pair_is_ruled_out_that_is_near(seed: int, n: int, d: int, kind: str) -> None:
    """What float32 finds is within its noise of the truth, whatever the bound left out."""
    points = KINDS[kind](np.random.default_rng(seed), n, d)
    points -= points.mean(axis=0)
    search = FilteredSearch(points, 1)
    distances, indices = search.nearest(5)
    assert (indices != np.arange(n)[:, None]).all()
    _, expected = all_pairs(points, 5)
    noise = search.noise(np.linalg.norm(points, axis=1), expected[:, -1])
    assert (np.abs(distances**2 - expected**2) <= noise[:, None]).all()
