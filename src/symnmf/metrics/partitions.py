"""Scores of labels: one cluster per point."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symnmf.arguments import checked
from symnmf.errors import InputError

Array = NDArray[Any]
Labels = ArrayLike | Sequence[Hashable]


@checked()
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
    from scipy.optimize import linear_sum_assignment

    table = _contingency(labels_true, labels_pred)
    rows, cols = linear_sum_assignment(table, maximize=True)
    return float(table[rows, cols].sum() / table.sum())


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
