"""Graphs as edges, one in each row: data frames, lists of pairs, arrays, networkx and igraph.

None of these libraries is imported here: a column is what a frame gives by its name, and graphs are
known by their methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.graphs.adjacency import csr, numbers
from symnmf.interchange import column_names, is_frame
from symnmf.naming import USUAL_WEIGHT, lookup, named_ends, named_weight

#: What becomes of an edge that is listed again: it is the same edge, or its weights add up.
REPEATED = ("same", "sum")


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges between named nodes: both ends of each by number, and weights, or None for 1 each."""

    names: list[Any]
    ends: np.ndarray
    weights: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """That of the adjacency matrix."""
        return len(self.names), len(self.names)

    def adjacency(
        self, name: str, *, repeated: str = "same", allow_negative: bool = False
    ) -> sp.csr_array:
        """The adjacency matrix.

        A self-loop of weight w is ``A[i, i] = w``. An edge may be listed in both directions: that
        is one edge, or with ``repeated="sum"`` the sum of both.
        """
        names, ends = self.names, self.ends
        if not names:
            raise InputError(f"{name} has no nodes; pass a graph with at least one.")
        values = np.ones(len(ends)) if self.weights is None else self.weights
        bad = np.flatnonzero(~(np.isfinite(values) & (allow_negative | (values >= 0))))
        if bad.size:
            u, v = (names[i] for i in ends[bad[0]])
            raise InputError(
                f"{bad.size} of the {values.size} edges of {name} have a negative or non-finite "
                f"weight, the first ({u!r}, {v!r}) with {values[bad[0]]:g}; drop them, pass "
                f"weight=None to count every edge as 1, or for a signed graph call "
                f"symnmf.communities with allow_negative=True."
            )
        if repeated == "same":
            kept = self._first_listings(values, name)
            ends, values = ends[kept], values[kept]
        loop = ends[:, 0] == ends[:, 1]
        rows = np.concatenate([ends[:, 0], ends[~loop, 1]])
        columns = np.concatenate([ends[:, 1], ends[~loop, 0]])
        return csr(len(names), rows, columns, np.concatenate([values, values[~loop]]))

    def _first_listings(self, values: np.ndarray, name: str) -> np.ndarray:
        """The first place of each edge; edges that are listed with two weights are refused."""
        low, high = self.ends.min(axis=1).astype(np.int64), self.ends.max(axis=1)
        keys = low * len(self.names) + high
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        known = values[first][which]
        if (differs := np.flatnonzero(values != known)).size:
            u, v = (self.names[i] for i in self.ends[differs[0]])
            raise InputError(
                f"{name} has the edge between {u!r} and {v!r} with the weights "
                f"{known[differs[0]]:g} and {values[differs[0]]:g}; list each edge once, or call "
                f"symnmf.graphs.from_edges with repeated='sum' to add them up."
            )
        return np.sort(first)


