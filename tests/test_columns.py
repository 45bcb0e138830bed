"""Columns over runs and through time: matching, consensus, stability, following."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from symnmf import InputError, metrics
from symnmf.columns.agreeing import agree
from symnmf.columns.matching import cosines, matched


def blocks(sizes, seed, inside=0.7, outside=0.02):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return graph(truth, rng, inside, outside), truth


def graph(truth, rng, inside=0.6, outside=0.05):
    upper = np.triu(rng.random((len(truth),) * 2) < np.where(
        truth[:, None] == truth, inside, outside), 1)  # fmt: skip
    return (upper | upper.T).astype(float)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_the_matching_is_the_best_of_all_orders(seed):
    rng = np.random.default_rng(seed)
    U, V = rng.random((2, 12, 4)) ** 3
    order = matched(U, V)
    alike = cosines(U, V)
    score = alike[np.arange(4), order].sum()
    best = max(sum(alike[i, p[i]] for i in range(4)) for p in itertools.permutations(range(4)))
    assert score == pytest.approx(best)


def runs_of(factors):
    """Results as far as matching looks at them, from real ones."""
    X = np.eye(len(factors[0]))
    made = symnmf.factorize(X, factors[0].shape[1], max_iter=0, random_state=0)
    from dataclasses import replace

    return tuple(replace(made, U=U, V=U) for U in factors)


def test_permuted_columns_are_one_consensus_without_spread():
    rng = np.random.default_rng(0)
    U = rng.random((30, 5)) ** 4
    results = runs_of([U[:, rng.permutation(5)] for _ in range(7)])
    found = agree(results, results[0], 0)
    assert found.spread.max() < 1e-12
    np.testing.assert_allclose(found.stability, 1.0)
    np.testing.assert_allclose(np.sort(found.U.sum(axis=0)), np.sort(U.sum(axis=0)))
    assert (found.agreement == 1.0).all()
    np.testing.assert_array_equal(found.best.U, found.U)


def test_one_wild_run_changes_the_spread_and_not_the_consensus():
    rng = np.random.default_rng(1)
    U = rng.random((30, 4)) ** 4
    wild = rng.random((30, 4)) * 100
    results = runs_of([U] * 6 + [wild])
    found = agree(results, results[0], 0)
    np.testing.assert_allclose(found.U, U[:, matched(found.U, U)])
    assert found.spread.min() > 0
    assert (found.stability < 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_real_groups_are_stable_and_others_are_not(seed):
    """Four columns for three groups: the fourth fits noise, another in every run."""
    X, truth = blocks([30, 30, 30], seed)
    found = symnmf.consensus(X, 4, n_init=12, random_state=seed, ignore_diagonal=True)
    assert (found.stability[:3] > 0.92).all()
    assert found.stability[3] < 0.6
    assert metrics.adjusted_rand(truth, found.labels) > 0.93
    held = {int(np.bincount(found.labels[truth == group]).argmax()) for group in range(3)}
    assert held == {0, 1, 2}  # the stable columns
    relative = found.spread.mean(axis=0) / found.U.mean(axis=0)
    assert relative[3] > 3 * relative[:3].max()
    assert repr(found).startswith("Consensus(90 rows, 4 columns, 12 runs; 3 of 4 columns stable")
    exact = symnmf.consensus(X, 3, n_init=6, random_state=seed)
    assert (exact.stability > 0.999).all()
    assert (exact.agreement == 1.0).all()


def test_a_consensus_takes_what_factorize_takes_and_comes_out_the_same():
    X, _ = blocks([15, 15, 15], 0)
    first = symnmf.consensus(X, 3, n_init=4, random_state=3, n_jobs=1)
    again = symnmf.consensus(sp.csr_array(X), 3, n_init=4, random_state=3, n_jobs=2)
    np.testing.assert_allclose(first.U, again.U, rtol=1e-4, atol=1e-4)
    mask = np.random.default_rng(0).random(X.shape) < 0.9
    hidden = symnmf.consensus(X, 3, n_init=3, random_state=0, mask=mask & mask.T, ridge=0.01)
    assert hidden.best.problem.objective.describe().startswith("1/2 sum_ij w_ij")
    poisson = symnmf.consensus(symnmf.Problem(X, loss="poisson"), 3, n_init=3, random_state=0)
    assert poisson.best.solver == "row-newton"
    assert poisson.values.min() == poisson.best.value
    assert first.plot().axes


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"n_init": 1}, InputError, "n_init must be at least 2"),
        ({"init": "nndsvd"}, InputError, "the same result in every run"),
        ({"init": "spectral"}, InputError, "the same result in every run"),
        ({"rank": 0}, InputError, "rank must be a whole number"),
        ({"masks": None}, TypeError, "unexpected keyword argument 'masks'"),
        ({"max_time": 0.0}, InputError, "before two runs"),
    ],
)
def test_what_makes_no_consensus_is_refused(options, error, said):
    X, _ = blocks([10, 10], 0)
    with pytest.raises(error, match=said):
        symnmf.consensus(X, **{"rank": 2, "n_init": 3, "n_jobs": 1, **options})


# --- through time


def test_columns_continue_and_movers_are_named():
    rng = np.random.default_rng(0)
    first = np.repeat([0, 1, 2], 40)
    second, third = first.copy(), first.copy()
    second[:6] = 1
    third[:6] = 1
    third[100:] = 0
    matrices = [graph(truth, rng) for truth in (first, second, third)]
    found = symnmf.follow(matrices, 3, random_state=0, names=list("abc"))
    assert set(found.movers(1)) == set(range(6))
    assert set(found.movers(2)) == set(range(100, 120))
    column = found.labels[0][[0, 40, 80]]  # of each group at first
    expected = np.array([column[truth] for truth in (first, second, third)])
    np.testing.assert_array_equal(found.labels, expected)
    assert found.flows[0, column[0], column[1]] == 6
    assert found.flows.sum() == 240
    assert (found.kept > 0.6).all()
    assert repr(found).startswith("Following(120 rows, 3 columns, 3 times; 10.8% of the rows")
    axes = found.plot().axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]


def test_a_group_that_splits_keeps_its_column_in_one_half():
    rng = np.random.default_rng(1)
    whole = np.repeat([0, 1], [60, 40])
    split = np.repeat([0, 2, 1], [40, 20, 40])
    found = symnmf.follow([graph(whole, rng), graph(split, rng)], 3, random_state=0)
    later = found.labels[1]
    assert metrics.adjusted_rand(split, later) > 0.95
    stays = np.bincount(found.labels[0][60:], minlength=3).argmax()
    assert (later[60:] == stays).mean() > 0.95


def test_a_warm_start_that_has_become_poor_is_left():
    """Groups that change altogether: the result is never much worse than a fresh one."""
    rng = np.random.default_rng(2)
    truths = [rng.permutation(np.repeat(np.arange(4), 30)) for _ in range(3)]
    matrices = [graph(truth, rng) for truth in truths]
    found = symnmf.follow(matrices, 4, random_state=0)
    for X, truth, result in zip(matrices, truths, found.results, strict=True):
        fresh = symnmf.factorize(X, 4, init="spectral", random_state=0, tol=1e-4)
        assert result.value <= 1.011 * fresh.value
        assert metrics.adjusted_rand(truth, result.labels) > 0.9
    assert found.kept.max() < 0.8


def test_rows_that_are_absent_are_in_no_column():
    X, _ = blocks([10, 10], 0)
    later = X.copy()
    later[:3] = later[:, :3] = 0
    found = symnmf.follow([X, later], 2, random_state=0)
    assert (found.labels[1][:3] == -1).all()
    assert (found.labels[0] >= 0).all()
    assert found.flows[0, :, -1].sum() == 3
    assert found.plot().axes


@pytest.mark.parametrize(
    ("matrices", "options", "said"),
    [
        ([np.eye(4)], {}, "two or more"),
        ([np.eye(4), np.eye(5)], {}, "number 1 has 5 and number 0 has 4"),
        ([np.eye(4), np.eye(4)], {"names": ["one"]}, "names must name the 2 matrices"),
        ([np.eye(4), -np.eye(4)], {}, "negative"),
    ],
)
def test_what_cannot_be_followed_is_refused(matrices, options, said):
    with pytest.raises(InputError, match=said):
        symnmf.follow(matrices, 2, **options)
