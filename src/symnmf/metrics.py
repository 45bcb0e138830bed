"""How well found clusters and communities agree with known ones; every score is at most 1."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from symnmf.errors import InputError

__all__ = [
    "adjusted_rand",
    "clustering_accuracy",
    "normalized_mutual_info",
    "overlapping_f1",
    "purity",
]

Array = NDArray[Any]
Labels = ArrayLike | Sequence[Hashable]
Communities = Sequence[Collection[Hashable]]


def clustering_accuracy(labels_true: Labels, labels_pred: Labels) -> float:
    r"""Fraction of points labelled right under the best one-to-one naming of the clusters.

    .. math:: \max_\pi \frac{1}{n} \#\{i : \pi(\hat y_i) = y_i\}

    over one-to-one maps from found clusters to classes (the paper's measure).  Clusters in
    excess of the classes match nothing.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n,)
        Labels of any hashable kind; only which of them are equal matters.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], ["b", "b", "a", "c"])
    0.75
    """
    table = _contingency(labels_true, labels_pred)
    rows, cols = linear_sum_assignment(table, maximize=True)
    return float(table[rows, cols].sum() / table.sum())


def purity(labels_true: Labels, labels_pred: Labels) -> float:
    """Fraction of points whose class is the commonest one in their cluster.

    It never falls when clusters are split, and is 1 with one cluster per point, so compare it
    only between equal numbers of clusters.
    """
    table = _contingency(labels_true, labels_pred)
    return float(table.max(axis=0).sum() / table.sum())


def normalized_mutual_info(labels_true: Labels, labels_pred: Labels) -> float:
    """Mutual information over the mean of the two entropies: scikit-learn's score."""
    return float(normalized_mutual_info_score(*_codes(labels_true, labels_pred)))


def adjusted_rand(labels_true: Labels, labels_pred: Labels) -> float:
    """Rand index corrected for chance, 0 on average for random labels: scikit-learn's score."""
    return float(adjusted_rand_score(*_codes(labels_true, labels_pred)))


def overlapping_f1(true_communities: Communities, found_communities: Communities) -> float:
    r"""Average best-match F1 of two sets of communities that may overlap (Yang & Leskovec 2013).

    .. math::
        \frac12 \Bigl(\frac{1}{|T|} \sum_{t \in T} \max_{f \in F} F_1(t, f)
        + \frac{1}{|F|} \sum_{f \in F} \max_{t \in T} F_1(t, f)\Bigr),
        \qquad F_1(t, f) = \frac{2 |t \cap f|}{|t| + |f|}

    Only pairs that share a node are ever looked at, as the nonzeros of a sparse product of
    incidence matrices.  An empty community matches nothing and scores 0.

    Parameters
    ----------
    true_communities, found_communities : sequence of collections of nodes
        Nodes are any hashable kind, the same kind in both; one listed twice counts once.

    Examples
    --------
    >>> overlapping_f1([{1, 2}, {3, 4}], [{1, 2}, {3}])
    0.8333333333333333
    """
    for name, given in (
        ("true_communities", true_communities),
        ("found_communities", found_communities),
    ):
        if len(given) == 0:
            raise InputError(f"{name} is empty; pass at least one community.")
    true, found = _incidences(true_communities, found_communities)
    shared = sp.coo_array(true @ found.T)
    row, col = shared.coords
    f1 = 2 * shared.data / (np.diff(true.indptr)[row] + np.diff(found.indptr)[col])
    best_true, best_found = np.zeros(true.shape[0]), np.zeros(found.shape[0])
    np.maximum.at(best_true, row, f1)
    np.maximum.at(best_found, col, f1)
    return float((best_true.mean() + best_found.mean()) / 2)


def _contingency(labels_true: Labels, labels_pred: Labels) -> Array:
    """Points by class (row) and cluster (column)."""
    true, found = _codes(labels_true, labels_pred)
    n_classes, n_clusters = true.max() + 1, found.max() + 1
    counts = np.bincount(true * n_clusters + found, minlength=n_classes * n_clusters)
    return counts.reshape(n_classes, n_clusters)


def _codes(labels_true: Labels, labels_pred: Labels) -> tuple[Array, Array]:
    true, found = _encoded(labels_true, "labels_true"), _encoded(labels_pred, "labels_pred")
    if true.size != found.size:
        raise InputError(
            f"labels_true has {true.size} labels but labels_pred has {found.size}; "
            f"pass one of each per point."
        )
    return true, found


def _encoded(labels: Any, name: str) -> Array:
    """Labels as 0, 1, ...; by equality alone where they are objects of no common order."""
    if not isinstance(labels, np.ndarray) and not hasattr(labels, "dtype"):
        labels = list(labels)
        if not all(isinstance(x, (int, float, np.number)) for x in labels):
            return _encode_objects(labels, name)
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, not of shape {labels.shape}.")
    if labels.size == 0:
        raise InputError(f"{name} is empty; pass one label per point.")
    if labels.dtype == object:
        return _encode_objects(labels.tolist(), name)
    return np.unique(labels, return_inverse=True)[1]


def _encode_objects(labels: list[Any], name: str) -> Array:
    try:
        seen: dict[Hashable, int] = {}
        return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.intp)
    except TypeError:
        raise InputError(
            f"{name} holds labels that cannot be hashed; pass one number or string per point."
        ) from None


def _incidences(true: Communities, found: Communities) -> tuple[sp.csr_array, sp.csr_array]:
    """Community-by-node 0/1 matrices of both sets over the same nodes."""
    sizes = np.fromiter((len(c) for c in (*true, *found)), dtype=np.intp)
    nodes = _node_codes([*true, *found])
    owner = np.repeat(np.arange(sizes.size), sizes)
    shape = (sizes.size, int(nodes.max(initial=-1)) + 1)
    incidence = sp.csr_array(sp.coo_array((np.ones(nodes.size), (owner, nodes)), shape=shape))
    incidence.data[:] = 1
    return incidence[: len(true)], incidence[len(true) :]


def _node_codes(communities: list[Collection[Hashable]]) -> Array:
    arrays = [c for c in communities if isinstance(c, np.ndarray) and c.dtype.kind in "iu"]
    if len(arrays) == len(communities):  # without a Python loop over the members
        return np.unique(np.concatenate(arrays), return_inverse=True)[1]
    flat: Iterable[Hashable] = (node for c in communities for node in _plain(c))
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(node, len(seen)) for node in flat], dtype=np.intp)


def _plain(community: Collection[Hashable]) -> Iterable[Hashable]:
    """Python objects, so that a NumPy integer meets the equal int of the other side."""
    return community.tolist() if isinstance(community, np.ndarray) else community
