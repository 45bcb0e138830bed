"""Row-wise nonnegative least squares on torch tensors: block principal pivoting, many rows at once.

The method and its safeguards are those of :mod:`symnmf.kernels.pivoting`; here all rows that have
not settled are solved in one batch of small Cholesky factorisations.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from symnmf.kernels.pivoting import EPSILON, LARGEST, PATIENCE, equilibrated, pivot_rows

#: Numbers in the small matrices of one batch (256 MB).
BATCH = 2**25


def pivot_factor(
    factor: Tensor, product: Tensor, anchor: Tensor, gram: np.ndarray, coupling: float
) -> Tensor:
    """Replace the rows of ``factor`` by exact nonnegative least squares rows; return it."""
    n, r = factor.shape
    host_matrix, host_scale = equilibrated(np.ascontiguousarray(gram), float(coupling))
    matrix, scale = (torch.from_numpy(part).to(factor.device) for part in (host_matrix, host_scale))
    rows = max(1, BATCH // (r * r))
    for first in range(0, n, rows):
        block = slice(first, first + rows)
        cross = product[block].double() + coupling * anchor[block].double()
        target = (cross * scale).clamp_(-LARGEST, LARGEST)
        height = target.amax(1, keepdim=True).clamp_(min=0.0)
        settled_at_zero = height == 0.0  # the gradient at zero is nonnegative
        target /= torch.where(settled_at_zero, 1.0, height)
        inside = (factor[block] > 0) & (scale > 0) & ~settled_at_zero
        solution, left = _pivot(matrix, target, inside, ~settled_at_zero.squeeze(1))
        solution = (solution * height * scale).clamp_(0.0, torch.finfo(factor.dtype).max)
        solution[settled_at_zero.squeeze(1)] = 0.0
        if len(left):
            # rounding keeps these few from settling: one by one, feasible at every step
            own = factor[block][left].cpu().numpy()
            pulled = cross[left].to(factor.dtype).cpu().numpy()
            shifted = gram + coupling * np.eye(r)
            pivot_rows(own, pulled, pulled, shifted, 0.0, 0, len(own))
            solution[left] = torch.from_numpy(own).to(solution)
        factor[block] = solution.to(factor.dtype)
    return factor


def _pivot(
    matrix: Tensor, target: Tensor, inside: Tensor, pending: Tensor
) -> tuple[Tensor, Tensor]:
    """Pivot the ``pending`` rows; return the solutions and the rows that did not settle."""
    n, r = target.shape
    solution = torch.zeros_like(target)
    rows = pending.nonzero().squeeze(1)
    lowest = torch.full((n,), r + 1, device=target.device)
    patience = torch.full((n,), PATIENCE, device=target.device)
    identity = torch.eye(r, dtype=target.dtype, device=target.device)
    numbers = torch.arange(r, device=target.device)
    for _ in range(2 * r + 20):
        if not len(rows):
            break
        within, wanted = inside[rows], target[rows]
        mask = within.to(target.dtype)
        small = matrix * (mask[:, :, None] * mask[:, None, :]) + identity * (1 - mask)[:, :, None]
        root = torch.linalg.cholesky_ex(small).L
        x = torch.cholesky_solve((wanted * mask).unsqueeze(2), root).squeeze(2)
        rounding = EPSILON * (mask.sum(1) + 4) * (1.0 + x.abs().sum(1))
        slack = torch.where(within, x, x @ matrix - wanted + rounding[:, None])
        wrong = slack < 0.0
        infeasible = wrong.sum(1)
        done = infeasible == 0
        solution[rows[done]] = torch.where(within, x, 0.0)[done]
        fewer = infeasible < lowest[rows]
        lowest[rows] = torch.minimum(lowest[rows], infeasible)
        patience[rows] = torch.where(fewer, PATIENCE, patience[rows] - 1)
        # without progress only the largest index flips, which cannot cycle
        last = torch.where(wrong, numbers, -1).amax(1)
        flips = torch.where(patience[rows][:, None] < 0, numbers == last[:, None], wrong)
        inside[rows] = within ^ flips
        rows = rows[~done]
    return solution, rows
