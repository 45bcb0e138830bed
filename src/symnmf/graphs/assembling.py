"""Symmetric matrices of edges that are given by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError

#: What becomes of an edge that is listed again: it is the same edge, or its weights add up.
REPEATED = ("same", "sum")


def csr(n: int, rows: np.ndarray, cols: np.ndarray, values: np.ndarray) -> sp.csr_array:
    """The n x n matrix of these entries in canonical format, without stored zeros."""
    # narrow indices where they fit: scikit-learn refuses the wide ones
    index = np.int32 if max(n, len(rows)) < 2**31 else np.int64
    ends = (rows.astype(index), cols.astype(index))
    graph = sp.csr_array(sp.coo_array((values, ends), shape=(n, n)))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


@dataclass(frozen=True, eq=False)
class EdgeTable:
    """Edges between named nodes.

    Attributes
    ----------
    names : list
        The nodes.
    pairs : ndarray of shape (m, 2)
        Both ends of each edge, by number.
    weights : ndarray or None
        One for each edge; None where every edge counts 1.
    """

    names: list[Any]
    pairs: np.ndarray
    weights: np.ndarray | None = None

    def number_of_nodes(self) -> int:
        """How many nodes there are, by the name that networkx gives it."""
        return len(self.names)

    def adjacency(
        self, name: str, *, repeated: str = "same", allow_negative: bool = False
    ) -> sp.csr_array:
        """The adjacency matrix.

        A self-loop of weight w is ``A[i, i] = w``. An edge may be listed in both directions: that
        is one edge, or with ``repeated="sum"`` the sum of both.
        """
        names, ends = self.names, self.pairs
        if not len(names):
            raise InputError(f"{name} has no nodes; pass a graph with at least one.")
        values = np.ones(len(ends)) if self.weights is None else self.weights
        bad = np.flatnonzero(~(np.isfinite(values) & (allow_negative | (values >= 0))))
        if bad.size:
            u, v = (names[i] for i in ends[bad[0]])
            raise InputError(
                f"{bad.size} of the {values.size} edges of {name} have a negative or non-finite "
                f"weight, the first ({u!r}, {v!r}) with {values[bad[0]]:g}; drop them, pass "
                f"weight=None to count every edge as 1, or allow_negative=True for a signed graph."
            )
        if repeated == "same":
            kept = _distinct(names, ends, values, name)
            ends, values = ends[kept], values[kept]
        loop = ends[:, 0] == ends[:, 1]
        rows = np.concatenate([ends[:, 0], ends[~loop, 1]])
        cols = np.concatenate([ends[:, 1], ends[~loop, 0]])
        return csr(len(names), rows, cols, np.concatenate([values, values[~loop]]))


def _distinct(names: Sequence[Any], ends: np.ndarray, values: np.ndarray, name: str) -> np.ndarray:
    """The first place of each edge; edges that are listed with two weights are refused."""
    low, high = ends.min(axis=1).astype(np.int64), ends.max(axis=1).astype(np.int64)
    order = np.lexsort((low, high))  # stable, so that the first listing stays in front
    same = np.zeros(len(order), dtype=bool)
    same[1:] = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
    differs = np.flatnonzero(same[1:] & (np.diff(values[order]) != 0))
    if differs.size:
        first, second = order[differs[0]], order[differs[0] + 1]
        u, v = (names[i] for i in ends[first])
        raise InputError(
            f"{name} has the edge between {u!r} and {v!r} with the weights {values[first]:g} and "
            f"{values[second]:g}; list each edge once, or call symnmf.graphs.from_edges with "
            f"repeated='sum' to add them up."
        )
    return np.sort(order[~same])
