"""Dense products: X V, factors with small matrices, and sums over rows of factors.

BLAS copies its factors before it multiplies, which takes longer than the product if one of them is
thin. Here both are read as they are, and sums stay in registers.

These are a few hundred instructions, so they are compiled once for each type and not into every
kernel that multiplies. A kernel gets the address of the function, see :func:`multiplier`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from symnmf.kernels.compiling import compiled
from symnmf.kernels.spans import (
    ADDRESS,
    I8,
    I32,
    I64,
    TILE_VECTORS,
    VECTOR_BYTES,
    check_order,
    span,
    start_of,
)

#: Columns up to which this beats BLAS.
NARROW = 256
#: Columns up to which X V waits for X to be read.
WIDEST = 64
#: Rows of a tile: with four vectors each its sums fill the registers.
TILE_ROWS = 6
#: Bytes of the right factor that stay in a second-level cache while rows go by.
SLAB_BYTES = 1 << 19
#: Rows that are multiplied with one slab at a time.
SLAB_ROWS = 96

#: numba's name for BLAS: kind, transposed a and b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc;
#: in Fortran's order.
GEMM = "numba_xxgemm"
GEMM_TYPE = ir.FunctionType(
    I32, [I8, I8, I8, I64, I64, I64, ADDRESS, ADDRESS, I64, ADDRESS, I64, ADDRESS, ADDRESS, I64]
)


@intrinsic(prefer_literal=True)
def multiply_tile(
    typing_context: Any,
    kind: Any,
    A: Any,
    B: Any,
    steps: Any,
    other_A: Any,
    other_B: Any,
    other_steps: Any,
    C: Any,
    row: Any,
    step: Any,
    columns: Any,
    left: Any,
    last: Any,
    vectors: Any,
    size: Any,
    height: Any,
) -> Any:
    """Write ``height`` rows of A B + A' B' to C, in columns of ``vectors`` of ``size`` bytes.

    All matrices are given by addresses. Entry (i, k) of A is ``i * row + k * step`` entries from
    its address; B and C have so many ``columns``. Vectors begin at column ``left``, but the last of
    them at column ``last``, so that none reaches past the end of a row; columns that are in two
    vectors are written twice.
    """
    count, tall, element = vectors.literal_value, height.literal_value, kind
    itemsize = element.bitwidth // 8
    lanes = size.literal_value // itemsize

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row_step, k_step, width, panel, final = arguments[8:13]
        scalar = context.get_value_type(element)
        vector = ir.VectorType(scalar, lanes)
        undefined = ir.Constant(vector, ir.Undefined)
        every_lane = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
        multiply_add = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * 3),
            f"llvm.fmuladd.v{lanes}f{element.bitwidth}",
        )
        offsets = [builder.add(panel, I64(j * lanes)) for j in range(count - 1)] + [final]

        def start(number: int) -> Any:
            return builder.inttoptr(arguments[number], scalar.as_pointer())

        def vectors_at(place: Any) -> list[Any]:
            return [
                builder.bitcast(builder.gep(place, [offset]), vector.as_pointer())
                for offset in offsets
            ]

        def added(number: int, sums: list[Any]) -> list[Any]:
            """Add a product to the sums, in a loop over what its factors share."""
            a, b, stop = start(number), start(number + 1), arguments[number + 2]
            rows = [builder.gep(a, [builder.mul(row_step, I64(i))]) for i in range(tall)]
            before = builder.block
            head, body, after = map(builder.append_basic_block, ["head", "body", "after"])
            builder.branch(head)

            builder.position_at_end(head)
            k = builder.phi(I64)
            k.add_incoming(I64(0), before)
            kept = [builder.phi(vector) for _ in sums]
            for old, new in zip(sums, kept, strict=True):
                new.add_incoming(old, before)
            builder.cbranch(builder.icmp_signed("<", k, stop), body, after)

            builder.position_at_end(body)
            along, across = builder.mul(k, k_step), builder.mul(k, width)
            v = [builder.load(at, align=itemsize) for at in vectors_at(builder.gep(b, [across]))]
            for i, place in enumerate(rows):
                entry = builder.load(builder.gep(place, [along]))
                x = builder.insert_element(undefined, entry, I32(0))
                x = builder.shuffle_vector(x, undefined, every_lane)
                for j in range(count):
                    total = kept[i * count + j]
                    total.add_incoming(builder.call(multiply_add, [x, v[j], total]), body)
            k.add_incoming(builder.add(k, I64(1)), body)
            builder.branch(head)

            builder.position_at_end(after)
            return kept

        sums = added(4, added(1, [ir.Constant(vector, None)] * (tall * count)))
        target = start(7)
        for i in range(tall):
            places = vectors_at(builder.gep(target, [builder.mul(width, I64(i))]))
            for total, place in zip(sums[i * count : (i + 1) * count], places, strict=True):
                builder.store(total, place, align=itemsize)
        return context.get_dummy_value()

    return types.void(kind, *[types.int64] * 12, vectors, size, height), generate


@intrinsic
def _blas(
    typing_context: Any,
    kind: Any,
    A: Any,
    B: Any,
    C: Any,
    rows: Any,
    columns: Any,
    steps: Any,
    row: Any,
    step: Any,
    kept: Any,
) -> Any:
    """Write A B to C or add it (``kept`` 1.0) to what C holds, all by addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, a, b, c, m, n, k, row, step, beta = arguments
        turned = builder.icmp_signed("!=", step, I64(1))
        # a matrix of one row has no distance between rows
        apart = builder.select(builder.icmp_signed(">", row, k), row, k)
        real = context.get_value_type(kind)
        one = cgutils.alloca_once_value(builder, ir.Constant(real, 1.0))
        held = cgutils.alloca_once_value(builder, context.cast(builder, beta, types.float64, kind))
        # what is C-ordered is the transpose of what Fortran reads: C^T = B^T A^T
        letter = I8(ord("s" if kind == types.float32 else "d"))
        order = builder.select(turned, I8(ord("t")), I8(ord("n")))
        pointers = [builder.inttoptr(address, ADDRESS) for address in (a, b, c)]
        gemm = cgutils.get_or_insert_function(builder.module, GEMM_TYPE, GEMM)
        builder.call(
            gemm,
            [
                letter, I8(ord("n")), order, n, m, k, builder.bitcast(one, ADDRESS),
                pointers[1], n, pointers[0], builder.select(turned, step, apart),
                builder.bitcast(held, ADDRESS), pointers[2], n,
            ],
        )  # fmt: skip
        return context.get_dummy_value()

    given = (kind, *[types.int64] * 8, types.float64)
    return types.void(*given), generate


