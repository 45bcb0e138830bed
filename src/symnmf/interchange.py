"""Other libraries' objects at the border: what is one, and how tensors become arrays and back.

Nothing here imports these libraries: who holds an object has done so already.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(X: Any) -> bool:
    """Whether X is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_anndata(X: Any) -> bool:
    """Whether X is an AnnData, or has the parts of one that matter here."""
    return hasattr(X, "obsp") and hasattr(X, "obs_names")


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: of pandas, polars or pyarrow, or one that narwhals knows."""
    if hasattr(X, "__narwhals_dataframe__") or hasattr(X, "__narwhals_lazyframe__"):
        return True
    if hasattr(X, "collect_schema"):  # a lazy frame of polars warns when asked for its columns
        return True
    return hasattr(X, "__arrow_c_stream__") and (
        hasattr(X, "columns") or hasattr(X, "column_names")
    )


def to_host(X: Any) -> Any:
    """Return a tensor as a NumPy array, or a scipy CSR array where it is sparse; others as is."""
    if not is_tensor(X):
        return X
    import torch

    X = X.detach()
    if X.layout == torch.strided:
        X = X.float() if X.dtype in (torch.bfloat16, torch.float16) else X
        return X.cpu().numpy()
    import scipy.sparse as sp

    csr = X.to_sparse_csr()
    parts = (csr.values(), csr.col_indices(), csr.crow_indices())
    return sp.csr_array(tuple(to_host(part) for part in parts), shape=tuple(X.shape))


def as_given(array: np.ndarray, given: Any) -> Any:
    """Return a host array as what the caller gave: a tensor on its device, or the array itself."""
    if not is_tensor(given):
        return array
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(given.device)
