"""Storage backends of X. :func:`as_symmetric` wraps what a user passes for the solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symnmf.lazily import offered

if TYPE_CHECKING:
    from symnmf.storage.blocks import Blocks
    from symnmf.storage.dask import DaskMatrix
    from symnmf.storage.dense import DenseMatrix
    from symnmf.storage.host import HostArray, HostMatrix
    from symnmf.storage.layers import Layers
    from symnmf.storage.lowrank import LowRank
    from symnmf.storage.sparse import SparseMatrix
    from symnmf.storage.symmetric import Square, SymmetricArray, SymmetricMatrix
    from symnmf.storage.wrapping import as_symmetric, on_device

__all__ = [
    "Blocks",
    "DaskMatrix",
    "DenseMatrix",
    "HostArray",
    "HostMatrix",
    "Layers",
    "LowRank",
    "SparseMatrix",
    "Square",
    "SymmetricArray",
    "SymmetricMatrix",
    "as_symmetric",
    "on_device",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "blocks": ("Blocks",),
        "dask": ("DaskMatrix",),
        "dense": ("DenseMatrix",),
        "host": ("HostArray", "HostMatrix"),
        "layers": ("Layers",),
        "lowrank": ("LowRank",),
        "sparse": ("SparseMatrix",),
        "symmetric": ("Square", "SymmetricArray", "SymmetricMatrix"),
        "wrapping": ("as_symmetric", "on_device"),
    },
)
