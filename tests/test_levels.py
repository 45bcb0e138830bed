"""Starts from contracted problems, each of which is the given one, restricted."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from symnmf import graphs
from symnmf.objectives import Frobenius
from symnmf.run import levels
from symnmf.storage import SparseMatrix, as_symmetric


def planted(n: int, blocks: int, seed: int) -> sp.csr_array:
    sizes = [n // blocks] * blocks
    chance = np.full((blocks, blocks), 0.5 / n) + np.eye(blocks) * 6.0 * blocks / n
    graph = nx.stochastic_block_model(sizes, chance.tolist(), seed=seed)
    return sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


def stored(X: sp.csr_array) -> SparseMatrix:
    found = as_symmetric(X)
    assert isinstance(found, SparseMatrix)
    return found


def misfit(X: SparseMatrix, U: np.ndarray) -> float:
    dense = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape).toarray()
    return float(np.linalg.norm(dense - U @ U.T) ** 2)


@pytest.fixture
def from_small_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract graphs of test size, down to 60 rows."""
    monkeypatch.setattr(levels, "COARSEST_ROWS", 60)
    monkeypatch.setattr(levels, "ROWS_EACH", 1)


@pytest.mark.usefixtures("from_small_on")
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0]))
def test_every_level_is_the_problem_restricted(seed: int, offset: float) -> None:
    X = stored(graphs.normalize(planted(240, 4, seed % 1000), degree_offset=offset))
    found = levels.contractions(X, 4)
    assert len(found) >= 2
    for level in found:
        U = np.random.default_rng(seed).random((level.X.shape[0], 4))
        gained = misfit(X, level.expanded(U)) - misfit(level.X, U)
        assert gained == pytest.approx(X.sqnorm - level.X.sqnorm, rel=1e-9, abs=1e-9)
        X = level.X


@pytest.mark.parametrize("offset", [0.25, 1.0, 5.0])
def test_the_weights_are_the_roots_of_the_degrees(offset: float) -> None:
    A = planted(400, 4, 3)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = np.sqrt(degrees + offset * degrees[degrees > 0].mean())
    found = levels.row_weights(graphs.normalize(A, degree_offset=offset))
    inside = degrees > 0
    ratio = found[inside] / roots[inside]
    np.testing.assert_allclose(ratio / ratio[0], 1.0, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_weights_are_positive_and_finite_for_any_scale_and_empty_rows(scale: float) -> None:
    A = planted(200, 2, 0).tolil()
    A[7] = 0
    A[:, 7] = 0
    found = levels.row_weights(scale * sp.csr_array(A))
    assert np.isfinite(found).all()
    assert (found > 0).all()


@pytest.mark.usefixtures("from_small_on")
def test_no_level_raises_the_error_and_the_run_ends_as_low_as_from_eigenvectors() -> None:
    A = graphs.normalize(planted(800, 4, 1), degree_offset=1.0)
    f = Frobenius(stored(A))
    lowest = levels.contractions(stored(A), 4)[-1]
    start = symnmf.factorize(A, 4, init="levels", max_iter=1, tol=0).history["error"][0]
    coarse = symnmf.factorize(
        sp.csr_array((lowest.X.data, lowest.X.indices, lowest.X.indptr), shape=lowest.X.shape),
        4, init="spectral", max_iter=levels.COARSEST_STEPS, tol=0,
    )  # fmt: skip
    restricted = 1.0 - lowest.X.sqnorm * (1.0 - coarse.error) / f.storage.sqnorm
    assert start <= restricted + 1e-9
    by_levels = symnmf.factorize(A, 4, init="levels")
    from_eigenvectors = symnmf.factorize(A, 4, init="spectral")
    assert by_levels.error <= from_eigenvectors.error + 1e-4


@pytest.mark.usefixtures("from_small_on")
def test_communities_by_levels_take_one_start() -> None:
    found = symnmf.communities(planted(800, 4, 2), 4, degree_offset=1.0, init="levels")
    assert sorted(len(nodes) for nodes in found) == pytest.approx([200] * 4, abs=25)
    assert found.quality.starts == 1


def test_a_graph_of_pairs_and_one_without_edges_have_starts() -> None:
    pairs = sp.csr_array(sp.block_diag([np.array([[0.0, 1.0], [1.0, 0.0]])] * 30))
    assert symnmf.factorize(pairs, 3, init="levels").status == "converged"
    assert symnmf.factorize(np.ones((20, 20)), 2, init="levels").error < 1e-8  # dense: eigenvectors