@checked()
def from_edges(
    edges: Any,
    *,
    source: Any = None,
    target: Any = None,
    weight: Any = USUAL_WEIGHT,
    repeated: str = "same",
    allow_negative: bool = False,
) -> tuple[sp.csr_array, list[Any]]:
    """Adjacency matrix and node names of edges, one per row: two ends and maybe a weight.

    Each edge counts in both directions.

    Parameters
    ----------
    edges : data frame, list of pairs, or array-like of shape (m, 2) or (m, 3)
        A frame of pandas, polars or pyarrow, or pairs and triples with names of any kind. The rows
        of an array are node numbers from 0, and weights in the third column.
    source, target : str, optional
        The columns of a frame with the two ends. By default those called source and target, from
        and to, src and dst or node1 and node2, in any case.
    weight : str or None
        The column of a frame with the weights. By default the one called "weight", else the third
        of three columns. Without such a column, and with None, every edge counts 1.
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
        table = _of_frame(edges, weight, source, target, "edges")
    elif source is not None or target is not None:
        raise InputError("source and target are for columns of a data frame; leave them out.")
    else:
        table = _of_pairs(edges, weight, "edges") if is_pairs(edges) else _of_array(edges, weight)
    return table.adjacency("edges", repeated=repeated, allow_negative=allow_negative), table.names


def read_graph(G: Any, weight: Any = USUAL_WEIGHT, name: str = "G") -> EdgeTable | None:
    """Return the edges of a graph or a table of edges; None for what must be a matrix."""
    if isinstance(G, EdgeTable):
        return G
    if hasattr(G, "is_multigraph") and hasattr(G, "adjacency"):
        return _of_networkx(G, weight)
    if hasattr(G, "get_edgelist") and hasattr(G, "vs"):
        return _of_igraph(G, weight)
    if is_frame(G):
        columns = column_names(G) or []
        # one that is square may be a matrix of similarities; a lazy one has no shape
        square = getattr(G, "shape", (None,))[0] == len(columns)
        return None if square and named_ends(columns) is None else _of_frame(G, weight, name=name)
    if isinstance(G, dict):
        raise InputError(f"{name} is a dict, not a graph or a matrix; pass networkx.Graph({name}).")
    return _of_pairs(G, weight) if is_pairs(G) else None


def is_pairs(G: Any) -> bool:
    """Whether G is a list or set of edges: of tuples, or of lists with names; others are rows."""
    if not isinstance(G, list | tuple | Set) or not G:
        return False
    if not all(isinstance(edge, list | tuple) and len(edge) in (2, 3) for edge in G):
        return False
    tuples = all(isinstance(edge, tuple) for edge in G)
    return tuples or any(isinstance(end, str) for edge in G for end in edge[:2])


def looks_like_edges(table: Any) -> bool:
    """Whether a table's first columns could be the two ends of edges: whole numbers that recur."""
    if sp.issparse(table) or table.ndim != 2 or table.shape[1] not in (2, 3) or len(table) < 4:
        return False
    ends = table[:, :2]
    whole = bool((ends >= 0).all() and (ends == np.floor(ends)).all())
    return whole and len(np.unique(ends)) < ends.size


def number_nodes(first: Any, second: Any) -> tuple[list[Any], np.ndarray]:
    """The nodes of some edges, and both ends of each by number.

    Whole numbers are sorted; other names stay in the order in which they come up.
    """
    if all(isinstance(side, np.ndarray) and side.dtype.kind in "iu" for side in (first, second)):
        known, places = np.unique(np.column_stack([first, second]), return_inverse=True)
        return known.tolist(), places.reshape(-1, 2)
    first, second = (side.tolist() if hasattr(side, "tolist") else side for side in (first, second))
    ends = list(chain.from_iterable(zip(first, second, strict=True)))
    if ends and all(type(end) is int for end in ends):
        return number_nodes(np.array(first), np.array(second))
    index: dict[Any, int] = {}
    for end in ends:
        if not isinstance(end, Hashable):
            raise InputError(
                f"an end of an edge is a {type(end).__name__}, which cannot name a node; use text "
                f"or whole numbers."
            )
        index.setdefault(end, len(index))
    places = np.fromiter((index[end] for end in ends), np.intp, len(ends))
    return list(index), places.reshape(-1, 2)


def _of_pairs(pairs: Any, weight: Any, name: str = "G") -> EdgeTable:
    edges = list(pairs)
    named = number_nodes([edge[0] for edge in edges], [edge[1] for edge in edges])
    if weight is None or all(len(edge) == 2 for edge in edges):
        return EdgeTable(*named)
    weights = [1.0 if len(edge) == 2 else edge[2] for edge in edges]
    return EdgeTable(*named, _numbers(weights, f"{name} has a weight"))


def _of_array(edges: Any, weight: Any) -> EdgeTable:
    table = numbers(edges, "edges")
    table = table.toarray() if sp.issparse(table) else table
    ends = table[:, :2]
    if table.shape[1] not in (2, 3) or (ends < 0).any() or (ends != np.floor(ends)).any():
        raise InputError(
            "edges must have two columns of whole node numbers from 0, and maybe one of weights."
        )
    weights = table[:, 2] if table.shape[1] == 3 and weight is not None else None
    return EdgeTable(list(range(int(ends.max()) + 1)), ends.astype(np.intp), weights)


def _numbers(values: Sequence[Any] | np.ndarray, where: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{where} that is not a number, or too large; name another attribute, or pass "
            f"weight=None to count every edge as 1."
        ) from None


# Frames ---------------------------------------------------------------------------------------


