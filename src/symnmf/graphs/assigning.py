r"""The cluster that the similarities of a row speak for, given the clusters of the others.

The largest entry of a row of U is a noisy label where the row has few similarities, or where U
explains few of them. Let d be the degrees, s their sum, :math:`w_{ik}` the weight between row i and
cluster k, and :math:`v_k` the volume of cluster k. A row goes where :math:`w_{ik} g_k - d_i c_k` is
largest, with a gain g for weight and a cost c for degree.

In a sparse graph, edges are counted. Let the weight between i and j be Poisson with mean
:math:`\omega_k d_i d_j / s` if both are in cluster k, and :math:`\omega_0 d_i d_j / s` if they are
in different ones. The log-likelihood of a row is, up to a constant,

.. math:: w_{ik} \log\frac{\omega_k}{\omega_0} - d_i v_k \frac{\omega_k - \omega_0}{s}.

Starting from labels that are better than chance, one round of this reaches the best possible rate
of errors on block models (Gao, Ma, Zhang and Zhou 2017). Here it is repeated a few times, with
:math:`\omega` estimated anew.

Where most pairs of rows have a similarity, there are no counts, and one cluster would draw in the
others. There a row goes to the cluster with the nearest mean, in the kernel k-means whose sum is
the normalised cut (Dhillon, Guan and Kulis 2007): up to a constant, :math:`d_i` times the squared
distance is :math:`d_i W_k / v_k^2 - 2 w_{ik} / v_k`, with :math:`W_k` the weight inside k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.graphs.adjacency import attraction, degrees
from symnmf.kernels.assigning import LANES, add_within, move_rows
from symnmf.run.result import OUTSIDE
from symnmf.storage.sparse import narrow

#: How rows get their labels.
LIKELIHOOD, LARGEST = "likelihood", "largest"

#: Rounds, at most. Small graphs settle in two or three; on com-DBLP each of the first five raises
#: the modularity, and later ones hardly move anything.
ROUNDS = 10

#: Part of the pairs of rows that have a similarity above which there are no counts to speak of.
MOST_PAIRS = 0.5


@dataclass(frozen=True, eq=False)
class Worth:
    """What a unit of weight to each cluster is worth, and what a unit of degree costs there."""

    gain: np.ndarray
    cost: np.ndarray

    @classmethod
    def of_counts(cls, within: np.ndarray, volume: np.ndarray, total: float, edges: int) -> Worth:
        """Estimate a block model from the weight inside each cluster, and its volume."""
        # in units of the mean edge; one more edge than there is keeps a small cluster from extremes
        unit = total / max(edges, 1) or 1.0
        within, volume, total = within / unit, volume / unit, max(total / unit, 1.0)
        chance = volume**2 / total
        between = (total - within.sum() + 1.0) / (total - chance.sum() + 1.0)
        dense = (within + 1.0) / (chance + 1.0)
        return cls(np.log(dense / between), volume * (dense - between) / total)

    @classmethod
    def of_means(cls, within: np.ndarray, volume: np.ndarray) -> Worth:
        """Return what makes the best cluster the one with the nearest mean."""
        filled = np.where(volume > 0, volume, np.inf)
        return cls(2.0 / filled, within / filled**2)


class Assigning:
    """A graph without negative weights, and rounds in which its rows change clusters."""

    def __init__(self, A: Any, clusters: int) -> None:
        self.edges = int(A.nnz if sp.issparse(A) else np.count_nonzero(A))
        self.dense = self.edges > MOST_PAIRS * A.shape[0] ** 2
        self.A = A if self.dense else sp.csr_array(A)
        self.degrees, self.clusters = np.asarray(degrees(A), np.float64), clusters

    def worth(self, labels: np.ndarray) -> Worth:
        """Return what weight and degree count, given the labels."""
        volume = np.zeros(self.clusters)
        inside = labels != OUTSIDE
        np.add.at(volume, labels[inside], self.degrees[inside])
        within = np.zeros(self.clusters)
        if self.dense:
            own = self._weights(self.A, labels)[inside, labels[inside]]
            np.add.at(within, labels[inside], own)
            return Worth.of_means(within, volume)
        add_within(*narrow(self.A.indptr, self.A.indices), self.A.data, labels, within)
        return Worth.of_counts(within, volume, float(self.degrees.sum()), self.edges)

    def round(self, labels: np.ndarray) -> np.ndarray:
        """Return the best cluster of each row that has one; it stays where none is better."""
        labels = np.ascontiguousarray(labels, np.int64)
        worth = self.worth(labels)
        if self.dense:
            return best_of(self.scores(self.A, self.degrees, labels, worth), labels)
        moved, tied = np.empty_like(labels), np.zeros((LANES, self.clusters + 1))
        graph = *narrow(self.A.indptr, self.A.indices), self.A.data
        move_rows(*graph, labels, self.degrees, worth.gain, worth.cost, tied, moved)
        return moved

    def new(self, rows: Any, labels: np.ndarray) -> np.ndarray:
        """Return the best cluster of new rows by their similarities to the graph's, -1 for none."""
        labels = np.ascontiguousarray(labels, np.int64)
        scores = self.scores(rows, degrees(rows), labels, self.worth(labels))
        known = np.isfinite(scores.max(axis=1))
        return np.where(known, scores.argmax(axis=1), OUTSIDE)

    def scores(self, rows: Any, known: np.ndarray, labels: np.ndarray, worth: Worth) -> np.ndarray:
        """Return how much the similarities of rows with these degrees speak for each cluster.

        Nothing speaks for a cluster without weight, or one no denser than what lies between
        clusters.
        """
        weight = self._weights(rows, labels)
        scores = weight * worth.gain - known[:, None] * worth.cost
        scores[(weight == 0.0) | (worth.gain <= 0.0)] = -np.inf
        return np.asarray(scores)

    def against(self, labels: np.ndarray) -> np.ndarray:
        """Return the log-likelihood of negative weights, which are rare inside of a cluster."""
        worth = self.worth(labels)
        return self._weights(self.A, labels) * worth.gain - self.degrees[:, None] * worth.cost

    def _weights(self, rows: Any, labels: np.ndarray) -> np.ndarray:
        """Return the weight of rows to each cluster."""
        inside = np.flatnonzero(labels != OUTSIDE)
        places = (np.ones(len(inside)), (inside, labels[inside]))
        members = sp.csr_array(places, shape=(len(labels), self.clusters))
        weight = rows @ (members if sp.issparse(rows) else members.toarray())
        return np.asarray(weight.toarray() if sp.issparse(weight) else weight)


