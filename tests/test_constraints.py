"""Must-link, cannot-link, a few labels, and signed graphs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import symnmf
from extras import optional
from symnmf import graphs

nx = optional("networkx")


@pytest.fixture(scope="module")
def digits():
    points, classes = load_digits(return_X_y=True)
    return graphs.build(points[:500], "self-tuning"), classes[:500]


def drawn_pairs(classes, share, seed):
    n = len(classes)
    pairs = np.random.default_rng(seed).integers(n, size=(int(share * n * n / 2), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    return pairs[same], pairs[~same]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_pairs_change_similarities_by_the_strength(kind):
    A = np.array([[0, 2, 1, 0], [2, 0, 0, 1], [1, 0, 0, 2], [0, 1, 2, 0]], dtype=float)
    found = graphs.constrained(kind(A), [(0, 3), (3, 0)], [(1, 0)], strength=0.5)
    expected = A.copy()
    expected[0, 3] = expected[3, 0] = 1.0  # half the median of the largest similarities, once
    expected[0, 1] = expected[1, 0] = 1.0
    np.testing.assert_allclose(found.toarray() if sp.issparse(found) else found, expected)
    labelled = graphs.constrained(kind(A), labels=[0, 1, -1, 0])
    pairs = graphs.constrained(kind(A), [(0, 3)], [(0, 1), (1, 3)])
    assert abs(labelled - pairs).max() == 0


def test_a_few_constraints_mend_a_clustering_and_are_kept(digits):
    A, classes = digits
    options = {"affinity": "precomputed", "random_state": 0, "n_init": 3}
    plain = symnmf.SymNMF(10, **options).fit(A)
    must, cannot = drawn_pairs(classes, 0.05, seed=0)
    told = graphs.constrained(A, must, cannot)
    model = symnmf.SymNMF(10, **options).fit(symnmf.Problem(told, allow_negative=True))
    before, after = (adjusted_rand_score(classes, m.labels_) for m in (plain, model))
    assert after > before + 0.05
    labels = model.labels_
    broken = np.concatenate(
        [labels[must[:, 0]] != labels[must[:, 1]], labels[cannot[:, 0]] == labels[cannot[:, 1]]]
    )
    assert broken.mean() < 0.05
    assert model.certificate_.certified
    assert told.min() < 0


def test_a_few_labels_help_too(digits):
    A, classes = digits
    known = np.full(len(classes), -1)
    shown = np.random.default_rng(1).choice(len(classes), 60, replace=False)
    known[shown] = classes[shown]
    options = {"affinity": "precomputed", "random_state": 0, "n_init": 3}
    plain = symnmf.SymNMF(10, **options).fit(A)
    model = symnmf.SymNMF(10, **options).fit(A, labels=known)
    others = known == -1
    rest = classes[others]
    before, after = (adjusted_rand_score(rest, m.labels_[others]) for m in (plain, model))
    assert after >= before - 0.02
    assert adjusted_rand_score(classes[shown], model.labels_[shown]) > 0.95
    # clusters have the numbers of the classes, and all that is known of the fit goes with them
    assert np.mean(model.labels_[shown] == classes[shown]) > 0.95
    assert np.mean(model.labels_ == classes) > 0.5
    np.testing.assert_array_equal(model.embedding_.argmax(axis=1), model.labels_)
    assert model.certificate_.certified


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"must_link": [(0, 99)]}, "must_link must hold row numbers"),
        ({"must_link": [(1, 1)]}, "pairs a row with itself"),
        ({"cannot_link": [0, 1]}, "cannot_link must be 6 whole numbers, the group of each row"),
        ({"must_link": [(0, 1)], "cannot_link": [(1, 0)]}, "both for and against"),
        ({"labels": [0, 1]}, "labels must be"),
        ({"must_link": [(0, 1)], "strength": 0}, "constraint_strength"),
    ],
)
def test_wrong_pairs_are_refused(told, says):
    with pytest.raises(symnmf.InputError, match=says):
        graphs.constrained(np.ones((6, 6)), **told)


@pytest.mark.parametrize("routed", [False, True], ids=["as they come", "routed"])
def test_what_fit_is_told_is_cut_into_folds_with_the_samples(routed):
    points, classes = load_digits(n_class=3, return_X_y=True)
    points, classes = points[:150], classes[:150]
    known = np.where(np.arange(150) % 5 == 0, classes, -1)
    groups = np.where(np.arange(150) % 7 == 0, classes, -1)
    seen = []

    class Watched(symnmf.SymNMF):
        def fit(self, X, y=None, *, labels=None, must_link=None, cannot_link=None):
            seen.append((len(X), labels, must_link))
            return super().fit(X, y, labels=labels, must_link=must_link, cannot_link=cannot_link)

    def score(model, X, y):
        return adjusted_rand_score(y, model.predict(X))

    told = {"labels": known, "must_link": groups}
    with sklearn.config_context(enable_metadata_routing=routed):
        model = Watched(3, random_state=0, n_init=1)
        if routed:
            model.set_fit_request(labels=True, must_link=True)
        scores = cross_val_score(model, points, classes, params=told, scoring=score, cv=3)
        search = GridSearchCV(model, {"n_clusters": [3, 4]}, scoring=score, cv=3)
        search.fit(points, classes, **told)
    assert scores.min() > 0.6
    assert search.best_params_ == {"n_clusters": 3}
    folds = list(KFold(3).split(points))
    for (count, labels, linked), (train, _) in zip(seen[:3], folds, strict=True):
        assert count == len(train)
        np.testing.assert_array_equal(labels, known[train])
        np.testing.assert_array_equal(linked, groups[train])


@pytest.mark.parametrize("normalize", [True, False])
def test_signed_graphs_fall_apart_along_their_negative_edges(normalize):
    rng = np.random.default_rng(2)
    G = nx.Graph()
    side = {f"n{i}": i % 2 for i in range(40)}
    names = list(side)
    for i, u in enumerate(names):
        for v in names[i + 1 :]:
            if rng.random() < 0.3:  # friends and foes are equally many: only signs tell
                G.add_edge(u, v, weight=1.0 if side[u] == side[v] else -1.0)
    with pytest.raises(symnmf.InputError, match="allow_negative=True"):
        symnmf.communities(G, 2)
    found = symnmf.communities(G, 2, allow_negative=True, normalize=normalize, random_state=0)
    assert sorted(map(len, found)) == [20, 20]
    assert all(len({side[node] for node in community}) == 1 for community in found)
    A = nx.to_scipy_sparse_array(G, dtype=float)
    by_matrix = symnmf.communities(A, 2, allow_negative=True, normalize=normalize, random_state=0)
    assert sorted(map(len, by_matrix)) == [20, 20]
