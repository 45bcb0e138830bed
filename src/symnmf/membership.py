"""Which clusters a row belongs to, where it may belong to several or to none.

U is brought back to the units of the graph, B = D^(1/2) U with the degrees that the graph was
divided by, so that <b_i, b_j> is the rate of the edge {i, j}. Two rows of strength delta in one
cluster explain an edge at the rate delta^2. With delta^2 the rate of the background, a row belongs
to the clusters in which its strength exceeds delta: where they explain its edges better than
chance does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.run.result import OUTSIDE, cluster_labels, membership_shares
from symnmf.run.seeds import as_edges
from symnmf.storage import SymmetricArray
from symnmf.storage.wrapping import in_memory

#: The rule that asks for strengths above the background.
BACKGROUND = "background"

#: The share of a row that counts if there is no background to compare with.
SHARE = 0.25

#: Where the background would leave out more than this part of the rows, it is not one: the
#: clusters themselves make up the density of the graph.
MOST_LEFT_OUT = 0.25

#: By what the rate between rows that share no cluster is exceeded where they do, at least.
ABOVE_UNSHARED = 2.0

#: Rows of which all pairs are looked at, to count the pairs that share no cluster.
ROWS_COMPARED = 2000

#: Edges that are looked at together.
EDGES_AT_ONCE = 200_000


def agreeing(U: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return U with the largest entry of each row in the cluster of its label.

    Least squares, which U comes from, and the similarities may speak for two clusters. The row
    then belongs to both of them, a hair more to that of its label.
    """
    rows = np.flatnonzero(labels != OUTSIDE)
    rows = rows[U[rows].argmax(axis=1) != labels[rows]]
    if not rows.size:
        return U
    found = U.copy()
    found[rows, labels[rows]] = U[rows].max(axis=1) * (1.0 + np.sqrt(np.finfo(U.dtype).eps))
    return found


def members_of(
    U: np.ndarray, threshold: float | str | None, strengths: np.ndarray | None = None
) -> np.ndarray:
    """Return which clusters each row belongs to, an array of bool with a column for each.

    Without a ``threshold`` it is that of its largest entry; with a number every other too whose
    share of the row is above it; with "background" those where ``strengths`` are above 1. A row of
    zeros belongs to none.
    """
    if threshold == BACKGROUND and strengths is not None:
        return np.asarray(strengths > 1.0)
    return _by_share(U, SHARE if isinstance(threshold, str) else threshold)


def background_strengths(
    U: np.ndarray, graph: Any, roots: np.ndarray | None = None
) -> np.ndarray | None:
    """Return U in units of the background of a graph: above 1 means that a row belongs.

    ``graph`` are the similarities before they were normalised, by the ``roots`` of the degrees.
    None where the graph has no entries to look at or has negative ones.
    """
    A = edges_of(graph)
    if A is None:
        return None
    B = U if roots is None else U * roots[:, None]
    linked = np.flatnonzero(np.diff(A.indptr))
    n = len(linked)
    if n < 2:
        return np.zeros_like(B)
    rate = A.data.sum() / (n * (n - 1.0))
    if (A.data == 1.0).all():  # of yes-or-no edges: the rate that gives this density
        rate = -np.log(max(1.0 - rate, 1e-12))
    strengths = B / np.sqrt(rate)
    left_out = np.mean(~(strengths[linked] > 1.0).any(axis=1))
    if left_out > MOST_LEFT_OUT:
        lower = ABOVE_UNSHARED * _unshared_rate(A, _by_share(U, SHARE), linked)
        strengths = B / np.sqrt(min(lower, rate))
    return np.asarray(strengths)


def _by_share(U: np.ndarray, threshold: float | None) -> np.ndarray:
    """The cluster of the largest entry of each row, and those of larger shares than a number."""
    labels = cluster_labels(U)
    belongs = np.zeros(U.shape, dtype=bool)
    inside = np.flatnonzero(labels != OUTSIDE)
    belongs[inside, labels[inside]] = True
    if threshold is not None:
        belongs |= membership_shares(U) > threshold
    return belongs


def edges_of(graph: Any) -> sp.csr_array | None:
    """The edges as a sparse matrix without a diagonal; None if there are none to look at."""
    A = in_memory(graph) if isinstance(graph, SymmetricArray) else graph
    if isinstance(A, SymmetricArray):
        return None
    edges = as_edges(A)
    return None if edges.nnz and edges.data.min() < 0 else edges


def _unshared_rate(A: sp.csr_array, members: np.ndarray, linked: np.ndarray) -> float:
    """The mean weight between rows that have no cluster in common.

    It is at least that of half an edge in the whole graph, since clusters that together hold every
    edge would leave a background of zero.
    """
    upper = sp.triu(A, k=1, format="coo")
    i, j = upper.coords
    weight = 0.0
    for first in range(0, upper.nnz, EDGES_AT_ONCE):
        part = slice(first, first + EDGES_AT_ONCE)
        apart = ~(members[i[part]] & members[j[part]]).any(axis=1)
        weight += float(upper.data[part][apart].sum())
    n = len(linked)
    rows = linked[np.unique(np.linspace(0, n - 1, min(n, ROWS_COMPARED)).astype(np.intp))]
    some = members[rows].astype(np.float32)
    apart_share = float(np.mean(some @ some.T == 0.0))
    pairs = apart_share * n * (n - 1.0) / 2.0
    least = float(A.data.mean()) / (n * (n - 1.0))
    return max(weight / pairs, least) if pairs > 0 else least
