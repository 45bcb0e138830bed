"""Dense products: X V, factors with small matrices, and sums over rows of factors.

BLAS copies its factors before it multiplies, which takes longer than the product if one of them is
thin. Here both are read as they are, and sums stay in registers.

These are a few hundred instructions, so they are compiled once for each type and not into every
kernel that multiplies. A kernel calls them by a symbol.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from symnmf.kernels.compiling import compiled, shared
from symnmf.kernels.spans import (
    I64,
    TILE_VECTORS,
    VECTOR_BYTES,
    Vectors,
    check_order,
    span,
    start_of,
)

#: Columns up to which this beats BLAS.
NARROW = 256
#: Rows of a tile: with four vectors each its sums fill the registers.
TILE_ROWS = 6
#: Bytes of the right factor that stay in a second-level cache while rows go by.
SLAB_BYTES = 1 << 19
#: Rows that are multiplied with one slab at a time.
SLAB_ROWS = 96


@intrinsic(prefer_literal=True)
def multiply_tile(
    typing_context: Any,
    A: Any,
    top: Any,
    row: Any,
    step: Any,
    B: Any,
    steps: Any,
    C: Any,
    place: Any,
    columns: Any,
    left: Any,
    last: Any,
    vectors: Any,
    size: Any,
    height: Any,
) -> Any:
    """Write ``height`` rows of A B to C, in columns of ``vectors`` of ``size`` bytes.

    Entry (i, k) of A is ``top + i * row + k * step`` entries from the first of its array. C begins
    at entry ``place`` of its own; it and B, of so many ``steps``, have so many ``columns``. Those
    written are of :class:`Vectors` from ``left`` to ``last``. ``vectors`` that are not a constant
    are at most TILE_VECTORS.
    """
    check_order(A, B, C)
    fixed = isinstance(vectors, types.IntegerLiteral)
    counts = [vectors.literal_value] if fixed else range(1, TILE_VECTORS + 1)
    rows = range(height.literal_value)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        top, row, step, _, steps, _, place, columns, left, last, which = arguments[1:12]
        a, b, c = (start_of(context, builder, signature.args[k], arguments[k]) for k in (0, 4, 6))
        tops = [builder.gep(a, [builder.add(top, builder.mul(row, I64(i)))]) for i in rows]
        for count in counts:
            with builder.if_then(builder.icmp_signed("==", which, I64(count))):
                across = Vectors(context, builder, C.dtype, size.literal_value, count, left, last)

                def added(k: Any, sums: list[Any], across: Any = across) -> list[Any]:
                    right = across.load(builder.gep(b, [builder.mul(k, columns)]))
                    parts = (sums[i * len(right) : (i + 1) * len(right)] for i in rows)
                    along = builder.mul(k, step)
                    return [
                        total
                        for start, part in zip(tops, parts, strict=True)
                        for total in across.added(builder.gep(start, [along]), right, part)
                    ]

                sums = across.loop(I64(0), steps, 1, across.zeros * len(rows), added)
                for i in rows:
                    target = builder.gep(c, [builder.add(place, builder.mul(columns, I64(i)))])
                    across.store(sums[i * count : (i + 1) * count], target)
        return context.get_dummy_value()

    i64 = types.int64
    given = (A, i64, i64, i64, B, i64, C, i64, i64, i64, i64, vectors if fixed else i64)
    return types.void(*given, size, height), generate


def _multiply(
    a: Any, b: Any, c: Any, rows: int, columns: int, steps: int, row: int, step: int
) -> None:
    """Write A B to C, with ``steps`` rows in B; see :func:`multiply_tile`."""
    A, B, C = carray(a, rows * steps), carray(b, steps * columns), carray(c, rows * columns)
    size, lanes = columns * C.itemsize, VECTOR_BYTES // C.itemsize
    if size < 16 or rows < TILE_ROWS:
        for i in range(rows):
            for j in range(columns):
                total = C.dtype.type(0)
                for k in range(steps):
                    total += A[i * row + k * step] * B[k * columns + j]
                C[i * columns + j] = total
        return
    for i in range(0, rows, TILE_ROWS):
        # the last tile reaches back over rows already done, rather than past the end
        first = min(i, rows - TILE_ROWS)
        top, place = first * row, first * columns
        if size >= VECTOR_BYTES:
            left = 0
            while left < columns:
                remaining = -(-(columns - left) // lanes)
                count = min(3 if remaining == 5 else remaining, TILE_VECTORS)
                last = min(left + count * lanes, columns) - lanes
                multiply_tile(
                    A, top, row, step, B, steps, C, place, columns, left, last,
                    count, VECTOR_BYTES, TILE_ROWS,
                )  # fmt: skip
                left += count * lanes
        elif size >= 32:
            last = columns - 32 // C.itemsize
            multiply_tile(A, top, row, step, B, steps, C, place, columns, 0, last, 2, 32, TILE_ROWS)
        else:
            last = columns - 16 // C.itemsize
            multiply_tile(A, top, row, step, B, steps, C, place, columns, 0, last, 2, 16, TILE_ROWS)


def _symbol(kind: Any) -> str:
    return f"symnmf_multiply_{kind}"


for kind in (types.float32, types.float64):
    shared(_multiply, (*[types.CPointer(kind)] * 3, *[types.int64] * 5), _symbol(kind))


@intrinsic
def multiply(
    typing_context: Any,
    A: Any,
    B: Any,
    C: Any,
    rows: Any,
    columns: Any,
    steps: Any,
    row: Any,
    step: Any,
) -> Any:
    """Write A B to C, which are spans; a row of A has ``row`` entries, or a column has (``step``).

    The other of ``row`` and ``step`` is 1. B has so many ``steps`` and ``columns``.
    """
    check_order(A, B, C)
    if len({array.dtype for array in (A, B, C)}) > 1:
        raise TypingError(f"factors and product differ in type: {A}, {B}, {C}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        starts = [start_of(context, builder, signature.args[k], arguments[k]) for k in range(3)]
        kinds = [start.type for start in starts] + [I64] * 5
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), kinds), _symbol(C.dtype)
        )
        builder.call(function, [*starts, *arguments[3:]])
        return context.get_dummy_value()

    return types.void(A, B, C, *[types.int64] * 5), generate


@compiled(inner=True)
def multiply_rows(A: np.ndarray, B: np.ndarray, C: np.ndarray, rows: int, r: int) -> None:
    """Write C = A B for so many rows of A and an r x r matrix B."""
    multiply(A, B, C, rows, r, r, r, 1)


@compiled(inner=True)
def sum_over_rows(A: np.ndarray, B: np.ndarray, C: np.ndarray, rows: int, r: int) -> None:
    """Write C = A^T B for so many rows of two factors with r columns."""
    multiply(A, B, C, r, r, rows, 1, r)


@compiled()
def times_rows(A: np.ndarray, B: np.ndarray, C: np.ndarray, begin: int, end: int) -> None:
    """Write rows ``begin..end`` of A B to C, in slabs of B that stay in cache.

    Every row is summed in an order that does not depend on the range.
    """
    steps, columns = B.shape
    slab = max(256, SLAB_BYTES // (columns * B.itemsize))
    added = np.empty(2 * SLAB_ROWS * columns if steps > slab else 0, C.dtype)
    for first in range(0, steps, slab):
        count = min(slab, steps - first)
        right = span(B, first * columns, count * columns)
        top = begin
        while top < end:
            # the last rows are not left alone: a few would be summed in another way
            rows = end - top
            if steps > slab and rows >= 2 * SLAB_ROWS:
                rows = SLAB_ROWS
            left, own = span(A, top * steps + first, rows), span(C, top * columns, rows * columns)
            multiply(left, right, own if first == 0 else added, rows, columns, count, steps, 1)
            if first > 0:
                for k in range(rows * columns):
                    own[k] += added[k]
            top += rows
