"""Passes over a full X with weights on a CUDA device, each a kernel that reads X and W once."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from symnmf.ops.triton_ops import WIDEST, padded

#: Rows and columns of the tile of X that a program works on at a time.
SIDE = 64


@triton.jit
def _tile(T, rows, n, r, R: tl.constexpr):
    """Load rows of a factor."""
    columns = tl.arange(0, R)
    inside = (rows < n)[:, None] & (columns < r)[None, :]
    return tl.load(T + rows.to(tl.int64)[:, None] * r + columns[None, :], inside, 0.0)


@triton.jit
def _product_kernel(X, W, F, V, T, out, sums, n, r, R: tl.constexpr, SIDE: tl.constexpr):
    """Add rows of (W o (X - F V^T)) T to ``out``; write their two sums."""
    i = tl.program_id(0)
    rows = i * SIDE + tl.arange(0, SIDE)
    own = _tile(F, rows, n, r, R)
    total = tl.zeros((SIDE, R), tl.float32)
    misfit = tl.zeros((SIDE,), tl.float64)
    along = tl.zeros((SIDE,), tl.float64)
    for first in range(0, n, SIDE):
        others = first + tl.arange(0, SIDE)
        inside = (rows < n)[:, None] & (others < n)[None, :]
        place = rows.to(tl.int64)[:, None] * n + others[None, :]
        model = tl.dot(own, tl.trans(_tile(V, others, n, r, R)), input_precision="tf32x3")
        gap = tl.load(X + place, inside, 0.0) - model
        s = tl.load(W + place, inside, 0).to(tl.float32) * gap
        misfit += tl.sum(s * gap, 1).to(tl.float64)
        along += tl.sum(s * model, 1).to(tl.float64)
        total = tl.dot(s, _tile(T, others, n, r, R), total, input_precision="tf32x3")
    columns = tl.arange(0, R)
    where = out + rows.to(tl.int64)[:, None] * r + columns[None, :]
    inside = (rows < n)[:, None] & (columns < r)[None, :]
    tl.store(where, tl.load(where, inside, 0.0) + total, inside)
    tl.store(sums + 2 * i, tl.sum(misfit, 0))
    tl.store(sums + 2 * i + 1, tl.sum(along, 0))


@triton.jit
def _quartic_kernel(X, W, U, D, sums, n, r, R: tl.constexpr, SIDE: tl.constexpr):
    """Write c_1 to c_4 of f along U + t D for a tile of the upper triangle and its mirror image."""
    i, j = tl.program_id(0), tl.program_id(1)
    place = sums + 4 * (i.to(tl.int64) * tl.num_programs(1) + j)
    if j < i:
        for k in range(4):
            tl.store(place + k, 0.0)
    else:
        rows = i * SIDE + tl.arange(0, SIDE)
        others = j * SIDE + tl.arange(0, SIDE)
        u, d = _tile(U, rows, n, r, R), _tile(D, rows, n, r, R)
        v, e = tl.trans(_tile(U, others, n, r, R)), tl.trans(_tile(D, others, n, r, R))
        inside = (rows < n)[:, None] & (others < n)[None, :]
        entry = rows.to(tl.int64)[:, None] * n + others[None, :]
        s = tl.load(X + entry, inside, 0.0) - tl.dot(u, v, input_precision="tf32x3")
        w = tl.load(W + entry, inside, 0).to(tl.float32)
        a = tl.dot(u, e, input_precision="tf32x3")
        a = tl.dot(d, v, a, input_precision="tf32x3")
        b = tl.dot(d, e, input_precision="tf32x3")
        times = tl.where(i == j, 1.0, 2.0).to(tl.float64)
        tl.store(place, -times * tl.sum(tl.sum(w * s * a, 1).to(tl.float64), 0))
        bend = tl.sum(w * (0.5 * a * a - s * b), 1)
        tl.store(place + 1, times * tl.sum(bend.to(tl.float64), 0))
        tl.store(place + 2, times * tl.sum(tl.sum(w * a * b, 1).to(tl.float64), 0))
        tl.store(place + 3, 0.5 * times * tl.sum(tl.sum(w * b * b, 1).to(tl.float64), 0))


class WeightedKernels:
    """The passes of :class:`symnmf.objectives.parts.Parts` on a device, for float32.

    Parameters
    ----------
    X : Tensor
        Full, contiguous, float32.
    W : Tensor
        Weights of all entries: uint8 where they are 0 or 1, else float32.
    """

    def __init__(self, X: Tensor, W: Tensor) -> None:
        self.X, self.W = X, W

    @staticmethod
    def fit(*factors: Tensor) -> bool:
        """Whether the kernels take these factors."""
        return all(
            T.dtype == torch.float32 and T.is_contiguous() and T.shape[1] <= WIDEST for T in factors
        )

    def add(self, F: Tensor, V: Tensor, T: Tensor, out: Tensor) -> tuple[float, float]:
        """Add S T to ``out``; return the sums of w (x - m)^2 and w (x - m) m."""
        n, r = F.shape
        programs = triton.cdiv(n, SIDE)
        sums = torch.empty(programs, 2, dtype=torch.float64, device=F.device)
        _product_kernel[(programs,)](
            self.X, self.W, F, V, T, out, sums, n, r, R=padded(r), SIDE=SIDE, num_warps=4
        )
        misfit, along = sums.sum(0).tolist()
        return misfit, along

    def quartic(self, U: Tensor, D: Tensor) -> tuple[float, ...]:
        """Return c_1 to c_4 of f along U + t D."""
        n, r = U.shape
        tiles = triton.cdiv(n, SIDE)
        sums = torch.empty(tiles * tiles, 4, dtype=torch.float64, device=U.device)
        _quartic_kernel[(tiles, tiles)](
            self.X, self.W, U, D, sums, n, r, R=padded(r), SIDE=SIDE, num_warps=4
        )
        return tuple(sums.sum(0).tolist())
