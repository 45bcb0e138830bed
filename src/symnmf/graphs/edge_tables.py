"""Edges in tables: data frames of pandas, polars and pyarrow, and lists of pairs.

None of these libraries is imported here: a column is what a frame gives by its name.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.graphs.assembling import EdgeTable
from symnmf.interchange import column_names, is_frame
from symnmf.naming import USUAL_WEIGHT, named_ends, named_weight


def with_edges_read(G: Any, weight: Any = USUAL_WEIGHT) -> Any:
    """Return a table of edges as an :class:`EdgeTable`, and anything else as it is."""
    if not is_edge_table(G):
        return G
    return read_frame(G, weight=weight) if is_frame(G) else read_pairs(G, weight)


def is_edge_table(G: Any) -> bool:
    """Whether G is a frame of edges, or a list of named pairs, and not a matrix."""
    if is_frame(G):
        columns = column_names(G) or []
        if named_ends(columns) is not None:
            return True
        # a frame that is not square is no matrix of similarities; a lazy one has no shape
        return getattr(G, "shape", (None,))[0] != len(columns)
    return is_pairs(G)


def is_pairs(G: Any) -> bool:
    """Whether G is a list of pairs or triples that can be nothing but edges.

    Pairs of names are edges. Tuples of numbers are edges too, unless there are as many of them as
    each has numbers: then they may be the rows of a matrix.
    """
    if not isinstance(G, list | tuple | set | frozenset) or not G:
        return False
    pairs = all(isinstance(edge, list | tuple) and len(edge) in (2, 3) for edge in G)
    if not pairs:
        return False
    if any(isinstance(end, str) for edge in G for end in edge[:2]):
        return True
    if any(len(edge) == 3 and isinstance(edge[2], Mapping) for edge in G):
        return True
    return all(isinstance(edge, tuple) for edge in G) and {len(edge) for edge in G} != {len(G)}


def read_frame(
    frame: Any,
    *,
    source: Any = None,
    target: Any = None,
    weight: Any = USUAL_WEIGHT,
    name: str = "G",
) -> EdgeTable:
    """Read the edges of a frame.

    ``source`` and ``target`` name columns; by default those that are called so, else the first two
    of two or three. ``weight`` names one too. "weight" need not be there: then the third of three
    columns holds the weights, and without it every edge counts 1.
    """
    columns = column_names(frame) or []
    ends = _ends(columns, source, target, name)
    weight = _weight(columns, ends, weight, name)
    table = frame.collect() if hasattr(frame, "collect") else frame  # lazy ones of polars
    first, second = (_ids(table, column, name) for column in ends)
    named = source is not None or named_ends(columns) is not None
    if not named and isinstance(first, np.ndarray) != isinstance(second, np.ndarray):
        raise InputError(
            f"{name} has no columns source and target, and {ends[0]!r} and {ends[1]!r} cannot both "
            f"hold nodes, since one has numbers and the other does not; for edges name the columns "
            f"by source= and target= of symnmf.graphs.from_edges, for points use symnmf.SymNMF."
        )
    names, pairs = number_nodes(first, second)
    weights = None if weight is None else _weights(table, weight, name)
    return EdgeTable(names, pairs, weights)


def read_pairs(pairs: Any, weight: Any = USUAL_WEIGHT, name: str = "G") -> EdgeTable:
    """Read the edges of a list of pairs, of triples with a weight, or of networkx's triples.

    With ``weight=None`` every edge counts 1.
    """
    edges = list(pairs)
    named = number_nodes([edge[0] for edge in edges], [edge[1] for edge in edges])
    if weight is None or all(len(edge) == 2 for edge in edges):
        return EdgeTable(*named, None)
    weights = [_third(edge, weight) for edge in edges]
    numeric = [isinstance(value, int | float | np.number) for value in weights]
    if not all(numeric):
        wrong = numeric.index(False)
        raise InputError(
            f"{name} has the weight {weights[wrong]!r} in edge {wrong}, which is not a number; "
            f"correct it, or pass weight=None to count every edge as 1."
        )
    return EdgeTable(*named, np.array(weights, dtype=np.float64))


def _third(edge: Any, weight: Any) -> Any:
    if len(edge) == 2:
        return 1.0
    return edge[2].get(weight, 1.0) if isinstance(edge[2], Mapping) else edge[2]


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


# Frames ---------------------------------------------------------------------------------------


def _listed(columns: Sequence[Any], most: int = 6) -> str:
    more = ", ..." if len(columns) > most else ""
    return (", ".join(map(repr, columns[:most])) or "none") + more


def _ends(columns: list[Any], source: Any, target: Any, name: str) -> tuple[Any, Any]:
    if (source is None) != (target is None):
        raise InputError("source and target name the two ends of an edge; give both or neither.")
    if source is not None:
        for label, value in (("source", source), ("target", target)):
            if value not in columns:
                raise InputError(
                    f"{label}={value!r} is no column of {name}, which has {_listed(columns)}."
                )
        return source, target
    ends = named_ends(columns)
    if ends is None and len(columns) in (2, 3):
        ends = columns[0], columns[1]
    if ends is None:
        raise InputError(
            f"{name} is a table with the columns {_listed(columns)}, and none are called source "
            f"and target; for edges name them by source= and target= of symnmf.graphs.from_edges, "
            f"for similarities pass a square table."
        )
    return ends


def _weight(columns: list[Any], ends: tuple[Any, Any], weight: Any, name: str) -> Any:
    if weight is None or weight in columns:
        return weight
    if weight != USUAL_WEIGHT:
        raise InputError(
            f"weight={weight!r} is no column of {name}, which has {_listed(columns)}; pass "
            f"weight=None to count every edge as 1."
        )
    return named_weight(columns, ends)


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
            f"are names or whole numbers; name the columns by source= and target= of "
            f"symnmf.graphs.from_edges."
        )
    return values.astype(np.int64)


def _weights(table: Any, column: Any, name: str) -> np.ndarray:
    values = _column(table, column, "weight", name)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"column {column!r} of {name} was taken for the weights of edges and holds values that "
            f"are not numbers; name another one, or pass weight=None."
        ) from None
