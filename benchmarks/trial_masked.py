"""A trial of two kernels for passes over weights on a GPU; goes again."""

# mypy: ignore-errors
# ruff: noqa
import sys
import time

import numpy as np
import torch
import triton
import triton.language as tl

import symnmf
from symnmf.objectives import parts
from symnmf.objectives.parts import Parts
from symnmf.ops.triton_ops import padded


@triton.jit
def weighted_product_kernel(
    X,
    W,
    F,
    V,
    turned,
    out,
    sums,
    n,
    r,
    share,
    R: tl.constexpr,
    ROWS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    columns = tl.arange(0, R)
    inside, used = rows < n, columns < r
    start = part * share
    stop = tl.minimum(start + share, n)
    factor = tl.load(
        F + rows.to(tl.int64)[:, None] * r + columns[None, :], inside[:, None] & used[None, :], 0.0
    )
    total = tl.zeros((ROWS, R), tl.float32)
    misfit = tl.zeros((ROWS,), tl.float64)
    along = tl.zeros((ROWS,), tl.float64)
    line = rows.to(tl.int64)[:, None] * n
    for first in range(start, stop, DEPTH):
        k = first + tl.arange(0, DEPTH)
        within = k < stop
        both = inside[:, None] & within[None, :]
        x = tl.load(X + line + k[None, :], both, 0.0)
        w = tl.load(W + line + k[None, :], both, 0).to(tl.float32)
        v = tl.load(
            V + k.to(tl.int64)[:, None] * r + columns[None, :], within[:, None] & used[None, :], 0.0
        )
        t = tl.load(
            turned + columns.to(tl.int64)[:, None] * n + k[None, :],
            used[:, None] & within[None, :],
            0.0,
        )
        model = tl.dot(factor, tl.trans(v), input_precision="tf32x3")
        gap = x - model
        S = w * gap
        misfit += tl.sum(S * gap, 1).to(tl.float64)
        along += tl.sum(S * model, 1).to(tl.float64)
        total = tl.dot(S, tl.trans(t), total, input_precision="tf32x3")
    place = (part * n + rows).to(tl.int64)[:, None] * r + columns[None, :]
    tl.store(out + place, total, inside[:, None] & used[None, :])
    own = sums + 2 * (tl.program_id(0) * tl.num_programs(1) + part)
    tl.store(own, tl.sum(misfit))
    tl.store(own + 1, tl.sum(along))


@triton.jit
def weighted_line_kernel(X, W, U, D, sums, n, r, R: tl.constexpr, SIDE: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    own = sums + 4 * (i.to(tl.int64) * tl.num_programs(1) + j)
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
        times = tl.where(i == j, 1.0, 2.0).to(tl.float64)
        tl.store(own, -times * tl.sum(tl.sum(S * mixed, 1).to(tl.float64)))
        bend = tl.sum((0.5 * w * mixed * mixed - S * moved), 1).to(tl.float64)
        tl.store(own + 1, times * tl.sum(bend))
        tl.store(own + 2, times * tl.sum(tl.sum(w * mixed * moved, 1).to(tl.float64)))
        tl.store(own + 3, 0.5 * times * tl.sum(tl.sum(w * moved * moved, 1).to(tl.float64)))


ROWS, DEPTH, PARTS_, WARPS, SIDE = 128, 64, 5, 8, 64


def fits(self, *factors):
    X = self.storage.rows
    r = factors[0].shape[1]
    return (
        isinstance(X, torch.Tensor)
        and X.dtype == torch.float32
        and r <= 64
        and all(T.shape[1] == r for T in factors)
    )


plain_add, plain_quartic = Parts.add, Parts.quartic


def whole(self):
    W = self.values
    return W.view(torch.uint8) if W.dtype == torch.bool else W.float()


def add(self, F, V, T, out):
    own = T if T.shape[1] else V
    if not fits(self, F, V, own):
        return plain_add(self, F, V, T, out)
    n, r = F.shape
    tiles = triton.cdiv(n, ROWS)
    share = triton.cdiv(triton.cdiv(n, PARTS_), DEPTH) * DEPTH
    parted = torch.empty(PARTS_, n, r, device=F.device)
    sums = torch.empty(tiles * PARTS_, 2, dtype=torch.float64, device=F.device)
    weighted_product_kernel[(tiles, PARTS_)](
        self.storage.rows,
        whole(self),
        F,
        V,
        own.T.contiguous(),
        parted,
        sums,
        n,
        r,
        share,
        R=padded(r),
        ROWS=ROWS,
        DEPTH=DEPTH,
        num_warps=WARPS,
        num_stages=2,
    )
    if T.shape[1]:
        out += parted.sum(0)
    misfit, explained = sums.sum(0).tolist()
    fit = self.sqnorm - misfit - explained
    return misfit, fit, fit - explained


def quartic(self, U, D):
    if not fits(self, U, D):
        return plain_quartic(self, U, D)
    n, r = U.shape
    tiles = triton.cdiv(n, SIDE)
    sums = torch.zeros(tiles * tiles, 4, dtype=torch.float64, device=U.device)
    weighted_line_kernel[(tiles, tiles)](
        self.storage.rows, whole(self), U, D, sums, n, r, R=padded(r), SIDE=SIDE, num_warps=4
    )
    return tuple(sums.sum(0).tolist())


def main():
    global ROWS, DEPTH, PARTS_, WARPS, SIDE
    sys.path.insert(0, "benchmarks")
    import gpu

    for n in (3001, 20_000):
        X = gpu.synthetic(n, 50, 0.1)
        mask = torch.triu(torch.rand(n, n, device="cuda") < 0.5)
        f = symnmf.Problem(X, mask=mask | mask.T).objective
        U, D = torch.rand(n, 50, device="cuda"), torch.randn(n, 50, device="cuda")
        zeros = torch.zeros_like(U)
        a, b = zeros.clone(), zeros.clone()
        first, second = plain_add(f.passes, U, U, U, a), add(f.passes, U, U, U, b)
        print(n, "product off by", float((a - b).norm() / a.norm()), first, second)
        print("   line", plain_quartic(f.passes, U, D), quartic(f.passes, U, D), flush=True)
        print(
            "   plain ms",
            gpu.milliseconds(lambda: plain_add(f.passes, U, U, U, a), 5),
            gpu.milliseconds(lambda: plain_quartic(f.passes, U, D), 5),
            flush=True,
        )
        for ROWS, DEPTH, WARPS in ((128, 64, 8), (128, 32, 8), (64, 64, 4), (64, 32, 4)):
            print(
                "   product",
                ROWS,
                DEPTH,
                WARPS,
                gpu.milliseconds(lambda: add(f.passes, U, U, U, b), 5),
                flush=True,
            )
        ROWS, DEPTH, WARPS = 128, 64, 8
        for SIDE in (32, 64):
            print("   line", SIDE, gpu.milliseconds(lambda: quartic(f.passes, U, D), 5), flush=True)
        del X, mask, f
    sizes, gpu.SIZES = gpu.SIZES, (20_000,)
    gpu.around(None)
    Parts.add, Parts.quartic = add, quartic
    gpu.SIZES = sizes
    gpu.around(None)


main()
