"""Signed graphs: what negative links count, chosen by what they tell."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import symnmf
from symnmf.cluster.signed import weighted_signs

#: most of these graphs are weak on purpose
pytestmark = pytest.mark.filterwarnings("ignore::symnmf.QualityWarning")


def planted(positive, negative, n=240, k=3, seed=0):
    """Return a signed graph with these rates of links (inside groups, between them)."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    same = y[:, None] == y
    drawn = rng.random((n, n))
    above, below = drawn < np.where(same, *positive), drawn > 1 - np.where(same, *negative)
    A = np.triu(above.astype(float) - below, 1)
    return sp.csr_array(A + A.T), y


def both_ways(A, k, **told):
    signed = symnmf.communities(A, k, allow_negative=True, random_state=0, **told)
    positive = symnmf.communities(A.maximum(0), k, random_state=0)
    return signed, positive


def test_groups_that_only_negative_links_show_are_found():
    A, y = planted((0.1, 0.1), (0.0, 0.16))
    signed, positive = both_ways(A, 3)
    assert adjusted_rand_score(y, positive.labels) < 0.1
    assert adjusted_rand_score(y, signed.labels) > 0.75
    assert signed.negative_weight.value >= 1.0


def test_links_of_both_signs_find_more_than_the_positive_ones():
    A, y = planted((0.09, 0.015), (0.015, 0.09), k=4)
    signed, positive = both_ways(A, 4)
    more = adjusted_rand_score(y, signed.labels) - adjusted_rand_score(y, positive.labels)
    assert more > 0.05
    assert adjusted_rand_score(y, signed.labels) > 0.85


def test_negative_links_that_are_noise_are_left_out():
    A, y = planted((0.16, 0.04), (0.08, 0.08))
    signed, positive = both_ways(A, 3)
    assert signed.negative_weight.value == 0.0
    np.testing.assert_array_equal(signed.labels, positive.labels)
    taken, _ = both_ways(A, 3, negative_weight=2.0)
    assert adjusted_rand_score(y, taken.labels) < adjusted_rand_score(y, signed.labels) - 0.1
    assert taken.negative_weight.tried == ()


def test_the_number_of_communities_of_a_signed_graph_is_chosen():
    A, y = planted((0.2, 0.05), (0.02, 0.16), k=4)
    found = symnmf.communities(A, "auto", allow_negative=True, random_state=0)
    assert len(found) == found.rank_selection.recommendation == 4
    assert adjusted_rand_score(y, found.labels) > 0.9
    assert found.negative_weight.tried


@pytest.mark.parametrize("dense", [False, True])
def test_a_weight_counts_in_the_graph_and_in_the_degrees(dense):
    A, _ = planted((0.2, 0.1), (0.05, 0.1), n=30)
    full = A.toarray()
    above, below = np.maximum(full, 0), np.maximum(-full, 0)
    degrees = above.sum(axis=1) + 0.5 * below.sum(axis=1)
    expected = (above - 0.5 * below) / np.sqrt(np.outer(degrees, degrees))
    found, known = weighted_signs(full if dense else A, 0.5, 0.0)
    np.testing.assert_allclose(found if dense else found.toarray(), expected)
    np.testing.assert_allclose(known, degrees)


@pytest.mark.long
@pytest.mark.parametrize("year", [2000, 2008])
def test_stock_years_are_no_worse_than_their_positive_part(real_data, year):
    stored = np.load(real_data / f"signed_stocks_{year}.npz")
    A = stored["X"].astype(float)
    A = (A + A.T) / 2
    np.fill_diagonal(A, 0.0)
    signed = symnmf.communities(A, 10, allow_negative=True, random_state=0)
    positive = symnmf.communities(np.maximum(A, 0), 10, random_state=0)
    scores = [adjusted_rand_score(stored["y"], found.labels) for found in (signed, positive)]
    assert scores[0] >= scores[1] - 0.005


def test_a_bad_weight_is_refused_first():
    with pytest.raises(symnmf.InputError, match="negative_weight must be 'auto' or a number"):
        symnmf.communities(None, 3, negative_weight=-1.0)


def test_signed_graphs_without_normalisation_are_taken_as_they_are():
    A, _ = planted((0.2, 0.05), (0.05, 0.2), n=60)
    found = symnmf.communities(A, 3, allow_negative=True, normalize=False, random_state=0)
    assert found.negative_weight is None
