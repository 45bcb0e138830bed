"""Graphs against a plain dense transcription of their definitions, and every odd input."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from symnmf import SymNMF, graphs
from symnmf.errors import InputError
from symnmf.graphs import GraphWarning

KINDS = ["self-tuning", "nearest_neighbors", "rbf", "cosine"]

pytestmark = pytest.mark.filterwarnings("ignore::symnmf.graphs.GraphWarning")


def dense_distances(X):
    return cdist(X, X)  # SciPy sums squared differences, one pair at a time


def dense_neighbors(D, k):
    """True where one of the two is among the other's k nearest, ties to the lower index."""
    n = len(D)
    near = np.zeros((n, n), dtype=bool)
    for i in range(n):
        others = sorted((D[i, j], j) for j in range(n) if j != i)
        near[i, [j for _, j in others[:k]]] = True
    return near | near.T


def dense_normalize(A):
    degree = A.sum(axis=1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return scale[:, None] * A * scale


def dense_self_tuning(X, k=None):
    n = len(X)
    D = dense_distances(X)
    k = int(np.floor(np.log2(n))) + 1 if k is None else k
    near = dense_neighbors(D, k)
    sigma = np.array([np.sort(np.delete(D[i], i))[min(7, n - 1) - 1] for i in range(n)])
    for i in np.flatnonzero(sigma == 0):
        positive = D[i][near[i] & (D[i] > 0)]
        sigma[i] = positive.min() if positive.size else 1
    return dense_normalize(np.where(near, np.exp(-(D**2) / np.outer(sigma, sigma)), 0))


def assert_graph(A, n):
    assert isinstance(A, sp.csr_array)
    assert A.shape == (n, n)
    assert A.has_canonical_format
    assert np.isfinite(A.data).all()
    assert (A.data > 0).all()
    assert (A.diagonal() == 0).all()
    assert (A != A.T).nnz == 0


@st.composite
def points_with_copies(draw):
    """Points of which no two pairs are equally far apart, and copies of some of them."""
    n, d = draw(st.integers(2, 40)), draw(st.sampled_from([1, 2, 20]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, d))
    return X[rng.integers(0, n, size=n)] if draw(st.booleans()) else X


@settings(max_examples=40, deadline=None)
@given(points_with_copies(), st.integers(1, 12))
def test_graphs_are_their_definitions(X, k):
    D, most = dense_distances(X), min(k, len(X) - 1)
    A = graphs.build(X, n_neighbors=k)
    assert_graph(A, len(X))
    np.testing.assert_allclose(A.toarray(), dense_self_tuning(X, most), rtol=0, atol=1e-9)
    near = dense_neighbors(D, most)
    A = graphs.build(X, "nearest_neighbors", n_neighbors=k, normalize=False)
    np.testing.assert_array_equal(A.toarray(), near)
    B = graphs.build(X, "rbf", n_neighbors=k, gamma=0.1)
    expected = dense_normalize(np.where(near, np.exp(-0.1 * D**2), 0))
    np.testing.assert_allclose(B.toarray(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("d", [3, 40])
def test_float_data_far_from_the_origin(offset, d):
    """The dot-product formula alone has no correct digit left at this offset."""
    X = offset + np.random.default_rng(0).standard_normal((300, d)) * 1e-2
    X[50:60] = X[0]
    expected = dense_self_tuning(X)
    np.testing.assert_allclose(graphs.build(X).toarray(), expected, rtol=0, atol=1e-12)


def dense_cosine(X, k):
    norms = np.linalg.norm(X, axis=1)
    S = np.zeros((len(X), len(X)))
    for i in range(len(X)):
        for j in range(len(X)):
            if i != j and norms[i] and norms[j]:
                S[i, j] = X[i] @ X[j] / (norms[i] * norms[j])
    S[S < 1e-10] = 0
    return np.where(dense_neighbors(-S, k), S, 0)


def test_cosine_is_its_definition_and_keeps_zero_rows_isolated():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12))
    X[[3, 40]] = 0
    with pytest.warns(GraphWarning, match="2 of 80 rows of X are zero"):
        A = graphs.build(X, "cosine", n_neighbors=6, normalize=False)
    assert_graph(A, 80)
    np.testing.assert_allclose(A.toarray(), dense_cosine(X, 6), rtol=0, atol=1e-12)
    assert A[[3]].nnz == 0


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((1, 3)), "1 of 1 points are isolated"),
        (np.arange(4.0)[:, None], "7th neighbour, the scale of a point, exceeds the 3 other"),
    ],
)
def test_what_was_seen_is_said(X, message):
    with pytest.warns(GraphWarning, match=message) as seen:
        graphs.build(X, n_neighbors=3)
    assert {warning.filename for warning in seen} == {__file__}


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], "two-dimensional array, not of shape (2,)"),
        (np.zeros((0, 3)), "not of shape (0, 3)"),
        ([[1.0, np.nan], [0.0, 1.0]], "X has 1 NaN or infinite entries"),
        ([["a"], ["b"]], "X must be a matrix of numbers"),
        ([[1e200], [0.0]], "X has a largest entry of 1e+200"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_points_are_refused_in_one_sentence(kind, X, message):
    with pytest.raises(InputError, match=re.escape(message)):
        graphs.build(X, kind)


@pytest.mark.parametrize(
    ("kind", "argument"),
    [
        ("self-tuning", {"n_neighbors": 0}),
        ("self-tuning", {"sigma": 1.0}),
        ("rbf", {"gamma": -1.0}),
        ("rbf", {"n_neighbors": "every"}),
    ],
)
def test_bad_arguments_are_named(kind, argument):
    with pytest.raises(InputError, match=next(iter(argument))):
        graphs.build(np.eye(5), kind, **argument)


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (np.ones((2, 3)), "must be square, got shape 2 x 3"),
        (np.array([[0, -1.0], [-1, 0]]), "negative entries (the smallest is -1)"),
        (
            np.array([[0, 1.0], [2, 0]]),
            "not symmetric: entries differ",
        ),
        (np.array([[0, np.inf], [np.inf, 0]]), "has NaN or infinite entries"),
    ],
)
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_bad_affinities_are_refused(A, message, convert):
    for call in (
        lambda: graphs.build(convert(A), "precomputed"),
        lambda: graphs.normalize(convert(A)),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            call()


def test_new_points_are_compared_by_the_kernel_of_the_graph():
    """The width of a new point is the distance of its 7th neighbour, as that of a fitted one."""
    rng = np.random.default_rng(0)
    X, new = rng.standard_normal((120, 4)), rng.standard_normal((5, 4))
    model = SymNMF(2, n_neighbors=60, random_state=0).fit(X)
    found = model._fitted.similarities.compare(new)
    apart, D = cdist(new, X), np.sort(dense_distances(X), axis=1)
    near = apart <= np.sort(apart, axis=1)[:, 59:60]
    widths = np.outer(np.sort(apart, axis=1)[:, 6], D[:, 7])
    raw = np.where(near, np.exp(-(apart**2) / widths), 0)
    degrees = graphs.build(X, n_neighbors=60, normalize=False).sum(axis=1)
    expected = raw / np.sqrt(np.outer(raw.sum(axis=1), degrees))
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-9)


@pytest.mark.parametrize("affinity", ["self-tuning", "nearest_neighbors", "rbf"])
def test_a_point_far_from_all_others_is_in_no_cluster(affinity):
    X = np.random.default_rng(0).standard_normal((100, 3))
    model = SymNMF(2, affinity=affinity, random_state=0).fit(X)
    new = np.vstack([[1e3, 0.0, 0.0], X[0] + 1e-3])
    assert (model.predict(new) == [-1, model.labels_[0]]).all()
    assert not model.transform(new)[0].any()


def test_distances_passed_as_similarities_are_said():
    X = np.random.default_rng(0).random((40, 3))
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    with pytest.warns(GraphWarning, match="looks like distances"):
        SymNMF(2, affinity="precomputed", random_state=0).fit(distances)
    kernel = np.exp(-((distances / 0.3) ** 2)) - np.eye(40)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*looks like distances")
        SymNMF(2, affinity="precomputed", random_state=0).fit(kernel)
