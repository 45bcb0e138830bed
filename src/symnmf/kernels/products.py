"""Thin products ``X @ V`` of a sparse X over a range of rows.

The kernel writes ``out[begin:end]`` and nothing else and releases the GIL, so threads may run it
side by side on disjoint ranges. Every row is summed in an order that does not depend on the range
it was computed in: the result is the same to the last bit for every chunking.

``out`` must not share memory with ``V``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from symnmf.errors import InputError
from symnmf.kernels.compiling import compiled
from symnmf.kernels.spans import (
    CACHED_BYTES,
    I32,
    I64,
    PREFETCH_AHEAD,
    VECTOR_BYTES,
    ask_for,
    check_order,
    span,
    start_of,
)


def balanced_chunks(indptr: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Cut the rows of a CSR matrix into ranges of nearly equal numbers of stored entries.

    Parameters
    ----------
    indptr : ndarray of shape (n + 1,)
        Row pointers of the matrix.
    parts : int
        Number of ranges asked for; fewer come back where rows are too few or too long.

    Returns
    -------
    list of (begin, end)
        Non-empty ranges which cover ``0 .. n`` in order.
    """
    if parts < 1:
        raise InputError(f"parts is {parts}; ask for at least one chunk of rows.")
    n = len(indptr) - 1
    if parts == 1:
        return [(0, n)] if n else []
    # A row costs its entries and the writing of its output; the latter alone balances empty rows.
    cost = np.asarray(indptr, dtype=np.int64) + np.arange(n + 1)
    targets = np.linspace(cost[0], cost[-1], parts + 1)[1:-1]
    bounds = np.unique(np.concatenate(([0], np.searchsorted(cost, targets), [n])))
    return [(int(a), int(b)) for a, b in pairwise(bounds)]


@intrinsic(prefer_literal=True)
def _sum_row(
    typing_context: Any,
    indices: Any,
    data: Any,
    V: Any,
    first: Any,
    stop: Any,
    ahead: Any,
    left: Any,
    last: Any,
    out: Any,
    row: Any,
    vectors: Any,
    size: Any,
) -> Any:
    """``out[row + c] = sum_p data[p] V[indices[p], c]`` over entries ``first..stop``.

    The columns c are those of a few ``vectors`` of so many bytes. They begin at column ``left``,
    but the last of them at column ``last``, so that none reaches past the end of a row; columns
    that are in two vectors are written twice. Sums stay in registers, two for each vector, of
    every other entry, so that an addition does not wait for the one before it. The rows of V
    wanted next lie anywhere in memory, where no processor looks ahead, but ``indices`` names them
    early enough: those of entries before ``ahead`` are asked for.
    """
    check_order(indices, data, V, out)
    count, element = vectors.literal_value, V.dtype
    itemsize = element.bitwidth // 8
    lanes = size.literal_value // itemsize

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        begin, end, known, panel, final = arguments[3:8]
        names, values, rows, target = (
            start_of(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 2, 8)
        )
        vector = ir.VectorType(context.get_value_type(element), lanes)
        undefined = ir.Constant(vector, ir.Undefined)
        every_lane = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
        multiply_add = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * 3),
            f"llvm.fmuladd.v{lanes}f{element.bitwidth}",
        )
        shape = context.make_array(signature.args[2])(context, builder, arguments[2]).shape
        columns = builder.extract_value(shape, 1)
        offsets = [builder.add(panel, I64(k * lanes)) for k in range(count - 1)] + [final]

        def places(start: Any) -> list[Any]:
            return [builder.gep(start, [offset]) for offset in offsets]

        def row_of(position: Any) -> list[Any]:
            number = builder.load(builder.gep(names, [position]))
            number = context.cast(builder, number, signature.args[0].dtype, types.int64)
            return places(builder.gep(rows, [builder.mul(number, columns)]))

        def added(position: Any, sums: list[Any]) -> list[Any]:
            scalar = builder.load(builder.gep(values, [position]))
            x = builder.insert_element(undefined, scalar, I32(0))
            x = builder.shuffle_vector(x, undefined, every_lane)
            pieces = [builder.bitcast(place, vector.as_pointer()) for place in row_of(position)]
            return [
                builder.call(multiply_add, [x, builder.load(piece, align=itemsize), total])
                for piece, total in zip(pieces, sums, strict=True)
            ]

        before = builder.block
        head, pair, ask, add, rest, odd, done = map(
            builder.append_basic_block, ["head", "pair", "ask", "add", "rest", "odd", "done"]
        )
        paired = builder.sub(end, builder.and_(builder.sub(end, begin), I64(1)))
        builder.branch(head)

        builder.position_at_end(head)
        position = builder.phi(I64)
        sums = [builder.phi(vector) for _ in range(2 * count)]
        builder.cbranch(builder.icmp_signed("<", position, paired), pair, rest)

        builder.position_at_end(pair)
        soon = [builder.add(position, I64(PREFETCH_AHEAD + k)) for k in range(2)]
        builder.cbranch(builder.icmp_signed("<", soon[1], known), ask, add)

        builder.position_at_end(ask)
        for later in soon:
            for place in row_of(later):
                ask_for(builder, place)
        builder.branch(add)

        builder.position_at_end(add)
        following = builder.add(position, I64(1))
        updated = added(position, sums[:count]) + added(following, sums[count:])
        position.add_incoming(begin, before)
        position.add_incoming(builder.add(position, I64(2)), add)
        for old, new in zip(sums, updated, strict=True):
            old.add_incoming(ir.Constant(vector, None), before)
            old.add_incoming(new, add)
        builder.branch(head)

        builder.position_at_end(rest)
        even = [builder.fadd(sums[k], sums[count + k]) for k in range(count)]
        builder.cbranch(builder.icmp_signed("<", paired, end), odd, done)

        builder.position_at_end(odd)
        uneven = added(paired, even)
        builder.branch(done)

        builder.position_at_end(done)
        totals = [builder.phi(vector) for _ in range(count)]
        for total, without, whole in zip(totals, even, uneven, strict=True):
            total.add_incoming(without, rest)
            total.add_incoming(whole, odd)
        for total, place in zip(totals, places(builder.gep(target, [arguments[9]])), strict=True):
            builder.store(total, builder.bitcast(place, vector.as_pointer()), align=itemsize)
        return context.get_dummy_value()

    i64 = types.int64
    given = (indices, data, V, i64, i64, i64, i64, i64, out, i64, vectors, size)
    return types.void(*given), generate


