"""Hypergraphs of mixed sizes: the class, the likelihood, which sizes count, communities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import symnmf
from symnmf import InputError
from symnmf.graphs import GraphWarning, Hypergraph
from symnmf.state import Point


def drawn(seed, n=25, count=60, most=5):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, most + 1, count)
    weights = rng.integers(1, 4, count).astype(float)
    return Hypergraph([rng.choice(n, s, replace=False).tolist() for s in sizes], weights)


def planted(seed, *, n=200, k=4, pairs=0, groups=500, sizes=(3, 4), pairs_inside=False):
    """Pairs at random (or inside groups), and larger hyperedges inside groups (or at random)."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(k), n // k)
    own = [np.flatnonzero(truth == group) for group in range(k)]

    def draw(size, inside):
        return tuple(rng.choice(own[rng.integers(k)] if inside else n, size, replace=False))

    drawn = [draw(2, pairs_inside) for _ in range(pairs)]
    drawn += [draw(rng.choice(sizes), not pairs_inside) for _ in range(groups)]
    return Hypergraph(drawn, nodes=range(n)), truth


def by_definition(H, U, prior):
    value = 0.5 * np.sum(U.sum(axis=0) ** 2)
    degrees = np.zeros(len(U))
    for e, w in zip(H, H.weights, strict=True):
        rows = [H.names.index(node) for node in e]
        value -= w * np.log(sum(U[i] @ U[j] for i, j in itertools.combinations(rows, 2)))
        degrees[rows] += w
    return value - np.sum(prior * degrees[:, None] / U.shape[1] * np.log(U))


@pytest.fixture(scope="module")
def high_school(real_data):
    path = real_data / "hyper_high_school.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    stored = np.load(path)
    names = [f"pupil {i}" for i in range(int(stored["n"]))]
    return Hypergraph.from_arrays(stored["members"], stored["indptr"], names=names), stored["y"]


# --- the class


def test_names_weights_and_sizes_are_kept():
    H = Hypergraph([("b", "a"), ("a", "c", "d", "a"), ["e"]], weights=[1, 2, 3])
    assert H.names == ["b", "a", "c", "d", "e"]
    assert list(H) == [("b", "a"), ("a", "c", "d"), ("e",)]
    assert H.sizes.tolist() == [2, 3, 1]
    assert repr(H) == "Hypergraph(5 nodes, 3 hyperedges of 1 to 3 nodes)"
    assert (len(H), H.shape) == (3, (5, 3))
    assert list(H.of_sizes(3)) == [("a", "c", "d")]
    assert H.of_sizes(3).names == H.names
    same = Hypergraph.from_arrays(H.members, H.incidence.indptr, H.weights, names=H.names)
    assert list(same) == list(H)
    assert Hypergraph([(1, 2)], nodes=[3, 2, 1]).names == [3, 2, 1]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Hypergraph([]), "hyperedges is empty"),
        (lambda: Hypergraph(["ab"]), "must be collections of nodes, but number 0 is str"),
        (lambda: Hypergraph([(1, [2])]), "hyperedge number 0 is not usable"),
        (lambda: Hypergraph([(1, 2)], weights=[1, 2]), "one number for each of the 1 hyperedges"),
        (lambda: Hypergraph([(1, 2)], weights=[-1]), "finite and at least"),
        (lambda: Hypergraph([(1, 2)], nodes=[1]), "holds 2, which nodes does not list"),
        (lambda: Hypergraph.from_arrays([0, 1], [0, 3]), "the number of members, 2"),
        (lambda: Hypergraph.from_arrays([0, 0], [0, 2]), "lists a node twice"),
        (lambda: Hypergraph.from_arrays([0.5, 1], [0, 2]), "whole numbers"),
        (lambda: Hypergraph([(1, 2)]).of_sizes(3), "no hyperedge has"),
        (lambda: Hypergraph([(1, 2)]).problem(prior=-1), "prior must be"),
        (lambda: Hypergraph([(1, 2)]).problem(prior=None), "prior must be"),
        (lambda: Hypergraph([(1,)]).problem(), "no hyperedge has two nodes"),
    ],
)
def test_what_is_no_hypergraph_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


