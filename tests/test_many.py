"""Thousands of communities: the row-sparse factor, its loss, its seeds and its runs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from shell import command
from symnmf import InputError, communities, datasets, metrics
from symnmf.parallel import Threads
from symnmf.rowsparse.factor import RowSparse
from symnmf.rowsparse.sparse_loss import Loss
from symnmf.run.seeds import as_edges


def caves(count, size, seed=0, ties=0.02):
    """Cliques of ``size`` in which every edge is there with 0.9, and a few edges between them."""
    rng = np.random.default_rng(seed)
    n = count * size
    rows, columns = [], []
    for first in range(0, n, size):
        i, j = np.triu_indices(size, 1)
        kept = rng.random(len(i)) < 0.9
        rows.append(first + i[kept])
        columns.append(first + j[kept])
    loose = rng.integers(0, n, (2, int(ties * n * size)))
    rows.append(loose[0])
    columns.append(loose[1])
    A = sp.coo_array(
        (np.ones(sum(map(len, rows))), (np.concatenate(rows), np.concatenate(columns))),
        shape=(n, n),
    )
    A = sp.csr_array(A + A.T)
    A.data[:] = 1
    A.setdiag(0)
    A.eliminate_zeros()
    return A, [np.arange(first, first + size) for first in range(0, n, size)]


def random_problem(seed, n=25, rank=6, width=4):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < 0.2, 1) * rng.uniform(0.5, 2, (n, n))
    A = as_edges(upper + upper.T)
    sets = [rng.choice(n, 5, replace=False) for _ in range(rank)]
    U = RowSparse.of_sets(sets, rng.uniform(0.2, 1.5, rank), n, width)
    return Loss(A, 0.05, Threads(1)), U


def dense_value(loss, U):
    M = U @ U.T
    A = loss.A.toarray()
    return 0.5 * np.sum(M) - 0.5 * np.sum(A * np.log(loss.background + M))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_value_and_gradient_are_those_of_the_dense_formula(seed):
    loss, U = random_problem(seed)
    dense = U.to_csr().toarray()
    point = loss.at(U)
    assert point.value == pytest.approx(dense_value(loss, dense), rel=1e-10)
    rate = loss.background + dense @ dense.T
    pull = (loss.A.toarray() / rate) @ dense
    rows, places = np.nonzero(U.filled)
    columns = U.columns[rows, places]
    np.testing.assert_allclose(point.pull[rows, places], pull[rows, columns], rtol=1e-9, atol=1e-12)
    gradient = dense.sum(axis=0) - pull
    i, k = rows[0], columns[0]
    ahead, behind = dense.copy(), dense.copy()
    ahead[i, k] += 1e-6
    behind[i, k] -= 1e-6
    slope = (dense_value(loss, ahead) - dense_value(loss, behind)) / 2e-6
    assert slope == pytest.approx(gradient[i, k], rel=1e-4, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_a_step_never_raises_the_loss(seed):
    loss, U = random_problem(seed)
    point = loss.at(U)
    for _ in range(6):
        after = loss.at(point.step(1.0, 0.0))
        assert after.value <= point.value + 1e-9 * abs(point.value)
        point = after


def test_caves_are_found_and_counted():
    A, known = caves(300, 8)
    found = communities(A, 300, overlapping=True, row_sparse=True)
    known_f1, found_f1 = metrics.best_match_f1(known, found)
    assert known_f1 > 0.98
    assert found_f1 > 0.98
    assert isinstance(found.result.U, sp.csr_array)
    assert found.strength.shape == (2400, len(found)) == found.membership.shape
    for number, nodes in enumerate(found[:20]):
        column = found.strength[:, [number]].toarray().ravel()
        assert nodes == set(np.flatnonzero(column > 1).tolist())
    shares = sp.csr_array(found.result.membership).toarray()
    np.testing.assert_allclose(shares.sum(axis=1), np.diff(found.result.U.indptr) > 0)
    np.testing.assert_allclose(
        found.membership.toarray(), np.where(found.strength.toarray() > 1, shares, 0)
    )
    counted = communities(A, "auto", overlapping=True, row_sparse=True)
    assert 290 <= len(counted) <= 330
    assert metrics.best_match_f1(known, counted)[0] > 0.95


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"order": 3}, "order=3 cannot be combined with row_sparse=True"),
        ({"ignore_diagonal": True}, "ignore_diagonal cannot be combined with row_sparse=True"),
        ({"n_clusters": 10**6}, "n_clusters=1000000 is more than the 42 nodes of G"),
        ({"row_sparse": "yes"}, "row_sparse must be True or False or None, got 'yes'"),
    ],
)
def test_what_it_cannot_do_is_refused(arguments, said):
    A, _ = caves(6, 7)
    options = {"n_clusters": 6, "overlapping": True, "row_sparse": True, **arguments}
    with pytest.raises(InputError, match=said):
        communities(A, **options)


@pytest.mark.long
def test_com_dblp_in_thousands(real_data):
    data = datasets.load("com_dblp", real_data)
    with np.load(real_data / "com_dblp.npz") as stored:
        best = np.split(stored["top5000_members"], stored["top5000_indptr"][1:-1])
    found = communities(data.data, 13_477, overlapping=True, row_sparse=True)
    known_f1, _ = metrics.best_match_f1(best, found)
    assert known_f1 > 0.64
    counted = communities(data.data, "auto", overlapping=True, row_sparse=True)
    assert len(counted) < 117_239
    assert metrics.best_match_f1(best, counted)[0] > 0.75


def test_the_command_lists_communities_and_strengths(tmp_path):
    A, _ = caves(6, 8)
    sp.save_npz(tmp_path / "caves.npz", sp.csr_matrix(A))
    told = f"cluster {tmp_path}/caves.npz --affinity precomputed -k 6 --overlapping --row-sparse"
    answer = command(*told.split(), "-o", tmp_path / "labels.csv")
    assert answer.exit_code in (0, 3), answer.stderr
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines[0].split(",")[-2:] == ["all_clusters", "strengths"]
    assert len(lines) == 49
