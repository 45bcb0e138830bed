"""How often judgements are wrong, over many kinds of data with clusters and without any.

A few draws of each kind here; ``make daily`` takes 200.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import symnmf
from calibrate import EVERY, MISTAKEN, STATED, Draw, drawn, faults_of
from kinds_of_data import PLANTED, WITHOUT
from symnmf.cluster.judgement import CHANCE

#: Draws of each kind: points take longer.
OF_NETWORKS, OF_POINTS = 6, 1

#: Draws of the fastest kind, which show a level that is ten times larger or smaller.
OF_FASTEST = 500


@cache
def few(name: str) -> list[Draw]:
    return drawn(name, range(OF_POINTS if EVERY[name].points else OF_NETWORKS))


@pytest.mark.parametrize("name", EVERY)
def test_rates_are_as_stated(name):
    assert not faults_of(name, few(name))


def test_false_alarms_of_all_kinds_together_are_seldom():
    draws = [draw for name, kind in WITHOUT.items() if not kind.untested for draw in few(name)]
    several = sum(draw.several for draw in draws)
    assert several <= binom.ppf(1 - MISTAKEN, len(draws), STATED)


def test_the_level_is_the_rate_of_false_alarms_where_the_null_is_exact():
    draws = drawn("Erdos-Renyi, 60 nodes, dense", range(100, 100 + OF_FASTEST))
    low, high = (binom.ppf(q, OF_FASTEST, STATED) for q in (MISTAKEN, 1 - MISTAKEN))
    assert low <= sum(draw.several for draw in draws) <= high


def test_the_chances_of_exact_kinds_are_spread_as_chances_are():
    p = np.array([draw.p for name, kind in WITHOUT.items() if kind.exact for draw in few(name)])
    for level in (0.2, 0.5):
        low, high = (binom.ppf(q, len(p), level) for q in (MISTAKEN, 1 - MISTAKEN))
        assert low <= np.count_nonzero(p <= level) <= high


def test_of_all_planted_kinds_together_most_are_found():
    draws = [draw for name in PLANTED for draw in few(name)]
    assert sum(draw.several for draw in draws) >= 0.9 * len(draws)


def test_the_estimator_says_what_the_evidence_says():
    """Of a few kinds: the number, the words of a given k, and a tree, from the public names."""
    for name in ("Erdos-Renyi, 100 nodes", "2 small groups", "square", "stretched clusters"):
        kind = EVERY[name]
        data = kind.make(np.random.default_rng(0))
        affinity = "self-tuning" if kind.points else "precomputed"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            auto, given = (
                symnmf.SymNMF(k, affinity=affinity, random_state=0).fit(data) for k in ("auto", 3)
            )
            tree = symnmf.hierarchy(data, affinity=affinity, random_state=0)
        one = auto.rank_selection_.recommendation == 1
        assert one == (tree.n_clusters == 1)
        assert one == (auto.quality_.verdict.word == CHANCE)
        assert one == (given.quality_.verdict.word == CHANCE)
        assert one == (kind.labels is None)
