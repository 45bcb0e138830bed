"""Triton kernels for tall factors: a tile of rows stays on chip through all that is done to it.

Factors are contiguous, n x r, and padded on chip to ``R`` columns, a power of two. Kernels that
sum are launched as a fixed number of programs, each of which goes through tiles of its own and
leaves one row of partial sums; these are added up afterwards in float64 and in a fixed order, so
that the same input gives the same bits. Matrix products are three TF32 products each (of leading
and trailing bits), which keeps float32's accuracy at several times its speed.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def hals_kernel(
    factor, product, anchor, weights, out, n, r, sweeps,
    R: tl.constexpr, ROWS: tl.constexpr, GATHERED: tl.constexpr,
):  # fmt: skip
    """Sweep over the columns of a tile of rows; ``weights`` are a Gram matrix and the coupling.

    ``GATHERED`` tiles lie as matrix units leave them, with much of a row in each thread, so that
    the sums over a row, one for every column in turn, need few exchanges between threads.
    """
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, R)
    inside = (rows < n)[:, None] & (columns < r)[None, :]
    place = rows.to(tl.int64)[:, None] * r + columns[None, :]
    coupling = tl.load(weights + r * r)
    cross = tl.load(product + place, inside, 0.0)
    cross += coupling * tl.load(anchor + place, inside, 0.0)
    u = tl.load(factor + place, inside, 0.0)
    if GATHERED:
        # adds nothing: all of these columns lie beyond the last
        beyond = (R + tl.arange(0, 16))[:, None]
        nothing = tl.load(weights + beyond + columns[None, :], beyond < r, 0.0)
        empty = tl.zeros((ROWS, 16), tl.float32)
        cross = tl.dot(empty, nothing, cross, input_precision="tf32")
        u = tl.dot(empty, nothing, u, input_precision="tf32")
    for _ in range(sweeps):
        for j in tl.range(0, r, loop_unroll_factor=2):  # loads of the next while one is summed
            off_diagonal = tl.load(weights + j * r + columns, columns < r, 0.0)
            curvature = tl.load(weights + j * r + j) + coupling
            own = (columns == j)[None, :]
            value = tl.sum(tl.where(own, cross, -off_diagonal[None, :] * u), 1)
            value = tl.maximum(value * (1.0 / curvature), 0.0)
            # nothing decides a column of zeros
            u = tl.where(own & (curvature > 0.0), value[:, None], u)
    tl.store(out + place, u, inside)


@triton.jit
def prepare_kernel(
    U, product, dual, gram, vectors, weight, basis, fixed, pull, sums, n, r,
    R: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write what the steps of :func:`relax_kernel` start from."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.arange(0, R)
    small = (columns < r)[:, None] & (columns < r)[None, :]
    entry = columns[:, None] * r + columns[None, :]
    curvature = tl.load(gram + entry, small, 0.0)
    turn = tl.load(vectors + entry, small, 0.0)
    w = tl.load(weight)
    moment = tl.zeros((R, R), tl.float32)
    for tile in range(program, tl.cdiv(n, ROWS), programs):
        rows = tile * ROWS + tl.arange(0, ROWS)
        inside = (rows < n)[:, None] & (columns < r)[None, :]
        place = rows.to(tl.int64)[:, None] * r + columns[None, :]
        u = tl.load(U + place, inside, 0.0)
        turned = tl.dot(u, turn, input_precision="tf32x3")
        residual = tl.load(product + place, inside, 0.0)
        residual -= tl.dot(u, curvature, input_precision="tf32x3")
        v = residual - w * tl.load(dual + place, inside, 0.0)
        tl.store(basis + place, turned, inside)
        tl.store(fixed + place, residual - w * u, inside)
        tl.store(pull + place, v, inside)
        moment = tl.dot(tl.trans(turned), v, moment, input_precision="tf32x3")
    tl.store(sums + program * r * r + entry, moment, small)


@triton.jit
def turn_kernel(sums, vectors, out, programs, r, R: tl.constexpr, PARTS: tl.constexpr):
    """Add up a row of the r x r sums that programs left, and turn it: a row of sum @ vectors."""
    row = tl.program_id(0)
    columns = tl.arange(0, R)
    total = tl.zeros((PARTS, R), tl.float64)
    for first in range(0, programs, PARTS):
        part = first + tl.arange(0, PARTS)
        inside = (part < programs)[:, None] & (columns < r)[None, :]
        place = part[:, None] * r * r + row * r + columns[None, :]
        total += tl.load(sums + place, inside, 0.0).to(tl.float64)
    small = (columns < r)[:, None] & (columns < r)[None, :]
    turn = tl.load(vectors + columns[:, None] * r + columns[None, :], small, 0.0)
    turned = tl.sum(tl.sum(total, 0)[:, None] * turn, 0)
    tl.store(out + row * r + columns, turned, columns < r)


@triton.jit
def relax_kernel(
    U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, sums, n, r,
    R: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Do what :func:`symnmf.kernels.directions.relax_rows` does."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.arange(0, R)
    small = (columns < r)[:, None] & (columns < r)[None, :]
    entry = columns[:, None] * r + columns[None, :]
    left = tl.load(inverse + entry, small, 0.0)
    right = tl.load(coupling + entry, small, 0.0)
    w = tl.load(weight)
    moment = tl.zeros((R, R), tl.float32)
    for tile in range(program, tl.cdiv(n, ROWS), programs):
        rows = tile * ROWS + tl.arange(0, ROWS)
        inside = (rows < n)[:, None] & (columns < r)[None, :]
        place = rows.to(tl.int64)[:, None] * r + columns[None, :]
        q = tl.load(basis + place, inside, 0.0)
        end = tl.dot(tl.load(pull + place, inside, 0.0), left, input_precision="tf32x3")
        end = tl.dot(q, right, end, input_precision="tf32x3")
        end += tl.load(U + place, inside, 0.0)
        y = relaxation * end + (1.0 - relaxation) * tl.load(Z + place, inside, 0.0)
        y += tl.load(dual + place, inside, 0.0)
        v = tl.load(fixed + place, inside, 0.0) + w * tl.abs(y)
        tl.store(Z + place, tl.maximum(y, 0.0), inside)
        tl.store(dual + place, tl.minimum(y, 0.0), inside)
        tl.store(pull + place, v, inside)
        moment = tl.dot(tl.trans(q), v, moment, input_precision="tf32x3")
    tl.store(sums + program * r * r + entry, moment, small)


@triton.jit
def product_kernel(
    X, turned, out, m, n, r, share,
    R: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Write X V for a tile of the m rows and a share of the n columns of X; ``turned`` is V^T.

    In three TF32 products (of the leading and the trailing bits) a float32 product keeps its
    accuracy, at twice the speed.
    """
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    columns = tl.arange(0, R)
    inside = rows < m
    start = part * share
    stop = tl.minimum(start + share, n)
    total = tl.zeros((ROWS, R), tl.float32)
    left = X + rows.to(tl.int64)[:, None] * n
    right = turned + columns.to(tl.int64)[:, None] * n
    for first in range(start, stop, DEPTH):
        k = first + tl.arange(0, DEPTH)
        x = tl.load(left + k[None, :], inside[:, None] & (k < stop)[None, :], 0.0)
        v = tl.load(right + k[None, :], (columns < r)[:, None] & (k < stop)[None, :], 0.0)
        total = tl.dot(x, tl.trans(v), total, input_precision="tf32x3")
    place = (part * m + rows).to(tl.int64)[:, None] * r + columns[None, :]
    tl.store(out + place, total, inside[:, None] & (columns < r)[None, :])


