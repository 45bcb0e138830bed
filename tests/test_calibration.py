"""How often judgements are wrong, over many kinds of data with clusters and without any.

A few draws of each kind here; ``make daily`` takes 200 and writes the table of
docs/how-many-clusters.md to the file that SYMNMF_CALIBRATION names.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import symnmf
from kinds_of_data import NETWORKS_WITHOUT, PLANTED, WITHOUT, Kind
from symnmf.cluster import judgement
from symnmf.cluster.judgement import CHANCE, LEVEL, UNKNOWN, Evidence, evidence_of
from symnmf.graphs import self_tuning

#: Chance that a right rule fails one of these tests of one kind.
MISTAKEN = 1e-4

DRAWS, MANY = 4, 200

quick = pytest.mark.parametrize("draws", [DRAWS, pytest.param(MANY, marks=pytest.mark.long)])


def evidence(kind: Kind, seed: int) -> Evidence:
    """Return the evidence in one draw."""
    data = kind.make(np.random.default_rng(seed))
    if not kind.points:
        return evidence_of(data, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of components, in some draws
        graph = self_tuning(data, normalize=False, n_clusters=len(data))
    return evidence_of(graph, points=data, seed=seed)


@cache
def numbers(name: str, draws: int) -> tuple[tuple[int, str, float], ...]:
    """Return the number of clusters, why there is no test, and the p-value, in each draw."""
    kind = (WITHOUT | PLANTED)[name]
    found = []
    for seed in range(draws):
        here = evidence(kind, seed)
        found.append((here.selection.recommendation, here.untested, here.p))
    report(name, kind, found)
    return tuple(found)


def report(name: str, kind: Kind, found: list[tuple[int, str, float]]) -> None:
    """Add a row to the table, if one is asked for."""
    path = os.environ.get("SYMNMF_CALIBRATION")
    if not path or len(found) < MANY:
        return
    true = 1 if kind.labels is None else int(kind.labels.max()) + 1
    told = np.mean([bool(untested) for _, untested, _ in found])
    several = np.mean([number > 1 and not untested for number, untested, _ in found])
    right = np.mean([number == true for number, _, _ in found])
    with Path(path).open("a") as table:
        table.write(f"| {name} | {true} | {several:.1%} | {told:.1%} | {right:.1%} |\n")


def alarms(name: str, draws: int) -> int:
    """Return in how many draws the word would be "clear" or "weak"."""
    return sum(p <= LEVEL and not untested for _, untested, p in numbers(name, draws))


@quick
@pytest.mark.parametrize("name", list(WITHOUT))
def test_clusters_are_seldom_found_where_there_are_none(name, draws):
    most = binom.ppf(1 - MISTAKEN, draws, LEVEL)
    assert alarms(name, draws) <= most
    if WITHOUT[name].untested:
        untested = sum(bool(why) for _, why, _ in numbers(name, draws))
        assert untested >= draws - most


@pytest.mark.long
def test_the_level_is_the_rate_of_false_alarms_where_the_null_is_exact():
    exact = [name for name, kind in NETWORKS_WITHOUT.items() if kind.exact]
    p = np.array([p for name in exact for *_, p in numbers(name, MANY)])
    assert LEVEL / 3 <= np.mean(p <= LEVEL) <= LEVEL + 0.01


def test_a_level_ten_times_looser_or_stricter_would_be_noticed():
    """The p-values of exact kinds are spread as they should be, not only at the level."""
    exact = [name for name, kind in NETWORKS_WITHOUT.items() if kind.exact]
    p = np.array([p for name in exact for *_, p in numbers(name, 3 * DRAWS)])
    for level in (0.2, 0.5):
        low, high = (binom.ppf(q, len(p), level) for q in (MISTAKEN, 1 - MISTAKEN))
        assert 0.5 * low <= np.count_nonzero(p <= level) <= high
    assert judgement.LEVEL == 0.05


@quick
@pytest.mark.parametrize("name", list(PLANTED))
def test_clusters_that_are_there_are_found(name, draws):
    least = binom.ppf(MISTAKEN, draws, PLANTED[name].power)
    assert alarms(name, draws) >= least


@quick
@pytest.mark.parametrize("name", list(WITHOUT | PLANTED))
def test_number_words_and_tree_do_not_contradict_each_other(name, draws):
    """One cluster is said to be found where every k is chance and a tree is not split."""
    kind = (WITHOUT | PLANTED)[name]
    for seed in range(min(draws, 1 if draws == DRAWS else 20)):
        here = evidence(kind, seed)
        count = here.selection.recommendation
        labels = here.fine_labels()
        word = here.judge(labels, int(labels.max()) + 1).word
        own = here.judge(here.selection.labels, count).word
        assert (count == 1) == (word == CHANCE) == (own == CHANCE)
        assert (word == UNKNOWN) == (own == UNKNOWN) == bool(here.untested)


def test_the_estimator_says_what_the_evidence_says():
    """Of a few kinds: the number, the words of a given k, and a tree, from the public names."""
    for name in ("Erdos-Renyi, 100 nodes", "2 small groups", "square", "stretched clusters"):
        kind = (WITHOUT | PLANTED)[name]
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
