"""Adjacency matrices of edges, one per row: of arrays, tables and lists of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.graphs.adjacency import Graph, numbers
from symnmf.graphs.assembling import REPEATED, EdgeTable
from symnmf.graphs.edge_tables import is_pairs, read_frame, read_pairs
from symnmf.interchange import is_frame
from symnmf.naming import USUAL_WEIGHT, lookup


@checked()
def from_edges(
    edges: Any,
    *,
    source: Any = None,
    target: Any = None,
    weight: Any = USUAL_WEIGHT,
    n_nodes: int | None = None,
    repeated: str = "same",
    allow_negative: bool = False,
) -> tuple[Graph, list[Any]]:
    """Adjacency matrix and node names of edges, one per row: two ends and maybe a weight.

    Each edge counts in both directions.

    Parameters
    ----------
    edges : data frame, list of pairs, or array-like of shape (m, 2) or (m, 3)
        A frame of pandas, polars or pyarrow, or pairs and triples with names of any kind. The rows
        of an array are node numbers from 0, and weights in the third column.
    source, target : str, optional
        The columns of a frame with the two ends. By default those called source and target, from
        and to, src and dst or node1 and node2, in any case; else the first two of two or three.
    weight : str or None
        The column of a frame with the weights, or the key in triples ``(u, v, dict)``. By default
        the one called "weight", else the third of three columns. Without such a column, and with
        None, every edge counts 1.
    n_nodes : int, optional
        For an array: how many nodes there are, by default one more than the largest number.
    repeated : {"same", "sum"}
        If an edge is listed again, in either direction: "same" counts it once, and it is an error
        if the weights differ; "sum" adds the weights.
    allow_negative : bool, default False
        Whether weights may be negative, as in a signed graph.

    Returns
    -------
    A : csr_array of shape (n, n)
        A self-loop of weight w is kept as ``A[i, i] = w``.
    names : list
        Node of each row: whole numbers in increasing order, other names as they come up.

    Examples
    --------
    >>> from symnmf import graphs
    >>> A, names = graphs.from_edges([("ann", "bob"), ("bob", "eve"), ("eve", "ann")])
    >>> names
    ['ann', 'bob', 'eve']
    """
    lookup(repeated, {kind: kind for kind in REPEATED}, "repeated")
    if is_frame(edges):
        what, taken = "a data frame", {"source", "target"}
    elif is_pairs(edges):
        what, taken = "a list of pairs", set[str]()
    else:
        what, taken = "an array of node numbers", {"n_nodes"}
    options = {"source": source, "target": target, "n_nodes": n_nodes}
    for name, value in options.items():
        if value is not None and name not in taken:
            raise InputError(f"{name} is not for {what}; leave it out.")
    if is_frame(edges):
        table = read_frame(edges, source=source, target=target, weight=weight, name="edges")
    elif is_pairs(edges):
        table = read_pairs(edges, weight, "edges")
    else:
        table = _numbered(edges, n_nodes, weighted=weight is not None)
    return table.adjacency("edges", repeated=repeated, allow_negative=allow_negative), table.names


def _numbered(edges: Any, n_nodes: int | None, *, weighted: bool) -> EdgeTable:
    """The edges of an array."""
    table = np.asarray(numbers(edges, "edges"))
    if table.ndim != 2:
        raise InputError(
            f"edges must be a table of pairs, one edge per row, got {type(edges).__name__}; a "
            f"matrix is read by symnmf.graphs.from_graph."
        )
    ends = table[:, :2]
    if table.shape[1] not in (2, 3) or (ends < 0).any() or (ends != np.floor(ends)).any():
        raise InputError(
            "edges must have two columns of whole node numbers from 0, and maybe one of weights."
        )
    n = int(ends.max()) + 1 if n_nodes is None else int(n_nodes)
    if n <= ends.max():
        raise InputError(f"n_nodes={n_nodes} is not above the largest node, {int(ends.max())}.")
    weights = table[:, 2] if table.shape[1] == 3 and weighted else None
    return EdgeTable(list(range(n)), ends.astype(np.intp), weights)


def looks_like_edges(table: Any) -> bool:
    """Whether a table's first columns could be the two ends of edges: whole numbers that recur."""
    if sp.issparse(table) or table.ndim != 2 or table.shape[1] not in (2, 3) or len(table) < 4:
        return False
    ends = table[:, :2]
    whole = bool((ends >= 0).all() and (ends == np.floor(ends)).all())
    return whole and len(np.unique(ends)) < ends.size
