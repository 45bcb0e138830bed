"""Whether given similarities are divided by their degrees, where that is left open."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score as nmi

import symnmf
from symnmf import SymNMF

pytestmark = pytest.mark.filterwarnings("ignore::symnmf.QualityWarning")


def with_hubs(seed: int, n: int = 500) -> tuple[sp.csr_array, np.ndarray]:
    """Two sides whose nodes have very different degrees, as blogs have."""
    rng = np.random.default_rng(seed)
    side, size = rng.integers(2, size=n), np.minimum(rng.pareto(1.4, n) + 0.2, 30)
    chance = np.outer(size, size) * np.where(side[:, None] == side, 1.0, 0.15)
    upper = np.triu(rng.random((n, n)) < chance * 15 * n / chance.sum(), 1)
    return sp.csr_array((upper + upper.T).astype(float)), side


def chosen(A, clusters: int, **options) -> SymNMF:
    return SymNMF(clusters, affinity="precomputed", random_state=0, **options).fit(A)


def test_networks_with_hubs_are_divided_by_their_degrees():
    """By the rows of U, since labels by likelihood make up for hubs."""
    A, side = with_hubs(0)
    largest = {"assign_labels": "largest"}
    raw, found = chosen(A, 2, normalize=False, **largest), chosen(A, 2, **largest)
    assert nmi(side, found.labels_) > nmi(side, raw.labels_) + 0.05
    divided = chosen(A, 2, normalize=True, **largest)
    np.testing.assert_array_equal(found.embedding_, divided.embedding_)


def test_no_network_of_known_groups_loses(real_data):
    for name, clusters in (("karate", 2), ("dolphins", 2), ("football", 12), ("polbooks", 3)):
        data = symnmf.datasets.load(name, folder=real_data)
        scores = [
            nmi(data.target, chosen(data.data, clusters, normalize=how).labels_)
            for how in (False, True, "auto")
        ]
        assert scores[2] >= max(scores[:2]) - 0.02, (name, scores)


def test_a_given_offset_means_that_degrees_are_wanted():
    A, _ = with_hubs(1)
    found = chosen(A, 2, degree_offset=0.5)
    np.testing.assert_array_equal(
        found.embedding_, chosen(A, 2, degree_offset=0.5, normalize=True).embedding_
    )


def test_new_rows_are_scaled_as_the_others_were():
    A, _ = with_hubs(2)
    found = chosen(A, 2)
    inside = np.flatnonzero(found.labels_ >= 0)[:50]
    again = found.predict(A[inside].toarray())
    assert np.mean(again == found.labels_[inside]) > 0.9


def test_a_number_that_is_found_comes_before_the_choice():
    A, _ = with_hubs(3)
    found = chosen(A, "auto")
    given = chosen(A, found.n_clusters_)
    np.testing.assert_array_equal(found.embedding_, given.embedding_)


@pytest.mark.parametrize("wrong", ["yes", 1.5, []])
def test_other_values_are_refused(wrong):
    with pytest.raises(symnmf.InputError, match="normalize must be True or False or 'auto'"):
        chosen(np.eye(4), 2, normalize=wrong)
