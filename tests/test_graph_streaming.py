"""Graphs of points in a file, or of a Dask array, are those of the same points in memory."""

import numpy as np
import pytest

from symnmf import graphs
from symnmf.errors import InputError


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    centres = 8 * rng.random((6, 5))
    return (centres[rng.integers(0, 6, 1500)] + rng.standard_normal((1500, 5))).astype(np.float32)


@pytest.fixture
def stored(points, tmp_path):
    np.save(tmp_path / "points.npy", points)
    return np.load(tmp_path / "points.npy", mmap_mode="r")


def close(A, B):
    return abs(A - B).max() <= 1e-6 * abs(B).max()


@pytest.mark.filterwarnings("ignore::symnmf.graphs.GraphWarning")
@pytest.mark.parametrize("kind", ["self-tuning", "nearest_neighbors", "cosine"])
@pytest.mark.parametrize("approximate", [False, pytest.param(True, marks=pytest.mark.long)])
def test_points_in_a_file_or_on_dask_give_the_graph_of_memory(kind, approximate, points, stored):
    if approximate:
        pytest.importorskip("pynndescent")
    da = pytest.importorskip("dask.array")
    expected = graphs.build(points, kind, approximate=approximate)
    for given in (stored, da.from_array(points, chunks=(400, 2))):
        found = graphs.build(given, kind, approximate=approximate)
        # float32 rows at unit length are rounded, so a tie of a few may fall otherwise
        same = (found != 0).multiply(expected != 0).sum() / max(found.nnz, expected.nnz)
        assert same > 0.999
        assert kind == "cosine" or close(found, expected)


def test_bad_rows_are_named(points, tmp_path):
    np.save(tmp_path / "points.npy", np.where(points == points[700, 2], np.nan, points))
    with pytest.raises(InputError, match="NaN or infinite entries in rows 0 to 1499"):
        graphs.self_tuning(np.load(tmp_path / "points.npy", mmap_mode="r"), approximate=True)
