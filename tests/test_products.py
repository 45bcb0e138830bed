"""The product kernels against NumPy's and SciPy's products."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.kernels import products
from symnmf.kernels.products import balanced_chunks, csr_rows, dense_rows, prefers_dense_rows

RANKS = [1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 32, 33, 50, 63, 64, 65, 100]
DTYPES = [np.float64, np.float32]


def symmetric(n: int, dtype: type) -> np.ndarray:
    A = np.random.default_rng(n).standard_normal((n, n))
    return (A + A.T).astype(dtype)


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
@pytest.mark.parametrize("r", RANKS)
def test_dense_product_for_every_width(dtype: type, r: int) -> None:
    X, V = symmetric(37, dtype), thin(37, r, dtype)
    out = np.full_like(V, np.nan)
    dense_rows(X, V, out, 0, 37)
    assert_rounding(out, X, V)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 11, 12, 13, 101])
def test_dense_product_for_every_size(dtype: type, n: int) -> None:
    X, V = symmetric(n, dtype), thin(n, 10, dtype)
    out = np.full_like(V, np.nan)
    dense_rows(X, V, out, 0, n)
    assert_rounding(out, X, V)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("r", [97, 100])
def test_dense_product_in_several_slabs_of_unequal_length(dtype: type, r: int) -> None:
    n = 1501
    X, V = symmetric(n, dtype), thin(n, r, dtype)
    assert V.nbytes > products._SLAB_BYTES
    assert n % (products._SLAB_BYTES // V[0].nbytes) != 0
    out = np.full_like(V, np.nan)
    dense_rows(X, V, out, 0, n)
    assert_rounding(out, X, V)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("factor_order", ["C", "F"])
@pytest.mark.parametrize("n", [4, 45])
def test_dense_product_takes_both_orders(order: str, factor_order: str, n: int) -> None:
    X, V = symmetric(n, np.float64), thin(n, 9, np.float64)
    out = np.full_like(V, np.nan)
    dense_rows(np.array(X, order=order), np.array(V, order=factor_order), out, 0, n)
    assert_rounding(out, X, V)


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (0, 1), (3, 5), (7, 20), (38, 41), (40, 41)])
def test_dense_range_leaves_other_rows_untouched(begin: int, end: int) -> None:
    X, V = symmetric(41, np.float64), thin(41, 5, np.float64)
    out = np.full_like(V, -7.0)
    dense_rows(X, V, out, begin, end)
    whole = np.empty_like(V)
    dense_rows(X, V, whole, 0, 41)
    np.testing.assert_array_equal(out[begin:end], whole[begin:end])
    assert np.all(out[:begin] == -7.0)
    assert np.all(out[end:] == -7.0)


def test_infinite_entries_stay_in_their_rows() -> None:
    """The padding of V must not turn an infinity into NaN anywhere but where BLAS would."""
    X, V = symmetric(20, np.float64), np.ones((20, 3))
    X[4, 7] = X[7, 4] = np.inf
    out = np.empty_like(V)
    dense_rows(X, V, out, 0, 20)
    np.testing.assert_allclose(out, X @ V)


def test_dense_rejects_strided_matrix() -> None:
    X = symmetric(40, np.float64)[::2, ::2]
    with pytest.raises(InputError, match="X has strides"):
        dense_rows(X, np.ones((20, 2)), np.empty((20, 2)), 0, 20)


def test_blas_keeps_what_the_dense_kernel_does_not_win() -> None:
    large = np.empty((4000, 4000))
    assert prefers_dense_rows(large, 32)
    assert prefers_dense_rows(large.T, 32)
    assert prefers_dense_rows(large, 64)
    assert not prefers_dense_rows(large, 65)
    single = large[:700, :700].astype(np.float32)
    assert prefers_dense_rows(large[:700, :700].copy(), 32)
    assert not prefers_dense_rows(single, 32)
    assert not prefers_dense_rows(large[:300, :300].copy(), 32)
    assert not prefers_dense_rows(large[::2, ::2], 32)
    assert not prefers_dense_rows(large.astype(np.float16), 32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("r", [1, 2, 5, 8, 17, 50, 100])
def test_sparse_product(dtype: type, index: type, r: int) -> None:
    X, V = graph(83, dtype, index), thin(83, r, dtype)
    out = np.full_like(V, np.nan)
    csr_rows(X.indptr, X.indices, X.data, V, out, 0, 83)
    assert_rounding(out, X.toarray(), V)


def test_sparse_product_of_one_node() -> None:
    out = np.empty((1, 3))
    V = np.array([[1.0, 2.0, 3.0]])
    csr_rows(np.array([0, 1]), np.array([0]), np.array([2.0]), V, out, 0, 1)
    np.testing.assert_array_equal(out, 2 * V)


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


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_result_is_the_same_to_the_last_bit_for_every_chunking(kind: str) -> None:
    n = 211
    A, V = graph(n, np.float64, np.int32), thin(n, 20, np.float64)
    X = A.toarray()
    results = []
    for parts in (1, 2, 7, n):
        out = np.full_like(V, np.nan)

        def compute(rows: tuple[int, int], out: np.ndarray = out) -> None:
            if kind == "dense":
                dense_rows(X, V, out, *rows)
            else:
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


@pytest.mark.parametrize("n", [0, 1, 10])
def test_chunks_of_a_matrix_without_entries(n: int) -> None:
    chunks = balanced_chunks(np.zeros(n + 1, dtype=np.int32), 4)
    assert sum(b - a for a, b in chunks) == n
    assert all(b - a <= 3 for a, b in chunks)


def test_chunks_need_a_positive_number() -> None:
    with pytest.raises(InputError, match="parts is 0"):
        balanced_chunks(np.array([0, 1]), 0)
