"""Operations on CUDA tensors by fused kernels; what has none is done in plain torch."""

from __future__ import annotations

import numpy as np
import torch
import triton
from torch import Tensor

from symnmf.ops import triton_kernels as kernels
from symnmf.ops.torch_ops import TorchOps

#: Columns up to which a tile of rows and two r x r matrices stay on chip.
WIDEST = 128

#: Columns up to which the Gauss-Newton kernels have been seen to work; wider ones in plain torch.
RELAXED = 64

#: Programs that share a sum: two for each multiprocessor of the larger devices.
PROGRAMS = 264

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

#: The tile of a weighted X that a program multiplies at a time, and the one of a line search.
WEIGHTED_ROWS, WEIGHTED_DEPTH, LINE_SIDE = 128, 64, 64

#: Columns of X from which, and the multiple of which, the product's own kernel pays.
SMALLEST, ALIGNED = 2048, 16


def padded(r: int) -> int:
    """Return the power of two that r columns are padded to."""
    return max(16, triton.next_power_of_2(r))


class TritonOps(TorchOps):
    """Operations on CUDA tensors."""

    @staticmethod
    def _fits(T: Tensor) -> bool:
        """Whether kernels with matrix products take this factor: float32, and not too wide."""
        return T.dtype == torch.float32 and T.shape[-1] <= WIDEST and T.is_contiguous()

    # --- products

    def product(self, X: Tensor, V: Tensor, out: Tensor | None = None) -> Tensor:
        n, r = X.shape[1], V.shape[1]
        full = X.layout == torch.strided and X.dtype == torch.float32
        if not full or r > WIDEST or n < SMALLEST or n % ALIGNED:
            return super().product(X, V, out)
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
                R=padded(r), ROWS=PRODUCT_ROWS, DEPTH=PRODUCT_DEPTH, num_warps=8,
                num_stages=4 if r <= 64 else 2,
            )  # fmt: skip
            own = sums[: parts * count * r].view(parts, count, r)
            torch.sum(own, 0, out=result[first : first + count])
        return result

    def misfit(self, X: Tensor, U: Tensor) -> float | None:
        if X.dtype != torch.float32 or not X.is_contiguous() or not self._fits(U):
            return super().misfit(X, U)
        n, r = U.shape
        side = MISFIT_SIDE if r <= 64 else MISFIT_SIDE // 2
        tiles = triton.cdiv(n, side)
        sums = torch.empty(tiles, tiles, dtype=torch.float64, device=U.device)
        kernels.misfit_kernel[(tiles, tiles)](X, U, sums, n, r, R=padded(r), SIDE=side, num_warps=8)
        return float(sums.sum())

    def weighted_product(
        self, X: Tensor, W: Tensor, F: Tensor, V: Tensor, T: Tensor
    ) -> tuple[Tensor, float, float] | None:
        """Return S T, S = W o (X - F V^T), and the sums of w (x - m)^2 and w (x - m) m.

        None where no kernel takes these.
        """
        n, r = F.shape
        if not self._weigh(X, W, F, V, T):
            return None
        tiles = triton.cdiv(n, WEIGHTED_ROWS)
        share = triton.cdiv(triton.cdiv(n, PRODUCT_PARTS), WEIGHTED_DEPTH) * WEIGHTED_DEPTH
        parted = torch.empty(PRODUCT_PARTS, n, r, dtype=X.dtype, device=X.device)
        sums = torch.empty(tiles * PRODUCT_PARTS, 2, dtype=torch.float64, device=X.device)
        kernels.weighted_product_kernel[(tiles, PRODUCT_PARTS)](
            X, W.view(torch.uint8), F, V, T.T.contiguous(), parted, sums, n, r, share,
            R=padded(r), ROWS=WEIGHTED_ROWS, DEPTH=WEIGHTED_DEPTH, num_warps=8, num_stages=2,
        )  # fmt: skip
        misfit, along = sums.sum(0).tolist()
        return parted.sum(0), misfit, along

    def weighted_line(
        self, X: Tensor, W: Tensor, U: Tensor, D: Tensor
    ) -> tuple[float, float, float, float] | None:
        """Return c_1 to c_4 of f along U + t D with a mask W, None where no kernel takes these."""
        n, r = U.shape
        if not self._weigh(X, W, U, D):
            return None
        tiles = triton.cdiv(n, LINE_SIDE)
        sums = torch.zeros(tiles * tiles, 4, dtype=torch.float64, device=X.device)
        kernels.weighted_line_kernel[(tiles, tiles)](
            X, W.view(torch.uint8), U, D, sums, n, r, R=padded(r), SIDE=LINE_SIDE, num_warps=4
        )
        c1, c2, c3, c4 = sums.sum(0).tolist()
        return c1, c2, c3, c4

    def _weigh(self, X: Tensor, W: Tensor, *factors: Tensor) -> bool:
        if not isinstance(X, Tensor) or not X.is_cuda or X.layout != torch.strided:
            return False
        shape = factors[0].shape
        alike = all(T.shape == shape and self._fits(T) for T in factors)
        whole = X.dtype == torch.float32 and X.is_contiguous()
        masked = isinstance(W, Tensor) and W.dtype == torch.bool and W.is_contiguous()
        return whole and masked and alike and shape[1] <= RELAXED

    # --- steps

    def _hals(
        self,
        factor: Tensor,
        product: Tensor,
        anchor: Tensor,
        gram: np.ndarray,
        coupling: float,
        sweeps: int,
    ) -> Tensor:
        n, r = factor.shape
        if r > WIDEST:
            return super()._hals(factor, product, anchor, gram, coupling, sweeps)
        weights = np.empty((r + 1, r), self.dtype(factor))
        weights[:r], weights[r] = gram, coupling
        kernels.hals_kernel[(triton.cdiv(n, HALS_ROWS),)](
            factor, product, anchor, self._put_soon(weights), factor, n, r, sweeps,
            R=padded(r), ROWS=HALS_ROWS, GATHERED=factor.dtype == torch.float32, num_warps=1,
        )  # fmt: skip
        return factor

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
        turn, apart = (small[k * square : (k + 1) * square].view(r, r) for k in (1, 3))
        share = small[4 * square : -1]
        basis, fixed, pull = (torch.empty_like(U) for _ in range(3))
        Z = U.clone()
        sums = torch.empty(programs, r, r, dtype=U.dtype, device=U.device)
        turned = torch.empty_like(turn)
        shape = {"R": R, "ROWS": RELAX_ROWS, "num_warps": RELAX_WARPS, "num_stages": 1}
        kernels.prepare_kernel[(programs,)](
            U, product, dual, gram, vectors, weight, basis, fixed, pull, sums, n, r, **shape
        )
        for _ in range(steps):
            kernels.turn_kernel[(r,)](sums, turn, turned, programs, r, R=R, PARTS=32, num_warps=8)
            coupling = (((share * turned - turned.T) * apart) @ turn.T).to(U.dtype)
            kernels.relax_kernel[(programs,)](
                U, basis, fixed, inverse, coupling, weight, relaxation, pull, Z, dual, sums, n, r,
                **shape,
            )  # fmt: skip
        return Z, dual
