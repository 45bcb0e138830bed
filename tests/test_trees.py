"""Trees of splits: what is split, what is not, and labels at any cut."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, is_valid_linkage
from sklearn import datasets as sklearn_datasets
from sklearn.metrics import adjusted_rand_score

import symnmf
from symnmf.trees import splitting
from symnmf.trees.refining import refined
from symnmf.trees.tree import numbered
from test_auto import block_model, erdos_renyi, moons


def nested(seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Two sides of two groups each."""
    part = np.repeat(np.arange(4), 60)
    side = part // 2
    chance = np.where(part[:, None] == part, 0.35, np.where(side[:, None] == side, 0.08, 0.01))
    upper = np.triu(np.random.default_rng(seed).random((240, 240)) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float)), part


def test_groups_within_groups_are_found_and_the_strongest_split_comes_first():
    A, part = nested()
    tree = symnmf.hierarchy(A, random_state=0)
    assert tree.n_clusters == 4
    assert adjusted_rand_score(part, tree.labels) > 0.95
    assert adjusted_rand_score(part // 2, tree.cut(2)) > 0.95
    np.testing.assert_array_equal(tree.cut(4), tree.labels)
    assert set(tree.cut(1)) == {0}
    assert tree.size(0) == 240
    strengths = [tree.splits[node].strength for node in tree.strongest]
    assert strengths == sorted(strengths, reverse=True)
    assert all("random graphs" in split.reason for split in tree.splits.values())
    assert "240 rows" in str(tree)


def test_every_cut_is_nested_in_the_one_before():
    tree = symnmf.hierarchy(block_model(5, 2.5, 0, n=400, degree=20), random_state=0)
    for k in range(2, tree.n_clusters + 1):
        pairs = set(zip(tree.cut(k).tolist(), tree.cut(k - 1).tolist(), strict=True))
        assert len(pairs) == k


def test_nothing_is_split_where_there_is_nothing():
    assert symnmf.hierarchy(erdos_renyi(0, 300), random_state=0).n_clusters == 1
    uniform = np.random.default_rng(0).random((200, 3))
    tree = symnmf.hierarchy(uniform, affinity="self-tuning", random_state=0)
    assert tree.n_clusters == 1
    assert not tree.splits


def test_points_are_split_where_their_eigenvalues_drop():
    X, group = sklearn_datasets.make_blobs(250, centers=5, n_features=5, random_state=1)
    tree = symnmf.hierarchy(X, affinity="self-tuning", random_state=0)
    assert adjusted_rand_score(group, tree.labels) > 0.95
    assert symnmf.hierarchy(moons(1), affinity="self-tuning", random_state=0).n_clusters == 2


def test_components_are_split_off_and_rows_without_edges_belong_nowhere():
    graph = nx.disjoint_union(nx.complete_graph(8), nx.complete_graph(5))
    graph.add_node("alone")
    tree = symnmf.hierarchy(graph, random_state=0)
    assert tree.names[-1] == "alone"
    assert tree.labels.tolist() == [0] * 8 + [1] * 5 + [-1]


def test_scipy_reads_the_tree():
    A, _ = nested(1)
    tree = symnmf.hierarchy(A, random_state=0)
    assert is_valid_linkage(tree.linkage)
    two = fcluster(tree.linkage, 2, "maxclust")  # of the leaves
    assert adjusted_rand_score(tree.cut(2), two[tree.labels]) == 1.0


def test_a_tree_can_be_drawn():
    pytest.importorskip("matplotlib")
    A, _ = nested()
    figure = symnmf.hierarchy(A, random_state=0).plot()
    assert len(figure.axes[0].collections) == 1
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()]


def test_a_description_that_gets_no_shorter_ends_a_split(monkeypatch):
    A = block_model(2, 2.6, 0, n=400)
    assert symnmf.hierarchy(A, random_state=0).n_clusters == 2
    monkeypatch.setattr(splitting, "_pays", lambda *_: True)
    monkeypatch.setattr(splitting._Judge, "_of_network", lambda *_: "as told")
    assert symnmf.hierarchy(A, max_clusters=6, random_state=0).n_clusters == 3
    monkeypatch.setattr(splitting, "gained", lambda *_: 1.0)
    assert symnmf.hierarchy(A, max_clusters=6, random_state=0).n_clusters == 6


