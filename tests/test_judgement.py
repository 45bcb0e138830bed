"""How many clusters there are, and whether they are real: one test, at one level."""

from __future__ import annotations

import math
import warnings
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import symnmf
from kinds_of_data import block_model, equal_groups
from symnmf.cluster.description import description_length
from symnmf.cluster.held_out_edges import closed, splits
from symnmf.cluster.judgement import LEVEL, evidence_of
from symnmf.cluster.partition import as_graph, fine_partition
from symnmf.kernels.dips import dip

BLOBS = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)[0]


def fitted(X, n_clusters, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", symnmf.QualityWarning)
        return symnmf.SymNMF(n_clusters, random_state=0, **options).fit(X)


# The dip --------------------------------------------------------------------------------------


def test_the_dip_of_values_that_are_known_by_hand():
    # n values at equal distances are uniform but for steps of 1 / n
    assert dip(np.arange(10.0)) == pytest.approx(1 / 20)
    # half of the values at either of two places: the nearest unimodal one is off by a quarter
    assert dip(np.repeat([0.0, 1.0], 500)) == pytest.approx(0.25, abs=2e-3)


def test_no_unimodal_distribution_is_nearer_than_the_dip():
    """A brute force over modes: convex before, concave after, fitted by linear programming."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(0)
    for _ in range(5):
        x = np.sort(rng.random(9))
        n, best = len(x), np.inf
        for mode in range(n):
            # variables: G(x_i) left of its step and right of it (they differ at the mode alone), d
            rows, limits = [], []

            def row(terms, limit, n=n, rows=rows, limits=limits):
                line = np.zeros(n + 2)
                for place, value in terms:
                    line[place] += value
                rows.append(line)
                limits.append(limit)

            right = {i: (n if i == mode else i) for i in range(n)}
            for i in range(n):
                row([(right[i], 1), (n + 1, -1)], (i + 1) / n)
                row([(right[i], -1), (n + 1, -1)], -(i + 1) / n)
                row([(i, 1), (n + 1, -1)], i / n)
                row([(i, -1), (n + 1, -1)], -i / n)
                row([(i, 1), (right[i], -1)], 0.0)
            slopes = [
                [(i + 1, 1 / (x[i + 1] - x[i])), (right[i], -1 / (x[i + 1] - x[i]))]
                for i in range(n - 1)
            ]
            for i, slope in enumerate(slopes):
                row([(place, -value) for place, value in slope], 0.0)
                if i + 1 < n - 1:
                    sign = 1 if i + 1 <= mode else -1
                    if i + 1 != mode:
                        row(
                            [(p, sign * v) for p, v in slope]
                            + [(p, -sign * v) for p, v in slopes[i + 1]],
                            0.0,
                        )
            found = linprog(np.r_[np.zeros(n + 1), 1.0], rows, limits, bounds=(None, None))
            best = min(best, found.fun)
        assert dip(x) == pytest.approx(best, abs=1e-7)


# Partitions and paths -------------------------------------------------------------------------


def test_moves_find_cliques_and_never_cut_a_group_into_pieces_that_are_not_connected():
    graph = as_graph(nx.to_scipy_sparse_array(nx.connected_caveman_graph(12, 7)))
    labels = fine_partition(graph, np.random.default_rng(0))
    assert adjusted_rand_score(np.repeat(np.arange(12), 7), labels) > 0.95
    A = block_model(equal_groups(300, 6), 0.1, 0.02, np.random.default_rng(1))
    labels = fine_partition(A, np.random.default_rng(0))
    for group in range(labels.max() + 1):
        rows = np.flatnonzero(labels == group)
        assert sp.csgraph.connected_components(A[rows][:, rows])[0] == 1


# Networks -------------------------------------------------------------------------------------


def test_held_out_edges_are_all_edges_of_the_second_half_once():
    A = block_model([50], 0.2, 0.2, np.random.default_rng(0))
    held = [(s.i, s.j) for s in splits(A, np.random.default_rng(0))]
    pairs = {(i, j) for i, j in zip(*map(np.concatenate, zip(*held, strict=True)), strict=True)}
    assert len(pairs) == sum(len(i) for i, _ in held) == A.nnz // 2 // 2


@pytest.mark.parametrize(("groups", "snr"), [(2, 1.5), (3, 1.6), (5, 1.6)])
def test_groups_near_the_threshold_of_detection_are_found_and_counted(groups, snr):
    n, degree = 800, 12.0
    apart = snr * np.sqrt(degree)
    inner, outer = (degree + (groups - 1) * apart) / n, (degree - apart) / n
    A = block_model(equal_groups(n, groups), inner, outer, np.random.default_rng(0))
    found = symnmf.communities(A, "auto", random_state=0)
    assert len(found) == groups
    assert found.quality.verdict.word in ("clear", "weak")


def test_edges_that_close_triangles_or_squares_are_not_compared_with_random_graphs():
    ring = nx.watts_strogatz_graph(300, 8, 0.1, seed=0)
    for G, why in ((ring, "depend on each other"), (nx.grid_2d_graph(18, 18), "is bipartite")):
        found = symnmf.communities(G, "auto", random_state=0)
        assert found.quality.verdict.word == "cannot tell"
        assert why in found.quality.verdict.reason
    A = block_model(equal_groups(400, 4), 0.15, 0.02, np.random.default_rng(0))
    assert closed(A, np.arange(400) * 4 // 400, np.random.default_rng(0)) < 0.03


def test_weights_do_not_make_groups():
    rng = np.random.default_rng(0)
    for sizes, count in (([400], 1), (equal_groups(400, 4), 4)):
        A = block_model(sizes, 0.1, 0.1 if count == 1 else 0.01, rng)
        half = sp.triu(A, 1).tocsr()
        half.data = rng.pareto(1.5, half.nnz) + 1.0
        found = symnmf.communities(sp.csr_array(half + half.T), "auto", random_state=0)
        assert found.rank_selection.recommendation == count


# Points ---------------------------------------------------------------------------------------


def test_blobs_are_counted_and_one_cloud_has_none():
    model = fitted(BLOBS, "auto")
    assert model.rank_selection_.recommendation == 3
    assert model.quality_.verdict.word == "clear"
    cloud = np.random.default_rng(0).standard_normal((300, 2))
    assert fitted(cloud, "auto").n_clusters_ == 1
    assert fitted(cloud, 4).quality_.verdict.word == "no more than chance"


def test_more_clusters_than_there_are_make_the_whole_weak():
    verdict = fitted(BLOBS, 5).quality_.verdict
    assert verdict.word == "weak"
    assert "of 5 clusters are not separate" in verdict.reason
    assert "weak" in verdict.clusters
    assert fitted(BLOBS, 2).quality_.verdict.word == "clear"


def test_texts_are_judged_by_the_leading_directions_of_a_sparse_table():
    rng = np.random.default_rng(0)
    topic = np.arange(240) % 3
    rates = np.full((3, 120), 0.05)
    for k in range(3):
        rates[k, 40 * k : 40 * k + 40] = 0.6
    words = sp.csr_array(rng.poisson(rates[topic]).astype(float))
    model = fitted(words, "auto")
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(topic, model.labels_) > 0.9


# One answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_number_the_words_and_the_tree_agree(seed):
    rng = np.random.default_rng(seed)
    for sizes, outer in (([150], 0.1), (equal_groups(150, 3), 0.02)):
        A = block_model(sizes, 0.1 if len(sizes) == 1 else 0.25, outer, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", symnmf.QualityWarning)
            auto = symnmf.communities(A, "auto", random_state=0)
            given = symnmf.communities(A, 3, random_state=0)
        tree = symnmf.hierarchy(A, random_state=0)
        one = auto.rank_selection.recommendation == 1
        for quality in (auto.quality, given.quality):
            assert (quality.verdict.word == "no more than chance") == one
        assert (tree.n_clusters == 1) == one
        assert one == (evidence_of(A).p > LEVEL)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda X: symnmf.Problem(X, mask=X < 0.9), "hidden"),
        (lambda X: X, "the similarities of all pairs"),
    ],
)
def test_where_no_null_fits_the_word_is_cannot_tell_with_a_reason(call, reason):
    X = np.corrcoef(np.random.default_rng(0).random((30, 50))) ** 2
    verdict = fitted(call(X), 2, affinity="precomputed").quality_.verdict
    assert verdict.word == "cannot tell"
    assert reason in verdict.reason
    assert set(verdict.clusters) == {"cannot tell"}
    assert np.isnan(verdict.p)


def test_points_that_are_few_or_all_alike_are_one_cluster():
    for X in (np.arange(6.0)[:, None], np.ones((5, 2))):
        graph = np.ones((len(X), len(X)))
        here = evidence_of(graph, points=X)
        assert here.selection.recommendation == 1
        assert here.judge(np.zeros(len(X), dtype=int), 1).word == "no more than chance"


def test_a_graph_without_edges_has_one_cluster():
    for points in (None, np.random.default_rng(0).random((5, 2))):
        here = evidence_of(sp.csr_array((5, 5)), points=points)
        assert here.selection.recommendation == 1
        assert (here.selection.labels == -1).all()


def test_the_description_length_is_the_formula_of_its_docstring():
    """By factorials of whole numbers, group by group, with the shorter of the two models."""
    G = nx.karate_club_graph()
    A = nx.to_scipy_sparse_array(G, weight=None, dtype=float)
    log, n, E = math.log, len(G), G.number_of_edges()

    def fact(count):
        return log(math.factorial(count))

    for labels in (np.arange(n) % 2, np.arange(n) // 9, np.arange(n) // 3, np.zeros(n, int)):
        B, degrees = labels.max() + 1, [d for _, d in G.degree]
        inside, across = Counter(), Counter()
        for i, j in G.edges:
            r, s = sorted((labels[i], labels[j]))
            inside[r] += r == s
            across[r, s] += r != s
        ends = [
            sum(d for d, own in zip(degrees, labels, strict=True) if own == r) for r in range(B)
        ]
        sizes = np.bincount(labels).tolist()
        e_in = sum(inside.values())
        any_edges = sum(map(fact, ends)) - sum(map(fact, across.values()))
        any_edges -= sum(fact(m) + m * log(2) for m in inside.values())
        any_edges += sum(log(math.comb(m + e - 1, e)) for m, e in zip(sizes, ends, strict=True))
        any_edges += log(math.comb(B * (B + 1) // 2 + E - 1, E))
        few = e_in * log(B / 2) - fact(e_in) - fact(E - e_in)
        few += (E - e_in) * log(math.comb(B, 2)) + log(E + 1) if B > 1 else 0.0
        few += sum(fact(e + m - 1) - fact(m - 1) for m, e in zip(sizes, ends, strict=True))
        both = log(math.comb(n - 1, B - 1)) + fact(n) + log(n)
        both -= sum(map(fact, degrees)) + sum(map(fact, sizes))
        assert description_length(A, labels) == pytest.approx(both + min(any_edges, few), rel=1e-9)
