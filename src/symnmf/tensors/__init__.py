"""Symmetric nonnegative tensors of order 3 and 4, and where they come from."""

from __future__ import annotations

from symnmf.tensors.checking import as_tensor, from_tuples
from symnmf.tensors.condition import TensorCertificate
from symnmf.tensors.dense_tensor import DenseTensor
from symnmf.tensors.factorizing import factorize_tensor
from symnmf.tensors.hypergraphs import from_hyperedges, normalize, triangles
from symnmf.tensors.sparse_tensor import SparseTensor
from symnmf.tensors.tensor import SymmetricTensor

__all__ = [
    "DenseTensor",
    "SparseTensor",
    "SymmetricTensor",
    "TensorCertificate",
    "as_tensor",
    "factorize_tensor",
    "from_hyperedges",
    "from_tuples",
    "normalize",
    "triangles",
]
