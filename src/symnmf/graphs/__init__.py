"""Similarity graphs of points, and adjacency matrices of existing graphs (:func:`from_graph`).

Every graph of points is a ``scipy.sparse.csr_array``: exactly symmetric, nonnegative, zero on the
diagonal, in canonical format, with O(n k) entries for k neighbours. No n x n array is created,
except where you ask for a full kernel.

Neighbours are exact, not affected by rounded distances; ``symnmf/graphs/neighbors.py`` explains
how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from symnmf.lazily import offered

if TYPE_CHECKING:
    from symnmf.graphs.adjacency import from_graph, normalize
    from symnmf.graphs.attributes import scale_attributes
    from symnmf.graphs.building import build
    from symnmf.graphs.constraints import constrained
    from symnmf.graphs.edges import from_edges
    from symnmf.graphs.hypergraph import Hypergraph
    from symnmf.graphs.warning import GraphWarning

__all__ = [
    "GraphWarning",
    "Hypergraph",
    "build",
    "constrained",
    "from_edges",
    "from_graph",
    "normalize",
    "scale_attributes",
]

__getattr__, __dir__ = offered(
    __name__,
    {
        "adjacency": ("from_graph", "normalize"),
        "attributes": ("scale_attributes",),
        "building": ("build",),
        "constraints": ("constrained",),
        "edges": ("from_edges",),
        "hypergraph": ("Hypergraph",),
        "warning": ("GraphWarning",),
    },
)
