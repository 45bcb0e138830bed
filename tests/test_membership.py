"""Which communities a node is in: in several, in none, and by what."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from symnmf import communities, datasets, metrics
from symnmf.membership import background_strengths


def planted(n, k, degree, twice, noise, seed):
    """Groups of equal size; ``twice`` of the nodes are in one more; ``noise`` of the edges."""
    rng = np.random.default_rng(seed)
    members = np.zeros((n, k))
    members[rng.permutation(n), np.arange(n) % k] = 1
    for i in rng.choice(n, int(twice * n), replace=False):
        members[i, rng.choice(np.flatnonzero(members[i] == 0))] = 1
    shared = members @ members.T
    np.fill_diagonal(shared, 0)
    inside = (1 - noise) * degree * n / shared.sum()
    rate = 1 - (1 - noise * degree / n) * (1 - inside) ** shared
    upper = np.triu(rng.random((n, n)) < rate, 1)
    return sp.csr_array((upper | upper.T).astype(float)), [
        np.flatnonzero(column) for column in members.T
    ]


def test_planted_overlap_is_found():
    A, known = planted(500, 10, 20, 0.2, 0.2, seed=0)
    found = communities(A, 10, overlapping=True, random_state=0)
    assert metrics.overlapping_f1(known, found) > 0.99
    assert sum(len(nodes) for nodes in found) > 580  # a fifth of the nodes are in two


def test_nodes_between_the_groups_are_in_none():
    """Two dense groups, and nodes with as many edges that lead anywhere."""
    rng = np.random.default_rng(0)
    n, loose = 160, 20
    A = np.zeros((n, n))
    for group in (range(70), range(70, 140)):
        A[np.ix_(group, group)] = rng.random((70, 70)) < 0.4
    A[:, 140:] = rng.random((n, loose)) < 0.06
    A = np.triu(A, 1) + np.triu(A, 1).T
    found = communities(A, 2, overlapping=True, random_state=0)
    assert min(map(len, found)) >= 69
    assert set(range(140, 160)) <= set(found.outside)
    assert (found.labels[140:] == -1).all()
    assert (found.labels[:140] >= 0).sum() >= 138


def test_nodes_that_are_left_out_are_counted():
    G = nx.les_miserables_graph()
    with pytest.warns(symnmf.QualityWarning, match="of 77 nodes with edges are in no community"):
        found = communities(G, 6, overlapping=True, random_state=0)
    assert found.outside
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*are in no community")
        assert not communities(G, 6, overlapping=True, threshold=0.25, random_state=0).outside


def test_the_unit_of_the_weights_does_not_matter():
    A, _ = planted(150, 3, 15, 0.1, 0.2, seed=2)
    A.data *= np.random.default_rng(0).uniform(0.5, 2, A.nnz)
    A = sp.csr_array((A + A.T) / 2)
    U = communities(A, 3, random_state=0).result.U
    roots = np.sqrt(A.sum(axis=1))
    here = background_strengths(U, A, roots)
    there = background_strengths(U, A * 9.0, 3.0 * roots)
    np.testing.assert_allclose(here, there, rtol=1e-9)


@pytest.mark.parametrize(("ego", "least"), [("414", 0.5), ("686", 0.13), ("348", 0.31)])
def test_circles_of_egos(real_data, ego, least):
    """Mean of ten seeds: 0.54, 0.14 and 0.34; by shares of a quarter 0.45, 0.13 and 0.34."""
    data = datasets.load(f"ego_circles_{ego}", real_data)
    n = data.data.shape[0]
    k = len(data.communities)
    scores = [
        metrics.overlapping_nmi(
            data.communities, communities(data.data, k, overlapping=True, random_state=seed), n
        )
        for seed in range(2)
    ]
    assert np.mean(scores) > least