@intrinsic
def _itemsize(typing_context: Any, kind: Any) -> Any:
    """Return how many bytes a number of this type takes, as a constant."""
    return types.int64(kind), lambda *_: I64(kind.bitwidth // 8)


@compiled()
def _multiply(
    kind: Any,
    A: int,
    B: int,
    steps: int,
    other_A: int,
    other_B: int,
    other_steps: int,
    C: int,
    row: int,
    step: int,
    rows: int,
    columns: int,
) -> None:
    """Write C = A B + A' B', all by addresses, with ``steps`` and ``other_steps`` rows in B and B'.

    A row of A has neighbouring entries (``step`` 1), or a column of it has (``row`` 1).
    """
    item = _itemsize(kind)
    size, lanes = columns * item, VECTOR_BYTES // item
    if rows < TILE_ROWS or size < 16 or columns > NARROW:
        _blas(kind, A, B, C, rows, columns, steps, row, step, 0.0)
        if other_steps:
            _blas(kind, other_A, other_B, C, rows, columns, other_steps, row, step, 1.0)
        return
    for i in range(0, rows, TILE_ROWS):
        # the last tile reaches back over rows already done, rather than past the end
        top = min(i, rows - TILE_ROWS) * item
        a, b, c = A + top * row, other_A + top * row, C + top * columns
        if size >= VECTOR_BYTES:
            left = 0
            while left < columns:
                remaining = -(-(columns - left) // lanes)
                vectors = min(3 if remaining == 5 else remaining, TILE_VECTORS)
                last = min(left + vectors * lanes, columns) - lanes
                # fmt: off
                if vectors == 4:
                    multiply_tile(kind, a, B, steps, b, other_B, other_steps, c, row, step,
                                  columns, left, last, 4, VECTOR_BYTES, TILE_ROWS)
                elif vectors == 3:
                    multiply_tile(kind, a, B, steps, b, other_B, other_steps, c, row, step,
                                  columns, left, last, 3, VECTOR_BYTES, TILE_ROWS)
                elif vectors == 2:
                    multiply_tile(kind, a, B, steps, b, other_B, other_steps, c, row, step,
                                  columns, left, last, 2, VECTOR_BYTES, TILE_ROWS)
                else:
                    multiply_tile(kind, a, B, steps, b, other_B, other_steps, c, row, step,
                                  columns, left, last, 1, VECTOR_BYTES, TILE_ROWS)
                left += vectors * lanes
        elif size >= 32:
            multiply_tile(
                kind,
                a,
                B,
                steps,
                b,
                other_B,
                other_steps,
                c,
                row,
                step,
                columns,
                0,
                columns - 32 // item,
                2,
                32,
                TILE_ROWS,
            )
        else:
            multiply_tile(
                kind,
                a,
                B,
                steps,
                b,
                other_B,
                other_steps,
                c,
                row,
                step,
                columns,
                0,
                columns - 16 // item,
                2,
                16,
                TILE_ROWS,
            )
        # fmt: on


GIVEN = (*[types.int64] * 11,)


@functools.cache
def multiplier(dtype: np.dtype) -> int:
    """Return the address of the compiled function that multiplies entries of a type."""
    kind = types.float32 if dtype == np.float32 else types.float64
    _multiply.compile((kind, *GIVEN))
    (found,) = (made for kinds, made in _multiply.overloads.items() if kinds[0] == kind)
    address = int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))
    if not address:
        raise RuntimeError("numba compiled a function and does not say where it is.")
    return address


