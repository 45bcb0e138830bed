"""Exact nearest neighbours on a device: blocks of distances, the smallest of each row kept.

As on the host, the fast formula proposes candidates and their distances are computed again from
differences, in float64; equal distances are ordered by index.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from symnmf.graphs.neighbors import SPARE_CANDIDATES, Array

#: Distances that are formed at a time, and numbers gathered for exact ones (1 GB each).
BLOCK_SIZE, GATHERED = 2**27, 2**27


def device_search(points: Array, wanted: int, device: Any) -> tuple[Array, Array]:
    """Indices and distances, both (n, wanted), of each point's nearest others, nearest first."""
    n = len(points)
    there = torch.from_numpy(np.ascontiguousarray(points)).to(device)
    # distances do not see the mean, but the rounding error of the fast formula grows with it
    centred = there - there.mean(0)
    squares = centred.square().sum(1)
    eps = torch.finfo(there.dtype).eps
    indices = torch.empty(n, wanted, dtype=torch.int64, device=device)
    distances = torch.empty(n, wanted, dtype=there.dtype, device=device)
    pending = torch.arange(n, device=device)
    width = min(wanted + SPARE_CANDIDATES, n - 1)
    while len(pending):
        undecided = []
        at_once = max(1, min(BLOCK_SIZE // n, GATHERED // (width * points.shape[1])))
        for rows in pending.split(at_once):
            rough = squares - 2 * (centred[rows] @ centred.T)
            rough[torch.arange(len(rows), device=device), rows] = torch.inf
            best, candidates = torch.topk(rough, width, largest=False)
            found, exact = _closest(there, rows, candidates, wanted)
            # a neighbour that was not proposed lies within reach, so its norm is at most
            # radius + reach; that bounds the error of its rough squared distance
            radius, reach = squares[rows].sqrt(), exact[:, -1]
            noise = 8 * eps * (points.shape[1] + 8) * (2 * radius + reach).square()
            farthest = best[:, -1] + squares[rows]
            sure = (farthest > reach.square() + noise) | (width == n - 1)
            indices[rows[sure]], distances[rows[sure]] = found[sure], exact[sure]
            undecided.append(rows[~sure])
        pending, width = torch.cat(undecided), min(4 * width, n - 1)
    return indices.cpu().numpy().astype(np.intp), distances.cpu().numpy()


def _closest(
    points: Tensor, rows: Tensor, candidates: Tensor, wanted: int
) -> tuple[Tensor, Tensor]:
    """The ``wanted`` candidates nearest to each row by exact distance, then index."""
    candidates = candidates.sort(1).values
    exact = torch.linalg.vector_norm(points[candidates] - points[rows][:, None, :], dim=2)
    exact, order = exact.sort(dim=1, stable=True)
    return candidates.gather(1, order)[:, :wanted], exact[:, :wanted]
