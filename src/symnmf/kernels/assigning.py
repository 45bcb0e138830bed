"""The likeliest clusters of the rows of a sparse graph, in one pass over its entries."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled

#: Sums of the weight to one cluster that are added to in turns.
LANES = 4


@compiled(fastmath=REORDER)
def add_within(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    within: np.ndarray,
) -> None:
    """Add the weight inside each cluster to ``within``; a negative label stands for no cluster."""
    for i in range(len(labels)):
        own = labels[i]
        if own < 0:
            continue
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            # no branch, since it could not be predicted
            total += weights[p] if labels[indices[p]] == own else 0.0
        within[own] += total


@compiled(fastmath=REORDER)
def move_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    degrees: np.ndarray,
    gain: np.ndarray,
    cost: np.ndarray,
    tied: np.ndarray,
    moved: np.ndarray,
) -> None:
    """Write the cluster of the largest w gain - d cost of each row to ``moved``.

    w is the weight between the row and the cluster and d is the degree of the row. A row does not
    go to a cluster without weight or without gain. It stays where no score is larger than its own;
    of others that are equal it takes the first. Rows without a cluster stay so. ``tied`` is room
    of LANES rows with a number per cluster and one more, all 0 before and after.
    """
    clusters = len(gain)
    for i in range(len(labels)):
        own = labels[i]
        moved[i] = own
        if own < 0:
            continue
        for p in range(indptr[i], indptr[i + 1]):
            # neighbours are mostly of one cluster, and a sum in one place would wait for itself
            tied[p % LANES, labels[indices[p]]] += weights[p]  # -1 is the last place
        best, held, place = -np.inf, -np.inf, own
        for k in range(clusters):
            weight = 0.0
            for lane in range(LANES):
                weight += tied[lane, k]
                tied[lane, k] = 0.0
            score = weight * gain[k] - degrees[i] * cost[k]
            if weight == 0.0 or gain[k] <= 0.0:
                score = -np.inf
            if k == own:
                held = score
            if score > best:
                best, place = score, k
        for lane in range(LANES):
            tied[lane, clusters] = 0.0
        if best > held:
            moved[i] = place
