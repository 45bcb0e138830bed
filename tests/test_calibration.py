"""How often judgements are wrong, over many kinds of data with clusters and without any.

A few draws of each kind here; ``make daily`` takes 200, and adds the rows of the table of
docs/concepts/are-they-real.md to the file that SYMNMF_CALIBRATION names.
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
from kinds_of_data import PLANTED, WITHOUT, Kind
from symnmf.cluster.judgement import CHANCE, LEVEL, UNKNOWN, Evidence, evidence_of
from symnmf.graphs import self_tuning

#: What is stated, and the chance that a right rule fails one of these tests of one kind.
STATED, MISTAKEN = 0.05, 1e-4

#: Draws of each kind: points take longer.
FEW_NETWORKS, FEW_POINTS, MANY = 6, 1, 200

EVERY = WITHOUT | PLANTED

quick = pytest.mark.parametrize("many", [False, pytest.param(True, marks=pytest.mark.long)])


def draws_of(name: str, many: bool) -> int:
    return MANY if many else FEW_POINTS if EVERY[name].points else FEW_NETWORKS


@cache
def evidence(name: str, seed: int) -> Evidence:
    """Return the evidence in one draw."""
    kind = EVERY[name]
    data = kind.make(np.random.default_rng(seed))
    if not kind.points:
        return evidence_of(data, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of components, in some draws
        graph = self_tuning(data, normalize=False, n_clusters=len(data))
    return evidence_of(graph, points=data, seed=seed)


@cache
def numbers(name: str, many: bool) -> tuple[tuple[int, str, float], ...]:
    """Return the number of clusters, why there is no test, and the p-value, in each draw."""
    kind, found = EVERY[name], []
    for seed in range(draws_of(name, many)):
        here = evidence(name, seed)
        found.append((here.selection.recommendation, here.untested, here.p))
        if many:
            evidence.cache_clear()
    report(name, kind, found)
    return tuple(found)


def report(name: str, kind: Kind, found: list[tuple[int, str, float]]) -> None:
    """Add a row to the table, if one is asked for."""
    path = os.environ.get("SYMNMF_CALIBRATION")
    if not path or len(found) < MANY:
        return
    true = 1 if kind.labels is None else int(kind.labels.max()) + 1
    untested = np.mean([bool(why) for _, why, _ in found])
    several = np.mean([number > 1 and not why for number, why, _ in found])
    right = np.mean([number == true for number, _, _ in found])
    with Path(path).open("a") as table:
        table.write(f"| {name} | {true} | {several:.1%} | {untested:.1%} | {right:.1%} |\n")


def alarms(name: str, many: bool) -> int:
    """Return in how many draws the word would be "clear" or "weak"."""
    return sum(p <= LEVEL and not why for _, why, p in numbers(name, many))


@quick
@pytest.mark.parametrize("name", list(WITHOUT))
def test_clusters_are_seldom_found_where_there_are_none(name, many):
    draws = draws_of(name, many)
    most = binom.ppf(1 - MISTAKEN, draws, STATED)
    assert alarms(name, many) <= most
    if WITHOUT[name].untested:
        assert sum(bool(why) for _, why, _ in numbers(name, many)) >= draws - most


def test_false_alarms_of_all_kinds_together_are_seldom():
    """A level ten times looser fails here; one ten times stricter in the long test below."""
    tested = [name for name, kind in WITHOUT.items() if not kind.untested]
    draws = sum(draws_of(name, False) for name in tested)
    found = sum(alarms(name, False) for name in tested)
    assert found <= binom.ppf(1 - MISTAKEN, draws, STATED)


@pytest.mark.long
def test_the_level_is_the_rate_of_false_alarms_where_the_null_is_exact():
    exact = [name for name, kind in WITHOUT.items() if kind.exact]
    p = np.array([p for name in exact for *_, p in numbers(name, True)])
    assert STATED / 3 <= np.mean(p <= LEVEL) <= STATED + 0.01


def test_the_chances_of_exact_kinds_are_spread_as_chances_are():
    exact = [name for name, kind in WITHOUT.items() if kind.exact]
    p = np.array([p for name in exact for *_, p in numbers(name, False)])
    for level in (0.2, 0.5):
        low, high = (binom.ppf(q, len(p), level) for q in (MISTAKEN, 1 - MISTAKEN))
        assert low <= np.count_nonzero(p <= level) <= high


@quick
@pytest.mark.parametrize("name", list(PLANTED))
def test_clusters_that_are_there_are_found(name, many):
    least = binom.ppf(MISTAKEN, draws_of(name, many), PLANTED[name].power)
    assert alarms(name, many) >= least


def test_of_all_planted_kinds_together_most_are_found():
    draws = sum(draws_of(name, False) for name in PLANTED)
    assert sum(alarms(name, False) for name in PLANTED) >= 0.9 * draws


@quick
@pytest.mark.parametrize("name", list(EVERY))
def test_number_words_and_tree_do_not_contradict_each_other(name, many):
    """One cluster is said to be found where any labels are chance, and nowhere else."""
    for seed in range(20 if many else 1):
        here = evidence(name, seed)
        count = here.selection.recommendation
        labels = here.of_all(here.fine)
        word = here.judge(labels, int(labels.max()) + 1).word
        own = here.judge(here.selection.labels, count).word
        assert (count == 1) == (word == CHANCE) == (own == CHANCE)
        assert (word == UNKNOWN) == (own == UNKNOWN) == bool(here.untested)


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
