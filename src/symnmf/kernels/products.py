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
from numba import types
from numba.extending import intrinsic

from symnmf.kernels.compiling import compiled
from symnmf.kernels.spans import (
    CACHED_BYTES,
    I64,
    PREFETCH_AHEAD,
    VECTOR_BYTES,
    Vectors,
    ask_for,
    check_order,
    span,
    start_of,
)

#: Vectors that a row wider than one of them is summed in at a time.
PANELS = (2, 3, 4)


def balanced_chunks(indptr: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Cut the rows of a CSR matrix into ranges of nearly equal numbers of stored entries.

    Fewer ranges than ``parts`` come back where rows are too few or too long.
    """
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

    The columns c are those of a few ``vectors`` of so many bytes (PANELS, where that is no
    constant), see :class:`Vectors`. Sums stay in registers, two for each vector, of every other
    entry, so that an addition does not wait for the one before it. The rows of V wanted next lie
    anywhere in memory, where no processor looks ahead, but ``indices`` names them early enough:
    those of entries before ``ahead`` are asked for.
    """
    check_order(indices, data, V, out)
    fixed = isinstance(vectors, types.IntegerLiteral)
    counts = [vectors.literal_value] if fixed else PANELS

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        begin, stop, known = arguments[3:6]
        names, values, rows, target = (
            start_of(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 2, 8)
        )
        shape = context.make_array(signature.args[2])(context, builder, arguments[2]).shape
        columns = builder.extract_value(shape, 1)

        def row_of(position: Any) -> Any:
            number = builder.load(builder.gep(names, [position]))
            number = context.cast(builder, number, signature.args[0].dtype, types.int64)
            return builder.gep(rows, [builder.mul(number, columns)])

        for count in counts:
            with builder.if_then(builder.icmp_signed("==", arguments[10], I64(count))):
                across = Vectors(
                    context, builder, V.dtype, size.literal_value, count, *arguments[6:8]
                )

                def added(position: Any, sums: list[Any], across: Any = across) -> list[Any]:
                    entry = builder.gep(values, [position])
                    return across.added(entry, across.load(row_of(position)), sums)

                def paired(
                    position: Any, sums: list[Any], across: Any = across, added: Any = added
                ) -> list[Any]:
                    following = builder.add(position, I64(1))
                    soon = [builder.add(position, I64(PREFETCH_AHEAD + k)) for k in range(2)]
                    with builder.if_then(builder.icmp_signed("<", soon[1], known)):
                        for later in soon:
                            for place in across.places(row_of(later)):
                                ask_for(builder, place)
                    half = len(sums) // 2
                    return added(position, sums[:half]) + added(following, sums[half:])

                even = builder.sub(stop, builder.and_(builder.sub(stop, begin), I64(1)))
                pairs = across.loop(begin, even, 2, across.zeros * 2, paired)
                sums = [builder.fadd(pairs[k], pairs[count + k]) for k in range(count)]
                sums = across.loop(even, stop, 1, sums, added)
                across.store(sums, builder.gep(target, [arguments[9]]))
        return context.get_dummy_value()

    i64 = types.int64
    which = vectors if fixed else i64
    given = (indices, data, V, i64, i64, i64, i64, i64, out, i64, which, size)
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
    """Write ``out[begin:end] = X[begin:end] @ V`` for ``X`` in CSR form."""
    columns, item = V.shape[1], V.itemsize
    size, lanes = columns * item, VECTOR_BYTES // item
    ahead = np.int64(indptr[end]) if V.size * item > CACHED_BYTES else np.int64(0)
    for i in range(begin, end):
        first, stop, row = np.int64(indptr[i]), np.int64(indptr[i + 1]), i * columns
        if size > VECTOR_BYTES:
            left = 0
            while left < columns:
                remaining = -(-(columns - left) // lanes)
                count = 4 if remaining > 5 or remaining == 4 else min(remaining, 3)
                last = min(left + count * lanes, columns) - lanes
                _sum_row(
                    indices, data, V, first, stop, ahead, left, last, out, row, count, VECTOR_BYTES
                )
                left += count * lanes
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
