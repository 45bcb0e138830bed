"""Scores against brute force over all namings, and against hand-made cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from symnmf import metrics
from symnmf.errors import InputError

LABEL_SCORES = [
    metrics.clustering_accuracy,
    metrics.purity,
    metrics.normalized_mutual_info,
    metrics.adjusted_rand,
]

labelings = st.integers(1, 15).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


def best_over_namings(true, found):
    """Every one-to-one map of the five cluster names to five class names, tried."""
    return max(
        np.mean([names[f] == t for t, f in zip(true, found, strict=True)])
        for names in itertools.permutations(range(5))
    )


@settings(max_examples=60, deadline=None)
@given(labelings)
def test_accuracy_is_the_best_over_all_namings(labels):
    true, found = labels
    assert metrics.clustering_accuracy(true, found) == pytest.approx(best_over_namings(true, found))


@settings(max_examples=60, deadline=None)
@given(labelings)
def test_purity_counts_the_commonest_class_of_each_cluster(labels):
    true, found = map(np.array, labels)
    hits = sum(max((true[found == c] == t).sum() for t in set(true)) for c in set(found))
    assert metrics.purity(true, found) == pytest.approx(hits / true.size)


@settings(max_examples=30, deadline=None)
@given(labelings)
def test_scikit_learn_scores_under_our_names(labels):
    assert metrics.normalized_mutual_info(*labels) == normalized_mutual_info_score(*labels)
    assert metrics.adjusted_rand(*labels) == adjusted_rand_score(*labels)


@pytest.mark.parametrize("score", LABEL_SCORES)
@pytest.mark.parametrize(
    "names",
    [
        [10, -3, 7],
        [0.5, 1.5, 2.5],
        ["x", "y", "z"],
        np.array(["x", "y", "z"]),
        [None, "y", 3],
        [("a", 1), ("b",), ()],
        np.array([True, None, "x"], dtype=object),
    ],
)
def test_only_equality_of_labels_matters(score, names):
    true, found = [0, 0, 1, 1, 2, 2, 2], [1, 1, 0, 2, 2, 2, 0]
    renamed = [names[i] for i in found]
    if isinstance(names, np.ndarray):
        renamed = np.array(renamed, dtype=names.dtype)
    assert score(true, renamed) == pytest.approx(score(true, found))


@pytest.mark.parametrize("score", LABEL_SCORES)
@pytest.mark.parametrize(
    ("true", "found", "message"),
    [
        ([0, 1, 1], [0, 1], "labels_true has 3 labels but labels_pred has 2"),
        ([], [], "labels_true is empty"),
        (np.eye(3), [0, 1, 2], r"labels_true must be one-dimensional, not of shape \(3, 3\)"),
        ([0, 1], [[0], [1]], "labels_pred holds labels that cannot be hashed"),
    ],
)
def test_unusable_labels_are_named(score, true, found, message):
    with pytest.raises(InputError, match=message):
        score(true, found)


def f1(a, b):
    return 2 * len(a & b) / (len(a) + len(b)) if a & b else 0.0


communities = st.lists(st.sets(st.integers(0, 12), max_size=8), min_size=1, max_size=6)


@settings(max_examples=80, deadline=None)
@given(communities, communities)
def test_overlapping_f1_is_its_formula(true, found):
    recall = np.mean([max(f1(t, f) for f in found) for t in true])
    precision = np.mean([max(f1(t, f) for t in true) for f in found])
    expected = (recall + precision) / 2
    assert metrics.overlapping_f1(true, found) == pytest.approx(expected)
    arrays = [[np.array(sorted(c), dtype=np.int32) for c in side] for side in (true, found)]
    assert metrics.overlapping_f1(*arrays) == pytest.approx(expected)
    assert metrics.overlapping_f1(arrays[0], found) == pytest.approx(expected)


def test_overlapping_f1_by_hand():
    assert metrics.overlapping_f1([{1, 2}, {3, 4}], [{1, 2}, {3}]) == pytest.approx(5 / 6)
    assert metrics.overlapping_f1([["a", "b", "b"]], [("b", "a")]) == 1
    assert metrics.overlapping_f1([{1}], [{2}]) == 0


def test_no_communities_is_an_error():
    with pytest.raises(InputError, match="found_communities is empty"):
        metrics.overlapping_f1([{1}], [])
