"""scikit-learn's own tests of ``SpectralClustering``, with ``SymNMF`` in its place."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.cluster.tests import test_spectral as theirs
from sklearn.cluster.tests.test_spectral import *  # noqa: F403
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import NearestNeighbors

from symnmf import SymNMF, graphs, metrics
from symnmf.errors import InputError
from symnmf.graphs.pairwise import KERNELS

#: Left out: it reads what scikit-learn's k-means prints.
del globals()["test_verbose"]


class InItsPlace(SymNMF):
    """SymNMF, with the parameters of eigenvectors that have no counterpart and change nothing.

    Its graph of nearest neighbours counts a point among its own neighbours, and ours does not.
    A graph that falls into parts is no trouble here, and is not warned of if there are as many
    clusters; scikit-learn's eigenvectors need it connected, so its test expects the warning.
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        eigen_solver=None,
        n_components=None,
        assign_labels="kmeans",
        affinity="rbf",
        n_neighbors=None,
        gamma=1.0,
        random_state=None,
    ):
        super().__init__(
            n_clusters,
            affinity=affinity,
            n_neighbors=n_neighbors,
            gamma=gamma,
            random_state=random_state,
        )
        self.eigen_solver = eigen_solver
        self.n_components = n_components
        self.assign_labels = assign_labels

    def _task(self, **known):
        names = ("n_clusters", "affinity", "n_neighbors", "gamma", "random_state")
        plain = SymNMF(**{name: getattr(self, name) for name in names})
        if self.affinity == "nearest_neighbors":
            plain.n_neighbors = 9 if self.n_neighbors is None else self.n_neighbors - 1
        return plain._task(**known)

    def fit(self, X, y=None, **told):
        super().fit(X, **told)
        parts = sp.csgraph.connected_components(self.affinity_matrix_)[0]
        if parts > 1:
            warnings.warn("Graph is not fully connected.", UserWarning, stacklevel=2)
        return self


@pytest.fixture(autouse=True)
def swapped(monkeypatch):
    monkeypatch.setattr(theirs, "SpectralClustering", InItsPlace)


@pytest.fixture
def global_random_seed():
    return 42  # scikit-learn's, where none is chosen


# What those tests do not look at ----------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "additive_chi2"])
def test_kernels_are_scikit_learns_with_their_parameters(name):
    X = np.random.default_rng(0).random((30, 4))
    told = {"gamma": 0.7, "degree": 2, "coef0": 0.5}
    model = SymNMF(3, affinity=name, n_init=1, random_state=0, **told).fit(X)
    K = pairwise_kernels(X, metric=name, filter_params=True, **told)
    np.fill_diagonal(K, 0)
    np.testing.assert_allclose(model.affinity_matrix_, graphs.normalize(K), rtol=1e-10)
    # a fitted sample keeps its row, and a new one beside it gets its cluster
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.transform(X[:3] + 1e-3).shape == (3, 3)


@pytest.mark.parametrize("dense", [False, True])
def test_given_distances_are_those_of_scikit_learn(dense):
    X, y = make_blobs(80, centers=3, cluster_std=0.6, random_state=3)
    finder = NearestNeighbors(n_neighbors=12).fit(X)
    D = finder.kneighbors_graph(X, mode="distance")
    if dense:
        D = np.linalg.norm(X[:, None] - X[None], axis=2)
    told = {"affinity": "precomputed_nearest_neighbors", "n_neighbors": 10, "random_state": 0}
    model = SymNMF(3, n_init=1, **told).fit(D)
    reference = SpectralClustering(3, **told)
    with pytest.warns(UserWarning, match="not fully connected"):
        reference.fit(D)
    A = sp.csr_array(reference.affinity_matrix_)
    A.setdiag(0)
    A.eliminate_zeros()
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), graphs.normalize(A).toarray())
    assert metrics.clustering_accuracy(y, model.labels_) > 0.95
    with pytest.raises(InputError, match="13 neighbors per sample"):
        SymNMF(3, affinity="precomputed_nearest_neighbors", n_neighbors=13).fit(
            finder.kneighbors_graph(X, mode="distance")
        )
