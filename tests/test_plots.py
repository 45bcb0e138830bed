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


def test_a_large_sparse_similarity_never_becomes_dense():
    n = 200_000  # dense, this would be 320 GB
    ring = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1], format="csr")
    figure = plots.similarity(ring, np.arange(n) // (n // 10), max_pixels=100)
    assert drawn(figure).shape == (100, 100)


def test_similarity_of_nothing_is_still_a_picture():
    assert not drawn(plots.similarity(np.zeros((4, 4)), [0, 0, 1, 1])).any()


def test_similarity_marks_the_borders_between_clusters():
    axes = plots.similarity(BLOCKS, LABELS).axes[0]
    assert sorted({float(line.get_xdata()[0]) for line in axes.lines} - {0.0, 1.0}) == [2, 4]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2"]


def test_memberships_are_sorted_shares():
    U = np.array([[0.0, 2.0], [3.0, 1.0], [5.0, 0.0], [0.0, 0.0]])
    picture = drawn(plots.memberships(U))
    # cluster 0: the sure row, the divided one, the row of zeros, which has no shares; then 1
    assert np.array_equal(picture.T, [[1, 0], [0.75, 0.25], [0, 0], [0, 1]])


def test_typical_members_are_those_with_the_largest_entries():
    U = np.array([[0.1, 0.0], [0.9, 0.2], [0.5, 0.1], [0.0, 0.7]])
    images = np.arange(4)[:, None] * np.ones((4, 6))
    picture = drawn(plots.typical_members(images, U, (2, 3), per_cluster=3))
    first, second = picture[0], picture[-1]
    assert first[~np.isnan(first)].tolist() == [1, 1, 1, 2, 2, 2, 0, 0, 0]
    assert second[~np.isnan(second)].tolist() == [3, 3, 3]


def test_most_typical_leaves_out_rows_that_belong_nowhere():
    U = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    typical = plots.most_typical(U, 5, [0, -1, 1])
    assert {cluster: rows.tolist() for cluster, rows in typical.items()} == {0: [0], 1: [2]}


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: plots.similarity(BLOCKS, LABELS[:5]), "labels must be 6"),
        (lambda: plots.similarity(BLOCKS[:, :5], LABELS), "A must be square, got 6 x 5"),
        (lambda: plots.memberships(np.ones(3)), "U must have rows and columns"),
        (lambda: plots.typical_members(np.ones((6, 5)), BLOCKS, (2, 3)), "2 x 3 = 6"),
    ],
)
def test_wrong_shapes_are_named(draw, words):
    with pytest.raises(InputError, match=words):
        draw()


def test_figures_need_no_display_and_are_not_kept_by_pyplot(tmp_path):
    import matplotlib.pyplot as plt

    plots.memberships(np.eye(3)).savefig(tmp_path / "m.png")
    assert (tmp_path / "m.png").stat().st_size > 1000
    assert plt.get_fignums() == []


@pytest.mark.parametrize("times", [1.1, 1.5, 3, 9, 30, 90, 1e4])
def test_labels_of_log_axes_do_not_cover_each_other(times):
    table = {
        "solver": np.repeat("a", 30),
        "run": np.zeros(30, dtype=int),
        "elapsed": np.geomspace(3.1e-4, 3.1e-4 * times, 30),
        "error": np.geomspace(0.31 * times, 0.31, 30),
    }
    figure = plots.convergence(table, x="time")
    figure.draw_without_rendering()
    (ax,) = figure.axes
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        shown = [t.label1 for t in ticks if t.label1.get_text() and low <= t.get_loc() <= high]
        boxes = [label.get_window_extent() for label in shown]
        assert len(boxes) > 1
        assert sum(one.overlaps(other) for one in boxes for other in boxes) == len(boxes)
