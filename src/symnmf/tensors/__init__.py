"""Symmetric nonnegative tensors of order 3 and 4, and where they come from."""

from __future__ import annotations

from symnmf.storage.dense_tensor import DenseTensor
from symnmf.storage.sparse_tensor import SparseTensor
from symnmf.storage.tensor import SymmetricTensor
from symnmf.storage.tensor_checking import as_tensor, from_tuples
from symnmf.tensors.factorizing import factorize_tensor
from symnmf.tensors.hypergraphs import from_hyperedges, normalize, triangles

__all__ = [
    "DenseTensor",
    "SparseTensor",
    "SymmetricTensor",
    "as_tensor",
    "factorize_tensor",
    "from_hyperedges",
    "from_tuples",
    "normalize",
    "triangles",
]
