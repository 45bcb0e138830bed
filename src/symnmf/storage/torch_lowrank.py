"""X given by thin factors that are torch tensors, X = B C B^T."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from symnmf.calls import read_once
from symnmf.ops.torch_ops import TorchOps
from symnmf.ops.torch_sums import FullPrecision
from symnmf.storage.lowrank import ThinFactors, low_rank


class TorchLowRank(ThinFactors):
    """B C B^T on a device: what :class:`symnmf.storage.LowRank` is on the host."""

    ops: TorchOps

    def __init__(self, B: Tensor, C: np.ndarray, ops: TorchOps) -> None:
        super().__init__(B, C, ops)
        self._core = torch.tensor(C, device=B.device)

    def matmul(self, V: Tensor, out: Tensor | None = None) -> Tensor:
        read_once()
        with FullPrecision():  # and without waiting for the device, as operations on C would
            inner = (self._core @ self.ops.cross_there(self.B, V)).to(V.dtype)
            return torch.mm(self.B, inner) if out is None else torch.mm(self.B, inner, out=out)


@low_rank.register
def _(ops: TorchOps, B: Tensor, C: np.ndarray) -> TorchLowRank:
    return TorchLowRank(B, C, ops)
