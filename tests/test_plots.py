"""Pictures show what they claim to: the order, the means and the rows they pick."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from symnmf import plots
from symnmf.errors import InputError

matplotlib = pytest.importorskip("matplotlib", reason="needs pip install 'symnmf[plots]'")

matplotlib.use("Agg")

LABELS = np.array([1, 0, 1, 0, 2, 2])
BLOCKS = (LABELS[:, None] == LABELS[None, :]).astype(float)


def drawn(figure):
    return np.asarray(figure.axes[0].images[0].get_array())


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_similarity_puts_clusters_on_the_diagonal(kind):
    picture = drawn(plots.similarity(kind(BLOCKS), LABELS))
    assert np.array_equal(picture, np.kron(np.eye(3), np.ones((2, 2))))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_large_similarity_is_shown_as_means_of_blocks(kind):
    rng = np.random.default_rng(0)
    A = rng.random((60, 60))
    labels = rng.integers(0, 4, 60)
    picture = drawn(plots.similarity(kind(A), labels, max_pixels=20))
    assert picture.shape == (20, 20)
    assert picture.mean() == pytest.approx(A.mean(), rel=1e-12)
    assert picture.std() < 0.5 * A.std()  # means of nine entries each


def test_typical_members_are_those_with_the_largest_entries():
    U = np.array([[0.1, 0.0], [0.9, 0.2], [0.5, 0.1], [0.0, 0.7]])
    images = np.arange(4)[:, None] * np.ones((4, 6))
    picture = drawn(plots.typical_members(images, U, (2, 3), per_cluster=3))
    first, second = picture[0], picture[-1]
    assert first[~np.isnan(first)].tolist() == [1, 1, 1, 2, 2, 2, 0, 0, 0]
    assert second[~np.isnan(second)].tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: plots.similarity(BLOCKS, LABELS[:5]), "labels must be 6"),
        (lambda: plots.similarity(BLOCKS[:, :5], LABELS), "A must be square, got 6 x 5"),
        (lambda: plots.points(np.ones(3)), "U must have rows and columns"),
        (lambda: plots.typical_members(np.ones((6, 5)), BLOCKS, (2, 3)), "2 x 3 = 6"),
    ],
)
def test_wrong_shapes_are_named(draw, words):
    with pytest.raises(InputError, match=words):
        draw()


def test_figures_need_no_display_and_are_not_kept_by_pyplot(tmp_path):
    import matplotlib.pyplot as plt

    plots.points(np.eye(3)).savefig(tmp_path / "m.png")
    assert (tmp_path / "m.png").stat().st_size > 1000
    assert plt.get_fignums() == []
