"""Operations on CUDA tensors by fused kernels; what has none is done in plain torch."""

from __future__ import annotations

import numpy as np
import torch
import triton
from torch import Tensor

from symnmf.ops import triton_kernels as kernels
from symnmf.ops.operations import Line
from symnmf.ops.torch_ops import TorchOps

#: Columns up to which a tile of rows and two r x r matrices stay on chip.
WIDEST = 128

#: Columns up to which the Gauss-Newton kernels have been seen to work; wider ones in plain torch.
RELAXED = 64

#: Programs that share a sum: two for each multiprocessor of the larger devices.
PROGRAMS = 264

BLOCK = 1024  # entries of a factor that a program works on at a time

#: Rows that a warp sweeps over: few, so that the columns' turns come soon.
HALS_ROWS = 16

#: Rows that a program relaxes at a time, and its warps.
RELAX_ROWS, RELAX_WARPS = 16, 4

#: The tile of X that a program multiplies at a time, and how many programs there should be.
PRODUCT_ROWS, PRODUCT_DEPTH, PRODUCT_PROGRAMS = 128, 64, 792

#: Parts that the columns of X are shared out to, at least: programs then end at about one time.
PRODUCT_PARTS = 5

#: Rows and columns of the tile of X that a program compares with U U^T.
MISFIT_SIDE = 128

#: Columns of X from which, and the multiple of which, the product's own kernel pays.
SMALLEST, ALIGNED = 2048, 16


def padded(r: int) -> int:
    """Return the power of two that r columns are padded to."""
    return max(16, triton.next_power_of_2(r))


def _rows(r: int) -> int:
    """Return how many rows a program with matrix products works on at a time."""
    return 64 if r <= 64 else 32


