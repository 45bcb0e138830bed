"""Storage backends of X. ``as_symmetric`` wraps what a user passes for the solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symnmf.lazily import offered

if TYPE_CHECKING:
    from symnmf.storage.blocks import Blocks
    from symnmf.storage.dask import DaskMatrix as DaskMatrix
    from symnmf.storage.dense import DenseMatrix as DenseMatrix
    from symnmf.storage.host import HostArray as HostArray
    from symnmf.storage.host import HostMatrix as HostMatrix
    from symnmf.storage.layers import Layers as Layers
    from symnmf.storage.lowrank import LowRank
    from symnmf.storage.sparse import SparseMatrix as SparseMatrix
    from symnmf.storage.symmetric import Square as Square
    from symnmf.storage.symmetric import SymmetricArray as SymmetricArray
    from symnmf.storage.symmetric import SymmetricMatrix as SymmetricMatrix
    from symnmf.storage.wrapping import as_symmetric as as_symmetric
    from symnmf.storage.wrapping import on_device

__all__ = ["Blocks", "LowRank", "on_device"]

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
