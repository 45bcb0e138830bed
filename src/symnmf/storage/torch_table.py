"""A rectangular table on the device that X is on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from symnmf.ops.torch_ops import TorchOps
from symnmf.ops.torch_sums import FullPrecision
from symnmf.storage.table import Table
from symnmf.storage.torch_matrix import quiet


class TorchTable(Table):
    """F and F^T as tensors, dense or in CSR form."""

    ops: TorchOps

    def _placed(self, F: Any) -> Tensor:
        if not self.sparse:
            return torch.from_numpy(np.ascontiguousarray(F)).to(self.ops.device)
        places = (torch.from_numpy(part.astype(np.int64)) for part in (F.indptr, F.indices))
        with quiet():
            tensor = torch.sparse_csr_tensor(*places, torch.from_numpy(F.data), F.shape)
            return tensor.to(self.ops.device)

    def times(self, W: Tensor) -> Tensor:
        with FullPrecision():
            return super().times(W)

    def transposed(self, U: Tensor) -> Tensor:
        with FullPrecision():
            return super().transposed(U)