def best_of(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the cluster of the largest score of each row that has one; it stays among equals."""
    own = scores[np.arange(len(labels)), labels]
    better = (scores.max(axis=1) > own) & (labels != OUTSIDE)
    return np.where(better, scores.argmax(axis=1), labels)


def reassigned(
    A: Any, labels: np.ndarray, clusters: int, *, negative_weight: float = 0.0
) -> np.ndarray:
    """Return labels after a few rounds in which every row moves to its best cluster.

    Rows with the label -1 keep it, and no cluster loses all its rows. Negative edges of a sparse
    graph have densities of their own, and their log-likelihood counts ``negative_weight`` times.
    """
    if clusters < 2:
        return labels
    outside = labels == OUTSIDE
    positive = Assigning(attraction(A), clusters)
    negative: Assigning | None = None
    if negative_weight > 0.0 and A.min() < 0 and not positive.dense:
        negative = Assigning(attraction(-A), clusters)
    for _ in range(ROUNDS):
        if negative is None:
            moved = positive.round(labels)
        else:
            worth = positive.worth(labels)
            scores = positive.scores(positive.A, positive.degrees, labels, worth)
            moved = best_of(scores + negative_weight * negative.against(labels), labels)
        # rows that stay in one cluster may have been all that another would have gained
        while (emptied := _lost(labels[~outside], moved[~outside])).size:
            stays = np.isin(labels, emptied)
            moved[stays] = labels[stays]
        if np.array_equal(moved, labels):
            break
        labels = moved
    return labels


def _lost(labels: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return the clusters that have rows before a round and none after it."""
    before, after = np.bincount(labels), np.bincount(moved)
    after = np.append(after, np.zeros(max(len(before) - len(after), 0), after.dtype))
    return np.flatnonzero((before > 0) & (after[: len(before)] == 0))


def can_reassign(A: Any) -> bool:
    """Whether a graph is in memory and has edges."""
    return (sp.issparse(A) or isinstance(A, np.ndarray)) and bool(A.max() > 0)
