"""How much is added to degrees is judged by the factorization, on a contracted graph if large."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

import symnmf


def with_tails(groups: int, size: int, tails: int, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """Groups of a sparse block model, and cliques of six that hang on them by one edge each."""
    rng = np.random.default_rng(seed)
    n = groups * size
    y = np.arange(n) % groups
    chance = np.where(y[:, None] == y, 9.0 / size, 1.5 / n)
    upper = np.triu(rng.random((n, n)) < chance, 1)
    i, j = np.nonzero(upper)
    edges, labels, last = [np.column_stack([i, j])], [y], n
    for anchor in rng.choice(n, tails, replace=False):
        clique = last + np.arange(6)
        a, b = np.triu_indices(6, 1)
        edges += [np.column_stack([clique[a], clique[b]]), np.array([[anchor, clique[0]]])]
        labels.append(np.full(6, y[anchor]))
        last += 6
    i, j = np.concatenate(edges).T
    half = sp.coo_array((np.ones(len(i)), (i, j)), shape=(last, last))
    return sp.csr_array(half + half.T), np.concatenate(labels)


def test_tails_become_the_clusters_without_an_offset_and_groups_with_the_chosen_one() -> None:
    A, y = with_tails(4, 150, 30, 0)
    found = symnmf.communities(A, 4, random_state=0)
    assert found.degree_offset > 0.0
    assert normalized_mutual_info_score(y, found.labels) > 0.8
    options = {"degree_offset": 0.0, "assign_labels": "largest", "random_state": 0}
    with pytest.warns(symnmf.QualityWarning):
        collapsed = symnmf.communities(A, 4, **options)
    assert normalized_mutual_info_score(y, collapsed.labels) < 0.4


def test_a_graph_that_was_normalised_is_not_normalised_again():
    A = symnmf.datasets.load("karate").data
    once = symnmf.graphs.normalize(A)
    for X, again in ((A, True), (once, False)):
        model = symnmf.SymNMF(2, affinity="precomputed", random_state=0).fit(X)
        other = symnmf.SymNMF(2, affinity="precomputed", normalize=again, random_state=0).fit(X)
        np.testing.assert_array_equal(model.labels_, other.labels_)
        assert np.bincount(model.labels_).min() >= 15
