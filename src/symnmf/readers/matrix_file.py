"""What a reader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class MatrixFile:
    """The content of one file.

    Attributes
    ----------
    data : ndarray or csr_array of float64, or Hypergraph
        The table or matrix, or the symmetric adjacency matrix of a graph.
    kind : {"matrix", "graph", "hypergraph"}
        "graph" for edge lists and archives of edges, "hypergraph" for lists of hyperedges;
        "matrix" for everything else, square or not.
    names : ndarray or None
        One name per row: int64 ids, or text in an object array (so that one long name does not
        widen all). None if rows are only numbered 0..n-1.
    labels : ndarray or None
        One label per row, int64 or text in an object array, if the file holds labels.
    columns : list of str or None
        The names of the columns of a table.
    part : str or None
        Which part was read, if the file holds several matrices.
    """

    data: Any
    kind: str
    names: np.ndarray | None = None
    labels: np.ndarray | None = None
    columns: list[str] | None = None
    part: str | None = None