# --- the likelihood


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.5]))
def test_value_and_gradient_are_those_of_the_formula(seed, prior):
    H = drawn(seed, count=30)
    f = H.problem(prior=prior).objective
    U = np.random.default_rng(seed).random((len(H.names), 3)) + 0.1
    point = Point(f.ops, U)
    assert f.value(point) == pytest.approx(by_definition(H, U, prior), rel=1e-10)
    slope = f.expected(U) - point.product(f)
    ahead, behind = U.copy(), U.copy()
    ahead[3, 1] += 1e-6
    behind[3, 1] -= 1e-6
    change = by_definition(H, ahead, prior) - by_definition(H, behind, prior)
    assert change / 2e-6 == pytest.approx(slope[3, 1], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("prior", [0.0, 0.05])
def test_the_likelihood_never_falls_and_the_end_is_certified(prior, tmp_path):
    H, _ = planted(1, n=60, k=3, groups=300)
    problem = H.problem(prior=prior)
    options = {"random_state": 0, "tol": 1e-3, "max_iter": 5000}
    result = symnmf.factorize(problem, 3, **options)
    assert (result.status, result.solver) == ("converged", "em")
    assert (np.diff(result.history["objective"]) <= 1e-10).all()
    assert result.certificate(tol=1e-3).certified
    path = tmp_path / "run.npz"
    with pytest.warns(UserWarning, match="did not converge"):
        symnmf.factorize(problem, 3, checkpoint=path, **{**options, "max_iter": 5})
    again = symnmf.factorize(problem, 3, checkpoint=path, **options)
    np.testing.assert_array_equal(again.U, result.U)
    with pytest.raises(InputError, match="does not match this X"):
        symnmf.factorize(H.problem(prior=0.3), 3, checkpoint=path, **options)


# --- communities


def test_high_school_classes_are_found(high_school):
    """ARI .986 of the clique graph, .993 refined."""
    H, truth = high_school
    for loss, least in (("frobenius", 0.985), ("poisson", 0.992)):
        found = symnmf.communities(H, 9, loss=loss, random_state=0)
        assert adjusted_rand_score(truth, found.labels) >= least
        assert found.names[0] == "pupil 0"
        assert found.certificate.certified
    triples = symnmf.communities(H, 9, order=3, n_init=1, tol=0.01, random_state=0)
    assert len(triples.names) == 327


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_found_where_only_larger_hyperedges_have_them(seed):
    H, truth = planted(seed, pairs=2500, groups=400)
    with pytest.warns(GraphWarning, match="hyperedges of two nodes were left out"):
        found = symnmf.communities(H, 4, random_state=0)
    assert normalized_mutual_info_score(truth, found.labels) > 0.95
    together = symnmf.communities(H.clique_graph(), 4, random_state=0)
    assert normalized_mutual_info_score(truth, together.labels) < 0.9


def test_random_hypergraphs_are_no_more_than_chance():
    """Their clique graphs have far more triangles than random graphs, and no groups."""
    rng = np.random.default_rng(0)
    H = Hypergraph([rng.choice(200, 5, replace=False) for _ in range(400)])
    verdict = symnmf.communities(H, 4, random_state=0).quality.verdict
    assert "random hypergraphs" in verdict.reason
    assert verdict.word == "no more than chance"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "bernoulli"}, "loss=bernoulli cannot be combined with a hypergraph"),
        ({"mask": np.ones((25, 25), bool)}, "mask cannot be combined"),
        ({"allow_negative": True}, "allow_negative cannot be combined"),
        ({"n_clusters": 26}, "more than the"),
    ],
)
def test_what_does_not_go_with_a_hypergraph_is_refused(options, said):
    H = drawn(0)
    with pytest.raises(InputError, match=said):
        symnmf.communities(H, **{"n_clusters": 2, **options})
