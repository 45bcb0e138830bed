"""Scores against brute force over all namings, and against hand-made cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from symnmf import metrics
from symnmf.errors import InputError

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


@pytest.mark.parametrize(
    "names",
    [
        [10, -3, 7],
        [0.5, 1.5, 2.5],
        ["x", "y", "z"],
        np.array(["x", "y", "z"]),
    ],
)
def test_only_equality_of_labels_matters(names):
    true, found = [0, 0, 1, 1, 2, 2, 2], [1, 1, 0, 2, 2, 2, 0]
    renamed = [names[i] for i in found]
    if isinstance(names, np.ndarray):
        renamed = np.array(renamed, dtype=names.dtype)
    score = metrics.clustering_accuracy
    assert score(true, renamed) == pytest.approx(score(true, found))


@pytest.mark.parametrize(
    ("true", "found", "message"),
    [
        ([0, 1, 1], [0, 1], "one label for each point"),
        ([], [], "one label for each point"),
        (np.eye(3), [0, 1, 2], "one label for each point"),
        ([0, 1], [None, "a"], "not supported between"),
    ],
)
def test_unusable_labels_are_named(true, found, message):
    with pytest.raises(InputError, match=message):
        metrics.clustering_accuracy(true, found)


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


nonempty = st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=9), min_size=1, max_size=5)


def onmi_by_definition(true, found, n, form):
    """All pairs of indicator vectors, their entropies by scikit-learn and scipy."""

    def entropies(these, others):
        pairs = []
        for t in these:
            H = entropy([t.mean(), 1 - t.mean()], base=2)
            left = [H]
            for f in others:
                cells = [np.mean(t & f), np.mean(~t & ~f), np.mean(t & ~f), np.mean(~t & f)]
                terms = [-p * np.log2(p) if p > 0 else 0.0 for p in cells]
                if terms[0] + terms[1] >= terms[2] + terms[3]:
                    left.append(max(H - mutual_info_score(t, f) / np.log(2), 0.0))
            pairs.append((H, min(left)))
        return np.array(pairs)

    vectors = [[np.isin(np.arange(n), list(c)) for c in side] for side in (true, found)]
    X, Y = entropies(*vectors), entropies(*vectors[::-1])
    if form == "lfk":
        parts = [np.mean([h and left / h for h, left in side]) for side in (X, Y)]
        return 1 - np.mean(parts)
    larger = max(X[:, 0].sum(), Y[:, 0].sum())
    return (X[:, 0] - X[:, 1]).sum() / 2 / larger + (Y[:, 0] - Y[:, 1]).sum() / 2 / larger


@settings(max_examples=50, deadline=None)
@given(nonempty, nonempty, st.integers(10, 30), st.sampled_from(["max", "lfk"]))
def test_overlapping_nmi_is_its_definition_over_all_pairs(true, found, n, form):
    expected = onmi_by_definition(true, found, n, form)
    assert metrics.overlapping_nmi(true, found, n, form=form) == pytest.approx(expected, abs=1e-9)


def omega_by_definition(true, found, n):
    def shared(cover):
        return np.array(
            [sum(i in c and j in c for c in cover) for i, j in itertools.combinations(range(n), 2)]
        )

    a, b = shared(true), shared(found)
    observed = np.mean(a == b)
    expected = sum(np.mean(a == t) * np.mean(b == t) for t in range(max(a.max(), b.max()) + 1))
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)


@settings(max_examples=40, deadline=None)
@given(nonempty, nonempty, st.integers(10, 16))
def test_omega_is_its_definition_over_all_pairs(true, found, n):
    assert metrics.omega_index(true, found, n) == pytest.approx(omega_by_definition(true, found, n))


def test_overlap_scores_refuse_what_they_cannot_score():
    with pytest.raises(InputError, match="n_nodes must be a whole number of at least the 3 nodes"):
        metrics.overlapping_nmi([{1, 2}], [{2, 3}], 2)
    with pytest.raises(InputError, match="form must be 'max' or 'lfk', got 'min'"):
        metrics.overlapping_nmi([{1, 2}], [{2, 3}], form="min")
    with pytest.raises(InputError, match="at least 2 for the omega index"):
        metrics.omega_index([{1}], [{1}])
