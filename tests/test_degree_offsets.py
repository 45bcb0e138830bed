"""How much is added to degrees is judged by the factorization, on a contracted graph if large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

import symnmf
from symnmf.cluster import Pipeline, pipeline
from symnmf.graphs import contraction, degree_offsets
from symnmf.graphs.degree_offsets import OFFSETS, Coarse, Scaled, choose_degree_offset
from symnmf.graphs.partitions import Partition


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
    monkeypatch.setattr(contraction, "COARSEST_ROWS", 300)
    monkeypatch.setattr(contraction, "ROWS_EACH", 1)


def test_tails_become_the_clusters_without_an_offset_and_groups_with_the_chosen_one() -> None:
    A, y = with_tails(4, 150, 30, 0)
    assert choose_degree_offset(A, 4) > 0.0
    found = symnmf.communities(A, 4, random_state=0)
    assert normalized_mutual_info_score(y, found.labels) > 0.8
    options = {"degree_offset": 0.0, "assign_labels": "largest", "random_state": 0}
    with pytest.warns(symnmf.QualityWarning):
        collapsed = symnmf.communities(A, 4, **options)
    assert normalized_mutual_info_score(y, collapsed.labels) < 0.4


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

    def noted(self: Coarse, tau: float, clusters: int) -> object:
        tried.append(tau)
        return plain(self, tau, clusters)

    monkeypatch.setattr(Coarse, "labelled", noted)
    choose_degree_offset(A, 3)
    assert tuple(tried) == OFFSETS


@pytest.mark.usefixtures("from_small_on")
def test_a_contracted_graph_leads_to_the_same_groups() -> None:
    A, y = with_tails(4, 300, 60, 2)
    assert Coarse.of(A, 4).graph.shape[0] <= 300
    found = symnmf.communities(A, 4, random_state=0)
    assert normalized_mutual_info_score(y, found.labels) > 0.8


@pytest.mark.usefixtures("from_small_on")
def test_clusters_that_collapse_all_the_same_are_looked_for_with_a_larger_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A contracted graph hides tails, so that the offset chosen there may be too small."""
    A, y = with_tails(4, 300, 60, 2)
    assert choose_degree_offset(A, 4) == 0.0
    found = symnmf.communities(A, 4, assign_labels="largest", random_state=0)
    assert found.degree_offset > 0.0
    assert normalized_mutual_info_score(y, found.labels) > 0.7
    monkeypatch.setattr(pipeline, "COLLAPSED", 0.0)
    with pytest.warns(symnmf.QualityWarning):
        collapsed = symnmf.communities(A, 4, assign_labels="largest", random_state=0)
    assert normalized_mutual_info_score(y, collapsed.labels) < 0.4


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
        step, count = contraction.groups_of_neighbors(B)
        group, B = step[group], contraction.contracted(B, step, count)
    assert coarse.entries == A.nnz
    labels = np.random.default_rng(0).integers(3, size=coarse.graph.shape[0])
    fine = Partition.of(A, labels[group], 3).modularity
    assert Partition.of(coarse.graph, labels, 3).modularity == pytest.approx(fine, abs=1e-12)


