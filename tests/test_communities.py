"""Networkx, igraph and scipy graphs: how they are read, and their communities by name."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from symnmf import InputError, factorize, graphs
from symnmf.community import communities
from symnmf.metrics import clustering_accuracy, overlapping_f1

igraph = pytest.importorskip("igraph", reason="needs pip install 'symnmf[graphs]'")
nx = pytest.importorskip("networkx", reason="needs pip install 'symnmf[graphs]'")

WEIGHTED = [[3, 2.5, 0], [2.5, 0, 1], [0, 1, 0]]  # a loop of 3, an edge of 2.5, one unweighted


def test_from_networkx():
    G = nx.Graph()
    G.add_nodes_from("abc")
    G.add_edge("a", "a", weight=3)
    G.add_edge("b", "a", weight=2.5)
    G.add_edge("b", "c")
    A, names = graphs.from_graph(G)
    assert names == ["a", "b", "c"]
    np.testing.assert_array_equal(A.toarray(), WEIGHTED)
    np.testing.assert_array_equal(
        graphs.from_graph(G, weight=None)[0].toarray(), np.array(WEIGHTED) > 0
    )


def test_from_igraph():
    G = igraph.Graph([(0, 0), (1, 0), (1, 2)])
    assert graphs.from_graph(G)[1] == [0, 1, 2]
    G.vs["name"], G.es["weight"] = ["a", "b", "c"], [3, 2.5, None]
    A, names = graphs.from_graph(G)
    assert names == ["a", "b", "c"]
    np.testing.assert_array_equal(A.toarray(), WEIGHTED)


@pytest.mark.parametrize("convert", [np.array, sp.csr_array, sp.coo_matrix])
def test_from_adjacency(convert):
    A, names = graphs.from_graph(convert(np.array(WEIGHTED)))
    assert isinstance(A, sp.csr_array)
    assert names == [0, 1, 2]
    np.testing.assert_array_equal(A.toarray(), WEIGHTED)


@pytest.mark.parametrize(
    ("G", "message"),
    [
        (nx.DiGraph([(0, 1)]), "G.to_undirected()"),
        (nx.MultiGraph([(0, 1), (0, 1)]), "networkx.Graph(G)"),
        (nx.Graph([("a", "b", {"weight": -2})]), "('a', 'b') with -2"),
        (nx.Graph([(0, 1, {"weight": float("nan")})]), "(0, 1) with nan"),
        (nx.Graph([(0, 1, {"weight": "heavy"})]), "'weight' of G has a value that is not a number"),
        (nx.Graph(), "G has no nodes"),
        (igraph.Graph([(0, 1)], directed=True), "G.as_undirected()"),
        (igraph.Graph([(0, 1), (0, 1)]), "G.simplify(loops=False, combine_edges='sum')"),
    ],
)
def test_graphs_that_need_converting_say_how(G, message):
    with pytest.raises(InputError, match=re.escape(message)):
        graphs.from_graph(G)


def ring_of_cliques():
    """Three cliques of names, joined in a ring by single edges."""
    graph = nx.Graph()
    for clique in "abc":
        members = [f"{clique}{i}" for i in range(6)]
        graph.add_edges_from(nx.complete_graph(members).edges)
    graph.add_edges_from([("a0", "b0"), ("b1", "c0"), ("c1", "a1")])
    return graph


CLIQUES = [{f"{clique}{i}" for i in range(6)} for clique in "abc"]


def test_cliques_by_name_in_networkx_igraph_and_scipy():
    graph = ring_of_cliques()
    names = list(graph)
    assert communities(graph, 3, random_state=0) == CLIQUES
    found = communities(igraph.Graph.from_networkx(graph), 3, random_state=0)
    assert found == [{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, {12, 13, 14, 15, 16, 17}]
    named = igraph.Graph.TupleList(graph.edges)
    assert sorted(communities(named, 3, random_state=0), key=min) == CLIQUES
    for convert in (sp.csr_array, sp.coo_matrix, lambda A: A.toarray()):
        found = communities(convert(nx.to_scipy_sparse_array(graph)), 3, random_state=0)
        assert [{names[i] for i in nodes} for nodes in found] == CLIQUES


def test_karate_club_follows_the_split():
    graph = nx.karate_club_graph()
    clubs = [
        {node for node in graph if graph.nodes[node]["club"] == club}
        for club in ("Mr. Hi", "Officer")
    ]
    found = communities(graph, 2, random_state=0)
    assert nx.community.is_partition(graph, found)
    assert overlapping_f1(clubs, found) > 0.94  # at most two members astray


def test_football_conferences(real_data):
    from symnmf import datasets

    data = datasets.load("football", real_data)
    found = communities(data.data, 12, random_state=0)
    labels = np.empty(115, dtype=int)
    for number, nodes in enumerate(found):
        labels[list(nodes)] = number
    assert clustering_accuracy(data.target, labels) > 0.85
    graph = nx.from_scipy_sparse_array(data.data)
    assert nx.community.modularity(graph, found) > 0.55


def test_a_partition_is_the_argmax_of_the_factor_and_overlap_its_shares():
    graph = nx.karate_club_graph()
    A = graphs.normalize(nx.to_scipy_sparse_array(graph))
    result = factorize(A, 4, tol=1e-4, random_state=7)
    share = result.U / result.U.sum(axis=1, keepdims=True)
    common = {"n_clusters": 4, "n_init": 1, "random_state": 7}
    parts = [set(np.flatnonzero(result.labels == j).tolist()) for j in range(4)]
    assert _unordered(communities(graph, **common)) == _unordered(parts)
    for threshold in (0.0, 0.1, 0.25, 0.6):
        found = communities(graph, overlapping=True, threshold=threshold, **common)
        belongs = (share > threshold) | (share == share.max(axis=1, keepdims=True))
        expected = [set(np.flatnonzero(column).tolist()) for column in belongs.T]
        assert _unordered(found) == _unordered(expected)
        assert set().union(*found) == set(graph)
    default = communities(graph, overlapping=True, **common)
    assert default == communities(graph, overlapping=True, threshold="background", **common)
    shares = communities(graph, overlapping=True, threshold=0.25, **common)
    assert sum(map(len, shares)) > 34  # somebody is in two


def _unordered(found):
    return sorted(sorted(nodes) for nodes in found if nodes)


def test_isolated_nodes_are_outside():
    graph = ring_of_cliques()
    graph.add_nodes_from(["lonely", "alone"])
    found = communities(graph, 3, random_state=0)
    assert found == CLIQUES
    assert found.outside == ["lonely", "alone"]
    assert (found.labels[-2:] == -1).all()
    assert not found.membership[-2:].any()


def test_a_missing_number_is_asked_for():
    with pytest.raises(InputError, match="communities needs n_clusters, a whole number"):
        communities(nx.karate_club_graph())  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("graph", "k", "options", "said"),
    [
        (nx.path_graph(3), 4, {}, "n_clusters=4 is more than the 3 nodes of G; choose"),
        (nx.Graph({0: [1, 2], 3: []}), 4, {}, "more than the 3 nodes of G that have edges"),
        (nx.empty_graph(3), 2, {}, "G has no edges"),
        (nx.Graph(), 2, {}, "G has no nodes"),
        ([[0, 1], [1]], 2, {}, "G is not usable: its rows have unequal lengths"),
        (np.zeros((4, 4)), 2, {}, "G has no edges"),
        (nx.path_graph(3), 2, {"threshold": 1}, "threshold must be 'background' or a number"),
        (nx.DiGraph([(0, 1)]), 1, {}, "directed"),
        (nx.MultiGraph([(0, 1), (0, 1)]), 1, {}, "multigraph"),
        (igraph.Graph([(0, 1)], directed=True), 1, {}, "directed"),
        (np.triu(np.ones((3, 3))), 1, {}, "not symmetric"),
        (nx.karate_club_graph(), 2, {"weight": "wieght"}, "which have 'weight'; name one"),
        ({0: [1], 1: [2]}, 2, {}, r"pass networkx\.Graph\(G\)"),
    ],
)
def test_errors_say_what_to_do(graph, k, options, said):
    with pytest.raises(InputError, match=said):
        communities(graph, k, **options)
