"""Connected components of a sparse graph, and what is left of a gradient in each."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled

#: Part of the largest entry of the smaller row that joins it, however large the other one is.
JOINING = 0.1


@compiled()
def label_components(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    share: float,
    sizes: np.ndarray,
    waiting: np.ndarray,
    labels: np.ndarray,
) -> int:
    """Write the component of each row to ``labels``, and return how many there are.

    An entry joins two rows if it is not zero and larger than the ``share`` of the largest entry of
    both, or than JOINING of that of one. ``sizes`` and ``waiting`` are room for a number per row.
    """
    n = len(labels)
    for i in range(n):
        largest = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            largest = max(largest, np.float64(abs(data[p])))
        sizes[i] = largest
        labels[i] = -1
    count = 0
    for first in range(n):
        if labels[first] >= 0:
            continue
        labels[first], waiting[0], left = count, first, 1
        while left > 0:
            left -= 1
            i = waiting[left]
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                smaller, larger = min(sizes[i], sizes[j]), max(sizes[i], sizes[j])
                if labels[j] < 0 and abs(data[p]) > min(share * larger, JOINING * smaller):
                    labels[j], waiting[left] = count, j
                    left += 1
        count += 1
    return count


@compiled()
def add_squares_inside(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    labels: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Add the squares of the entries inside each component to ``squares``."""
    for i in range(len(labels)):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[p]) if labels[indices[p]] == labels[i] else 0.0
            total += value * value
        squares[labels[i]] += total


@compiled(fastmath=REORDER)
def add_residuals(
    U: np.ndarray,
    slope: np.ndarray,
    steps: np.ndarray,
    labels: np.ndarray,
    residuals: np.ndarray,
    sizes: np.ndarray,
) -> None:
    """Add ||u - max(u - step g, 0)||^2 and ||u||^2 of each row u to those of its component.

    g is its row of ``slope``; each component has its own step.
    """
    for i in range(len(labels)):
        step, residual, size = steps[labels[i]], 0.0, 0.0
        for k in range(U.shape[1]):
            u = np.float64(U[i, k])
            kept = min(u, step * np.float64(slope[i, k]))
            residual += kept * kept
            size += u * u
        residuals[labels[i]] += residual
        sizes[labels[i]] += size
