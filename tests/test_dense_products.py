"""Dense products, held to NumPy's in every shape, without a write past the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import synthetic_problem
from symnmf.kernels.dense_products import SLAB_BYTES, times_rows
from symnmf.ops.host import HostOps
from symnmf.parallel import Threads
from symnmf.storage import DenseMatrix

Array = np.ndarray[Any, Any]
DTYPES = [np.dtype(np.float64), np.dtype(np.float32)]
#: Numbers before and after what may be written.
MARGIN = 64


def guarded(rows: int, columns: int, dtype: np.dtype) -> tuple[Array, Array]:
    """Return room to write to, and the whole array that it is part of."""
    whole = np.full(rows * columns + 2 * MARGIN, -7.0, dtype)
    return whole[MARGIN : MARGIN + rows * columns].reshape(rows, columns), whole


def check(found: Array, whole: Array, expected: Array, scale: Array) -> None:
    assert (whole[:MARGIN] == -7.0).all()
    assert (whole[-MARGIN:] == -7.0).all()
    # what rounding leaves of sums of so many terms
    bound = 8 * np.finfo(found.dtype).eps * np.maximum(scale, 1e-300)
    assert (abs(found - expected) <= bound * np.sqrt(len(scale) + 10)).all()


shapes = st.tuples(st.integers(1, 40), st.integers(1, 70), st.integers(1, 70))


@given(shapes, st.sampled_from(DTYPES), st.integers(0, 2**32 - 1))
@example((5, 3, 20), DTYPES[0], 0)  # fewer rows than a tile has
@example((13, 400, 300), DTYPES[0], 0)  # wider than what beats BLAS
@example((6, 1, 1), DTYPES[1], 0)
@example((7, 9, 33), DTYPES[0], 0)  # a fifth vector
@example((7, 9, 65), DTYPES[1], 0)
def test_products_are_numpys(shape: tuple[int, int, int], dtype: np.dtype, seed: int) -> None:
    rows, inner, columns = shape
    rng = np.random.default_rng(seed)
    A, B = (rng.standard_normal(size).astype(dtype) for size in ((rows, inner), (inner, columns)))
    out, whole = guarded(rows, columns, dtype)
    times_rows(A, B, out, 0, rows)
    exact = A.astype(float) @ B.astype(float)
    check(out, whole, exact, abs(A).astype(float) @ abs(B))

    first, last = rows // 3, rows - rows // 4  # a range of the rows
    part, whole = guarded(rows, columns, dtype)
    times_rows(A, B, part, first, last)
    assert (part[:first] == -7.0).all()
    assert (part[last:] == -7.0).all()
    check(part[first:last], whole, exact[first:last], (abs(A).astype(float) @ abs(B))[first:last])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_factor_wider_than_the_cache_is_taken_in_slabs(dtype: np.dtype) -> None:
    rng = np.random.default_rng(0)
    A, B = rng.random((203, 2001)).astype(dtype), rng.random((2001, 97)).astype(dtype)
    assert B.nbytes > SLAB_BYTES
    assert 2001 % (SLAB_BYTES // B[0].nbytes)
    out, whole = guarded(203, 97, dtype)
    times_rows(A, B, out, 0, 203)
    check(out, whole, A.astype(float) @ B.astype(float), A.astype(float) @ B)
    parts = np.empty_like(out)
    for first, last in ((0, 100), (100, 117), (117, 203)):
        times_rows(A, B, parts, first, last)
    np.testing.assert_array_equal(parts, out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("width", [1, 5, 20, 50])
def test_dense_products_of_every_order(dtype: np.dtype, order: Any, width: int) -> None:
    X = np.array(synthetic_problem(120, 4, 0.1), dtype=dtype, order=order)
    X.flags.writeable = False
    V = np.random.default_rng(0).random((120, width)).astype(dtype)
    one, two = (DenseMatrix(X, Threads(count)).matmul(V) for count in (1, 2))
    np.testing.assert_allclose(one, X.astype(float) @ V, rtol=1e-5 if X.itemsize == 4 else 1e-12)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "r"), [(700, 3), (900, 20), (300, 70), (40, 300)])
def test_operations_on_factors_are_numpys(dtype: np.dtype, n: int, r: int) -> None:
    rng = np.random.default_rng(1)
    A, B, small = rng.random((n, r)), rng.random((n, 12)), rng.random((r, 9))
    A, B = A.astype(dtype), B.astype(dtype)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    for count in (1, 2):
        ops = HostOps(Threads(count))
        np.testing.assert_allclose(ops.gram(A), A.astype(float).T @ A, rtol=rtol)
        np.testing.assert_allclose(ops.cross(A, B), A.astype(float).T @ B, rtol=rtol)
        np.testing.assert_allclose(ops.times(A, small), A.astype(float) @ small, rtol=rtol)
