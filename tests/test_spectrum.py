"""Eigenpairs of graphs whose eigenvalues repeat, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from symnmf.storage import LowRank, as_symmetric, spectrum
from symnmf.storage.spectrum import leading_eigenpairs


def equal_components(count, size, seed=0):
    """A graph of ``count`` copies of one random dense block."""
    block = np.random.default_rng(seed).random((size, size))
    return sp.block_diag([block + block.T] * count, format="csr")


def check(X, values, vectors, expected):
    count = len(expected)
    np.testing.assert_allclose(values, expected, atol=1e-8 * expected[0])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-8)
    np.testing.assert_allclose(X @ vectors, vectors * values, atol=1e-6 * expected[0])


@pytest.mark.parametrize("middling", [0, 2000], ids=["locking", "dense"])
@pytest.mark.parametrize(("count", "size"), [(2, 60), (3, 40), (8, 20), (20, 10), (50, 6)])
def test_every_copy_of_a_repeated_eigenvalue_is_found(monkeypatch, count, size, middling):
    monkeypatch.setattr(spectrum, "MIDDLING", middling)
    X = equal_components(count, size)
    expected = np.linalg.eigvalsh(X.toarray())[::-1]
    for wanted in (count - 1, count, count + 3):
        values, vectors = leading_eigenpairs(as_symmetric(X), wanted)
        check(X, values, vectors, expected[:wanted])


@pytest.mark.parametrize("middling", [0, 2000], ids=["locking", "dense"])
def test_components_of_different_sizes_share_the_eigenvalue_of_a_normalised_graph(
    monkeypatch, middling
):
    monkeypatch.setattr(spectrum, "MIDDLING", middling)
    rng = np.random.default_rng(1)
    parts = []
    for size in rng.integers(5, 40, 12):
        part = rng.random((size, size)) + 0.1
        part += part.T
        half = part.sum(axis=1) ** -0.5
        parts.append(half[:, None] * part * half)
    X = sp.block_diag(parts, format="csr")
    values, vectors = leading_eigenpairs(as_symmetric(X), 14)
    check(X, values, vectors, np.linalg.eigvalsh(X.toarray())[::-1][:14])
    assert np.sum(values > 1 - 1e-9) == 12


def test_the_zero_matrix_and_the_identity_have_eigenpairs_too():
    for X in (sp.csr_array((100, 100)), sp.identity(100, format="csr")):
        values, vectors = leading_eigenpairs(as_symmetric(X), 5)
        np.testing.assert_allclose(values, X.diagonal()[:5])
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-12)


def test_a_matrix_without_entries_has_its_copies_as_well():
    B = np.kron(np.eye(6), np.ones((20, 1)))
    values, _ = leading_eigenpairs(LowRank(B), 6)
    np.testing.assert_allclose(values, 20.0)


def test_tsvd_sees_all_of_eight_equal_blocks():
    X = equal_components(8, 20)
    blocks = np.repeat(np.arange(8), 20)
    result = symnmf.factorize(X, 8, solver="tsvd", random_state=0, tol=0, max_iter=200)
    # the best rank-8 approximation of the eight blocks, which tsvd rotates, is nonnegative
    values = np.linalg.eigvalsh(X.toarray())
    best = np.sum(np.sort(values**2)[:-8]) / np.sum(values**2)
    assert result.error == pytest.approx(best, rel=1e-2)
    assert symnmf.metrics.clustering_accuracy(blocks, result.labels) == 1.0


def test_coil_has_an_eigenvalue_of_one_for_each_of_its_six_components(real_data):
    data = symnmf.datasets.load("coil20")
    X = symnmf.graphs.self_tuning(data.data)
    components, _ = sp.csgraph.connected_components(X)
    values, _ = leading_eigenpairs(as_symmetric(X), 20)
    assert np.sum(values > 1 - 1e-9) == components == 6
    found = symnmf.factorize(X, 20, solver="tsvd", random_state=0, tol=0, max_iter=300)
    assert symnmf.metrics.clustering_accuracy(data.target, found.labels) > 0.75