@compiled()
def csr_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    V: np.ndarray,
    out: np.ndarray,
    begin: int,
    end: int,
) -> None:
    """Write ``out[begin:end] = X[begin:end] @ V`` for ``X`` in CSR form.

    Parameters
    ----------
    indptr, indices : ndarray of int32 or int64
        CSR structure of ``X``; indices need not be sorted.
    data : ndarray of float64 or float32
        Stored entries.
    V : ndarray of shape (n, r)
        Right factor, C-ordered, of the same dtype as ``data``.
    out : ndarray of shape (n, r)
        Result, C-ordered; other rows are left as they are.
    begin, end : int
        Range of rows.
    """
    columns, item = V.shape[1], V.itemsize
    size, lanes = columns * item, VECTOR_BYTES // item
    ahead = np.int64(indptr[end]) if V.size * item > CACHED_BYTES else np.int64(0)
    for i in range(begin, end):
        first, stop, row = np.int64(indptr[i]), np.int64(indptr[i + 1]), i * columns
        if size > VECTOR_BYTES:
            left = 0
            while left < columns:  # panels of two, three or four vectors
                remaining = -(-(columns - left) // lanes)
                vectors = 4 if remaining > 5 or remaining == 4 else min(remaining, 3)
                last = min(left + vectors * lanes, columns) - lanes
                if vectors == 4:
                    _sum_row(
                        indices, data, V, first, stop, ahead, left, last, out, row, 4, VECTOR_BYTES
                    )
                elif vectors == 3:
                    _sum_row(
                        indices, data, V, first, stop, ahead, left, last, out, row, 3, VECTOR_BYTES
                    )
                else:
                    _sum_row(
                        indices, data, V, first, stop, ahead, left, last, out, row, 2, VECTOR_BYTES
                    )
                left += vectors * lanes
        elif size > 32:
            last = columns - 32 // item
            _sum_row(indices, data, V, first, stop, ahead, 0, last, out, row, 2, 32)
        elif size > 16:
            last = columns - 16 // item
            _sum_row(indices, data, V, first, stop, ahead, 0, last, out, row, 2, 16)
        else:
            total = span(out, row, columns)
            for c in range(columns):
                total[c] = 0
            for p in range(first, stop):
                x, other = data[p], span(V, np.int64(indices[p]) * columns, columns)
                for c in range(columns):
                    total[c] += x * other[c]
