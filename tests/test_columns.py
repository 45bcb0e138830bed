"""Columns over runs and through time: matching, consensus, stability, following."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import symnmf
from symnmf.columns import agree, matched


def blocks(sizes, seed, inside=0.7, outside=0.02):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return graph(truth, rng, inside, outside), truth


def graph(truth, rng, inside=0.6, outside=0.05):
    upper = np.triu(rng.random((len(truth),) * 2) < np.where(
        truth[:, None] == truth, inside, outside), 1)  # fmt: skip
    return (upper | upper.T).astype(float)


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
    found = symnmf.consensus(X, 4, n_runs=12, random_state=seed, ignore_diagonal=True)
    assert (found.stability[:3] > 0.92).all()
    assert found.stability[3] < 0.6
    assert adjusted_rand_score(truth, found.labels) > 0.93
    held = {int(np.bincount(found.labels[truth == group]).argmax()) for group in range(3)}
    assert held == {0, 1, 2}  # the stable columns
    relative = found.spread.mean(axis=0) / found.U.mean(axis=0)
    assert relative[3] > 3 * relative[:3].max()
    assert repr(found).startswith("Consensus(90 rows, 4 columns, 12 runs; 3 of 4 columns stable")
    exact = symnmf.consensus(X, 3, n_runs=6, random_state=seed)
    assert (exact.stability > 0.999).all()
    assert (exact.agreement == 1.0).all()
