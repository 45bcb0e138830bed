"""Clusters people would choose: spectral starts, regularised graphs, quality, new rows."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import symnmf
from extras import optional
from symnmf import InputError, QualityWarning, SymNMF, communities, factorize, graphs
from symnmf.graphs import GraphWarning
from symnmf.metrics import clustering_accuracy
from symnmf.run.multistart import Plan
from symnmf.run.settings import Settings

nx = optional("networkx")


def camps(seed=0, n=400, whiskers=25):
    """Two camps of uneven degrees, with paths that hang on single nodes."""
    rng = np.random.default_rng(seed)
    G = nx.Graph()
    label = {v: int(v >= n // 2) for v in range(n)}
    weight = rng.pareto(1.5, n) + 1
    for half in (range(n // 2), range(n // 2, n)):
        p = weight[list(half)] / weight[list(half)].sum()
        for u, v in rng.choice(list(half), size=(4 * n, 2), p=p):
            if u != v:
                G.add_edge(int(u), int(v))
    for u in rng.integers(n // 2, size=n // 2):
        G.add_edge(int(u), int(rng.integers(n // 2, n)))
    for _ in range(whiskers):
        last = int(rng.integers(n))
        for _ in range(5):
            label[len(label)] = label[last]
            G.add_edge(last, len(label) - 1)
            last = len(label) - 1
    return G, label


def test_a_spectral_start_ends_lower_than_random_ones(real_data):
    data = symnmf.datasets.load("orl", real_data)
    A = graphs.build(data.data)
    found = Plan(40, Settings.of(tol=1e-4), random_state=0).search(A)
    random = Plan(40, Settings.of(tol=1e-4), init="scaled-random", random_state=0).search(A)
    assert found.best.error < 0.3658 < random.best.error
    assert found.bound <= found.best.error
    assert factorize(A, 40, init="spectral", tol=1e-4).error < 0.3658


def test_more_starts_are_run_unless_the_first_has_nearly_all_there_is():
    clear = np.kron(np.eye(4), np.ones((15, 15))) + 0.01
    search = Plan(4, Settings.of(tol=1e-4), random_state=0).search(clear)
    assert len(search.finished) == 1
    rng = np.random.default_rng(0)
    edges = np.triu(rng.random((120, 120)) < 0.08, 1)
    A = graphs.normalize(sp.csr_array((edges + edges.T).astype(float)))
    search = Plan(10, Settings.of(tol=1e-4), n_init=3, random_state=0).search(A)
    explained = (1 - search.finished[0].error) / (1 - search.bound)
    assert 0.8 < explained < 0.95  # the first start leaves something to be found
    assert len(search.finished) == 3


def test_a_graph_with_whiskers_does_not_collapse():
    G, truth = camps()
    labels = [truth[v] for v in G]
    with pytest.warns(QualityWarning, match="one cluster holds"):
        collapsed = communities(G, 2, degree_offset=0.0, random_state=0)
    assert collapsed.quality.largest > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = communities(G, 2, random_state=0)
    assert found.degree_offset > 0
    assert clustering_accuracy(labels, found.labels) > 0.9
    assert found.quality.modularity == pytest.approx(
        nx.community.modularity(G, [set(c) for c in found], weight=None), abs=1e-9
    )


def test_components_are_counted_and_the_largest_can_be_had_alone():
    parts = [nx.complete_graph(9), nx.complete_graph(6), nx.complete_graph(4)]
    G = nx.disjoint_union_all(parts)
    G.add_node("alone")
    with pytest.warns(GraphWarning, match="3 components of two nodes or more but only 2 clusters"):
        communities(G, 2, random_state=0)
    A = graphs.from_graph(G)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = communities(G, 2, components="largest", random_state=0)
        model = SymNMF(2, affinity="precomputed", components="largest", random_state=0).fit(A)
    for labels in (found.labels, model.labels_):
        assert (labels[9:] == -1).all()
        assert (labels[:9] >= 0).all()
    assert len(found.outside) == 11


def test_new_digits_are_placed_as_well_as_fitted_ones():
    X, y = load_digits(return_X_y=True)
    old, new, _, classes = train_test_split(X, y, test_size=0.2, random_state=0)
    model = SymNMF(10, random_state=0).fit(old)
    placed = clustering_accuracy(classes, model.predict(new))
    whole = SymNMF(10, random_state=0).fit(np.vstack([old, new])).labels_[len(old) :]
    assert placed >= clustering_accuracy(classes, whole) - 0.02
    np.testing.assert_array_equal(model.predict(old), model.labels_)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(new[:9]), model.predict(new[:9])
    )


def test_a_new_node_goes_where_its_edges_lead():
    G = nx.karate_club_graph()
    found = communities(G, 2, random_state=0, weight=None)
    for node in (0, 33):
        assert found.predict(list(G[node])) == found.labels[list(G).index(node)]
    assert found.predict([]) == -1
    with pytest.raises(InputError, match="edges names 'nobody'"):
        found.predict(["nobody"])


@pytest.mark.parametrize("offset", [0.0, 0.7])
def test_a_new_node_with_the_edges_of_an_old_one_has_its_row(offset):
    """Of rank 3 after any scaling of rows and columns, so the fit is exact and the rows known."""
    B = np.kron(np.eye(3), np.ones((8, 1))) * np.random.default_rng(0).uniform(0.3, 3, (24, 1))
    W = B @ B.T
    found = communities(W, 3, degree_offset=offset, tol=1e-8, random_state=0)
    assert found.result.error < 1e-12
    for node in (0, 9, 23):
        row = found.transform({other: W[node, other] for other in np.flatnonzero(W[node])})
        np.testing.assert_allclose(row, found.result.U[node], rtol=1e-4, atol=1e-6)
        strong = found.transform({other: 5 * W[node, other] for other in range(24)})
        if offset == 0:  # a node with the same neighbours and more of each edge
            np.testing.assert_allclose(strong, row * np.sqrt(5), rtol=1e-4, atol=1e-6)
    model = SymNMF(3, affinity="precomputed", normalize=True, degree_offset=offset, tol=1e-8)
    model.set_params(random_state=0).fit(W)
    new = np.vstack([W[4], 1.5 * W[4]])
    rows = [found.transform(dict(enumerate(row))) for row in new]
    np.testing.assert_allclose(model.transform(new), rows, rtol=1e-4, atol=1e-6)


def test_a_frame_keeps_its_index_and_its_order_matters():
    pd = pytest.importorskip("pandas")
    names = [f"n{v}" for v in range(34)]
    A = nx.to_numpy_array(nx.karate_club_graph())
    frame = pd.DataFrame(A, names, names)
    assert set().union(*communities(frame, 2, random_state=0)) == set(names)
    turned = frame[names[::-1]]
    with pytest.raises(InputError, match="same names in its index and its columns"):
        communities(turned, 2)
    with pytest.raises(InputError, match="same names in its index and its columns"):
        SymNMF(2, affinity="precomputed").fit(turned)
