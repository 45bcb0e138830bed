r"""The cluster that a row's similarities make most likely, given the clusters of the others.

The largest entry of a row of U is a noisy label where the row has few similarities, or where U
explains few of them. A block model says what they tell. Let d be the degrees, s their sum, and let
the weight between i and j be Poisson with mean :math:`\omega_k d_i d_j / s` if both are in cluster
k, and :math:`\omega_0 d_i d_j / s` if they are in different ones. For a row i with the weight
:math:`w_{ik}` to cluster k, whose volume is :math:`v_k`, the log-likelihood is, up to a constant,

.. math:: w_{ik} \log\frac{\omega_k}{\omega_0} - d_i v_k \frac{\omega_k - \omega_0}{s}.

Starting from labels that are better than chance, one round of this reaches the best possible rate
of errors on block models (Gao, Ma, Zhang and Zhou 2017). Here it is repeated a few times, with
:math:`\omega` estimated anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.adjacency import degrees
from symnmf.kernels.assigning import LANES, add_within, move_rows
from symnmf.run.result import OUTSIDE
from symnmf.storage.sparse import narrow

#: How rows get their labels.
LIKELIHOOD, LARGEST = "likelihood", "largest"
ASSIGNMENTS = (LIKELIHOOD, LARGEST)

#: Rounds, at most. Small graphs settle in two or three; on com-DBLP each of the first five raises
#: the modularity, and later ones hardly move anything.
ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Densities:
    r"""What a unit of weight to each cluster is worth, and what a unit of degree costs there.

    Attributes
    ----------
    gain : ndarray of shape (k,)
        :math:`\log(\omega_k / \omega_0)`.
    cost : ndarray of shape (k,)
        :math:`v_k (\omega_k - \omega_0) / s`.
    """

    gain: np.ndarray
    cost: np.ndarray

    @classmethod
    def of(cls, ties: Ties, clusters: int) -> Densities:
        """Estimate them from a graph without negative weights."""
        own = ties.clusters == ties.labels[ties.rows]
        within = np.bincount(ties.clusters[own], ties.weights[own], minlength=clusters)
        return cls.estimated(within, ties.labels, ties.degrees, ties.entries)

    @classmethod
    def estimated(
        cls, within: np.ndarray, labels: np.ndarray, degrees: np.ndarray, entries: int
    ) -> Densities:
        """Estimate them from the weight inside each cluster, and from all that rows are tied to."""
        inside, total = labels != OUTSIDE, float(degrees.sum())
        # in units of the mean edge; one more edge than there is keeps a small cluster from extremes
        unit = total / max(entries, 1) or 1.0
        within = within / unit
        volume = np.bincount(labels[inside], degrees[inside], minlength=len(within)) / unit
        total = max(total / unit, 1.0)
        chance = volume**2 / total
        between = (total - within.sum() + 1.0) / (total - chance.sum() + 1.0)
        dense = (within + 1.0) / (chance + 1.0)
        return cls(np.log(dense / between), volume * (dense - between) / total)

    def scores(self, ties: Ties) -> np.ndarray:
        """Return the log-likelihood of each row in the clusters that it is tied to.

        It is minus infinity in a cluster that is no denser than what lies between clusters.
        """
        gain = self.gain[ties.clusters]
        found = ties.weights * gain - ties.degrees[ties.rows] * self.cost[ties.clusters]
        found[gain <= 0.0] = -np.inf
        return np.asarray(found)

    def scores_at(self, ties: Ties, places: Ties) -> np.ndarray:
        """Return the log-likelihood of each row in the clusters that it has other ties to."""
        shape = (len(ties.degrees), len(self.gain))
        weights = sp.csr_array((ties.weights, (ties.rows, ties.clusters)), shape=shape)
        weight = np.asarray(weights[places.rows, places.clusters]).ravel()
        cost = ties.degrees[places.rows] * self.cost[places.clusters]
        return np.asarray(weight * self.gain[places.clusters] - cost)


@dataclass(frozen=True, eq=False)
class Ties:
    """The weight between rows and the clusters of a graph.

    Attributes
    ----------
    labels : ndarray
        The clusters of the graph's rows; -1 for none.
    degrees : ndarray
        The weight of all that a row is tied to.
    entries : int
        Stored similarities.
    rows, clusters, weights : ndarray
        One entry for each row and cluster between which there is some weight, sorted by rows.
    """

    labels: np.ndarray
    degrees: np.ndarray
    entries: int
    rows: np.ndarray
    clusters: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, A: Any, degrees: np.ndarray, labels: np.ndarray, clusters: int) -> Ties:
        """Add up the rows of A, over the columns in each cluster."""
        outside = np.where(labels == OUTSIDE, clusters, labels)  # a column that is left out again
        # indices of 64 bits would have those of A copied in every round
        places = outside.astype(np.int32), np.arange(len(labels) + 1, dtype=np.int32)
        members = sp.csr_array((np.ones(len(labels)), *places), shape=(len(labels), clusters + 1))
        weight = sp.csr_array(A @ members)
        rows, found = np.repeat(np.arange(len(degrees)), np.diff(weight.indptr)), weight.indices
        kept = found < clusters
        entries = A.nnz if sp.issparse(A) else A.size
        return cls(labels, degrees, entries, rows[kept], found[kept], weight.data[kept])

    def likeliest(self, scores: np.ndarray, current: np.ndarray) -> np.ndarray:
        """Return the cluster of the largest score of each row.

        A row without any keeps its ``current`` label, and so does one whose own score is the
        largest. Of others that are equal the first one is taken.
        """
        labels = current.copy()
        if not scores.size:
            return labels
        begins = np.flatnonzero(np.diff(self.rows, prepend=-1))
        counts = np.diff(begins, append=len(self.rows))
        best = np.repeat(np.maximum.reduceat(scores, begins), counts)
        wins = (scores == best) & np.isfinite(scores)
        stays = self.clusters == current[self.rows]
        none = len(self.labels) + len(self.clusters)  # more than any number of a cluster
        rank = np.where(wins, np.where(stays, -1, self.clusters), none)
        first = np.minimum.reduceat(rank, begins)
        moves = (first >= 0) & (first < none)
        labels[self.rows[begins[moves]]] = first[moves]
        return labels


class Rounds:
    """Rounds on a sparse graph in compiled code; they do what :class:`Ties` does."""

    def __init__(self, A: sp.csr_array, degrees: np.ndarray, clusters: int) -> None:
        self.degrees, self.entries = np.asarray(degrees, np.float64), A.nnz
        self.clusters = clusters
        self._graph = *narrow(A.indptr, A.indices), A.data
        self._tied = np.zeros((LANES, clusters + 1))

    def likeliest(self, labels: np.ndarray) -> np.ndarray:
        """Return the likeliest clusters of the rows that have one; see :meth:`Ties.likeliest`."""
        labels = np.ascontiguousarray(labels, np.int64)
        within, moved = np.zeros(self.clusters), np.empty_like(labels)
        add_within(*self._graph, labels, within)
        found = Densities.estimated(within, labels, self.degrees, self.entries)
        move_rows(*self._graph, labels, self.degrees, found.gain, found.cost, self._tied, moved)
        return moved


def reassigned(
    A: Any, labels: np.ndarray, clusters: int, *, negative_weight: float = 0.0
) -> np.ndarray:
    """Return labels after a few rounds in which every row moves to its likeliest cluster.

    Rows with the label -1 keep it, and no cluster loses all its rows. Negative edges have densities
    of their own, and their log-likelihood counts ``negative_weight`` times.
    """
    positive, negative = _parts(A)
    known, repelled = degrees(positive), None if negative is None else degrees(negative)
    outside = labels == OUTSIDE
    signed = repelled is not None and negative_weight > 0.0
    compiled = sp.issparse(positive) and not signed
    rounds = Rounds(positive, known, clusters) if compiled else None
    before: np.ndarray | None = None
    for done in range(ROUNDS if clusters > 1 else 0):
        if rounds is not None:
            moved = rounds.likeliest(labels)
        else:
            ties = Ties.of(positive, known, labels, clusters)
            scores = Densities.of(ties, clusters).scores(ties)
            if repelled is not None and negative_weight > 0.0:
                apart = Ties.of(negative, repelled, labels, clusters)
                scores += negative_weight * Densities.of(apart, clusters).scores_at(apart, ties)
            moved = ties.likeliest(scores, labels)
            moved[outside] = OUTSIDE
        # rows that stay in one cluster may have been all that another would have gained
        while (emptied := _lost(labels[~outside], moved[~outside])).size:
            stays = np.isin(labels, emptied)
            moved[stays] = labels[stays]
        if np.array_equal(moved, labels):
            break
        if before is not None and np.array_equal(moved, before):
            # rows that attract each other change places for ever, so the last round is known
            return moved if (ROUNDS - done) % 2 else labels
        before, labels = labels, moved
    return labels


def _lost(labels: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return the clusters that have rows before a round and none after it."""
    before, after = np.bincount(labels), np.bincount(moved)
    after = np.append(after, np.zeros(max(len(before) - len(after), 0), after.dtype))
    return np.flatnonzero((before > 0) & (after[: len(before)] == 0))


def new_labels(A: Any, labels: np.ndarray, similarities: Any, clusters: int) -> np.ndarray:
    """Return the likeliest cluster of new rows, from their similarities to those of A."""
    graph, new = _parts(A)[0], _parts(similarities)[0]
    densities = Densities.of(Ties.of(graph, degrees(graph), labels, clusters), clusters)
    ties = Ties.of(new, degrees(new), labels, clusters)
    return ties.likeliest(densities.scores(ties), np.full(new.shape[0], OUTSIDE))


def _parts(A: Any) -> tuple[Any, Any]:
    """Return the positive part of a matrix, and the negative one with its sign changed."""
    if A.min() >= 0:
        return A, None
    if sp.issparse(A):
        return sp.csr_array(A.maximum(0)), sp.csr_array((-A).maximum(0))
    return np.maximum(A, 0), np.maximum(-A, 0)


def can_reassign(A: Any) -> bool:
    """Whether a graph is in memory and has edges."""
    return (sp.issparse(A) or isinstance(A, np.ndarray)) and bool(A.max() > 0)
