"""Several layers of the same rows: one objective, one U, and how much each layer counts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import symnmf
from symnmf.state import Point
from symnmf.storage import LowRank
from symnmf.storage.layers import Layers


def three(seed=0, n=25):
    rng = np.random.default_rng(seed)
    A, S = rng.random((2, n, n))
    S = np.where(S + S.T < 0.6, S + S.T, 0.0)
    B = rng.random((n, 2))
    return [A + A.T, sp.csr_array(S), LowRank(B)], [A + A.T, S, B @ B.T]


def planted(n=300, k=3, inside=0.075, between=0.025, layers=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    rates = np.where(y[:, None] == y, inside, between)
    drawn = [np.triu(rng.random((n, n)) < rates, 1) for _ in range(layers)]
    return [sp.csr_array((upper | upper.T).astype(float)) for upper in drawn], y


@pytest.mark.parametrize("kinds", [(0, 1), (0, 2), (1, 2), (0, 1, 2), (1, 1)])
def test_the_misfit_is_the_sum_over_layers_whatever_their_storage(kinds):
    stored, arrays = three()
    weights = np.arange(1.0, len(kinds) + 1)
    problem = symnmf.Problem([stored[i] for i in kinds], layer_weights=weights)
    f, shares = problem.objective, weights / weights.sum()
    U = np.random.default_rng(1).random((25, 3))
    point = Point(f.ops, U.copy())
    misfits = [np.sum((arrays[i] - U @ U.T) ** 2) for i in kinds]
    assert f.value(point) == pytest.approx(0.5 * shares @ misfits)
    slope = sum(s * 2 * (U @ (U.T @ U) - arrays[i] @ U) for s, i in zip(shares, kinds, strict=True))
    np.testing.assert_allclose(2 * (U @ point.gram - point.product(f)), slope, atol=1e-10)
    sizes = [np.sum(arrays[i] ** 2) for i in kinds]
    np.testing.assert_allclose(f.storage.errors(U), np.divide(misfits, sizes))
    result = symnmf.factorize(problem, 3, random_state=0, tol=1e-5)
    assert result.status == "converged"
    assert isinstance(problem.X, Layers)
    own = problem.X.errors(result.U)
    assert result.error == pytest.approx(shares * sizes @ own / (shares @ sizes))
    assert result.certificate(tol=1e-4).stationarity < 1e-4


def test_layers_without_noise_leave_no_error():
    B = np.random.default_rng(0).random((30, 3))
    X = B @ B.T
    result = symnmf.factorize([X, LowRank(B)], 3, random_state=0, tol=1e-10)
    assert result.error < 1e-13


def test_a_mask_for_each_layer_hides_what_is_wrong_there():
    rng = np.random.default_rng(0)
    B = rng.random((30, 3))
    X = B @ B.T
    masks, layers = [], []
    for _ in range(2):
        hidden = np.triu(rng.random((30, 30)) < 0.3, 1)
        hidden |= hidden.T
        layers.append(np.where(hidden, 7.0, X))
        masks.append(~hidden)
    told = {"random_state": 0, "tol": 1e-8, "max_iter": 3000}
    result = symnmf.factorize(symnmf.Problem(layers, mask=masks), 3, **told)
    np.testing.assert_allclose(result.U @ result.U.T, X, atol=1e-3)
    absent = [np.where(mask, X, np.nan) for mask in masks]
    again = symnmf.factorize(symnmf.Problem(absent, missing="nan"), 3, **told)
    np.testing.assert_allclose(again.U @ again.U.T, X, atol=1e-3)


@pytest.mark.filterwarnings("ignore::symnmf.QualityWarning")
def test_two_layers_find_what_neither_finds():
    # the threshold of two groups: (c_in - c_out)^2 above 2 (c_in + c_out), c the mean degrees
    n, inside, between = 600, 67.0, 53.0
    alone = (inside - between) ** 2 / (2 * (inside + between))
    assert alone < 0.9 < 1.5 < 2 * alone
    layers, y = planted(n, 2, inside / n, between / n, seed=0)
    for layer in layers:
        assert adjusted_rand_score(y, symnmf.communities(layer, 2, random_state=0).labels) < 0.15
    found = symnmf.communities(layers, 2, layer_weights=None, random_state=0)
    assert adjusted_rand_score(y, found.labels) > 0.35


def test_graphs_are_matched_by_the_names_of_their_nodes():
    networkx = pytest.importorskip("networkx")
    layers, _ = planted(n=90, inside=0.3, between=0.05)
    first = networkx.from_scipy_sparse_array(layers[0])
    second = networkx.Graph()
    second.add_nodes_from(reversed(range(90)))
    second.add_edges_from(networkx.from_scipy_sparse_array(layers[1]).edges)
    told = {"layer_weights": [1, 2], "random_state": 0}
    found = symnmf.communities([first, second], 3, **told)
    np.testing.assert_array_equal(found.labels, symnmf.communities(layers, 3, **told).labels)
    second.remove_node(3)
    with pytest.raises(symnmf.InputError, match="all graphs with the same nodes"):
        symnmf.communities([first, second], 3)


def test_the_estimator_takes_several_affinities():
    layers, y = planted(inside=0.12, between=0.02)
    model = symnmf.SymNMF(3, affinity="precomputed", normalize=True, random_state=0).fit(layers)
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.parametrize(
    ("X", "told", "message"),
    [
        ([np.eye(3), np.eye(4)], {}, "the same rows"),
        ([np.eye(3), np.eye(3)], {"layer_weights": [1.0]}, "one number for each of the 2"),
        ([np.eye(3), np.eye(3)], {"layer_weights": [0.0, 0.0]}, "one of them above 0"),
        ([np.eye(3), np.eye(3)], {"weights": np.ones((3, 3))}, "layer_weights"),
        ([np.eye(3), np.eye(3)], {"mask": [None]}, "a list of 2"),
        (np.eye(3), {"layer_weights": [1.0]}, "X is one matrix"),
    ],
)
def test_what_is_refused(X, told, message):
    with pytest.raises(symnmf.InputError, match=message):
        symnmf.Problem(X, **told)