@pytest.mark.parametrize(("snr", "leaves", "draws"), [(2.6, 2, 1 + 2 * 3), (0.0, 1, 3)])
def test_random_graphs_are_drawn_until_it_is_decided(snr, leaves, draws, monkeypatch):
    """One is enough for groups that are clear, and three for a part below one of them."""
    drawn, draw = [], splitting.nulls.same_degrees
    monkeypatch.setattr(
        splitting.nulls, "same_degrees", lambda *given: (drawn.append(1), draw(*given))[1]
    )
    A = block_model(2, snr, 0, n=400)
    assert symnmf.hierarchy(A, random_state=0).n_clusters == leaves
    assert len(drawn) == draws


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), parts=st.integers(2, 6))
def test_moving_rows_never_lowers_the_modularity_nor_empties_a_part(seed, parts):
    rng = np.random.default_rng(seed)
    A = block_model(3, 2.0, seed, n=60, degree=8)
    labels = rng.permutation(np.arange(60) % parts)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    moved = refined(A, labels, degrees, float(A.sum()))
    graph = nx.from_scipy_sparse_array(A)

    def modularity(found: np.ndarray) -> float:
        groups = [set(np.flatnonzero(found == one).tolist()) for one in range(parts)]
        return nx.community.modularity(graph, groups)

    assert modularity(moved) >= modularity(labels) - 1e-12
    assert set(moved) == set(range(parts))


def test_a_row_goes_where_it_has_most_edges_for_its_degree():
    graph = nx.disjoint_union(nx.complete_graph(6), nx.complete_graph(6))
    A = sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    labels = np.repeat([0, 1], 6)
    labels[0], labels[11] = 1, 0
    moved = refined(A, labels, np.full(12, 5.0), 60.0)
    assert len(set(moved[:6])) == len(set(moved[6:])) == 1


def test_cuts_that_were_made_early_are_set_right(real_data, monkeypatch):
    data = symnmf.datasets.load("football", folder=real_data)
    found = symnmf.hierarchy(data.data, random_state=0)
    assert adjusted_rand_score(data.target, found.labels) > 0.75
    monkeypatch.setattr(splitting, "refined", lambda graph, labels, *_: labels)
    plain = symnmf.hierarchy(data.data, random_state=0)
    assert adjusted_rand_score(data.target, plain.labels) < 0.7


def test_a_neighbour_graph_without_its_points_is_split_while_modularity_rises():
    X, digit = sklearn_datasets.load_digits(return_X_y=True)
    tree = symnmf.hierarchy(symnmf.graphs.build(X[:900], "self-tuning"), random_state=0)
    assert 8 <= tree.n_clusters <= 20
    assert adjusted_rand_score(digit[:900], tree.labels) > 0.75
    assert "modularity rises" in tree.splits[0].reason


@pytest.mark.parametrize("wrong", [0, 2.5, True, 99])
def test_wrong_cuts_are_refused(wrong):
    tree = symnmf.hierarchy(nested()[0], random_state=0)
    with pytest.raises(symnmf.InputError, match="n_clusters must be a whole number from 1 to"):
        tree.cut(wrong)


def test_wrong_limits_are_refused():
    with pytest.raises(symnmf.InputError, match="max_clusters must be"):
        symnmf.hierarchy(nested()[0], max_clusters=0)


def test_clusters_are_numbered_from_the_largest():
    parts = np.array([7, 7, -1, 3, 3, 3, 9, 9])
    assert numbered(parts).tolist() == [1, 1, -1, 0, 0, 0, 2, 2]


def test_groups_within_groups_are_found_where_only_chance_ends_a_tree():
    """Four groups of two blocks each: the modularity falls when the groups are split."""
    block = np.arange(400) // 50
    near, same = block[:, None] // 2 == block // 2, block[:, None] == block
    chance = np.where(same, 0.6, np.where(near, 0.15, 0.01))
    upper = np.triu(np.random.default_rng(0).random(chance.shape) < chance, 1)
    A = (upper + upper.T).astype(float)
    assert symnmf.hierarchy(A, random_state=0).n_clusters == 4
    tree = symnmf.hierarchy(A, until="chance", random_state=0)
    assert adjusted_rand_score(block, tree.labels) == 1.0
    assert adjusted_rand_score(block // 2, tree.cut(4)) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_a_random_graph_has_no_groups_however_a_tree_ends(seed):
    A = block_model(1, 0.0, seed, n=300)
    assert symnmf.hierarchy(A, until="chance", random_state=0).n_clusters == 1