def _call(context: Any, builder: Any, kind: Any, address: Any, given: list[Any]) -> None:
    """Emit a call of :func:`_multiply` at an address."""
    scalar = types.float32 if kind.dtype == types.float32 else types.float64
    signature = context.call_conv.get_function_type(types.none, (scalar, *GIVEN))
    function = builder.inttoptr(address, signature.as_pointer())
    # for a value and an error, of which there are none
    unused = [cgutils.alloca_once(builder, place.pointee) for place in signature.args[:2]]
    builder.call(function, [*unused, ir.Constant(signature.args[2], 0.0), *given])


@intrinsic
def check_types(typing_context: Any, A: Any, B: Any, C: Any) -> Any:
    """Refuse matrices of different types while a kernel is compiled: it works with addresses."""
    if len({array.dtype for array in (A, B, C)}) > 1:
        raise TypingError(f"factors and product differ in type: {A}, {B}, {C}")
    return types.void(A, B, C), lambda context, *_: context.get_dummy_value()


@intrinsic
def address_of(typing_context: Any, array: Any, first: Any) -> Any:
    """Return the address of entry ``first`` of an array."""
    check_order(array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = start_of(context, builder, signature.args[0], arguments[0])
        return builder.ptrtoint(builder.gep(start, [arguments[1]]), I64)

    return types.int64(array, types.int64), generate


@intrinsic
def _multiply_at(typing_context: Any, address: Any, array: Any, given: Any) -> Any:
    """Call :func:`_multiply` at an address, for entries of the type of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = cgutils.unpack_tuple(builder, arguments[2])
        _call(context, builder, signature.args[1], arguments[0], numbers)
        return context.get_dummy_value()

    return types.void(types.int64, array, types.UniTuple(types.int64, len(GIVEN))), generate


@compiled(inner=True)
def multiply_rows(
    address: int, A: np.ndarray, B: np.ndarray, C: np.ndarray, rows: int, steps: int, columns: int
) -> None:
    """Write C = A B for so many rows of A, with ``steps`` entries each."""
    a, b, c = address_of(A, 0), address_of(B, 0), address_of(C, 0)
    _multiply_at(address, A, (a, b, steps, a, b, 0, c, steps, 1, rows, columns))


@compiled(inner=True)
def multiply_rows_twice(
    address: int,
    A: np.ndarray,
    B: np.ndarray,
    other_A: np.ndarray,
    other_B: np.ndarray,
    C: np.ndarray,
    rows: int,
    r: int,
) -> None:
    """Write C = A B + A' B' for so many rows A and A', and r x r matrices B and B'."""
    a, b, c = address_of(A, 0), address_of(B, 0), address_of(C, 0)
    other, across = address_of(other_A, 0), address_of(other_B, 0)
    _multiply_at(address, A, (a, b, r, other, across, r, c, r, 1, rows, r))


@compiled(inner=True)
def sum_over_rows(
    address: int, A: np.ndarray, B: np.ndarray, C: np.ndarray, rows: int, a: int, b: int
) -> None:
    """Write C = A^T B for so many rows of factors with ``a`` and ``b`` columns."""
    left, right, c = address_of(A, 0), address_of(B, 0), address_of(C, 0)
    _multiply_at(address, A, (left, right, rows, left, right, 0, c, 1, a, a, b))


@compiled()
def times_rows(
    address: int, A: np.ndarray, B: np.ndarray, C: np.ndarray, begin: int, end: int
) -> None:
    """Write rows ``begin..end`` of A B to C, in slabs of B that stay in cache.

    Every row is summed in an order that does not depend on the range.
    """
    check_types(A, B, C)
    steps, columns = B.shape
    slab = max(256, SLAB_BYTES // (columns * B.itemsize))
    if steps <= slab:
        a, b, c = address_of(A, begin * steps), address_of(B, 0), address_of(C, begin * columns)
        _multiply_at(address, A, (a, b, steps, a, b, 0, c, steps, 1, end - begin, columns))
        return
    added = np.empty(2 * SLAB_ROWS * columns, C.dtype)
    target = address_of(added, 0)
    for first in range(0, steps, slab):
        count = min(slab, steps - first)
        top = begin
        while top < end:
            # the last rows are not left alone: a few would be multiplied by BLAS, and rounded so
            rows = SLAB_ROWS if end - top >= 2 * SLAB_ROWS else end - top
            a, b = address_of(A, top * steps + first), address_of(B, first * columns)
            _multiply_at(address, A, (a, b, count, a, b, 0, target, steps, 1, rows, columns))
            own = span(C, top * columns, rows * columns)
            for k in range(rows * columns):
                own[k] = added[k] if first == 0 else own[k] + added[k]
            top += rows
