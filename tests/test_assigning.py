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
from symnmf.errors import InputError
from symnmf.graphs import assigning
from symnmf.graphs.assigning import Assigning, Worth, new_labels, reassigned


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


@pytest.mark.parametrize("rounds", [5, 6, 7, 8])
def test_rows_that_change_places_for_ever_end_as_the_last_round_leaves_them(rounds, monkeypatch):
    """No round follows once labels are those of two rounds before."""
    seen = []
    one_round = Assigning.round
    monkeypatch.setattr(assigning, "ROUNDS", rounds)
    monkeypatch.setattr(Assigning, "round", lambda *args: seen.append(1) or one_round(*args))
    A, y = block_model([8, 8], [0.5, 0.5], 0.3, 6)
    labels = np.where(np.random.default_rng(6).random(16) < 0.3, 1 - y, y)
    expected = labels
    for _ in range(rounds):
        expected = one_round_by_loops(A, expected, 2)
    assert (expected != one_round_by_loops(A, expected, 2)).any()
    np.testing.assert_array_equal(reassigned(A, labels, 2), expected)
    assert len(seen) == 3


def mean_gain(problems, monkeypatch, rounds):
    """By how much the mutual information with the groups rises over that of the largest entry."""
    gains = []
    for A, y in problems:
        k = len(np.unique(y))
        monkeypatch.setattr(assigning, "ROUNDS", rounds)
        options = {"normalize": True, "random_state": 0}
        largest = symnmf.communities(A, k, assign_labels="largest", **options).labels
        likely = symnmf.communities(A, k, **options).labels
        gains.append(
            normalized_mutual_info_score(y, likely) - normalized_mutual_info_score(y, largest)
        )
    return np.mean(gains)


@pytest.mark.filterwarnings("ignore::symnmf.QualityWarning")
def test_groups_of_block_models_are_found_better_than_by_the_largest_entry(monkeypatch):
    equal = [block_model([160] * 5, [0.045] * 5, 0.0075, seed) for seed in range(4)]
    assert mean_gain(equal, monkeypatch, 5) > 0.02
    assert mean_gain(equal[:1], monkeypatch, 0) == 0.0


def test_rows_move_for_ten_rounds_at_most(monkeypatch):
    A, y = block_model([20, 20], [0.6, 0.6], 0.05, 0)
    rounds = []

    def turned(table, current):
        rounds.append(current)
        return np.roll(current, 1)

    monkeypatch.setattr(Assigning, "round", turned)
    reassigned(A, y, 2)
    assert len(rounds) == 10


def test_a_cluster_of_few_edges_is_not_taken_for_an_extreme_one():
    """One more edge than there is keeps the densities of clusters and of the rest finite."""
    # three clusters with a volume of 2 of 6: chance puts 2/3 inside each and 4 between
    volume = np.full(3, 2.0)
    none_inside = Worth.of_counts(np.zeros(3), volume, 6.0, 6)
    np.testing.assert_allclose(none_inside.gain, np.log(1.0 / (2 / 3 + 1)) - np.log(7.0 / 5.0))
    none_between = Worth.of_counts(volume, volume, 6.0, 6)
    np.testing.assert_allclose(none_between.gain, np.log(3.0 / (2 / 3 + 1)) - np.log(1.0 / 5.0))


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


def test_a_row_that_has_to_stay_does_not_empty_the_cluster_it_would_have_gone_to(monkeypatch):
    """Clusters 0 and 1 have one row each, which would go to 1 and 2."""
    A, _ = block_model([5], [0.9], 0.0, 0)
    labels = np.array([0, 1, 2, 2, 2])
    monkeypatch.setattr(Assigning, "round", lambda *_: np.array([1, 2, 2, 2, 2]))
    np.testing.assert_array_equal(reassigned(A, labels, 3), labels)


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


def test_a_sparse_graph_in_an_array_is_read_as_a_sparse_one():
    A, y = block_model([30, 25, 20], [0.5, 0.5, 0.5], 0.15, 1)
    noisy = np.where(np.random.default_rng(0).random(75) < 0.25, 0, y)
    np.testing.assert_array_equal(reassigned(A.toarray(), noisy, 3), reassigned(A, noisy, 3))


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
    np.testing.assert_array_equal(new_labels(A, labels, A, 3), expected)


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
    again = new_labels(A, found.labels, A, 3)
    assert (again == found.labels).mean() > 0.97


def test_samples_equal_to_fitted_ones_keep_their_label():
    from sklearn.datasets import load_iris

    X = load_iris().data
    model = symnmf.SymNMF(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    near = model.predict(X + 1e-6)
    assert (near == model.labels_).mean() > 0.95
    largest = symnmf.SymNMF(3, random_state=0, assign_labels="largest").fit(X)
    np.testing.assert_array_equal(largest.labels_, largest.embedding_.argmax(axis=1))


def test_another_rule_is_refused():
    with pytest.raises(InputError, match="assign_labels"):
        symnmf.SymNMF(2, assign_labels="kmeans").fit(np.arange(8.0).reshape(4, 2))
    with pytest.raises(InputError, match="assign_labels"):
        symnmf.communities(np.eye(4), 2, assign_labels="kmeans")


@given(st.integers(0, 10_000), st.sampled_from([np.float64, np.float32]))
def test_a_compiled_round_is_that_of_the_table_of_scores(seed, dtype):
    """Also where labels are missing, rows have no edges and clusters no rows."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((15, 15), density=0.15, rng=rng, format="csr", dtype=dtype)
    A = sp.csr_array(A + A.T)
    if seed % 2:  # so that clusters have the same score
        A.data[:] = 1.0
    assigning = Assigning(A, 5)
    labels = rng.integers(-1, 4, size=15)
    scores = assigning.scores(A, assigning.degrees, labels, assigning.worth(labels))
    moved = assigning.round(labels)
    rows = np.arange(15)
    inside = labels >= 0
    assert (moved[~inside] == -1).all()
    best = scores.max(axis=1)
    known = inside & np.isfinite(best)
    np.testing.assert_allclose(scores[rows, moved][known], best[known], rtol=1e-6)
    assert (moved == labels)[inside & ~np.isfinite(best)].all()
