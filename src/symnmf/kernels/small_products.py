"""Products of rows with a small matrix, and sums over rows, faster than BLAS does them.

BLAS copies its factors before it multiplies, which takes longer than the product if one of them is
r x r with r below a hundred. Here both are read as they are, and sums stay in registers.

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
from symnmf.kernels.products import TILE_ROWS, TILE_VECTORS, VECTOR_BYTES
from symnmf.kernels.spans import ADDRESS, I8, I32, I64, check_order, span, start_of

__all__ = ["multiplier", "multiply_rows", "multiply_rows_twice", "sum_over_rows", "times_rows"]

#: Columns up to which this beats BLAS.
NARROW = 256

#: numba's name for BLAS: kind, transposed a and b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc;
#: in Fortran's order.
GEMM = "numba_xxgemm"
GEMM_TYPE = ir.FunctionType(
    I32, [I8, I8, I8, I64, I64, I64, ADDRESS, ADDRESS, I64, ADDRESS, I64, ADDRESS, ADDRESS, I64]
)


@intrinsic(prefer_literal=True)
def _tile(
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
) -> Any:
    """Write a few rows of A B + A' B' to C, in columns of a few ``vectors`` of ``size`` bytes.

    All matrices are given by addresses. Entry (i, k) of A is ``i * row + k * step`` entries from
    its address; B and C have so many ``columns``. Vectors begin at column ``left``, but the last of
    them at column ``last``, so that none reaches past the end of a row; columns that are in two
    vectors are written twice.
    """
    count, element = vectors.literal_value, kind
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
            rows = [builder.gep(a, [builder.mul(row_step, I64(i))]) for i in range(TILE_ROWS)]
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

        sums = added(4, added(1, [ir.Constant(vector, None)] * (TILE_ROWS * count)))
        target = start(7)
        for i in range(TILE_ROWS):
            places = vectors_at(builder.gep(target, [builder.mul(width, I64(i))]))
            for total, place in zip(sums[i * count : (i + 1) * count], places, strict=True):
                builder.store(total, place, align=itemsize)
        return context.get_dummy_value()

    return types.void(kind, *[types.int64] * 12, vectors, size), generate


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
    transposed: Any,
    kept: Any,
) -> Any:
    """Write A B, or A^T B, to C or add it (``kept`` 1.0) to what C holds, all by addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, a, b, c, m, n, k, turned, beta = arguments
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
                pointers[1], n, pointers[0], builder.select(turned, m, k),
                builder.bitcast(held, ADDRESS), pointers[2], n,
            ],
        )  # fmt: skip
        return context.get_dummy_value()

    given = (kind, *[types.int64] * 6, types.boolean, types.float64)
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
        _blas(kind, A, B, C, rows, columns, steps, step != 1, 0.0)
        if other_steps:
            _blas(kind, other_A, other_B, C, rows, columns, other_steps, step != 1, 1.0)
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
                if vectors == 4:
                    _tile(kind, a, B, steps, b, other_B, other_steps, c,
                          row, step, columns, left, last, 4, VECTOR_BYTES)  # fmt: skip
                elif vectors == 3:
                    _tile(kind, a, B, steps, b, other_B, other_steps, c,
                          row, step, columns, left, last, 3, VECTOR_BYTES)  # fmt: skip
                elif vectors == 2:
                    _tile(kind, a, B, steps, b, other_B, other_steps, c,
                          row, step, columns, left, last, 2, VECTOR_BYTES)  # fmt: skip
                else:
                    _tile(kind, a, B, steps, b, other_B, other_steps, c,
                          row, step, columns, left, last, 1, VECTOR_BYTES)  # fmt: skip
                left += vectors * lanes
        elif size >= 32:
            _tile(kind, a, B, steps, b, other_B, other_steps, c,
                  row, step, columns, 0, columns - 32 // item, 2, 32)  # fmt: skip
        else:
            _tile(kind, a, B, steps, b, other_B, other_steps, c,
                  row, step, columns, 0, columns - 16 // item, 2, 16)  # fmt: skip


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
def _multiply_rows(
    typing_context: Any,
    address: Any,
    A: Any,
    B: Any,
    steps: Any,
    other_A: Any,
    other_B: Any,
    other_steps: Any,
    C: Any,
    row: Any,
    step: Any,
    rows: Any,
    columns: Any,
) -> Any:
    """Call the function at an address with arrays."""
    check_order(A, B, other_A, other_B, C)
    if len({array.dtype for array in (A, B, other_A, other_B, C)}) > 1:
        raise TypingError(f"factors and product differ in type: {A}, {B}, {C}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = [
            builder.ptrtoint(start_of(context, builder, one, value), I64)
            if isinstance(one, types.Array)
            else value
            for one, value in zip(signature.args, arguments, strict=True)
        ]
        _call(context, builder, C, given[0], given[1:])
        return context.get_dummy_value()

    i64 = types.int64
    given = (i64, A, B, i64, other_A, other_B, i64, C, i64, i64, i64, i64)
    return types.void(*given), generate


@compiled(inner=True)
def multiply_rows(
    address: int, A: np.ndarray, B: np.ndarray, C: np.ndarray, rows: int, steps: int, columns: int
) -> None:
    """Write C = A B for so many rows of A, with ``steps`` entries each."""
    _multiply_rows(address, A, B, steps, A, B, 0, C, steps, 1, rows, columns)


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
    _multiply_rows(address, A, B, r, other_A, other_B, r, C, r, 1, rows, r)


@compiled(inner=True)
def sum_over_rows(
    address: int, A: np.ndarray, B: np.ndarray, C: np.ndarray, rows: int, a: int, b: int
) -> None:
    """Write C = A^T B for so many rows of factors with ``a`` and ``b`` columns."""
    _multiply_rows(address, A, B, rows, A, B, 0, C, 1, a, a, b)


@compiled()
def times_rows(given: Any, part: int, begin: int, end: int) -> None:
    """Write rows ``begin..end`` of A B to C; ``given`` is A, B, C and the address."""
    A, B, C, address = given
    steps, columns, rows = A.shape[1], B.shape[1], end - begin
    own, written = span(A, begin * steps, rows * steps), span(C, begin * columns, rows * columns)
    multiply_rows(address, own, span(B, 0, B.size), written, rows, steps, columns)
