"""Thin products ``X @ V`` over a range of rows: the only way a solver touches ``X``.

Both kernels write ``out[begin:end]`` and nothing else and release the GIL, so a pool of threads
may run them side by side on disjoint ranges. Every row is summed in an order that does not depend
on the range it was computed in: the result is the same to the last bit for every chunking.

``out`` must not share memory with ``V``.
"""

from __future__ import annotations

import platform
from itertools import pairwise
from typing import Any

import llvmlite.binding
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
    ask_for,
    check_order,
    span,
    start_of,
)

__all__ = [
    "TILE_ROWS",
    "TILE_VECTORS",
    "VECTOR_BYTES",
    "balanced_chunks",
    "csr_rows",
    "dense_rows",
    "multiply_tile",
    "packed_dense_rows",
    "prefers_dense_rows",
]


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


def _host_tile() -> tuple[int, int]:
    """Bytes per vector register, and how many vectors wide a tile of six rows may be.

    ``6 * width`` sums, ``width`` vectors of ``V`` and one entry of ``X`` have to fit into the
    register file: 29 of the 32 registers of AVX-512 and ARM, 15 of the 16 of older x86. A wrong
    guess costs speed only, since LLVM splits vectors the processor lacks.
    """
    if platform.machine().lower() in {"arm64", "aarch64"}:
        return 16, 4
    features = llvmlite.binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 4
    return (32, 2) if features.get("avx2") else (16, 2)


# Compiled into the kernels; numba's disk cache is keyed by the same processor features.
VECTOR_BYTES, TILE_VECTORS = _host_tile()
TILE_ROWS = 6
#: Columns of V up to which the dense kernel beats BLAS.
WIDEST = 64
# With one vector per row six sums are too few to hide how long each addition takes.
_NARROW_ROWS = 12
# The slab of V used for one sweep over the rows stays in a second-level cache of this order.
_SLAB_BYTES = 1 << 19


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


@intrinsic(prefer_literal=True)
def multiply_tile(
    typing_context: Any,
    X: Any,
    x_offset: Any,
    x_stride: Any,
    panel: Any,
    panel_offset: Any,
    steps: Any,
    tile: Any,
    vectors: Any,
    rows: Any,
    split: Any,
) -> Any:
    """``tile[i, :] = sum_k X[i, k] * panel[k, :]`` for a few rows, the sums held in registers.

    Offsets and strides count elements from the first element of the array; ``panel`` has rows of
    ``vectors`` vectors, each a register divided by ``split``, and ``steps >= 1`` of them. It
    exists because numba's loops keep the sums in memory: one load and one store for every
    multiplication.
    """
    count, height, element = vectors.literal_value, rows.literal_value, X.dtype
    itemsize = element.bitwidth // 8
    lanes = VECTOR_BYTES // itemsize // split.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x_array, x_first, stride, panel_array, panel_first, stop, tile_array, *_ = arguments
        index, vector = ir.IntType(64), ir.VectorType(context.get_value_type(element), lanes)
        undefined = ir.Constant(vector, ir.Undefined)
        every_lane = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        multiply_add = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * 3),
            f"llvm.fmuladd.v{lanes}f{element.bitwidth}",
        )

        def vector_at(base: Any, number: int) -> Any:
            pointer = builder.gep(base, [index(number * lanes)])
            return builder.bitcast(pointer, vector.as_pointer())

        x_start = builder.gep(start_of(context, builder, signature.args[0], x_array), [x_first])
        x_rows = [builder.gep(x_start, [builder.mul(stride, index(i))]) for i in range(height)]
        panel_start = builder.gep(
            start_of(context, builder, signature.args[3], panel_array), [panel_first]
        )

        before = builder.block
        loop, after = builder.append_basic_block("steps"), builder.append_basic_block("store")
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(index)
        k.add_incoming(index(0), before)
        sums = [builder.phi(vector) for _ in range(height * count)]
        panel_row = builder.gep(panel_start, [builder.mul(k, index(count * lanes))])
        v = [builder.load(vector_at(panel_row, j), align=itemsize) for j in range(count)]
        updated = []
        for i, x_row in enumerate(x_rows):
            scalar = builder.load(builder.gep(x_row, [k]))
            x = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
            x = builder.shuffle_vector(x, undefined, every_lane)
            updated += [
                builder.call(multiply_add, [x, v[j], sums[i * count + j]]) for j in range(count)
            ]
        following = builder.add(k, index(1))
        k.add_incoming(following, loop)
        for old, new in zip(sums, updated, strict=True):
            old.add_incoming(ir.Constant(vector, None), before)
            old.add_incoming(new, loop)
        builder.cbranch(builder.icmp_signed("<", following, stop), loop, after)

        builder.position_at_end(after)
        tile_start = start_of(context, builder, signature.args[6], tile_array)
        for number, total in enumerate(updated):
            builder.store(total, vector_at(tile_start, number), align=itemsize)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(X, i64, i64, panel, i64, i64, tile, vectors, rows, split), generate


