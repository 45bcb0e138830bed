"""Eigenpairs of graphs whose eigenvalues repeat, against dense ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from symnmf.storage import as_symmetric, spectrum
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
