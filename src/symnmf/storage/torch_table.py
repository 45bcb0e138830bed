"""A rectangular table on the device that X is on."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from symnmf.ops.torch_ops import TorchOps
from symnmf.ops.torch_sums import FullPrecision
from symnmf.storage.table import Table
from symnmf.storage.torch_matrix import quiet


class TorchTable(Table):
    """F and F^T as tensors, dense or in CSR form."""

    def __init__(self, both: tuple[Tensor, Tensor], host: Any, ops: TorchOps) -> None:
        super().__init__(host)
        self.both, self.ops = both, ops

    @classmethod
    def of(cls, F: Any, ops: Any) -> TorchTable:
        """Put a checked table where these operations work."""
        device = ops.device
        if not sp.issparse(F):
            tensor = torch.from_numpy(F).to(device)
            return cls((tensor, tensor.T.contiguous()), F, ops)
        with quiet():
            first, second = (
                torch.sparse_csr_tensor(
                    torch.from_numpy(part.indptr.astype(np.int64)),
                    torch.from_numpy(part.indices.astype(np.int64)),
                    torch.from_numpy(part.data),
                    part.shape,
                ).to(device)
                for part in (F, sp.csr_array(F.T))
            )
        return cls((first, second), F, ops)

    def times(self, W: Tensor) -> Tensor:
        with FullPrecision():
            return self.both[0] @ W

    def transposed(self, U: Tensor) -> Tensor:
        with FullPrecision():
            return self.both[1] @ U

    def residual_sqnorm(self, U: Tensor, W: Tensor) -> float:
        right = W.double().T
        total = right.new_zeros(())
        for first, block in self.blocks():
            own = U[first : first + len(block)].double()
            total += (torch.from_numpy(block).to(U.device) - own @ right).square().sum()
        return float(total)

    def scaled(self, factor: float) -> TorchTable:
        return TorchTable.of(self.host * self.dtype.type(factor), self.ops)
