"""Similarity graphs of points, and by :func:`from_graph` those that people already have.

Every graph of points is a ``scipy.sparse.csr_array`` from the start: symmetric to the last bit,
nonnegative, zero on the diagonal, in canonical format, with O(n k) entries for k neighbours.
No n x n array is ever made, except by :func:`rbf` where the full kernel is asked for by name.

Neighbours are those of the definition, not of a rounded one:
``symnmf/graphs/neighbors.py`` says how.
"""

from symnmf.graphs.adjacency import from_graph, normalize
from symnmf.graphs.attributes import scale_attributes
from symnmf.graphs.building import (
    build,
    cosine,
    nearest_neighbors,
    rbf,
    self_tuning,
)
from symnmf.graphs.constraints import constrained
from symnmf.graphs.degree_offsets import choose_degree_offset
from symnmf.graphs.edge_lists import from_edges
from symnmf.graphs.hypergraph import Hypergraph, hypergraph_of
from symnmf.graphs.warning import GraphWarning

__all__ = [
    "GraphWarning",
    "Hypergraph",
    "build",
    "choose_degree_offset",
    "constrained",
    "cosine",
    "from_edges",
    "from_graph",
    "hypergraph_of",
    "nearest_neighbors",
    "normalize",
    "rbf",
    "scale_attributes",
    "self_tuning",
]
