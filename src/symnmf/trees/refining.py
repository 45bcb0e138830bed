"""Moving rows between parts of a graph while its modularity rises."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from symnmf.run.result import OUTSIDE

#: Rounds at most; in each, half of the rows may move, so that no two swap places for ever.
ROUNDS = 20

#: Part of the rows that has to be better off elsewhere for another round to follow.
FEW_MOVES = 1e-3


def refined(
    graph: sp.csr_array, labels: np.ndarray, degrees: np.ndarray, total: float
) -> np.ndarray:
    r"""Return labels after rows have gone to the part where they add most to the modularity.

    Row i adds :math:`\sum_{j \in r} A_{ij} - d_i \sum_{j \in r} d_j / 2m` to part r, without
    itself. ``degrees`` are those in the whole graph, ``total`` their sum. Rows with the label -1
    stay there, and no part loses its last row.
    """
    rng = np.random.default_rng(0)
    inside = labels != OUTSIDE
    parts = int(labels.max(initial=0)) + 1
    labels, best, value = labels.copy(), labels, -np.inf
    for _ in range(ROUNDS):
        members = _members(labels, parts)
        drawn = sp.csr_array(graph @ members)
        volume = np.bincount(labels[inside], degrees[inside], parts)
        now = float((drawn.multiply(members)).sum() / total - ((volume / total) ** 2).sum())
        if now <= value:
            return best
        best, value = labels.copy(), now
        place, ahead = _best_parts(drawn, labels, degrees, volume / total, graph.diagonal())
        willing = inside & (ahead > 1e-12)
        if willing.sum() <= FEW_MOVES * len(labels):
            return best
        moving = willing & (rng.random(len(labels)) < 0.5)
        moving = moving if moving.any() else willing
        sizes = np.bincount(labels[inside], minlength=parts)
        leaving = np.bincount(labels[moving], minlength=parts)
        moving &= (leaving < sizes)[np.where(inside, labels, 0)]
        labels[moving] = place[moving]
    return best


def _members(labels: np.ndarray, parts: int) -> sp.csr_array:
    inside = np.flatnonzero(labels != OUTSIDE)
    ones = np.ones(len(inside))
    return sp.csr_array((ones, (inside, labels[inside])), shape=(len(labels), parts))


def _best_parts(
    drawn: sp.csr_array,
    labels: np.ndarray,
    degrees: np.ndarray,
    share: np.ndarray,
    loops: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best part of each row among those it has edges to, and how much better it is."""
    n = len(labels)
    rows = np.repeat(np.arange(n), np.diff(drawn.indptr))
    own = drawn.indices == labels[rows]
    gain = drawn.data - degrees[rows] * share[drawn.indices]
    total = degrees.sum() or 1.0
    gain[own] += degrees[rows[own]] ** 2 / total - loops[rows[own]]
    # the row itself is in its own part, whether it has edges there or not
    mine = -degrees * np.where(labels >= 0, share[labels], 0.0) + degrees**2 / total
    mine[rows[own]] = gain[own]
    order = np.lexsort((gain, rows))
    last = np.flatnonzero(np.diff(rows[order], append=n))  # the best entry of each row
    place, top = labels.copy(), mine.copy()
    place[rows[order[last]]] = drawn.indices[order[last]]
    top[rows[order[last]]] = gain[order[last]]
    return place, top - mine
