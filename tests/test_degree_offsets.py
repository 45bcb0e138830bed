"""How much is added to degrees is judged by the factorization, on a contracted graph if large."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from symnmf.fit import pipeline
from symnmf.graphs import degree_offsets
from symnmf.graphs.degree_offsets import Coarse, choose_degree_offset
from symnmf.graphs.partitions import Partition
from symnmf.metrics import normalized_mutual_info
from symnmf.run import levels


def with_tails(groups: int, size: int, tails: int, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """Groups of a sparse block model, and cliques of six that hang on them by one edge each."""
    rng = np.random.default_rng(seed)
    n = groups * size
    y = np.arange(n) % groups
    chance = np.where(y[:, None] == y, 9.0 / size, 1.5 / n)
    upper = np.triu(rng.random((n, n)) < chance, 1)
    i, j = np.nonzero(upper)
    edges, labels, last = [np.column_stack([i, j])], [y], n
    for anchor in rng.choice(n, tails, replace=False):
        clique = last + np.arange(6)
        a, b = np.triu_indices(6, 1)
        edges += [np.column_stack([clique[a], clique[b]]), np.array([[anchor, clique[0]]])]
        labels.append(np.full(6, y[anchor]))
        last += 6
    i, j = np.concatenate(edges).T
    half = sp.coo_array((np.ones(len(i)), (i, j)), shape=(last, last))
    return sp.csr_array(half + half.T), np.concatenate(labels)


@pytest.fixture
def from_small_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract graphs of test size, to 150 rows or so."""
    monkeypatch.setattr(degree_offsets, "LOOKED_AT", 0)
    monkeypatch.setattr(levels, "COARSEST_ROWS", 300)
    monkeypatch.setattr(levels, "ROWS_EACH", 1)


def test_tails_become_the_clusters_without_an_offset_and_groups_with_the_chosen_one() -> None:
    A, y = with_tails(4, 150, 30, 0)
    assert choose_degree_offset(A, 4) > 0.0
    found = symnmf.communities(A, 4, random_state=0)
    assert normalized_mutual_info(y, found.labels) > 0.8
    options = {"degree_offset": 0.0, "assign_labels": "largest", "random_state": 0}
    with pytest.warns(symnmf.QualityWarning):
        collapsed = symnmf.communities(A, 4, **options)
    assert normalized_mutual_info(y, collapsed.labels) < 0.4


def test_a_looser_limit_for_a_collapse_would_accept_it(monkeypatch: pytest.MonkeyPatch) -> None:
    A, _ = with_tails(4, 150, 30, 0)
    monkeypatch.setattr(degree_offsets, "SPREAD", 0.2)
    assert choose_degree_offset(A, 4) == 0.0


def test_groups_without_tails_need_no_offset_and_a_stricter_limit_would_add_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [220, 120, 60])
    upper = np.triu(rng.random((400, 400)) < np.where(y[:, None] == y, 0.12, 0.02), 1)
    A = sp.csr_array((upper + upper.T).astype(float))
    assert choose_degree_offset(A, 3) == 0.0
    tried = []
    monkeypatch.setattr(degree_offsets, "SPREAD", 1.0)
    plain = Coarse.labelled

    def noted(self: Coarse, tau: float, clusters: int, **options: bool) -> object:
        tried.append(tau)
        return plain(self, tau, clusters, **options)

    monkeypatch.setattr(Coarse, "labelled", noted)
    choose_degree_offset(A, 3)
    assert tuple(tried) == degree_offsets.STEPS


@pytest.mark.usefixtures("from_small_on")
def test_a_contracted_graph_leads_to_the_same_groups() -> None:
    A, y = with_tails(4, 300, 60, 2)
    assert Coarse.of(A, 4).graph.shape[0] <= 300
    found = symnmf.communities(A, 4, random_state=0)
    assert normalized_mutual_info(y, found.labels) > 0.8


@pytest.mark.usefixtures("from_small_on")
def test_clusters_that_collapse_all_the_same_are_looked_for_with_a_larger_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A contracted graph hides tails, so that the offset chosen there may be too small."""
    A, y = with_tails(4, 300, 60, 2)
    assert choose_degree_offset(A, 4) == 0.0
    found = symnmf.communities(A, 4, assign_labels="largest", random_state=0)
    assert found.degree_offset > 0.0
    assert normalized_mutual_info(y, found.labels) > 0.7
    monkeypatch.setattr(pipeline, "COLLAPSED", 0.0)
    with pytest.warns(symnmf.QualityWarning):
        collapsed = symnmf.communities(A, 4, assign_labels="largest", random_state=0)
    assert normalized_mutual_info(y, collapsed.labels) < 0.4


@pytest.mark.usefixtures("from_small_on")
def test_partitions_of_a_contracted_graph_keep_their_modularity_and_sizes() -> None:
    A, _ = with_tails(3, 200, 20, 3)
    A = sp.csr_array(sp.block_diag([A, sp.csr_array((5, 5))]))  # five nodes without edges
    coarse = Coarse.of(A, 3)
    assert coarse.sizes.sum() == A.shape[0] - 5
    assert coarse.degrees.sum() == pytest.approx(A.sum())
    group = np.arange(A.shape[0])
    B = A
    while B.shape[0] > coarse.graph.shape[0]:
        step, count = levels.groups_of_neighbors(B)
        group, B = step[group], levels.contracted(B, step, count)
    labels = np.random.default_rng(0).integers(3, size=coarse.graph.shape[0])
    fine = Partition.of(A, labels[group], 3).modularity
    assert Partition.of(coarse.graph, labels, 3).modularity == pytest.approx(fine, abs=1e-12)


@pytest.mark.usefixtures("from_small_on")
@pytest.mark.parametrize("tau", [0.0, 0.5, 5.0])
def test_a_contracted_graph_is_the_normalized_one_restricted(tau: float) -> None:
    A, _ = with_tails(3, 200, 20, 4)
    coarse = Coarse.of(A, 3)
    X = symnmf.graphs.normalize(A, degree_offset=tau).toarray()
    scaled = coarse.labelled(tau, 3, by_factorization=False)[0].graph
    group = np.arange(A.shape[0])
    B = A
    while B.shape[0] > coarse.graph.shape[0]:
        step, count = levels.groups_of_neighbors(B)
        group, B = step[group], levels.contracted(B, step, count)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = np.sqrt(degrees + tau * degrees.mean())
    Q = np.zeros((len(roots), len(coarse.sizes)))
    Q[np.arange(len(roots)), group] = roots
    Q /= np.linalg.norm(Q, axis=0)
    np.testing.assert_allclose(scaled.toarray(), Q.T @ X @ Q, atol=1e-12)
