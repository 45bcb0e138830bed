"""The sparse product against SciPy's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from symnmf.kernels.products import balanced_chunks, csr_rows

DTYPES = [np.float64, np.float32]


def graph(n: int, dtype: type, index: type, density: float = 0.1) -> sp.csr_array:
    A = sp.random_array((n, n), density=density, rng=np.random.default_rng(n), format="csr")
    A = sp.csr_array((A + A.T).astype(dtype))
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    return A


def thin(n: int, r: int, dtype: type) -> np.ndarray:
    return np.random.default_rng(r).standard_normal((n, r)).astype(dtype)


def assert_rounding(result: np.ndarray, X: np.ndarray, V: np.ndarray) -> None:
    """Entrywise forward error bound of a sum of n products, in the dtype of the result."""
    n = len(X)
    exact = X.astype(np.float64) @ V.astype(np.float64)
    scale = np.abs(X).astype(np.float64) @ np.abs(V).astype(np.float64)
    bound = (n + 1) * np.finfo(result.dtype).eps * scale
    assert np.all(np.abs(result - exact) <= bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("r", [1, 2, 5, 8, 17, 50, 100])
def test_sparse_product(dtype: type, index: type, r: int) -> None:
    X, V = graph(83, dtype, index), thin(83, r, dtype)
    out = np.full_like(V, np.nan)
    csr_rows(X.indptr, X.indices, X.data, V, out, 0, 83)
    assert_rounding(out, X.toarray(), V)


def test_sparse_product_with_empty_rows_and_unsorted_repeated_indices() -> None:
    indptr = np.array([0, 0, 5, 5, 6, 6], dtype=np.int32)
    indices = np.array([3, 0, 4, 0, 1, 1], dtype=np.int32)
    data = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    V, out = thin(5, 6, np.float64), np.full((5, 6), np.nan)
    csr_rows(indptr, indices, data, V, out, 0, 5)
    expected = np.zeros((5, 6))
    expected[1] = V[3] + 6 * V[0] + 3 * V[4] + 5 * V[1]
    expected[3] = 6 * V[1]
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_result_is_the_same_to_the_last_bit_for_every_chunking() -> None:
    n = 211
    A, V = graph(n, np.float64, np.int32), thin(n, 20, np.float64)
    results = []
    for parts in (1, 2, 7, n):
        out = np.full_like(V, np.nan)

        def compute(rows: tuple[int, int], out: np.ndarray = out) -> None:
            csr_rows(A.indptr, A.indices, A.data, V, out, *rows)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(compute, balanced_chunks(A.indptr, parts)))
        results.append(out)
    for out in results[1:]:
        np.testing.assert_array_equal(out, results[0])


@pytest.mark.parametrize("parts", [1, 2, 3, 16, 1000])
def test_chunks_cover_the_rows_and_balance_entries(parts: int) -> None:
    rng = np.random.default_rng(parts)
    lengths = np.sort(rng.zipf(2.0, size=500).clip(max=40))  # all long rows at one end
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    chunks = balanced_chunks(indptr, parts)
    assert [a for a, _ in chunks] + [500] == [0] + [b for _, b in chunks]
    assert all(a < b for a, b in chunks)
    assert len(chunks) <= parts
    cost = [indptr[b] - indptr[a] + b - a for a, b in chunks]
    assert max(cost) <= (indptr[-1] + 500) / parts + 41