def _of_frame(
    frame: Any, weight: Any, source: Any = None, target: Any = None, name: str = "G"
) -> EdgeTable:
    columns = column_names(frame) or []
    listed = ", ".join(map(repr, columns[:6])) + ", ..." * (len(columns) > 6) or "none"
    if (source is None) != (target is None):
        raise InputError("source and target name the two ends of an edge; give both or neither.")
    ends = named_ends(columns) if source is None else (source, target)
    if ends is None:
        raise InputError(
            f"{name} is a table with the columns {listed}, and none are called source and target; "
            f"for edges name them by source= and target= of symnmf.graphs.from_edges, for points "
            f"use symnmf.SymNMF, for similarities pass a square table."
        )
    if weight == USUAL_WEIGHT and weight not in columns:
        weight = named_weight(columns, ends)
    for label, column in zip(("source", "target", "weight"), (*ends, weight), strict=True):
        if column is not None and column not in columns:
            raise InputError(f"{label}={column!r} is no column of {name}, which has {listed}.")
    table = frame.collect() if hasattr(frame, "collect") else frame  # lazy ones of polars
    names, pairs = number_nodes(*(_ids(table, column, name) for column in ends))
    if weight is None:
        return EdgeTable(names, pairs)
    weights = _column(table, weight, "weight", name)
    return EdgeTable(names, pairs, _numbers(weights, f"column {weight!r} of {name} has a value"))


def _column(table: Any, column: Any, what: str, name: str) -> np.ndarray:
    """The values of a column, all of which are there."""
    values = table[column]
    if getattr(values, "ndim", 1) != 1:
        raise InputError(f"{name} has two columns of one name; rename one of them.")
    absent = np.asarray(values.isna() if hasattr(values, "isna") else values.is_null())
    if absent.any():
        raise InputError(
            f"column {column!r} of {name} has no {what} in {int(absent.sum())} rows, the first is "
            f"row {int(np.flatnonzero(absent)[0])}; drop them first."
        )
    return np.asarray(values)


def _ids(table: Any, column: Any, name: str) -> Any:
    """One end of the edges: an array of whole numbers, or a list of other names."""
    values = _column(table, column, "node", name)
    if values.dtype.kind not in "iuf":
        return values.tolist()
    if not (np.isfinite(values).all() and (values == np.floor(values)).all()):
        raise InputError(
            f"column {column!r} of {name} holds numbers that are not whole, and the ends of edges "
            f"are names or whole numbers."
        )
    return values.astype(np.int64)


# Graphs of other libraries --------------------------------------------------------------------


def _of_networkx(G: Any, weight: str | None) -> EdgeTable:
    if G.is_directed():
        raise InputError("G is directed; call G.to_undirected() first.")
    if G.is_multigraph():
        raise InputError(
            "G is a multigraph; call networkx.Graph(G) first, which keeps one of parallel edges."
        )
    place = {node: i for i, node in enumerate(G)}
    pairs = [(place[u], place[v]) for u, v in G.edges]
    known = {name for *_, attributes in G.edges(data=True) for name in attributes}
    weights = [w for *_, w in G.edges(data=weight)] if weight in known else None
    return _of_attributes(list(G), pairs, weights, weight, known)


def _of_igraph(G: Any, weight: str | None) -> EdgeTable:
    if G.is_directed():
        raise InputError("G is directed; call G.as_undirected() first.")
    if G.has_multiple():
        raise InputError(
            "G has parallel edges; call G.simplify(loops=False, combine_edges='sum') first."
        )
    names = list(G.vs["name"]) if "name" in G.vs.attributes() else list(range(G.vcount()))
    for name, count in Counter(names).most_common(1):
        if count > 1:
            raise InputError(
                f"G has {count} vertices called {name!r}, which could not be told apart; give "
                f"them different names, or del G.vs['name'] to go by number."
            )
    known = set(G.es.attributes())
    weights = G.es[weight] if weight in known else None
    return _of_attributes(names, G.get_edgelist(), weights, weight, known)


def _of_attributes(
    names: list[Any], pairs: Any, weights: Any, weight: str | None, known: set[Any]
) -> EdgeTable:
    """Return edges with the weights in their attributes, 1 where there is none."""
    ends = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    if weights is None and weight not in (None, USUAL_WEIGHT) and len(ends):
        # a misspelt name would make every edge count 1
        listed = ", ".join(sorted(map(repr, known))) or "none"
        raise InputError(
            f"weight={weight!r} names no attribute of the edges of G, which have {listed}; name "
            f"one of these, or pass weight=None to count every edge as 1."
        )
    if weights is None:
        return EdgeTable(names, ends)
    values = [1.0 if w is None else w for w in weights]
    return EdgeTable(names, ends, _numbers(values, f"edge attribute {weight!r} of G has a value"))
