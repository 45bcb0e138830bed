"""SymNMF as a scikit-learn clusterer: its contract, its attributes and the quality of labels."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from symnmf import InputError, factorize, graphs
from symnmf.estimator import SymNMF
from symnmf.metrics import clustering_accuracy

#: SpectralClustering(affinity="precomputed") fails these too.
NOT_FOR_PRECOMPUTED = {
    "check_clustering": "it passes points of shape (50, 2) where an affinity matrix is needed",
}


def _expected_failures(estimator):
    return NOT_FOR_PRECOMPUTED if estimator.affinity == "precomputed" else {}


@pytest.mark.filterwarnings("ignore::symnmf.graphs.GraphWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [SymNMF(), SymNMF(affinity="precomputed")], expected_failed_checks=_expected_failures
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    # wide enough to overlap, so that the graph is connected and the starts end differently
    return make_blobs(90, centers=4, n_features=3, cluster_std=2.5, random_state=1)


@pytest.fixture(scope="module")
def affinity(blobs):
    return graphs.build(blobs[0], "self-tuning")


@pytest.fixture(scope="module")
def fitted(blobs):
    return SymNMF(4, random_state=0).fit(blobs[0])


def test_attributes_are_what_they_say(fitted, blobs, affinity):
    U, A = fitted.embedding_, affinity.toarray()
    np.testing.assert_array_equal(fitted.affinity_matrix_.toarray(), A)
    assert U.shape == (90, 4)
    assert U.min() >= 0
    np.testing.assert_array_equal(fitted.labels_, U.argmax(axis=1))
    inside = (fitted.strength_ > 1) | (fitted.labels_[:, None] == np.arange(4))
    np.testing.assert_array_equal(fitted.membership_ > 0, inside & (U > 0))
    shares = U / U.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.membership_, np.where(inside, shares, 0))
    error = np.linalg.norm(A - U @ U.T) ** 2 / np.linalg.norm(A) ** 2
    assert fitted.reconstruction_err_ == pytest.approx(error, rel=1e-9)
    assert fitted.history_["error"][-1] == fitted.reconstruction_err_
    assert fitted.history_["iteration"][-1] == fitted.n_iter_ > 0
    assert fitted.status_ == "converged"
    assert fitted.certificate_.certified
    assert fitted.certificate_.stationarity <= 1e-4
    assert fitted.n_features_in_ == 3
    assert not hasattr(fitted, "feature_names_in_")


def test_fit_predict_and_fit_transform_agree_with_fit(fitted, blobs):
    model = clone(fitted)
    np.testing.assert_array_equal(model.fit_predict(blobs[0], None), fitted.labels_)
    np.testing.assert_array_equal(model.fit_transform(blobs[0]), fitted.embedding_)


def test_the_best_start_is_kept_and_the_first_is_that_of_factorize(affinity):
    single = factorize(affinity, 4, init="scaled-random", tol=1e-4, random_state=3)
    options = {"normalize": False, "init": "scaled-random", "random_state": 3}
    errors = [
        SymNMF(4, affinity="precomputed", n_init=count, **options).fit(affinity).reconstruction_err_
        for count in (1, 2, 6)
    ]
    assert errors[0] == single.error
    assert errors == sorted(errors, reverse=True)
    assert errors[2] < errors[0]  # this seed's first start is not the best of six


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_same_seed_gives_the_same_bits_whatever_n_jobs(fitted, blobs, n_jobs):
    again = SymNMF(4, random_state=0, n_jobs=n_jobs).fit(blobs[0])
    np.testing.assert_array_equal(again.embedding_, fitted.embedding_)
    one, other = (
        SymNMF(4, init="scaled-random", random_state=seed, n_jobs=n_jobs).fit(blobs[0]).embedding_
        for seed in (0, 1)
    )
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "least"), [("orl", 0.72), ("football", 0.85)], ids=["orl", "football"]
)
def test_quality_on_real_data(real_data, name, least):
    from symnmf import datasets

    data = datasets.load(name, real_data)
    k = np.unique(data.target).size
    if data.kind == "graph":
        model, X = SymNMF(k, affinity="precomputed", random_state=0), graphs.normalize(data.data)
    else:
        model, X = SymNMF(k, n_init=2, random_state=0), data.data
    assert clustering_accuracy(data.target, model.fit_predict(X)) >= least
    shuffled = np.random.default_rng(0).permutation(model.labels_)
    assert clustering_accuracy(data.target, shuffled) < least / 2


@pytest.mark.parametrize("kind", ["self-tuning", "nearest_neighbors", "rbf", "cosine"])
def test_every_affinity_finds_separate_blobs(kind):
    # apart in direction as well as in distance, for the cosine
    X, y = make_blobs(60, centers=1 + 8 * np.eye(3, 5), cluster_std=0.5, random_state=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the blobs are components, as many as the clusters
        labels = SymNMF(3, affinity=kind, random_state=0).fit_predict(X)
    assert adjusted_rand_score(y, labels) == 1


def _reader(path, **changes):
    settings = {"n_clusters": 4, "affinity": "precomputed", "n_init": 3, "tol": 0, "max_iter": 60}
    settings["init"] = "scaled-random"
    return SymNMF(**{**settings, "checkpoint": path, **changes})


@pytest.mark.parametrize("seed", [5, None])
def test_a_fit_that_ended_early_goes_on_bit_for_bit(affinity, tmp_path, seed):
    path = tmp_path / "fit.npz"
    _reader(path, max_iter=20, random_state=seed).fit(affinity)
    resumed = _reader(path, random_state=seed).fit(affinity)
    assert resumed.n_iter_ == 60
    if seed is not None:
        straight = _reader(None, random_state=seed).fit(affinity)
        np.testing.assert_array_equal(resumed.embedding_, straight.embedding_)
    again = _reader(path, random_state=seed).fit(affinity)
    np.testing.assert_array_equal(again.embedding_, resumed.embedding_)
    more = _reader(path, random_state=seed, n_init=6).fit(affinity)
    assert more.reconstruction_err_ <= resumed.reconstruction_err_


def test_a_checkpoint_of_another_fit_is_refused(affinity, tmp_path):
    path = tmp_path / "fit.npz"
    _reader(path, max_iter=2, random_state=5).fit(affinity)
    for other, X, said in (
        ({"random_state": 6}, affinity, r"random_state 6 \(it has 5\)"),
        ({"random_state": 5, "n_clusters": 3}, affinity, r"rank 3 \(it has 4\)"),
        ({"random_state": 5, "init": "random"}, affinity, "init 'random'"),
        ({"random_state": 5}, 2 * affinity, "this X;"),
    ):
        with pytest.raises(InputError, match=said):
            _reader(path, **other).fit(X)


def test_clone_pickle_and_set_params(fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.membership_, fitted.membership_)
    assert loaded.certificate_.verdict == fitted.certificate_.verdict
    with pytest.raises(ValueError, match="Invalid parameter 'eigen_solver'"):
        SymNMF().set_params(eigen_solver="arpack")


def test_in_a_grid_search_the_rows_and_columns_are_cut_alike(affinity, blobs):
    kept = np.arange(0, 90, 2)

    def score(model, X, y):
        assert model.affinity_matrix_.shape == (45, 45)
        return adjusted_rand_score(y, model.labels_)

    search = GridSearchCV(
        SymNMF(affinity="precomputed", random_state=0, n_init=1),
        {"n_clusters": [2, 4]},
        scoring=score,
        cv=[(kept, kept)],
        refit=False,
    ).fit(affinity, blobs[1])
    cut = affinity[kept][:, kept]
    expected = [
        adjusted_rand_score(
            blobs[1][kept],
            SymNMF(k, affinity="precomputed", random_state=0, n_init=1).fit_predict(cut),
        )
        for k in (2, 4)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1 or 'auto', got 0"),
        ({"n_clusters": 91}, "n_clusters=91 is more than the 90 samples of X"),
        ({"n_init": 0}, "n_init must be a whole number of at least 1, got 0"),
        ({"affinity": "selftuning"}, "did you mean 'self-tuning'"),
        ({"affinity": "precomputed"}, "X must be square, got shape 90 x 3"),
        ({"solver": "symhal"}, "did you mean 'symhals'"),
        ({"init": "randm"}, "did you mean 'random'"),
        ({"tol": -1}, "tol must be a number of at least 0"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"init": np.ones((90, 3))}, "init must have shape 90 x 4"),
        ({"checkpoint": "nowhere/fit.npz"}, "does not exist; create it first"),
        ({"checkpoint": "."}, "it is a folder"),
        ({"checkpoint": 3}, "checkpoint must be the path of a file"),
        ({"verbose": "a"}, "verbose must be a whole number of at least 0 or True or False, got"),
        ({"affinity": lambda a, b, c: a}, "affinity is called as affinity(X) and must return the"),
        ({"affinity": lambda X: X.T @ X}, "the 90 x 90 matrix of affinities of the 90 rows of X"),
        ({"affinity": lambda X: X, "n_neighbors": 5}, "called as affinity(X, n_neighbors=5)"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_errors_say_what_to_do(blobs, changes, said):
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        SymNMF(**{"n_clusters": 4, **changes}).fit(blobs[0])
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_entries_that_are_no_numbers_are_refused_in_one_sentence(make, value):
    X = np.random.default_rng(0).random((30, 4))
    X[7, 2] = value
    with pytest.raises(InputError, match="X has NaN or infinite entries; fill them"):
        SymNMF(2).fit(make(X))
