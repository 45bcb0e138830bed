"""X as a torch tensor: dense, sparse, or dense in host memory and streamed to the device."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from symnmf.calls import read_once
from symnmf.errors import InputError
from symnmf.interchange import is_tensor, to_host
from symnmf.ops.torch_ops import GPU_BLOCK, TorchOps, as_torch_dtype, device_ops
from symnmf.ops.torch_sums import csr_tensor
from symnmf.parallel import Threads
from symnmf.storage.border import NEGATIVE, check_asymmetry, check_range, check_shape, check_values
from symnmf.storage.dense import DenseMatrix
from symnmf.storage.dtypes import float_dtype
from symnmf.storage.sparse import COST_OF_AN_ENTRY, RESIDUAL_UP_TO, SparseMatrix
from symnmf.storage.streamed_rows import StreamedRows, room_on
from symnmf.storage.symmetric import (
    SymmetricMatrix,
    as_float32,
    fingerprint,
    has_digits,
    residual_by_columns,
)
from symnmf.storage.wrapping import checked_dense, checked_sparse

Rows: TypeAlias = "Tensor | StreamedRows"

#: Bytes a second that come from the memory of the host.
STREAMED_BYTES = 5e10

#: Arrays of these become tensors as they are.
SHARED = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))

#: Rows on each side of the blocks that are compared with their mirror image.
MIRRORED = 4096


def usable_device(device: Any) -> torch.device:
    """Return a device that torch can use here, or say why it cannot."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        raise InputError(
            f"device must be None, 'cpu', 'cuda' or another device of torch's, got {device!r}."
        ) from None
    if found.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count == 0:
            raise InputError(
                f"device={str(device)!r} was asked for, but torch {torch.__version__} sees no "
                f"CUDA device here; leave device out to work on the processor."
            )
        if (found.index or 0) >= count:
            raise InputError(
                f"device={str(device)!r} is out of range: torch sees {count} CUDA device(s)."
            )
        if found.index is None:
            return torch.device("cuda", torch.cuda.current_device())
    elif found.type != "cpu":
        raise InputError(
            f"device={str(device)!r} is not supported: 'cuda' and 'cpu' are, and float64 sums "
            f"are needed."
        )
    return found


def on_torch(X: Any, device: torch.device, *, name: str = "X", signed: bool = False) -> TorchMatrix:
    """Check X and put it on a device, without a copy where it is there already.

    ``signed`` entries may be negative.
    """
    if isinstance(X, TorchMatrix) and X.ops.device == device:
        return X
    if isinstance(X, SymmetricMatrix):
        return _moved(X, device)
    if is_tensor(X) and X.layout == torch.strided:
        return _checked_tensor(X.detach(), device, name, signed)
    X = to_host(X)
    if sp.issparse(X):
        return _moved(checked_sparse(X, Threads(1), name, signed), device)
    if type(X) is not np.ndarray or X.dtype not in SHARED:
        return _moved(checked_dense(X, Threads(), name, signed), device)
    return _checked_tensor(_shared(X), device, name, signed)