@compiled(inner=True)
def _pack(V: np.ndarray, first: int, steps: int, lanes: int, panels: np.ndarray) -> None:
    """Copy ``V[first:first + steps]`` into panels as wide as a tile, one after the other.

    The last vector of the last panel may be padded: what lies there is multiplied and dropped.
    """
    columns = V.shape[1]
    padded = -(-columns // lanes) * lanes
    for left in range(0, columns, TILE_VECTORS * lanes):
        width = min(TILE_VECTORS * lanes, padded - left)
        for k in range(steps):
            for c in range(min(width, columns - left)):
                panels[left * steps + k * width + c] = V[first + k, left + c]


@compiled(inner=True)
def _fill_tile(
    X: np.ndarray,
    x: int,
    panels: np.ndarray,
    panel: int,
    steps: int,
    tile: np.ndarray,
    vectors: int,
    height: int,
    halved: bool,
) -> None:
    """Call the :func:`multiply_tile` of this shape."""
    n = X.shape[0]
    if halved:
        if vectors == 3:
            multiply_tile(X, x, n, panels, panel, steps, tile, 3, TILE_ROWS, 2)
        elif vectors == 2:
            multiply_tile(X, x, n, panels, panel, steps, tile, 2, TILE_ROWS, 2)
        elif height == TILE_ROWS:
            multiply_tile(X, x, n, panels, panel, steps, tile, 1, TILE_ROWS, 2)
        else:
            multiply_tile(X, x, n, panels, panel, steps, tile, 1, _NARROW_ROWS, 2)
    elif vectors == 4:
        multiply_tile(X, x, n, panels, panel, steps, tile, 4, TILE_ROWS, 1)
    elif vectors == 3:
        multiply_tile(X, x, n, panels, panel, steps, tile, 3, TILE_ROWS, 1)
    elif vectors == 2:
        multiply_tile(X, x, n, panels, panel, steps, tile, 2, TILE_ROWS, 1)
    elif height == TILE_ROWS:
        multiply_tile(X, x, n, panels, panel, steps, tile, 1, TILE_ROWS, 1)
    else:
        multiply_tile(X, x, n, panels, panel, steps, tile, 1, _NARROW_ROWS, 1)


@compiled()
def packed_dense_rows(X: np.ndarray, V: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """Body of :func:`dense_rows` for a C-ordered ``X`` with at least ``_NARROW_ROWS`` rows."""
    n, columns = X.shape[0], V.shape[1]
    lanes = VECTOR_BYTES // X.itemsize
    # One or three halves of a vector: less padding to multiply than in whole ones.
    halves = -(-columns // (lanes // 2))
    halved = halves == 1 or halves == 3
    if halved:
        lanes //= 2
    padded = -(-columns // lanes) * lanes
    slab = min(n, max(256, _SLAB_BYTES // (padded * X.itemsize)))
    panels = np.zeros(slab * padded, X.dtype)
    height = _NARROW_ROWS if padded == lanes else TILE_ROWS
    tile = np.empty(height * TILE_VECTORS * lanes, X.dtype)
    out[begin:end] = 0
    for first in range(0, n, slab):
        steps = min(slab, n - first)
        _pack(V, first, steps, lanes, panels)
        for i in range(begin, end, height):
            # The last tile reaches back over rows already done, rather than past the matrix.
            top = min(i, n - height)
            x = top * n + first
            for left in range(0, columns, TILE_VECTORS * lanes):
                width = min(TILE_VECTORS * lanes, padded - left)
                vectors = width // lanes
                _fill_tile(X, x, panels, left * steps, steps, tile, vectors, height, halved)
                for row in range(i, min(top + height, end)):
                    for c in range(min(width, columns - left)):
                        out[row, left + c] += tile[(row - top) * width + c]


def dense_rows(X: np.ndarray, V: np.ndarray, out: np.ndarray, begin: int, end: int) -> None:
    """Write ``out[begin:end] = X[begin:end] @ V`` for a symmetric dense ``X``.

    ``V`` is cut into slabs that stay in the second-level cache; for each slab the rows of ``X``
    are read once, six or twelve at a time, with all sums of a tile in vector registers.

    Parameters
    ----------
    X : ndarray of shape (n, n)
        Symmetric, float64 or float32, C- or Fortran-ordered (``X.T`` is the same matrix).
    V : ndarray of shape (n, r)
        Right factor, of the same dtype.
    out : ndarray of shape (n, r)
        Result; other rows are left as they are.
    begin, end : int
        Range of rows.
    """
    rows = X if X.flags.c_contiguous else X.T
    if not rows.flags.c_contiguous:
        raise InputError(
            f"X has strides {X.strides}; pass a C- or Fortran-ordered array, or use np.matmul."
        )
    if len(X) < _NARROW_ROWS:
        np.matmul(X[begin:end], V, out=out[begin:end])
    else:
        packed_dense_rows(rows, V, out, begin, end)


def prefers_dense_rows(X: np.ndarray, columns: int) -> bool:
    """Whether :func:`dense_rows` is the faster way to ``X @ V`` with ``columns`` columns.

    Otherwise BLAS is: on matrices of less than 500 rows (1000 in float32), which it reads from
    cache, for wide ``V`` (more than 64 columns), where it no longer waits for memory, and for
    arrays :func:`dense_rows` does not take.
    """
    return (
        X.dtype in (np.float64, np.float32)
        and (X.flags.c_contiguous or X.flags.f_contiguous)
        and len(X) >= 4000 // X.itemsize
        and columns <= WIDEST
    )
