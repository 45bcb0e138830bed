"""Rows go to the cluster that their similarities make most likely."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

import symnmf
from symnmf.graphs.assigning import Assigning, reassigned


def block_model(sizes, inside, between, seed):
    """A random graph with as many groups as sizes, and the group of each node."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(y[:, None] == y, np.asarray(inside)[y][:, None], between)
    upper = np.triu(rng.random((len(y), len(y))) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float)), y


def one_round_by_loops(A, labels, clusters):
    """The formula of the module, row by row and cluster by cluster."""
    A = A.toarray() if sp.issparse(A) else A
    degrees, stored = A.sum(axis=1), np.count_nonzero(A)
    unit = A.sum() / stored
    s = A.sum() / unit
    d = degrees / unit
    within = np.array([A[np.ix_(labels == k, labels == k)].sum() / unit for k in range(clusters)])
    volume = np.array([d[labels == k].sum() for k in range(clusters)])
    chance = volume**2 / s
    outer = (s - within.sum() + 1) / (s - chance.sum() + 1)
    inner = (within + 1) / (chance + 1)
    new = labels.copy()
    for i in range(len(labels)):
        best, place = -np.inf, labels[i]
        for k in [labels[i], *range(clusters)]:
            w = A[i, labels == k].sum()
            if k < 0 or w == 0 or inner[k] <= outer:
                continue
            score = w * np.log(inner[k] / outer) - degrees[i] * volume[k] * (inner[k] - outer) / s
            if score > best + 1e-12:
                best, place = score, k
        new[i] = place
    return new


@given(st.integers(0, 10_000), st.booleans())
def test_one_round_is_that_of_the_formula(seed, weighted):
    rng = np.random.default_rng(seed)
    A, y = block_model([9, 7, 5], [0.6, 0.5, 0.7], 0.2, seed)
    if weighted:
        factor = np.triu(rng.random(A.shape) + 0.5, 1)
        A = sp.csr_array(A * (factor + factor.T))
    labels = np.where(rng.random(len(y)) < 0.3, rng.integers(3, size=len(y)), y)
    expected = one_round_by_loops(A, labels, 3)
    np.testing.assert_array_equal(Assigning(A, 3).round(labels), expected)


def test_small_dense_groups_do_not_lose_rows_to_large_ones():
    """A model with one density for all clusters, such as modularity, breaks these."""
    A, y = block_model([500, 200, 70, 30], [0.05, 0.05, 0.2, 0.4], 0.008, 0)
    assert normalized_mutual_info_score(y, reassigned(A, y, 4)) == pytest.approx(1.0)
    modularity = A @ np.eye(4)[y] - np.outer(A.sum(axis=1), A.sum(axis=1) @ np.eye(4)[y]) / A.sum()
    assert normalized_mutual_info_score(y, modularity.argmax(axis=1)) < 0.97


def test_no_cluster_loses_all_its_rows_and_rows_outside_stay_there():
    A, y = block_model([20, 20], [0.6, 0.6], 0.05, 0)
    labels = y.copy()
    labels[[0, 25]] = 2  # two rows that have nothing in common
    labels[7] = -1
    found = reassigned(A, labels, 3)
    assert set(found.tolist()) == {-1, 0, 1, 2}
    assert found[7] == -1
    assert (np.bincount(found[found >= 0]) > 0).all()


def test_negative_edges_push_rows_out_of_a_cluster():
    A, y = block_model([30, 30], [0.3, 0.3], 0.1, 2)
    foes = sp.csr_array(np.where(y[:, None] != y, 0.3, 0.0) * (A.toarray() == 0))
    signed = sp.csr_array(A - foes)
    noisy = np.where(np.random.default_rng(1).random(60) < 0.35, 1 - y, y)
    signed = sp.csr_array(signed.multiply(np.random.default_rng(2).random((60, 60)) < 0.6))
    signed = sp.csr_array(signed + signed.T)
    without = normalized_mutual_info_score(y, reassigned(signed, noisy, 2))
    pushed = reassigned(signed, noisy, 2, negative_weight=1.0)
    assert normalized_mutual_info_score(y, pushed) > without
    np.testing.assert_array_equal(
        reassigned(signed, noisy, 2), reassigned(sp.csr_array(signed.maximum(0)), noisy, 2)
    )


def test_dense_similarities_go_by_the_nearest_mean():
    """Squared distances to means, written out with weighted rows of the root of a kernel."""
    rng = np.random.default_rng(0)
    A = rng.random((30, 3)) @ rng.random((3, 30))
    A = A @ A.T / 30 + 0.1
    labels = rng.integers(3, size=30)
    d = A.sum(axis=1)
    values, vectors = np.linalg.eigh(A / np.outer(d, d))
    rows = vectors * np.sqrt(np.maximum(values, 0))
    means = [np.average(rows[labels == k], axis=0, weights=d[labels == k]) for k in range(3)]
    expected = cdist(rows, means).argmin(axis=1)
    np.testing.assert_array_equal(Assigning(A, 3).round(labels), expected)
    np.testing.assert_array_equal(Assigning(A, 3).new(A, labels), expected)


@pytest.mark.parametrize("rule", ["likelihood", "largest"])
def test_labels_memberships_strengths_and_embedding_agree(rule):
    X = load_digits().data[:600]
    model = symnmf.SymNMF(10, assign_labels=rule, random_state=0).fit(X)
    for values in (model.embedding_, model.membership_, model.strength_):
        np.testing.assert_array_equal(values.argmax(axis=1), model.labels_)
    assert (model.membership_.max(axis=1) > 0).all()
    new = X + np.random.default_rng(0).random(X.shape)
    np.testing.assert_array_equal(model.transform(new).argmax(axis=1), model.predict(new))
    G = nx.karate_club_graph()
    found = symnmf.communities(G, 2, assign_labels=rule, random_state=0)
    for values in (found.membership, found.strength):
        np.testing.assert_array_equal(values.argmax(axis=1), found.labels)


def test_new_nodes_go_where_their_edges_lead():
    G = nx.planted_partition_graph(3, 30, 0.4, 0.05, seed=0)
    found = symnmf.communities(G, 3, random_state=0)
    for community in range(3):
        members = np.flatnonzero(found.labels == community)[:5].tolist()
        assert found.predict(members) == community
    assert found.predict([]) == -1
    A = nx.to_scipy_sparse_array(G, dtype=float)
    again = Assigning(A, 3).new(A, found.labels)
    assert (again == found.labels).mean() > 0.97
