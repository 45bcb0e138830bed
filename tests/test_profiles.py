"""What a report and a picture say of clusters and of time."""

import numpy as np
import pytest

import symnmf
from extras import optional
from symnmf import SymNMF

pytest.importorskip("matplotlib")
from symnmf import plots
from symnmf.report import write_report
from symnmf.report.profiles import profile_values, profiles, sizes

pd = optional("pandas")


def table():
    y = np.repeat([0, 1, 2], 20)
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[:, 1] += 9 * (y == 1)
    X[:, 2] += 9 * (y == 2)
    return X * [1, 1, 1, 0], y


def test_profiles_are_means_in_standard_deviations():
    X, y = table()
    clusters, values = profile_values(X, y)
    frame = pd.DataFrame(X)
    scaled = (frame - frame.mean()) / frame.std(ddof=0).replace(0, 1)
    assert clusters.tolist() == [0, 1, 2]
    np.testing.assert_allclose(values, scaled.groupby(y).mean())
    assert values[1].argmax() == 1
    assert values[2].argmax() == 2


def test_the_page_says_what_makes_each_cluster(tmp_path):
    X, _ = table()
    model = SymNMF(3, random_state=0, n_init=1).fit(X)
    told = {"features": ["age", "<b>height</b>", "weight", "zero"], "data": X}
    page = write_report(tmp_path / "page.html", model, **told).read_text()
    for said in (
        "What makes each cluster, in standard deviations of each column",
        "Sizes and conductance",
        "The relative squared error is the part of the squared similarities",
        "No U with 3 columns has an error below",
    ):
        assert said in page
    assert "<b>height" not in page
    assert page.index("Are they clusters?") < page.index("relative squared error")
    figure = profiles(X, model.labels_, told["features"])
    words = [text.get_text() for text in figure.axes[0].texts]
    assert len(words) == 12
    figure.canvas.draw()
    label = figure.axes[1].yaxis.label.get_window_extent()
    assert figure.bbox.y0 <= label.y0
    assert label.y1 <= figure.bbox.y1
    assert label.x1 <= figure.bbox.x1
    assert sizes(model.quality_) is not None
    assert profiles(X, model.labels_, [str(k) for k in range(100)]) is None


def test_time_is_from_the_call_to_the_return():
    A = np.abs(np.random.default_rng(0).normal(size=(30, 30)))
    result = symnmf.factorize(A + A.T, 3, random_state=0)
    elapsed = result.elapsed
    assert elapsed[-1] == pytest.approx(result.seconds.total)
    assert (np.diff(elapsed) >= 0).all()
    assert elapsed[0] >= result.seconds.start


@pytest.mark.parametrize("x", ["time", "iteration"])
def test_the_first_point_is_inside_the_axes(x):
    A = np.abs(np.random.default_rng(0).normal(size=(30, 30)))
    comparison = symnmf.compare(A + A.T, 3, ["auto", "pgd"], max_iter=10, random_state=0)
    axes = plots.convergence(comparison, x=x).axes[0]
    low, high = axes.get_xlim()
    for line in axes.get_lines():
        where = np.asarray(line.get_xdata())
        assert len(where) == 11
        assert low <= where[0]
        assert where[-1] <= high
        assert np.isfinite(np.asarray(line.get_ydata())[0])


def test_no_red_beside_green():
    """By hue: no neighbour of the palette's green is red or orange, whichever is drawn first."""
    from matplotlib.colors import rgb_to_hsv, to_rgb

    hues = [float(rgb_to_hsv(to_rgb(colour))[0]) * 360 for colour in plots.COLOURS[:4]]
    greens = [hue for hue in hues if 80 < hue < 170]
    reds = [hue for hue in hues if hue < 30 or hue > 345]
    assert not (greens and reds)
