"""Other libraries' objects at the border: what is one, and how tensors become arrays and back.

Nothing here imports these libraries: who holds an object has done so already.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from symnmf.errors import InputError

#: DLPack's numbers of devices that torch reaches: CUDA, its managed memory, and ROCm.
GPUS = (2, 13, 10)


def is_tensor(X: Any) -> bool:
    """Whether X is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "dask")


def is_anndata(X: Any) -> bool:
    """Whether X is an AnnData, or has the parts of one that matter here."""
    return hasattr(X, "obsp") and hasattr(X, "obs_names")


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: of pandas, polars or pyarrow."""
    if hasattr(X, "collect_schema"):  # a lazy frame of polars warns when asked for its columns
        return True
    return hasattr(X, "__arrow_c_stream__") and (
        hasattr(X, "columns") or hasattr(X, "column_names")
    )


def column_names(F: Any) -> list[Any] | None:
    """Return what the columns of a table are called, where it says so; a DataFrame does."""
    columns = getattr(F, "column_names", None)  # pyarrow's columns are the columns themselves
    if columns is None and hasattr(F, "collect_schema"):
        columns = F.collect_schema().names()  # a lazy frame warns when asked for its columns
    elif columns is None:
        columns = getattr(F, "columns", None)
    return None if columns is None or callable(columns) else list(columns)


def is_dlpack(X: Any) -> bool:
    """Whether X is an array of another library that exchanges by DLPack, such as CuPy or JAX."""
    if isinstance(X, np.ndarray | np.generic) or is_tensor(X):
        return False
    return hasattr(X, "__dlpack__") and hasattr(X, "__dlpack_device__")


def _on_gpu(X: Any) -> bool:
    return int(X.__dlpack_device__()[0]) in GPUS


def received(X: Any) -> Any:
    """Return another library's array as a NumPy array, or as a torch tensor where it is on a GPU.

    Nothing is copied where the two libraries can share memory. Sparse matrices of CuPy come to the
    host. Anything else is returned as it is.
    """
    if type(X).__module__.startswith("cupyx.") and hasattr(X, "tocsr"):
        return X.tocsr().get()
    if not is_dlpack(X):
        return X
    try:
        if not _on_gpu(X):
            return np.from_dlpack(X)
        try:
            import torch
        except ImportError:
            return X.get() if hasattr(X, "get") else np.asarray(X)
        return torch.from_dlpack(X)
    except (ValueError, TypeError, BufferError, RuntimeError) as error:
        raise InputError(
            f"an array of {type(X).__module__.split('.')[0]} cannot be taken over by DLPack "
            f"({error}); convert it to a NumPy array first."
        ) from error


def to_host(X: Any) -> Any:
    """Return a tensor as a NumPy array, or a scipy CSR array where it is sparse; others as is."""
    X = received(X)
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


def namespace(array: Any) -> Any:
    """Return the functions on arrays of this kind: NumPy, torch, or those of another library."""
    if is_tensor(array):
        return sys.modules["torch"]
    own = getattr(array, "__array_namespace__", None)
    return np if own is None or isinstance(array, np.ndarray) else own()


def as_given(array: np.ndarray, given: Any) -> Any:
    """Return a host array as what the caller gave: on its device, or the array itself."""
    if is_dlpack(given):
        if hasattr(given, "__array_namespace__"):
            library = given.__array_namespace__()
        else:
            library = sys.modules[type(given).__module__.partition(".")[0]]
        plain = np.array(array, order="C")  # DLPack takes no array that cannot be written
        return library.asarray(plain) if _on_gpu(given) else library.from_dlpack(plain)
    if not is_tensor(given):
        return array
    import torch

    return torch.from_numpy(np.ascontiguousarray(array)).to(given.device)