@triton.jit
def misfit_kernel(X, U, sums, n, r, R: tl.constexpr, SIDE: tl.constexpr):
    """Sum the squares of X - U U^T over a tile of the upper triangle, and of its mirror image."""
    i, j = tl.program_id(0), tl.program_id(1)
    own = sums + i.to(tl.int64) * tl.num_programs(1) + j
    if j < i:
        tl.store(own, 0.0)
    else:
        rows = i * SIDE + tl.arange(0, SIDE)
        others = j * SIDE + tl.arange(0, SIDE)
        columns = tl.arange(0, R)
        used = (columns < r)[None, :]
        place = rows.to(tl.int64)[:, None] * n + others[None, :]
        inside = (rows < n)[:, None] & (others < n)[None, :]
        x = tl.load(X + place, inside, 0.0)
        left = tl.load(
            U + rows.to(tl.int64)[:, None] * r + columns[None, :], (rows < n)[:, None] & used, 0.0
        )
        right = tl.load(
            U + others.to(tl.int64)[:, None] * r + columns[None, :],
            (others < n)[:, None] & used,
            0.0,
        )
        gap = x - tl.dot(left, tl.trans(right), input_precision="tf32x3")
        gap64 = gap.to(tl.float64)
        total = tl.sum(tl.sum(gap64 * gap64, 1))
        tl.store(own, tl.where(i == j, total, 2.0 * total))


