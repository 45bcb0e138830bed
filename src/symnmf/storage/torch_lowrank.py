"""X given by thin factors that are torch tensors, X = B C B^T."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from symnmf.calls import read_once
from symnmf.ops.torch_ops import TorchOps
from symnmf.ops.torch_sums import FullPrecision
from symnmf.storage.host import fingerprint
from symnmf.storage.symmetric import SymmetricMatrix


class TorchLowRank(SymmetricMatrix):
    """B C B^T on a device: what :class:`symnmf.storage.LowRank` is on the host.

    Parameters
    ----------
    B : Tensor
        n x k, contiguous, on the device of ``ops``.
    C : ndarray
        k x k, symmetric, in float64.
    ops : TorchOps
        The operations of that device.
    """

    ops: TorchOps

    def __init__(self, B: Tensor, C: np.ndarray, ops: TorchOps) -> None:
        super().__init__(len(B), ops.dtype(B), ops)
        self.B, self.C = B, C
        self._core = torch.tensor(C, device=B.device)

    def matmul(self, V: Tensor, out: Tensor | None = None) -> Tensor:
        read_once()
        with FullPrecision():
            inner = (self._core @ self.ops.cross_there(self.B, V)).to(V.dtype)
            return torch.mm(self.B, inner) if out is None else torch.mm(self.B, inner, out=out)

    def compute_sqnorm(self) -> float:
        core = self.ops.gram(self.B) @ self.C
        return float(np.sum(core * core.T))

    def largest(self) -> float:
        values, vectors = np.linalg.eigh(self.C)
        turned = self.ops.times(self.B, vectors * np.sqrt(np.abs(values)))
        return float(turned.square().sum(1).max())

    def digest(self) -> str:
        return fingerprint(self, [self.ops.get(self.B), self.C])

    def threads_for(self, rank: int) -> int:
        return 0