@pytest.mark.usefixtures("from_small_on")
@pytest.mark.parametrize("tau", [0.0, 0.5, 5.0])
def test_a_contracted_graph_is_the_normalized_one_restricted(tau: float) -> None:
    A, _ = with_tails(3, 200, 20, 4)
    coarse = Coarse.of(A, 3)
    X = symnmf.graphs.normalize(A, degree_offset=tau).toarray()
    scaled = coarse.labelled(tau, 3)[0].graph
    group = np.arange(A.shape[0])
    B = A
    while B.shape[0] > coarse.graph.shape[0]:
        step, count = contraction.groups_of_neighbors(B)
        group, B = step[group], contraction.contracted(B, step, count)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = np.sqrt(degrees + tau * degrees.mean())
    Q = np.zeros((len(roots), len(coarse.sizes)))
    Q[np.arange(len(roots)), group] = roots
    Q /= np.linalg.norm(Q, axis=0)
    np.testing.assert_allclose(scaled.toarray(), Q.T @ X @ Q, atol=1e-12)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Let gains and sizes of quick labels be what a test says; returns the taus tried."""

    def script(gain: dict[float, float], sizes: tuple[int, ...] = (999, 1)) -> list[float]:
        tried: list[float] = []

        def labelled(self: Coarse, tau: float, clusters: int) -> tuple[Scaled, np.ndarray]:
            tried.append(tau)
            found = gain.get(tau, 0.0)
            return Scaled(tau, None, None, 0.5, found), np.repeat(range(len(sizes)), sizes)

        monkeypatch.setattr(Coarse, "labelled", labelled)
        return tried

    return script


def ring(n: int) -> sp.csr_array:
    """Every node has two neighbours."""
    here, there = np.arange(n), (np.arange(n) + 1) % n
    half = sp.coo_array((np.ones(n), (here, there)), shape=(n, n))
    return sp.csr_array(half + half.T)


@pytest.mark.parametrize(("sizes", "collapsed"), [((895, 105), True), ((890, 110), False)])
def test_clusters_have_collapsed_below_seven_tenths_of_their_number(
    scripted: Callable[..., list[float]], sizes: tuple[int, ...], collapsed: bool
) -> None:
    tried = scripted({0.0: 0.1, 1.0: 0.5}, sizes)
    assert choose_degree_offset(ring(1000), 2) == (1.0 if collapsed else 0.0)
    assert tried == (list(OFFSETS) if collapsed else [0.0])


def test_truly_unequal_groups_do_not_get_an_offset_that_splits_the_largest() -> None:
    """With tau = 20 a large group is split, and the modularity is higher."""
    y = np.repeat(np.arange(4), [500, 200, 70, 30])
    rng = np.random.default_rng(0)
    rng.random((800, 800))
    inside = 0.6 * np.array([0.05, 0.05, 0.2, 0.4])
    upper = np.triu(rng.random((800, 800)) < np.where(y[:, None] == y, inside[y], 0.008), 1)
    A = sp.csr_array((upper + upper.T).astype(float))
    coarse = Coarse.of(A, 4)
    (plain, labels), (split, _) = (coarse.labelled(tau, 4) for tau in (0.0, 20.0))
    assert coarse.effective_number(labels) < 0.7 * 4
    assert split.modularity > plain.modularity + 0.01  # type: ignore[operator]
    assert choose_degree_offset(A, 4) == 0.0
    assert normalized_mutual_info_score(y, symnmf.communities(A, 4, random_state=0).labels) > 0.8


def test_components_without_an_offset_are_looked_at_only_if_they_are_no_more_than_clusters(
    scripted: Callable[..., list[float]],
) -> None:
    A = sp.csr_array(sp.block_diag([ring(250)] * 4 + [sp.csr_array((9, 9))]))
    tried = scripted({}, (1003, 3, 3))
    choose_degree_offset(A, 3)
    assert tried == list(OFFSETS[1:])
    tried = scripted({}, (1000, 3, 3, 3))
    choose_degree_offset(A, 4)
    assert tried == list(OFFSETS)


def test_graphs_are_contracted_from_a_million_entries_of_the_factor_on() -> None:
    n = 2**18
    assert Coarse.of(ring(n), 4).graph.shape[0] == n
    assert Coarse.of(ring(n + 1), 4).graph.shape[0] < n / 10


@pytest.mark.parametrize(("spread", "even"), [(0.14, True), (0.16, False)])
def test_degrees_that_are_nearly_the_same_are_left_alone(spread: float, even: bool) -> None:
    weights = np.where(np.arange(100) % 2, 1.0 + spread, 1.0 - spread)
    A = sp.csr_array(sp.block_diag([np.array([[0, w], [w, 0]]) for w in weights]))
    chosen = degree_offsets.with_scaling(A, 2)
    assert (chosen.graph is A) == even


@pytest.mark.parametrize(("part", "again"), [(0.69, True), (0.71, False)])
def test_final_clusters_have_collapsed_below_seven_tenths_of_what_was_expected(
    part: float, again: bool
) -> None:
    A, y = with_tails(3, 60, 0, 0)
    prepared = Pipeline(n_clusters=3, affinity="precomputed", normalize=True).prepare(A)
    expected = Partition.of(A, y, 3).modularity / part
    changed = replace(
        prepared, similarities=replace(prepared.similarities, expected=expected, degree_offset=0.0)
    )
    search: Any = SimpleNamespace(best=SimpleNamespace(status="converged", labels=y))
    other = changed._with_larger_offset(search)
    assert (other is not None) == again
    if other is not None:
        assert other.similarities.degree_offset == 1.0
