"""Where X lives. :func:`as_symmetric` takes what a user has and gives what a solver needs."""

from symnmf.matrices.blocks import Blocks
from symnmf.matrices.dask import DaskMatrix
from symnmf.matrices.dense import DenseMatrix
from symnmf.matrices.host import HostArray, HostMatrix
from symnmf.matrices.lowrank import LowRank
from symnmf.matrices.masked import MaskedMatrix
from symnmf.matrices.observing import observed
from symnmf.matrices.sparse import SparseMatrix
from symnmf.matrices.symmetric import Entries, SymmetricArray, SymmetricMatrix
from symnmf.matrices.wrapping import as_symmetric, on_device

__all__ = [
    "Blocks",
    "DaskMatrix",
    "DenseMatrix",
    "Entries",
    "HostArray",
    "HostMatrix",
    "LowRank",
    "MaskedMatrix",
    "SparseMatrix",
    "SymmetricArray",
    "SymmetricMatrix",
    "as_symmetric",
    "observed",
    "on_device",
]