def _shared(X: np.ndarray) -> Tensor:
    """Return an array as a tensor; a read-only one may be shared, since nobody writes to X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(X))


def _moved(X: SymmetricMatrix, device: torch.device) -> TorchMatrix:
    """Put a matrix that has been checked on a device."""
    matrix: TorchMatrix
    if isinstance(X, DenseMatrix):
        matrix = TorchDense(_placed(_shared(X.array), device), device)
    elif isinstance(X, SparseMatrix):
        parts = (X.indptr, X.indices, X.data)
        indptr, indices, data = (torch.from_numpy(part).to(device) for part in parts)
        matrix = TorchSparse(indptr, indices, data, device_ops(device))
    else:
        raise InputError(
            f"a {type(X).__name__} cannot be worked on with device={str(device)!r}; leave device "
            f"out."
        )
    matrix.signed, matrix._largest = X.signed, X._largest
    return matrix


def _placed(X: Tensor, device: torch.device) -> Rows:
    """Return X on the device, or its rows streamed there where it does not fit."""
    if X.device.type == "cpu" and X.nbytes > room_on(device):
        return StreamedRows(X.contiguous(), device)
    return X.to(device).contiguous()


def _checked_tensor(X: Tensor, device: torch.device, name: str, signed: bool) -> TorchDense:
    """Return X in its working precision and on the device, where it has been checked."""
    dtype = _float_dtype(X.dtype, name)
    check_shape(tuple(X.shape), name)
    read_once()
    rows = _placed(X.to(as_torch_dtype(dtype)), device)
    smallest, largest = np.inf, -np.inf
    for block in _row_blocks(rows):
        # NaN is carried along, so the check below sees it
        ends = torch.stack(torch.aminmax(block)).cpu().numpy()
        smallest, largest = np.minimum(smallest, ends[0]), np.maximum(largest, ends[1])
    check_values(float(smallest), float(largest), name, signed=signed, negative=NEGATIVE)
    check_range(float(max(largest, -smallest)), dtype, name)
    apart = check_asymmetry(_asymmetry(rows), float(max(largest, -smallest)), dtype, name)
    if apart and not isinstance(rows, StreamedRows):
        rows = (rows + rows.T).mul_(0.5)
    matrix = TorchDense(rows, device)
    matrix.signed, matrix._largest = bool(smallest < 0), float(max(largest, -smallest))
    return matrix


def _float_dtype(dtype: torch.dtype, name: str) -> np.dtype:
    if dtype == torch.bfloat16:
        return np.dtype(np.float32)
    return float_dtype(torch.empty(0, dtype=dtype).numpy().dtype, name)


def _asymmetry(rows: Rows) -> float:
    """Return the largest |X - X^T|; of streamed rows, which are a host array, on the host."""
    X = rows.host if isinstance(rows, StreamedRows) else rows
    largest = X.new_zeros(())
    edges = range(0, len(X), MIRRORED)
    for i, j in itertools.combinations_with_replacement(edges, 2):
        block = X[i : i + MIRRORED, j : j + MIRRORED]
        mirror = X[j : j + MIRRORED, i : i + MIRRORED]
        largest = torch.maximum(largest, (block - mirror.T).abs_().max())
    return float(largest)


def _row_blocks(rows: Rows) -> Iterator[Tensor]:
    """Yield the rows of X from the first to the last, some at a time, on the device."""
    count = max(1, GPU_BLOCK // rows.shape[1])
    if isinstance(rows, StreamedRows):
        for _, block in rows:
            yield from block.split(count)
    else:
        yield from rows.split(count)


class TorchMatrix(SymmetricMatrix):
    """A matrix whose products are computed by torch."""

    ops: TorchOps


class TorchDense(TorchMatrix):
    """A full symmetric matrix: a contiguous tensor on the device, or rows streamed to it."""

    def __init__(self, rows: Rows, device: torch.device) -> None:
        super().__init__(len(rows), _float_dtype(rows.dtype, "X"), device_ops(device))
        self.rows = rows

    def matmul(self, V: Tensor, out: Tensor | None = None) -> Tensor:
        read_once()
        if not isinstance(self.rows, StreamedRows):
            return self.ops.product(self.rows, V, out)
        result = torch.empty_like(V) if out is None else out
        for begin, block in self.rows:
            self.ops.product(block, V, result[begin : begin + len(block)])
        return result

    def cost(self, rank: int) -> float:
        multiplying = super().cost(rank)
        if not isinstance(self.rows, StreamedRows):
            return multiplying
        return max(multiplying, self.rows.host.nbytes / STREAMED_BYTES)

    def columns(self, begin: int, end: int) -> Tensor:
        rows = self.rows.host if isinstance(self.rows, StreamedRows) else self.rows
        return rows[begin:end].to(self.ops.device).T

    def residual_sqnorm(self, U: Tensor, V: Tensor) -> float | None:
        if V is U and isinstance(self.rows, Tensor):
            quick = self.ops.misfit(self.rows, U.to(self.rows.dtype))
            if quick is not None and has_digits(self.dtype, quick, self.sqnorm):
                read_once()
                return quick
        return residual_by_columns(self, U, V)

    def digest(self) -> str:
        blocks = (block.cpu().numpy() for block in _row_blocks(self.rows))
        return fingerprint(self, blocks)


class TorchSparse(TorchMatrix):
    """A symmetric matrix in CSR form on the device."""

    def __init__(self, indptr: Tensor, indices: Tensor, data: Tensor, ops: TorchOps) -> None:
        n = len(indptr) - 1
        super().__init__(n, _float_dtype(data.dtype, "X"), ops)
        self.indptr, self.indices, self.data = indptr, indices, data
        self.csr = csr_tensor(indptr, indices, data, (n, n))
        self._single: TorchSparse | None = None

    def matmul(self, V: Tensor, out: Tensor | None = None) -> Tensor:
        read_once()
        return self.ops.product(self.csr, V, out)

    def compute_sqnorm(self) -> float:
        return float(torch.linalg.vector_norm(self.data, dtype=torch.float64).square())

    def cost(self, rank: int) -> float:
        return COST_OF_AN_ENTRY * 2.0 * len(self.data) * rank / self.ops.rate

    def columns(self, begin: int, end: int) -> Tensor:
        low, high = (int(place) for place in self.indptr[[begin, end]])
        lengths = self.indptr[begin + 1 : end + 1] - self.indptr[begin:end]
        rows = torch.arange(end - begin, device=lengths.device).repeat_interleave(lengths)
        block = self.data.new_zeros(end - begin, self.shape[0])
        block[rows, self.indices[low:high]] = self.data[low:high]
        return block.T

    def residual_sqnorm(self, U: Tensor, V: Tensor) -> float | None:
        return residual_by_columns(self, U, V) if self.shape[0] <= RESIDUAL_UP_TO else None

    def compute_largest(self) -> float:
        return float(self.data.abs().max()) if len(self.data) else 0.0

    def digest(self) -> str:
        pattern = (part.long().cpu().numpy() for part in (self.indptr, self.indices))
        return fingerprint(self, itertools.chain(pattern, [self.data.cpu().numpy()]))


@as_float32.register
def _(X: TorchSparse) -> TorchSparse:
    if X.dtype == np.float32:
        return X
    if X._single is None:
        X._single = TorchSparse(X.indptr, X.indices, X.data.float(), X.ops)
    return X._single
