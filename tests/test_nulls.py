"""Data without clusters: what they keep of the data, and what they do not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from symnmf import nulls


def random_graph(n: int, chance: float, seed: int) -> sp.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(20, 80), chance=st.floats(0.05, 0.3), seed=st.integers(0, 10_000))
def test_rewiring_keeps_every_degree_and_makes_a_plain_graph(n, chance, seed):
    A = random_graph(n, chance, seed)
    B = nulls.same_degrees(A, np.random.default_rng(seed))
    np.testing.assert_array_equal(B.sum(axis=1), A.sum(axis=1))
    assert set(np.unique(B.data)) <= {1.0}
    assert abs(B - B.T).sum() == 0
    assert not B.diagonal().any()


def test_rewiring_leaves_nothing_of_the_groups():
    group = np.arange(200) % 2
    chance = np.where(group[:, None] == group, 0.2, 0.01)
    upper = np.triu(np.random.default_rng(0).random((200, 200)) < chance, 1)
    A = sp.csr_array((upper + upper.T).astype(float))
    B = nulls.same_degrees(A, np.random.default_rng(1))
    same = group[:, None] == group
    assert A.toarray()[same].sum() / A.sum() > 0.9
    assert 0.45 < B.toarray()[same].sum() / B.sum() < 0.55


def test_weights_keep_their_sums_about_and_signs_their_number():
    A = random_graph(150, 0.1, 0)
    rng = np.random.default_rng(1)
    strength = rng.uniform(1, 10, 150)
    half = sp.csr_array(sp.triu(A, 1)).tocoo()
    half.data = (
        strength[half.row] * strength[half.col] * rng.choice([-1, 1], half.nnz, p=[0.2, 0.8])
    )
    A = sp.csr_array(half + half.T)
    B = nulls.same_degrees(A, rng)
    before, after = (np.asarray(abs(one).sum(axis=1)).ravel() for one in (A, B))
    assert np.corrcoef(before, after)[0, 1] > 0.9
    assert after.sum() == pytest.approx(before.sum(), rel=0.2)
    assert (B.data < 0).sum() == (A.data < 0).sum()


def test_an_array_keeps_its_degrees_about():
    rng = np.random.default_rng(0)
    size = rng.uniform(1, 5, 80)
    A = np.outer(size, size) * rng.uniform(0.5, 1.5, (80, 80))
    A = (A + A.T) / 2
    B = nulls.same_degrees(A, rng)
    np.testing.assert_array_equal(B, B.T)
    np.testing.assert_array_equal(np.diag(B), np.diag(A))
    np.testing.assert_allclose(B.sum(axis=1), A.sum(axis=1), rtol=0.15)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_are_shuffled_each_by_itself(kind):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(60, 4)) * (rng.random((60, 4)) < 0.5)
    Y = nulls.same_marginals(kind(X), rng)
    Y = Y.toarray() if sp.issparse(Y) else Y
    np.testing.assert_allclose(np.sort(Y, axis=0), np.sort(X, axis=0))
    assert not np.allclose(Y, X)


def test_a_column_with_two_modes_is_drawn_with_one():
    rng = np.random.default_rng(0)
    two = np.concatenate([rng.normal(0, 1, 150), rng.normal(8, 1, 150)])
    one = rng.normal(0, 1, 300)
    drawn = nulls.same_marginals(np.column_stack([two, one]), rng)
    assert not nulls._has_two_modes(drawn[:, 0])
    assert drawn[:, 0].std() == pytest.approx(two.std(), rel=0.15)
    np.testing.assert_array_equal(np.sort(drawn[:, 1]), np.sort(one))


@pytest.mark.parametrize(
    ("apart", "part", "two"), [(4, 0.5, True), (3, 0.5, False), (8, 0.2, True), (8, 0.05, False)]
)
def test_two_modes_need_a_deep_valley_and_many_points_on_either_side(apart, part, two):
    """The density falls to 0.4 of the modes for 4 standard deviations, to 0.7 for 3."""
    count = int(1000 * part)
    sizes = (1000 - count, count)
    near, far = (scipy.stats.norm.ppf((np.arange(n) + 0.5) / n) for n in sizes)
    column = np.concatenate([near, far + apart])
    drawn = nulls.same_marginals(column[:, None], np.random.default_rng(0))
    assert np.array_equal(np.sort(drawn[:, 0]), np.sort(column)) != two


def test_counts_and_categories_keep_their_values():
    X = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(float) * 9
    drawn = nulls.same_marginals(X, np.random.default_rng(1))
    assert set(np.unique(drawn)) == {0.0, 9.0}


@pytest.mark.parametrize("shape", [(400, 5), (40, 300)])
def test_normal_points_have_the_distances_of_the_data_on_average(shape):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * np.linspace(1, 5, shape[1]) + 100
    drawn = nulls.same_covariance(X, rng)

    def spread(points: np.ndarray) -> float:
        return float(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean())

    assert drawn.shape == (shape[0], min(shape))
    assert spread(drawn) == pytest.approx(spread(X), rel=0.15)


@pytest.mark.parametrize(("draws", "level"), [(3, 0.01), (3, 0.1), (10, 0.05), (40, 0.01)])
def test_one_more_draw_is_above_the_limit_as_often_as_it_says(draws, level):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((3000, draws + 1))
    above = [row[-1] > nulls.upper_limit(row[:-1], level) for row in values]
    assert np.mean(above) == pytest.approx(level, abs=3 * np.sqrt(level / len(values)))


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 10, 39, 199])
@pytest.mark.parametrize("chance", [0.05, 0.6, 0.9, 0.99, 0.995])
def test_the_quantile_of_students_t_is_that_of_scipy(degrees, chance):
    expected = scipy.stats.t.ppf(chance, degrees)
    assert nulls.student_quantile(degrees, chance) == pytest.approx(expected, rel=1e-10)
