"""Scores of labels: one cluster per point."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from symnmf.arguments import checked
from symnmf.errors import InputError, said_as_input_errors

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
        Numbers or texts; only which of them are equal matters.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], ["b", "b", "a", "c"])
    0.75
    """
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics.cluster import contingency_matrix

    with said_as_input_errors():
        labels_true, labels_pred = np.asarray(labels_true), np.asarray(labels_pred)
        shapes = labels_true.shape, labels_pred.shape
        if len(shapes[0]) != 1 or shapes[0] != shapes[1] or not len(labels_true):
            raise InputError(
                f"labels_true and labels_pred must hold one label for each point, got the shapes "
                f"{shapes[0]} and {shapes[1]}."
            )
        table = contingency_matrix(labels_true, labels_pred)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def agreement(labels_true: np.ndarray, labels_pred: np.ndarray) -> dict[str, float]:
    """Return the scores of labels that reports show, by their names."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    return {
        "accuracy": clustering_accuracy(labels_true, labels_pred),
        "normalized_mutual_info": float(normalized_mutual_info_score(labels_true, labels_pred)),
        "adjusted_rand": float(adjusted_rand_score(labels_true, labels_pred)),
    }