@triton.jit
def weighted_product_kernel(
    X, W, F, V, turned, out, sums, n, r, share,
    R: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Write S T, S = W o (X - F V^T), for a tile of rows and a share of the columns of X.

    ``turned`` is T^T; the sums of w (x - m)^2 and w (x - m) m are left beside it.
    """
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    columns = tl.arange(0, R)
    inside, used = rows < n, columns < r
    start = part * share
    stop = tl.minimum(start + share, n)
    own = rows.to(tl.int64)[:, None] * r + columns[None, :]
    kept = inside[:, None] & used[None, :]
    factor = tl.load(F + own, kept, 0.0)
    total = tl.zeros((ROWS, R), tl.float32)
    misfit = tl.zeros((ROWS,), tl.float64)
    along = tl.zeros((ROWS,), tl.float64)
    line = rows.to(tl.int64)[:, None] * n
    for first in range(start, stop, DEPTH):
        k = first + tl.arange(0, DEPTH)
        both = inside[:, None] & (k < stop)[None, :]
        x = tl.load(X + line + k[None, :], both, 0.0)
        w = tl.load(W + line + k[None, :], both, 0).to(tl.float32)
        across = k.to(tl.int64)[:, None] * r + columns[None, :]
        v = tl.load(V + across, (k < stop)[:, None] & used[None, :], 0.0)
        down = columns.to(tl.int64)[:, None] * n + k[None, :]
        t = tl.load(turned + down, used[:, None] & (k < stop)[None, :], 0.0)
        model = tl.dot(factor, tl.trans(v), input_precision="tf32x3")
        gap = x - model
        S = w * gap
        misfit += tl.sum(S * gap, 1).to(tl.float64)
        along += tl.sum(S * model, 1).to(tl.float64)
        total = tl.dot(S, tl.trans(t), total, input_precision="tf32x3")
    tl.store(out + part.to(tl.int64) * n * r + own, total, kept)
    place = sums + 2 * (tl.program_id(0) * tl.num_programs(1) + part)
    tl.store(place, tl.sum(misfit))
    tl.store(place + 1, tl.sum(along))


@triton.jit
def weighted_line_kernel(X, W, U, D, sums, n, r, R: tl.constexpr, SIDE: tl.constexpr):
    """Leave c_1 to c_4 of f along U + t D, of a tile of the upper triangle and its mirror image."""
    i, j = tl.program_id(0), tl.program_id(1)
    if j >= i:
        rows = i * SIDE + tl.arange(0, SIDE)
        others = j * SIDE + tl.arange(0, SIDE)
        columns = tl.arange(0, R)
        used = (columns < r)[None, :]
        place = rows.to(tl.int64)[:, None] * n + others[None, :]
        inside = (rows < n)[:, None] & (others < n)[None, :]
        x = tl.load(X + place, inside, 0.0)
        w = tl.load(W + place, inside, 0).to(tl.float32)
        left = rows.to(tl.int64)[:, None] * r + columns[None, :]
        right = others.to(tl.int64)[:, None] * r + columns[None, :]
        above, below = (rows < n)[:, None] & used, (others < n)[:, None] & used
        u = tl.load(U + left, above, 0.0)
        d = tl.load(D + left, above, 0.0)
        v = tl.load(U + right, below, 0.0)
        e = tl.load(D + right, below, 0.0)
        S = w * (x - tl.dot(u, tl.trans(v), input_precision="tf32x3"))
        mixed = tl.dot(u, tl.trans(e), input_precision="tf32x3")
        mixed = tl.dot(d, tl.trans(v), mixed, input_precision="tf32x3")
        moved = tl.dot(d, tl.trans(e), input_precision="tf32x3")
        own = sums + 4 * (i.to(tl.int64) * tl.num_programs(1) + j)
        times = tl.where(i == j, 1.0, 2.0).to(tl.float64)
        tl.store(own, -times * tl.sum(tl.sum(S * mixed, 1).to(tl.float64)))
        bend = tl.sum(0.5 * w * mixed * mixed - S * moved, 1).to(tl.float64)
        tl.store(own + 1, times * tl.sum(bend))
        tl.store(own + 2, times * tl.sum(tl.sum(w * mixed * moved, 1).to(tl.float64)))
        tl.store(own + 3, 0.5 * times * tl.sum(tl.sum(w * moved * moved, 1).to(tl.float64)))
