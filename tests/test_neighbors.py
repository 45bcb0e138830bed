"""The filtered search for neighbours, against distances of all pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from symnmf import graphs
from symnmf.graphs import filtering
from symnmf.graphs.neighbors import Search, distinct

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
    """Groups so far apart that float32 cannot tell their points from each other."""
    return 1e5 * rng.standard_normal((n // 8, d))[np.arange(n) % (n // 8)] + rng.random((n, d))


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
    monkeypatch.setattr(filtering, "FROM", 1)
    monkeypatch.setattr(filtering, "DIMENSIONS", range(10000))


@pytest.mark.usefixtures("filtered")
@pytest.mark.parametrize("kind", KINDS)
def test_the_filtered_search_is_exact(kind: str) -> None:
    points = KINDS[kind](np.random.default_rng(1), 700, 40)
    indices, distances = Search(points, 2).among(9)
    expected, lengths = all_pairs(points, 9)
    np.testing.assert_allclose(distances, lengths, rtol=1e-6)
    if kind != "equal distances":  # else any of them will do
        np.testing.assert_array_equal(indices, expected)


@pytest.mark.usefixtures("filtered")
@pytest.mark.parametrize("kind", ["flat", "blobs", "thin", "far groups"])
def test_new_points_find_their_nearest(kind: str) -> None:
    points = KINDS[kind](np.random.default_rng(2), 600, 40)
    new, points = points[:100], points[100:]
    indices, distances = Search(points).of(new, 5)
    apart = cdist(new, points)
    np.testing.assert_array_equal(indices, np.argsort(apart, axis=1)[:, :5])
    np.testing.assert_allclose(distances, np.sort(apart, axis=1)[:, :5], rtol=1e-9)


def test_copies_of_a_point_are_its_neighbours() -> None:
    """And the copies hang together, however many there are."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((60, 3))[rng.integers(60, size=500)]
    indices, distances = Search(points).among(10)
    assert (indices != np.arange(500)[:, None]).all()
    np.testing.assert_allclose(distances, np.sort(cdist(points, points), axis=1)[:, 1:11])
    A = graphs.build(points, "nearest_neighbors", n_neighbors=3, normalize=False)
    _, part = connected_components(A, directed=False)
    labels = distinct(points)[0]
    assert all(np.unique(part[labels == label]).size == 1 for label in range(labels.max() + 1))