class TritonOps(TorchOps):
    """Operations on CUDA tensors."""

    @staticmethod
    def _fits(T: Tensor) -> bool:
        """Whether kernels with matrix products take this factor: float32, and not too wide."""
        return T.dtype == torch.float32 and T.shape[-1] <= WIDEST and T.is_contiguous()

    # --- sums

    def _sums(self, P: Tensor, U: Tensor, V: Tensor) -> np.ndarray:
        """Return the six sums of :func:`symnmf.ops.triton_kernels.sums_kernel`."""
        size = U.numel()
        programs = min(2 * PROGRAMS, triton.cdiv(size, BLOCK))
        # written straight to the host, where so few are added up sooner than on the device
        sums = torch.empty(programs, 6, dtype=torch.float64, pin_memory=True)
        kernels.sums_kernel[(programs,)](P, U, V, sums, size, BLOCK=BLOCK)
        torch.cuda.current_stream(U.device).synchronize()
        return sums.numpy().sum(0)

    def inner(self, A: Tensor, B: Tensor) -> float:
        return float(self._sums(A, B, B)[0])

    def pair(self, U: Tensor, V: Tensor) -> tuple[float, float, float]:
        sums = self._sums(U, U, V)
        return float(sums[2]), float(sums[4]), float(sums[3])

    def distances(self, U: Tensor, *others: Tensor) -> tuple[float, ...]:
        if len(others) != 2:
            return super().distances(U, *others)
        sums = self._sums(others[1], U, others[0])
        return float(sums[2]), float(sums[5])

    def split(self, product: Tensor, U: Tensor, V: Tensor) -> tuple[float, float, float, float]:
        sums = self._sums(product, U, V)
        return float(sums[0]), float(sums[1]), float(sums[2]), float(sums[3])

    def cross_there(self, A: Tensor, B: Tensor) -> Tensor:
        if not (self._fits(A) and self._fits(B) and A.shape == B.shape):
            return super().cross_there(A, B)
        n, r = A.shape
        programs = min(PROGRAMS, triton.cdiv(n, _rows(r)))
        sums = torch.empty(programs, r, r, dtype=A.dtype, device=A.device)
        kernels.cross_kernel[(programs,)](
            A, B, sums, n, r, R=padded(r), ROWS=_rows(r), num_warps=8, num_stages=1
        )
        return sums.sum(0, dtype=torch.float64)

    def natural_residual(self, U: Tensor, product: Tensor, gram: np.ndarray, step: float) -> float:
        if not self._fits(U):
            return super().natural_residual(U, product, gram, step)
        n, r = U.shape
        tiles = triton.cdiv(n, _rows(r))
        sums = torch.empty(tiles, dtype=torch.float64, device=U.device)
        kernels.residual_kernel[(tiles,)](
            U, product, self._small(gram, U), step, sums, n, r,
            R=padded(r), ROWS=_rows(r), num_warps=8,
        )  # fmt: skip
        return float(sums.sum().sqrt())

    # --- products

    def product(self, X: Tensor, V: Tensor, out: Tensor | None, *, short: bool = False) -> Tensor:
        n, r = X.shape[1], V.shape[1]
        if X.dtype != torch.float32 or r > WIDEST or n < SMALLEST or n % ALIGNED:
            return super().product(X, V, out, short=short)
        rows, tiles = len(X), triton.cdiv(len(X), PRODUCT_ROWS)
        parts = min(n // 512, max(PRODUCT_PARTS, round(PRODUCT_PROGRAMS / tiles)))
        share = triton.cdiv(triton.cdiv(n, parts), PRODUCT_DEPTH) * PRODUCT_DEPTH
        turned = V.T.contiguous()
        result = torch.empty(rows, r, dtype=X.dtype, device=X.device) if out is None else out
        # as many rows at a time as keep the device busy: the partial sums take memory
        step = PRODUCT_ROWS * max(1, min(tiles, PRODUCT_PROGRAMS // parts))
        sums = torch.empty(parts * min(step, rows) * r, dtype=X.dtype, device=X.device)
        for first in range(0, rows, step):
            count = min(step, rows - first)
            kernels.product_kernel[(triton.cdiv(count, PRODUCT_ROWS), parts)](
                X[first:], turned, sums, count, n, r, share,
                PRECISION="tf32" if short else "tf32x3", R=padded(r), ROWS=PRODUCT_ROWS,
                DEPTH=PRODUCT_DEPTH, num_warps=8, num_stages=4 if r <= 64 else 2,
            )  # fmt: skip
            own = sums[: parts * count * r].view(parts, count, r)
            torch.sum(own, 0, out=result[first : first + count])
        return result

    def misfit(self, X: Tensor, U: Tensor) -> float:
        if X.dtype != torch.float32 or not X.is_contiguous() or not self._fits(U):
            return super().misfit(X, U)
        n, r = U.shape
        side = MISFIT_SIDE if r <= 64 else MISFIT_SIDE // 2
        tiles = triton.cdiv(n, side)
        sums = torch.empty(tiles, tiles, dtype=torch.float64, device=U.device)
        kernels.misfit_kernel[(tiles, tiles)](X, U, sums, n, r, R=padded(r), SIDE=side, num_warps=8)
        return float(sums.sum())

    # --- steps

    def _hals(
        self,
        factor: Tensor,
        product: Tensor,
        anchor: Tensor,
        gram: np.ndarray,
        coupling: float,
        sweeps: int,
        out: Tensor | None = None,
    ) -> Tensor:
        n, r = factor.shape
        if r > WIDEST:
            own = factor if out is None else out.copy_(factor)
            return super()._hals(own, product, anchor, gram, coupling, sweeps)
        result = factor if out is None else out
        weights = np.empty((r + 1, r), self.dtype(factor))
        weights[:r], weights[r] = gram, coupling
        kernels.hals_kernel[(triton.cdiv(n, HALS_ROWS),)](
            factor, product, anchor, self._put_soon(weights), result, n, r, sweeps,
            R=padded(r), ROWS=HALS_ROWS, GATHERED=factor.dtype == torch.float32, num_warps=1,
        )  # fmt: skip
        return result

    def line(self, U: Tensor, product: Tensor, Z: Tensor, image: Tensor) -> Line:
        if not self._fits(U):
            return super().line(U, product, Z, image)
        n, r = U.shape
        programs = min(PROGRAMS, triton.cdiv(n, _rows(r)))
        sums = torch.empty(programs, 2 + 2 * r * r, dtype=torch.float64, device=U.device)
        kernels.line_kernel[(programs,)](
            U, product, Z, image, sums, n, r, R=padded(r), ROWS=_rows(r), num_warps=8, num_stages=1
        )
        return self._line(sums.sum(0).cpu().numpy(), Z, image)

    def advance(
        self, U: Tensor, product: Tensor, line: Line, t: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        if U.dtype != torch.float32:
            return super().advance(U, product, line, t)
        size = U.numel()
        kernels.advance_kernel[(triton.cdiv(size, BLOCK),)](
            U, product, line.D, line.image, float(t), size, BLOCK=BLOCK
        )
        return U, product, line.D

    def pair_sums(
        self,
        U: Tensor,
        product: Tensor,
        gram: np.ndarray,
        level: float,
        reach: float,
        gradient: Tensor,
        steps: Tensor,
        changes: Tensor,
        newest: int,
        slots: np.ndarray,
    ) -> np.ndarray:
        if not self._fits(U):
            return super().pair_sums(
                U, product, gram, level, reach, gradient, steps, changes, newest, slots
            )
        (n, r), depth = U.shape, len(steps)
        tiles = triton.cdiv(n, _rows(r))
        sums = torch.empty(tiles, 3 + 5 * depth, dtype=torch.float64, device=U.device)
        scale = 1.0 / level if level > 0.0 else 0.0
        kernels.pair_sums_kernel[(tiles,)](
            U, product, self._small(gram, U), scale, reach, gradient, steps, changes, newest, sums,
            n, r, DEPTH=depth, R=padded(r), ROWS=_rows(r), num_warps=8,
        )  # fmt: skip
        total = sums.sum(0).cpu().numpy()
        chosen = total[3:].reshape(depth, 5)[slots].ravel()
        return self._pair_table(np.concatenate([total[:3], chosen]), depth, newest, slots)

    def pair_target(
        self,
        U: Tensor,
        gradient: Tensor,
        steps: Tensor,
        changes: Tensor,
        own: float,
        step_weights: np.ndarray,
        change_weights: np.ndarray,
        out: Tensor,
    ) -> Tensor:
        weights = np.concatenate([[own], np.column_stack([step_weights, change_weights]).ravel()])
        size = U.numel()
        kernels.pair_target_kernel[(triton.cdiv(size, BLOCK),)](
            U, gradient, steps, changes, self._small(weights, U), out, size,
            DEPTH=len(steps), BLOCK=BLOCK,
        )  # fmt: skip
        return out

    def _relax(
        self,
        U: Tensor,
        product: Tensor,
        dual: Tensor,
        small: Tensor,
        r: int,
        relaxation: float,
        steps: int,
    ) -> tuple[Tensor, Tensor]:
        if not self._fits(U) or r > RELAXED:
            return super()._relax(U, product, dual, small, r, relaxation, steps)
        n, square, R = len(U), r * r, padded(r)
        programs = min(PROGRAMS, triton.cdiv(n, RELAX_ROWS))
        short = small.to(U.dtype)
        gram, vectors, inverse = (short[k * square : (k + 1) * square] for k in range(3))
        weight = short[-1:]
        turn, apart = (small[k * square : (k + 1) * square] for k in (1, 3))
        share = small[4 * square : -1]
        basis, fixed, pull = (torch.empty_like(U) for _ in range(3))
        Z = U.clone()
        sums = torch.empty(programs, r, r, dtype=U.dtype, device=U.device)
        turned, coupling = torch.empty_like(turn), torch.empty_like(gram)
        shape = {"R": R, "ROWS": RELAX_ROWS, "num_warps": RELAX_WARPS, "num_stages": 1}
        kernels.prepare_kernel[(programs,)](
            U, product, dual, gram, vectors, weight, basis, fixed, pull, sums, n, r, **shape
        )
        for _ in range(steps):
            kernels.turn_kernel[(r,)](sums, turn, turned, programs, r, R=R, PARTS=32, num_warps=8)
            kernels.couple_kernel[(r,)](turned, turn, apart, share, coupling, r, R=R, num_warps=8)
            kernels.relax_kernel[(programs,)](
                U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, sums, n, r,
                **shape,
            )  # fmt: skip
        return Z, dual
