"""The number of clusters with no range given: planted groups, known shapes, and nothing."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets as sklearn_datasets

import symnmf
from symnmf import calls, graphs, nulls
from symnmf.graphs.locality import joins_neighbours
from symnmf.run import centres
from symnmf.selection import auto
from symnmf.selection.auto import count_clusters
from symnmf.selection.description import description_length


def block_model(groups: int, snr: float, seed: int, n: int = 800, degree: float = 12.0):
    """Equal groups; snr = (c_in - c_out) / (q sqrt(c)), with 1 the threshold of detection."""
    apart = snr * np.sqrt(degree)
    group = np.arange(n) % groups
    inside, outside = degree + (groups - 1) * apart, degree - apart
    chance = np.where(group[:, None] == group, inside, outside) / n
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float))


def erdos_renyi(seed: int, n: int = 800) -> sp.csr_array:
    return block_model(1, 0.0, seed, n)


def standardised(name: str) -> np.ndarray:
    X = getattr(sklearn_datasets, f"load_{name}")().data
    return (X - X.mean(axis=0)) / X.std(axis=0)


def of_points(X: np.ndarray, seed: int = 0) -> int:
    build = partial(graphs.build, n_clusters=len(X))
    draw = lambda rng: build(nulls.same_covariance(X, rng))  # noqa: E731
    return int(count_clusters(build(X), draw=draw, random_state=seed).recommendation or 0)


def moons(seed: int) -> np.ndarray:
    return sklearn_datasets.make_moons(300, noise=0.05, random_state=seed)[0]


@pytest.mark.parametrize(("groups", "snr"), [(2, 1.5), (3, 1.6), (5, 1.6)])
def test_block_models_above_the_threshold(groups, snr):
    found = Counter(
        count_clusters(block_model(groups, snr, seed), random_state=seed).recommendation
        for seed in range(3)
    )
    assert found[groups] >= 2, found


def test_random_graphs_have_one_cluster_and_a_loose_level_would_not_say_so(monkeypatch):
    graphs_without = [erdos_renyi(seed, 300) for seed in range(4)]
    found = [count_clusters(A, random_state=0).recommendation for A in graphs_without]
    assert found.count(1) >= 3, found
    monkeypatch.setattr(auto, "LEVEL", 0.6)
    loose = [count_clusters(A, random_state=0).recommendation for A in graphs_without]
    assert loose.count(1) < 3, loose


def test_the_range_grows_until_the_answer_is_inside():
    A = nx.to_scipy_sparse_array(nx.connected_caveman_graph(40, 8), dtype=float)
    found = count_clusters(sp.csr_array(A), random_state=0)
    assert found.recommendation == 40
    assert len(found.table["rank"]) > 40


def test_weights_are_seen():
    A = block_model(3, 2.2, 0)
    half = sp.csr_array(sp.triu(A, 1))
    half.data = np.random.default_rng(0).gamma(2.0, size=half.nnz)
    assert count_clusters(sp.csr_array(half + half.T), random_state=0).recommendation == 3


def test_dense_similarities_of_groups_and_of_nothing():
    rng = np.random.default_rng(0)
    group = np.arange(120) % 4
    noise = rng.random((120, 120))
    noise = np.triu(noise) + np.triu(noise, 1).T
    assert count_clusters(noise, random_state=0).recommendation == 1
    grouped = noise + 0.8 * (group[:, None] == group)
    assert count_clusters(grouped, random_state=0).recommendation == 4


@pytest.mark.parametrize("seed", [0, 1])
def test_separated_blobs_moons_and_circles(seed):
    centres = np.array([[0, 0], [10, 0], [5, 8.66]])
    blobs = sklearn_datasets.make_blobs(300, centers=centres, random_state=seed)[0]
    circles = sklearn_datasets.make_circles(300, noise=0.05, factor=0.5, random_state=seed)[0]
    assert of_points(blobs, seed) == 3
    assert of_points(moons(seed), seed) == 2
    assert of_points(circles, seed) == 2


def test_clusters_inside_components_are_counted_and_pieces_of_a_curve_are_not(monkeypatch):
    """Some of the five blobs touch, so the graph has fewer components; two moons are curves."""
    five = [
        sklearn_datasets.make_blobs(500, centers=5, cluster_std=0.6, random_state=seed)[0]
        for seed in (0, 1, 4)
    ]
    assert [of_points(X, 0) for X in five] == [5, 5, 5]
    monkeypatch.setattr(auto, "TIGHT", 0.5)
    assert max(of_points(X, 0) for X in five) < 5
    monkeypatch.setattr(auto, "TIGHT", 0.05)
    assert of_points(moons(0), 0) > 2


@pytest.mark.parametrize("columns", [2, 6])
def test_uniform_and_normal_points_are_one_cluster(columns):
    rng = np.random.default_rng(columns)
    assert of_points(rng.random((300, columns))) == 1
    shear = np.triu(np.ones((columns, columns)))
    assert of_points(rng.standard_normal((300, columns)) @ shear) == 1


def test_wine_has_three_clusters_and_iris_two_or_three_whatever_the_seed():
    assert {of_points(standardised("wine"), seed) for seed in range(4)} == {3}
    assert {of_points(standardised("iris"), seed) for seed in range(4)} <= {2, 3}


@pytest.mark.parametrize(
    ("constant", "value", "X"),
    [("COARSE", 1e-4, standardised("wine")), ("SHARP", 50.0, moons(1)), ("FINE", 1.0, moons(1))],
)
def test_the_constants_of_the_drop_matter(monkeypatch, constant, value, X):
    before = of_points(X)
    monkeypatch.setattr(auto, constant, value)
    assert of_points(X) != before


def test_networks_of_known_groups(real_data):
    for name, least, most in (("karate", 2, 2), ("football", 10, 13), ("polbooks", 2, 4)):
        A = sp.csr_array(symnmf.datasets.load(name, folder=real_data).data)
        found = {count_clusters(A, random_state=seed).recommendation for seed in range(3)}
        assert all(least <= number <= most for number in found), (name, found)


def test_what_is_negligible_decides_between_sides_and_their_parts(monkeypatch):
    # two sides that hold three loose parts each: the parts save a little more
    rng = np.random.default_rng(0)
    part = np.arange(600) % 6
    same_part, same_side = part[:, None] == part, part[:, None] // 3 == part // 3
    chance = np.where(same_part, 0.2, np.where(same_side, 0.06, 0.003))
    upper = np.triu(rng.random((600, 600)) < chance, 1)
    A = sp.csr_array((upper + upper.T).astype(float))
    monkeypatch.setattr(auto, "NEGLIGIBLE", 0.3)
    assert count_clusters(A, random_state=0).recommendation == 2
    monkeypatch.setattr(auto, "NEGLIGIBLE", 0.0)
    assert count_clusters(A, random_state=0).recommendation > 2


def test_neighbour_graphs_are_told_from_networks():
    X = moons(0)
    assert joins_neighbours(graphs.build(X, "self-tuning", n_clusters=300))
    assert not joins_neighbours(block_model(3, 2.0, 0))
    found = count_clusters(graphs.build(X, "self-tuning", n_clusters=300), random_state=0)
    assert found.recommendation == 2
    assert "shape of the data" in found.reason or "components" in found.reason


def test_description_length_against_a_count_by_hand():
    A = sp.csr_array(nx.to_scipy_sparse_array(nx.barbell_graph(4, 1), dtype=float))
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    dense = A.toarray()

    def log(count: float) -> float:
        return math.lgamma(count + 1)

    def choose(n: float, k: float) -> float:
        return log(n) - log(k) - log(n - k)

    e = np.array([[dense[np.ix_(labels == r, labels == s)].sum() for s in (0, 1)] for r in (0, 1)])
    edges, ends, sizes = dense.sum() / 2, e.sum(axis=1), [4, 5]
    partition = choose(8, 1) + log(9) - log(4) - log(5) + math.log(9)
    partition -= sum(log(k) for k in dense.sum(axis=0))
    first = sum(log(x) for x in ends) - log(e[0, 1]) + choose(3 + edges - 1, edges)
    for inside in np.diag(e):  # inside!! = 2^(inside / 2) (inside / 2)!
        first -= inside / 2 * math.log(2) + log(inside / 2)
    first += sum(choose(n + x - 1, x) for n, x in zip(sizes, ends, strict=True))
    inside = np.trace(e) / 2
    second = -log(inside) - log(edges - inside) + math.log(edges + 1)  # ln(B / 2) = ln C(B, 2) = 0
    second += sum(log(x + n - 1) - log(n - 1) for n, x in zip(sizes, ends, strict=True))
    assert description_length(A, labels) == pytest.approx(partition + min(first, second))
    together = description_length(A, np.zeros(9, dtype=int))
    assert description_length(A, np.arange(9)) > together  # a group for each node explains nothing


def test_every_entry_point_takes_auto():
    A = block_model(3, 2.2, 0, n=300)
    found = symnmf.communities(A, "auto", random_state=0)
    assert len(found) == 3
    assert "random graphs" in found.rank_selection.reason
    model = symnmf.SymNMF("auto", affinity="precomputed", random_state=0).fit(A)
    assert model.n_clusters_ == 3
    assert model.rank_selection_.recommendation == 3


def test_nothing_to_find_is_one_cluster_and_a_warning():
    X = np.random.default_rng(0).random((200, 3))
    with pytest.warns(symnmf.QualityWarning, match="no clusters were found"):
        model = symnmf.SymNMF("auto", random_state=0).fit(X)
    assert model.n_clusters_ == 1
    assert model.quality_.verdict.word == "no more than chance"


def test_the_starts_are_those_of_the_number_given():
    X = moons(1)
    chosen = symnmf.SymNMF("auto", random_state=3).fit(X)
    given = symnmf.SymNMF(chosen.n_clusters_, random_state=3).fit(X)
    np.testing.assert_array_equal(chosen.embedding_, given.embedding_)


def test_an_interrupted_search_for_a_number_is_none(monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(auto, "description_length", interrupted)
    with pytest.raises(KeyboardInterrupt):
        symnmf.SymNMF("auto", affinity="precomputed", random_state=0).fit(block_model(2, 2, 0, 100))


def test_how_it_was_found_can_be_drawn_and_written(tmp_path):
    pytest.importorskip("matplotlib")
    from symnmf.report.ranks import write_rank_report

    found = count_clusters(block_model(3, 2.2, 0, n=300), random_state=0)
    assert [axes.get_title() for axes in found.plot().axes] == ["Eigenvalues"]
    page = write_rank_report(tmp_path / "page.html", found).read_text()
    assert "3 clusters" in page
    assert "description length" in page


@pytest.mark.parametrize(("described", "number"), [(13, 13), (10, 10), (8, 10), (7, 7), (1, 10)])
def test_eigenvalues_decide_unless_a_description_has_far_fewer_groups(described, number):
    found, reason = auto._reason_of_network(10, described, 1, at_end=False)
    assert found == number
    assert reason.endswith(".")


def test_small_groups_beside_large_ones_are_described(monkeypatch):
    """Cliques in a ring have eigenvalues that go on without a gap; their description does not."""
    ring = sp.csr_array(nx.to_scipy_sparse_array(nx.ring_of_cliques(30, 5), dtype=float))
    found = count_clusters(ring, random_state=0)
    assert found.recommendation == 30
    assert found.choices["null"].rank < 30
    assert "fewest nats with 30 groups" in found.reason
    monkeypatch.setattr(auto, "FURTHER", 1000)
    assert count_clusters(ring, random_state=0).recommendation < 29


def test_centres_describe_a_graph_in_fewer_nats_than_axes(monkeypatch):
    caves = sp.csr_array(nx.to_scipy_sparse_array(nx.connected_caveman_graph(8, 8), dtype=float))
    basis = auto.leading(auto.normalized(caves, auto.OFFSET), 6)

    def nats() -> np.ndarray:
        labels = [centres.nearest_centres(basis.leading(k)) for k in (4, 5, 6)]
        return np.array([description_length(caves, mine) for mine in labels])

    settled = nats()
    monkeypatch.setattr(centres, "ROUNDS", 0)
    assert np.all(settled < nats() - 20.0)


def test_components_are_counted_where_time_is_up():
    A = sp.csr_array(sp.block_diag([block_model(2, 1.5, 0), block_model(2, 1.5, 1)]))
    with calls.opened(max_time=0.0):
        found = count_clusters(A, random_state=0)
    assert found.recommendation == 2
    assert "time" in found.reason
