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

from symnmf.graphs.partitions import Partition
from symnmf.run.result import OUTSIDE

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
    labels : ndarray of shape (n,)
        The clusters that the densities were estimated from; -1 for none.
    gain : ndarray of shape (k,)
        :math:`\log(\omega_k / \omega_0)`.
    cost : ndarray of shape (k,)
        :math:`v_k (\omega_k - \omega_0) / s`.
    """

    labels: np.ndarray
    gain: np.ndarray
    cost: np.ndarray

    @classmethod
    def of(cls, A: Any, labels: np.ndarray, clusters: int) -> Densities:
        """Estimate them from a graph without negative weights."""
        found = Partition.of(A, labels, clusters)
        # in units of the mean edge; one more edge than there is keeps a small cluster from extremes
        unit = found.total / max(found.entries, 1) or 1.0
        within, total = found.within / unit, max(found.total / unit, 1.0)
        volume = found.volume / unit
        chance = volume**2 / total
        between = (total - within.sum() + 1.0) / (total - chance.sum() + 1.0)
        inside = (within + 1.0) / (chance + 1.0)
        return cls(labels, np.log(inside / between), volume * (inside - between) / total)

    def scores(self, similarities: Any) -> sp.csr_array:
        """Return the log-likelihood of each row in the clusters to which it has similarities.

        It is minus infinity in a cluster that is no denser than what lies between clusters.
        """
        found = self._weights(similarities)
        found.data = self._score(similarities, *_places(found), found.data)
        found.data[self.gain[found.indices] <= 0.0] = -np.inf
        return found

    def scores_at(self, similarities: Any, places: sp.csr_array) -> np.ndarray:
        """Return the log-likelihood at the stored places of another matrix."""
        rows, clusters = _places(places)
        weight = np.asarray(self._weights(similarities)[rows, clusters]).ravel()
        return self._score(similarities, rows, clusters, weight)

    def _score(
        self, similarities: Any, rows: np.ndarray, clusters: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        own = np.asarray(similarities.sum(axis=1), dtype=np.float64).ravel()
        return np.asarray(weight * self.gain[clusters] - own[rows] * self.cost[clusters])

    def _weights(self, similarities: Any) -> sp.csr_array:
        """Return the weight of each row to each cluster."""
        inside = np.flatnonzero(self.labels != OUTSIDE)
        members = sp.csr_array(
            (np.ones(len(inside)), (inside, self.labels[inside])),
            shape=(len(self.labels), len(self.gain)),
        )
        weight = sp.csr_array(similarities @ members)
        weight.sum_duplicates()
        return weight


def likeliest(scores: sp.csr_array, current: np.ndarray) -> np.ndarray:
    """Return the cluster of the largest score of each row.

    A row without any keeps its ``current`` label, and so does one whose own score is the largest.
    """
    labels = current.copy()
    counts = np.diff(scores.indptr)
    some = np.flatnonzero(counts)
    if not some.size:
        return labels
    rows, clusters = _places(scores)
    best = np.maximum.reduceat(scores.data, scores.indptr[some])
    wins = (scores.data == np.repeat(best, counts[some])) & np.isfinite(scores.data)
    stays = np.zeros(len(counts), dtype=bool)
    stays[rows[wins & (clusters == current[rows])]] = True
    wins &= ~stays[rows]
    winners, first = np.unique(rows[wins], return_index=True)
    labels[winners] = clusters[wins][first]
    return labels


def _places(A: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of the stored entries."""
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices


def reassigned(
    A: Any, labels: np.ndarray, clusters: int, *, negative_weight: float = 0.0
) -> np.ndarray:
    """Return labels after a few rounds in which every row moves to its likeliest cluster.

    Rows with the label -1 keep it, and no cluster loses all its rows. Negative edges have densities
    of their own, and their log-likelihood counts ``negative_weight`` times.
    """
    positive, negative = _parts(A)
    outside = labels == OUTSIDE
    for _ in range(ROUNDS if clusters > 1 else 0):
        scores = Densities.of(positive, labels, clusters).scores(positive)
        if negative is not None and negative_weight > 0.0:
            apart = Densities.of(negative, labels, clusters)
            scores.data += negative_weight * apart.scores_at(negative, scores)
        moved = likeliest(scores, labels)
        moved[outside] = OUTSIDE
        before, after = (np.bincount(one[~outside], minlength=clusters) for one in (labels, moved))
        emptied = np.isin(labels, np.flatnonzero((before > 0) & (after == 0)))
        moved[emptied] = labels[emptied]
        if np.array_equal(moved, labels):
            break
        labels = moved
    return labels


def new_labels(A: Any, labels: np.ndarray, similarities: Any, clusters: int) -> np.ndarray:
    """Return the likeliest cluster of new rows, from their similarities to those of A."""
    scores = Densities.of(_parts(A)[0], labels, clusters).scores(_parts(similarities)[0])
    return likeliest(scores, np.full(scores.shape[0], OUTSIDE))


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
