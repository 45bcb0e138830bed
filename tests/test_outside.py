"""Rows that belong nowhere, or hardly to their cluster."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import roc_auc_score

import symnmf

pytestmark = pytest.mark.filterwarnings("ignore::symnmf.QualityWarning")


def test_planted_outliers_have_the_highest_scores():
    X, _ = make_blobs(200, centers=3, n_features=5, random_state=0)
    far = np.random.default_rng(0).uniform(X.min() - 5, X.max() + 5, (10, 5))
    model = symnmf.SymNMF(3, random_state=0).fit(np.vstack([X, far]))
    scores = model.outlier_score_
    assert roc_auc_score(np.arange(210) >= 200, scores) > 0.99
    assert np.median(scores[:200]) < 0.2
    assert scores.min() >= 0
    assert scores.max() <= 1


def test_a_node_between_two_groups_belongs_less_and_one_without_edges_not_at_all():
    graph = nx.disjoint_union(nx.complete_graph(8), nx.complete_graph(8))
    graph.add_edges_from([("between", node) for node in (0, 1, 2, 8, 9, 10)])
    graph.add_node("alone")
    found = symnmf.communities(graph, 2, random_state=0)
    scores = dict(zip(found.names, found.outlier_score, strict=True))
    assert scores["alone"] == 1.0
    assert scores["between"] > 0.4
    assert max(scores[node] for node in range(16)) < 0.3


@pytest.mark.filterwarnings("ignore::symnmf.graphs.GraphWarning")
def test_a_node_with_an_edge_is_never_without_a_community():
    # pairs that are worth no column: two large groups take both
    graph = nx.disjoint_union(nx.complete_graph(20), nx.complete_graph(15))
    for pair in range(4):
        graph.add_edge(f"a{pair}", f"b{pair}")
    for offset in (0.0, 1.0, None):
        found = symnmf.communities(graph, 2, degree_offset=offset, random_state=0)
        assert not found.outside
        assert (found.labels >= 0).all()
    for pair in range(4):
        together = [found.labels[found.names.index(f"{end}{pair}")] for end in "ab"]
        assert together[0] == together[1]
