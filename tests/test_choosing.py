"""Choices by held-out data: what they find, and what they leave as it is."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from symnmf.run.choosing import CLEARLY, SPLITS, choose


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_the_rank_of_a_matrix_is_found(rank):
    noise = np.random.default_rng(0).normal(size=(60, 60))
    X = synthetic_problem(60, rank, seed=rank) + 0.1 * (noise + noise.T)
    for n_init in (1, 2):
        options = {"allow_negative": True, "n_init": n_init, "random_state": 0}
        assert symnmf.factorize(X, "auto", **options).U.shape == (60, rank)


def test_noise_has_one_column():
    rng = np.random.default_rng(0)
    for _ in range(5):
        X = rng.random((50, 50))
        assert symnmf.factorize(X + X.T, "auto", random_state=0).U.shape[1] == 1


def test_a_sparse_matrix_is_refused_with_what_to_use():
    with pytest.raises(symnmf.InputError, match="communities chooses it"):
        symnmf.factorize(sp.eye_array(5, format="csr"), "auto")
    with pytest.raises(symnmf.InputError, match="rank must be"):
        symnmf.compare(np.ones((5, 5)), "auto")


def shifted(noise, shift, value):
    return [noise[value] + shift * value]


def test_a_value_is_kept_unless_another_is_clearly_better():
    rng = np.random.default_rng(0)
    replaced = {0.5: 0, 2.0: 0}
    for gain in replaced:  # in units of what is clear
        for _ in range(200):
            noise = rng.normal(size=(2, 400))
            shift = gain * CLEARLY * np.sqrt(2.0 / 400)
            parts = iter(np.split(noise, SPLITS, axis=1))
            chosen = choose(
                0, lambda _: [1], lambda _, p=parts, s=shift: partial(shifted, next(p), s)
            )
            replaced[gain] += chosen.value
    assert replaced[0.5] < 40
    assert replaced[2.0] > 190
