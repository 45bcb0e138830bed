"""Whether clusters are real: data without any, data with some, and what is said of them."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets as sklearn_datasets

import symnmf
from conftest import long_count
from symnmf import verdict
from symnmf.graphs.partitions import Partition
from symnmf.metrics import clustering_accuracy
from symnmf.quality import Quality
from symnmf.storage import as_symmetric
from symnmf.verdict import CHANCE, CLEAR, WEAK, Verdict
from test_auto import block_model, erdos_renyi, moons, standardised
from test_normalize import with_hubs

pytestmark = pytest.mark.filterwarnings("ignore::symnmf.QualityWarning")


def word_of(A, clusters: int, seed: int = 0) -> str:
    return symnmf.communities(A, clusters, random_state=seed).quality.verdict.word


def word_of_points(X: np.ndarray, clusters: int, seed: int = 0) -> str:
    return symnmf.SymNMF(clusters, random_state=seed).fit(X).quality_.verdict.word


@pytest.mark.parametrize("clusters", [2, 10])
def test_clusters_of_a_random_graph_are_no_more_than_chance(clusters):
    assert word_of(erdos_renyi(clusters, 400), clusters) == CHANCE


def test_draws_choose_an_offset_of_degrees_of_their_own():
    """With that of the data, draws beside graphs that grew by attachment split off a few nodes."""
    words = [
        word_of(
            nx.to_scipy_sparse_array(nx.barabasi_albert_graph(600, 3, seed=seed), dtype=float), 2
        )
        for seed in range(5)
    ]
    assert words.count(CHANCE) >= 4, words


def test_clusters_of_uniform_points_are_no_more_than_chance():
    rng = np.random.default_rng(0)
    assert word_of_points(rng.random((200, 2)), 3) == CHANCE
    assert word_of_points(rng.random((200, 6)), 8) == CHANCE


@pytest.mark.parametrize("groups", [2, 3])
def test_block_models_above_the_threshold_are_more(groups):
    assert word_of(block_model(groups, 1.6, 0), groups) in (WEAK, CLEAR)
    assert word_of(block_model(groups, 2.6, 0), groups) == CLEAR


def test_points_with_clusters_are_clear():
    assert word_of_points(moons(1), 2) == CLEAR
    assert word_of_points(standardised("wine"), 3) == CLEAR
    # each column of four blobs on a square has two modes, which shuffling would leave there
    square = np.array([[0, 0], [7, 0], [0, 7], [7, 7]])
    assert (
        word_of_points(sklearn_datasets.make_blobs(300, centers=square, random_state=0)[0], 4)
        == CLEAR
    )


def test_each_cluster_has_a_word_of_its_own():
    A = erdos_renyi(0, 400).toarray()
    A[:25, :25] = 1
    np.fill_diagonal(A, 0)
    found = symnmf.communities(sp.csr_array(A), 10, random_state=0)
    words = found.quality.verdict.clusters
    assert len(words) == 10
    dense = int(np.bincount(found.labels[:25]).argmax())
    assert words[dense] == CLEAR
    assert words.count(CHANCE) >= 5


def test_data_sets_with_classes_are_more_than_chance(real_data):
    for name, clusters in (("karate", 2), ("dolphins", 2), ("football", 12), ("polbooks", 3)):
        A = symnmf.datasets.load(name, folder=real_data).data
        assert word_of(A, clusters) == CLEAR, name


def test_the_limits_of_chance_matter(monkeypatch):
    A = erdos_renyi(1, 300)
    monkeypatch.setattr(verdict, "LEVEL", 0.95)
    monkeypatch.setattr(verdict, "TIMES", 1)
    monkeypatch.setattr(verdict, "HOPELESS", -5.0)
    assert word_of(A, 4) != CHANCE
    monkeypatch.undo()
    assert word_of(A, 4) == CHANCE
    monkeypatch.setattr(verdict, "FAR", -0.1)  # one draw is not enough for a small lead
    assert word_of(A, 4) != CHANCE


def test_weak_is_where_fewer_than_nine_rows_in_ten_are_right(monkeypatch):
    right = {}
    for snr, word in ((1.4, WEAK), (1.8, CLEAR)):
        found = symnmf.communities(block_model(3, snr, 0), 3, random_state=0)
        assert found.quality.verdict.word == word
        right[snr] = clustering_accuracy(np.arange(800) % 3, found.labels)
    assert right[1.4] < 0.9 < right[1.8]
    monkeypatch.setattr(verdict, "WEAK_FROM", 0.95)
    assert word_of(block_model(3, 1.4, 0), 3) == CLEAR
    monkeypatch.setattr(verdict, "WEAK_FROM", 0.6)
    assert word_of(block_model(3, 1.8, 0), 3) == WEAK


def unequal(seed: int, few: int = 100, inside: float = 0.08) -> tuple[sp.csr_array, np.ndarray]:
    """Return a block model of a large group and a small one."""
    sizes = [500, few]
    G = nx.stochastic_block_model(sizes, [[inside, 0.015], [0.015, inside]], seed=seed)
    return sp.csr_array(nx.to_scipy_sparse_array(G, dtype=float)), np.repeat([0, 1], sizes)


def test_a_small_group_beside_a_large_one_is_more_than_chance(monkeypatch):
    """Halves of a random graph have the higher modularity and the lower conductance there."""
    A, groups = unequal(0)
    found = symnmf.communities(A, 2, random_state=0)
    judged = found.quality.verdict
    assert clustering_accuracy(groups, found.labels) > 0.95
    assert judged.modularity < judged.null_modularity
    assert judged.word == CLEAR
    assert judged.clusters == (CLEAR, CLEAR)
    # so the sentence does not compare conductances
    assert "clusters of such sizes" in judged.reason
    monkeypatch.setattr(Partition, "saving", 0.0)
    assert word_of(A, 2) == CHANCE


def test_tails_of_a_graph_that_were_cut_off_are_weak_clusters(monkeypatch):
    """Nothing leaves them, which is true of the rest of the graph too, so that it says little."""
    A, _ = with_hubs(1)
    options = {"degree_offset": 0.0, "assign_labels": "largest", "random_state": 0}
    found = symnmf.communities(A, 2, **options).quality
    assert found.largest > 0.9
    assert found.word == WEAK
    assert "one holds 99% of the rows" in found.verdict.reason
    assert word_of(A, 2) == CLEAR  # with an offset
    lopsided = unequal(0)[0]
    group = symnmf.communities(lopsided, 2, random_state=0).quality
    assert group.word == "clear, but lopsided"
    for limit, word in ((-1.0, CLEAR), (1.0, WEAK)):
        monkeypatch.setattr(verdict, "SAVED", limit)
        assert symnmf.communities(A, 2, **options).quality.verdict.word == word
        assert word_of(lopsided, 2) == word


def test_one_cluster_far_ahead_does_not_settle_the_others():
    """Single clusters are compared with those of several draws, since those of one are too few."""
    sizes = [300, 150, 80, 40]
    G = nx.stochastic_block_model(sizes, np.where(np.eye(4), 0.12, 0.01).tolist(), seed=0)
    found = symnmf.communities(G, 4, random_state=0)
    assert clustering_accuracy(np.repeat(range(4), sizes), found.labels) > 0.95
    assert found.quality.verdict.clusters == (CLEAR,) * 4


def test_nats_saved_by_clusters():
    A = nx.to_scipy_sparse_array(nx.barbell_graph(10, 0), dtype=float)
    halves = np.repeat([0, 1], 10)
    saved = Partition.of(A, halves, 2)
    # 45 edges in each clique and one between: the logarithms of what there is over what degrees say
    expected = 90 * np.log((90 / 182) / 0.25) + np.log((2 / 182) / 0.5) - 20 * np.log(2)
    assert saved.saving == pytest.approx(expected)
    assert Partition.of(A, np.zeros(20, int), 1).saving == pytest.approx(0.0)
    assert Partition.of(A, np.arange(20) % 2, 2).saving < 0.0
    assert Partition.of(0 * A, halves, 2).saving == 0.0


def test_what_is_said_and_warned_of():
    found = symnmf.communities(erdos_renyi(0, 300), 6, random_state=0)
    judged = found.quality.verdict
    assert str(judged).startswith("no more than chance: ")
    assert judged.doubtful
    assert judged.conductance == pytest.approx(np.mean(found.quality.conductance))
    assert judged.seconds > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", symnmf.QualityWarning)
        symnmf.communities(block_model(3, 2.6, 0), 3, random_state=0)


def test_neighbour_graphs_that_are_given_get_a_remark():
    X = np.random.default_rng(0).random((200, 2))
    A = symnmf.graphs.self_tuning(X)
    judged = symnmf.SymNMF(4, affinity="precomputed", random_state=0).fit(A).quality_.verdict
    assert judged.word == CLEAR
    assert "any such graph separates better than a random one" in judged.reason


def quality_of(*sizes: int) -> Quality:
    none = float("nan")
    return Quality(len(sizes), sizes, 0, 0.5, (0.1,) * len(sizes), (0.5,), 1, none, none)


def test_lopsided_clusters():
    assert quality_of(500, 500).lopsided is None
    assert quality_of(790, 210).lopsided is None
    assert "holds 81.0%" in quality_of(810, 190).lopsided
    assert "fewer than 3" in quality_of(100, 100, 2).lopsided
    assert quality_of(100, 100, 3).lopsided is None
    assert "1 of 3 has fewer than 20" in quality_of(1500, 1481, 19).lopsided
    assert quality_of(1500, 1480, 20).lopsided is None
    assert "holds" in quality_of(810, 190).warning


def test_one_cluster_and_missing_entries_are_not_judged():
    A = block_model(2, 2.0, 0, n=100)
    assert symnmf.communities(A, 1, random_state=0).quality.verdict is None
    X = A.toarray()
    X[0, 1] = X[1, 0] = np.nan
    assert symnmf.communities(X, 2, missing="nan", random_state=0).quality.verdict is None


def test_more_care_than_draws_are_given_does_not_count():
    """The draws are the data themselves, so all that labels are ahead by is a better search."""
    truth = np.repeat([0, 1], 20)
    graph = np.where(truth[:, None] == truth, 0.6, 0.4) - 0.6 * np.eye(40)
    hasty = np.where(np.arange(40) % 10 == 0, 1 - truth, truth)
    found = verdict.judge(
        graph,
        truth,
        2,
        nulls={"draws": lambda rng: graph},
        search=lambda A: hasty,
        quick_labels=lambda: hasty,
        rng=np.random.default_rng(0),
    )
    assert found.modularity > found.null_modularity
    assert found.word == "no more than chance"
    assert found.null_conductance == pytest.approx(found.conductance)


def test_a_verdict_survives_a_pickle():
    import pickle

    model = symnmf.SymNMF(2, random_state=0).fit(moons(0))
    again = pickle.loads(pickle.dumps(model))
    assert again.quality_.verdict.reason == model.quality_.verdict.reason


def test_partition_against_sums_by_hand():
    A = np.array([[0, 2, 1, 0], [2, 0, 0, 0], [1, 0, 0, 3], [0, 0, 3, 0.0]])
    found = Partition.of(A, np.array([0, 0, 1, 1]), 2)
    assert found.total == 12
    np.testing.assert_allclose(found.conductance, [1 / 5, 1 / 7 * 7 / 5])
    assert found.modularity == pytest.approx((4 + 6) / 12 - (5 / 12) ** 2 - (7 / 12) ** 2)
    np.testing.assert_allclose(found.leaving, [1 / 5 / (7 / 12), 1 / 7 / (5 / 12)])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, as_symmetric])
def test_a_partition_is_the_same_for_every_storage(kind):
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((30, 30)) * (rng.random((30, 30)) < 0.3))
    A = A + A.T
    labels = rng.integers(-1, 3, size=30)
    found = Partition.of(kind(A), labels, 4)  # the last cluster has no rows
    members = [labels == cluster for cluster in range(4)]
    np.testing.assert_array_equal(found.sizes, [inside.sum() for inside in members])
    np.testing.assert_allclose(found.within, [A[np.ix_(one, one)].sum() for one in members])
    np.testing.assert_allclose(found.volume, [A[inside].sum() for inside in members])
    assert found.total == pytest.approx(A.sum())


def test_a_verdict_of_no_clusters_says_why():
    judged = Verdict.of_none("No eigenvalue is above.")
    assert (judged.word, judged.reason) == (CHANCE, "no eigenvalue is above")


def test_no_clusters_are_not_called_weak_and_come_without_advice():
    noise = nx.erdos_renyi_graph(200, 0.06, seed=0)
    with pytest.warns(symnmf.QualityWarning) as warned:
        found = symnmf.communities(noise, "auto", random_state=0)
    assert len(found) == 1
    assert [str(one.message) for one in warned if one.category is symnmf.QualityWarning] == [
        f"no clusters were found: {found.quality.verdict.reason}."
    ]


@pytest.mark.long
@pytest.mark.parametrize("clusters", [2, 10, 30])
@pytest.mark.parametrize("kind", ["erdos-renyi", "barabasi-albert", "configuration", "uniform"])
def test_calibration(kind, clusters):
    count = long_count("SYMNMF_VERDICT_DRAWS", 200)
    words = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        if kind == "uniform":
            words.append(word_of_points(rng.random((300, 2 if seed % 2 else 6)), clusters, seed))
            continue
        if kind == "erdos-renyi":
            A = erdos_renyi(seed, 600)
        elif kind == "barabasi-albert":
            A = nx.to_scipy_sparse_array(nx.barabasi_albert_graph(600, 3, seed=seed), dtype=float)
        else:
            degrees = np.minimum(4 * rng.pareto(1.5, 600) + 3, 100).astype(int)
            degrees[0] += degrees.sum() % 2
            graph = nx.Graph(nx.configuration_model(degrees.tolist(), seed=seed))
            graph.remove_edges_from(nx.selfloop_edges(graph))
            A = nx.to_scipy_sparse_array(graph, dtype=float)
        words.append(word_of(sp.csr_array(A), clusters, seed))
    assert words.count(CHANCE) >= 0.95 * count


def test_a_lone_cluster_is_not_judged():
    complete = np.ones((20, 20)) - np.eye(20)
    with pytest.warns(symnmf.QualityWarning, match="only 1 of the 2"):
        found = symnmf.SymNMF(2, affinity="precomputed", random_state=0).fit(complete)
    assert found.quality_.verdict is None


@pytest.mark.parametrize(
    ("leaving", "said"),
    [
        (
            (0.1, 0.3),
            "20% of a cluster's edge weight leads out of it on average, as in noise (10% to",
        ),
        (
            (0.22, 0.37),
            "20% of a cluster's edge weight leads out of it on average, too close to noise",
        ),
        (
            (0.1, 0.15),
            "20% of a cluster's edge weight leads out of it on average, no less than in noise",
        ),
    ],
)
def test_the_reason_agrees_with_the_range_that_it_gives(leaving, said, monkeypatch):
    null = verdict._Null("noise", [])
    monkeypatch.setattr(verdict._Null, "leaving", np.array(leaving))
    assert verdict._alike(0.2, null).startswith(said)


def test_no_word_where_data_without_clusters_are_cut_as_cleanly(monkeypatch):
    """Outliers stay outliers when columns are shuffled, so that draws have such clusters too."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 2)), 8.0 + 0.5 * rng.normal(size=(15, 2))])
    found = symnmf.SymNMF(2, random_state=0).fit(X)
    assert sorted(found.quality_.sizes) == [15, 400]
    assert found.quality_.verdict is None
    monkeypatch.setattr(verdict, "CLEAN", 0.0)
    assert symnmf.SymNMF(2, random_state=0).fit(X).quality_.verdict.word == CHANCE


@pytest.mark.parametrize("seed", range(3))
def test_clear_clusters_are_not_each_called_chance(seed: int) -> None:
    found = symnmf.communities(nx.les_miserables_graph(), 6, random_state=seed).quality
    assert found.verdict.word == "clear"
    assert sum(word == "no more than chance" for word in found.verdict.clusters) <= 1


def test_all_there_is_in_one_cluster_has_nothing_that_leaves_it() -> None:
    weights = np.random.default_rng(0).random((40, 40))
    found = Partition.of(weights + weights.T, np.zeros(40, dtype=int), 1)
    assert found.conductance.tolist() == found.leaving.tolist() == [0.0]


def test_a_graph_without_edges_is_warned_of() -> None:
    with pytest.warns(symnmf.QualityWarning, match="too few edges"):
        symnmf.communities(nx.empty_graph(10), "auto")
