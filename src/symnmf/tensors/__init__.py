"""Symmetric nonnegative tensors of order 3 and 4: ``factorize`` takes what is made here."""

from __future__ import annotations

from symnmf.tensors.checking import as_tensor, from_tuples
from symnmf.tensors.hypergraphs import from_hyperedges, normalize, triangles
from symnmf.tensors.objective import TensorMisfit as TensorMisfit
from symnmf.tensors.solver import TensorNewton as TensorNewton
from symnmf.tensors.storage import DenseTensor as DenseTensor
from symnmf.tensors.storage import SparseTensor as SparseTensor
from symnmf.tensors.storage import SymmetricTensor as SymmetricTensor

__all__ = ["as_tensor", "from_hyperedges", "from_tuples", "normalize", "triangles"]
