"""Clusters within clusters."""

from __future__ import annotations

from itertools import takewhile

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, is_valid_linkage
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import symnmf
from kinds_of_data import block_model, equal_groups
from symnmf import InputError
from symnmf.cluster.partition import labels_by_size


def nested() -> sp.csr_array:
    """Four groups of two groups of forty nodes."""
    small, large = np.arange(320) // 40, np.arange(320) // 80
    chance = np.where(large[:, None] == large, 0.08, 0.004)
    chance[small[:, None] == small] = 0.5
    upper = np.triu(np.random.default_rng(0).random(chance.shape) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float))


@pytest.fixture(scope="module")
def tree():
    return symnmf.hierarchy(nested(), random_state=0)


def test_groups_within_groups_are_found(tree):
    assert tree.n_clusters == 8
    assert adjusted_rand_score(np.arange(320) // 40, tree.labels) > 0.95
    assert adjusted_rand_score(np.arange(320) // 80, tree.cut(4)) > 0.95


def test_the_table_has_every_node_once_in_each_level_it_is_in(tree):
    rows = list(tree.table())
    assert rows[0][:3] == (0, 0, -1)
    assert len(rows) == len(set(rows))
    parent_of = {cluster: parent for _, cluster, parent, _ in rows}
    nodes: dict[int, set[int]] = {}
    for _, cluster, _, node in rows:
        nodes.setdefault(cluster, set()).add(node)
    for cluster, parent in parent_of.items():
        assert parent < 0 or nodes[cluster] < nodes[parent]
    assert nodes[0] == set(range(320))


def test_each_cluster_is_printed_above_its_own_parts():
    found = symnmf.hierarchy(nx.les_miserables_graph(), max_cluster_size=20, random_state=0)
    head, *lines = str(found).splitlines()
    assert head == f"{found.n_clusters} clusters in a tree of 2 levels"
    assert len(lines) == len(found.branches)
    sizes = [(len(line) - len(line.lstrip()), int(line.split()[0])) for line in lines]
    for place, (depth, size) in enumerate(sizes):
        below = list(takewhile(lambda part, above=depth: part[0] > above, sizes[place + 1 :]))
        assert not below or sum(part for deep, part in below if deep == depth + 2) == size


def test_cuts_are_nested_and_scipy_reads_the_linkage(tree):
    assert is_valid_linkage(tree.linkage)
    assert (np.diff(tree.linkage[:, 2]) >= 0).all()
    for count in range(1, tree.n_clusters):
        coarse, fine = tree.cut(count), tree.cut(count + 1)
        assert len(set(zip(coarse, fine, strict=True))) == count + 1
    leaves = fcluster(tree.linkage, 4, "maxclust")[tree.labels]
    assert adjusted_rand_score(leaves, tree.cut(4)) == 1.0


def test_nothing_is_split_where_there_is_nothing():
    assert symnmf.hierarchy(nx.gnp_random_graph(300, 0.04, seed=0), random_state=0).n_clusters == 1
    cloud = np.random.default_rng(0).standard_normal((200, 2))
    assert symnmf.hierarchy(cloud, affinity="self-tuning").n_clusters == 1


def test_points_are_split():
    X, labels = make_blobs(240, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    found = symnmf.hierarchy(X, affinity="self-tuning", random_state=0)
    assert adjusted_rand_score(labels, found.labels) > 0.98


@pytest.mark.parametrize("most", [10, 50])
def test_no_leaf_is_larger_than_the_limit_and_a_second_run_is_the_same(most):
    A = block_model(equal_groups(400, 4), 0.1, 0.01, np.random.default_rng(0))
    first, second = (symnmf.hierarchy(A, max_cluster_size=most, random_state=0) for _ in range(2))
    assert np.bincount(first.labels).max() <= most
    np.testing.assert_array_equal(first.labels, second.labels)
    assert list(first.table()) == list(second.table())


def test_names_and_nodes_without_edges():
    G = nx.caveman_graph(3, 6)
    G = nx.relabel_nodes(G, {node: f"n{node}" for node in G})
    G.add_node("alone")
    found = symnmf.hierarchy(G, random_state=0)
    assert found.labels[-1] == -1
    assert {node for *_, node in found.table()} == set(G) - {"alone"}


@pytest.mark.parametrize("wrong", [0, 9, 2.5])
def test_wrong_cuts_are_refused(tree, wrong):
    with pytest.raises(InputError, match="n_clusters must be"):
        tree.cut(wrong)


def test_clusters_are_numbered_from_the_largest():
    np.testing.assert_array_equal(labels_by_size(np.array([5, 2, 2, -1, 7]))[0], [1, 0, 0, -1, 2])


def test_a_clique_larger_than_the_limit_is_a_leaf():
    tree = symnmf.hierarchy(nx.complete_graph(30), max_cluster_size=10, random_state=0)
    assert tree.n_clusters == 1
    ring = nx.ring_of_cliques(4, 20)
    assert symnmf.hierarchy(ring, max_cluster_size=10, random_state=0).n_clusters == 4
