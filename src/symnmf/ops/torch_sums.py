"""Products and sums of torch tensors in the precision that is promised."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

#: Rows whose float32 products are summed before they are added up in float64.
ROWS = 256


class FullPrecision:
    """Hold float32 products to float32 inside a ``with`` block, whatever the user allows torch."""

    def __enter__(self) -> None:
        self.before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")

    def __exit__(self, *_: object) -> None:
        torch.set_float32_matmul_precision(self.before)


def csr_tensor(indptr: Tensor, indices: Tensor, data: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a sparse tensor, without torch's note that these may still change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(indptr, indices, data, shape)


def summed_dot(A: Tensor, B: Tensor) -> Tensor:
    """Return <A, B> as a float64 number on the device."""
    return (A.double() * B.double()).sum()


def summed_cross(A: Tensor, B: Tensor) -> Tensor:
    """Return A^T B in float64 on the device, from products of a few rows at a time."""
    blocks = len(A) // ROWS
    whole = blocks * ROWS
    first, second = (T[:whole].view(blocks, ROWS, T.shape[1]) for T in (A, B))
    with FullPrecision():
        total = torch.bmm(first.transpose(1, 2), second).sum(0, dtype=torch.float64)
        if whole < len(A):
            total += A[whole:].T @ B[whole:]
    return total
