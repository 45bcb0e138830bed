"""The connected components of a graph."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled


@compiled()
def label_components(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    sizes: np.ndarray,
    weak: float,
    joining: float,
    labels: np.ndarray,
) -> int:
    """Number the components of a symmetric CSR matrix in ``labels``; return how many there are.

    An entry of i and j joins them where it is above ``weak`` times the larger of their ``sizes``,
    or above ``joining`` times the smaller.
    """
    count = 0
    labels[:] = -1
    waiting = np.empty(len(labels), np.int64)
    for first in range(len(labels)):
        if labels[first] >= 0:
            continue
        labels[first], waiting[0], left = count, first, 1
        while left:
            left -= 1
            i = waiting[left]
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                if labels[j] >= 0:
                    continue
                low, high = min(sizes[i], sizes[j]), max(sizes[i], sizes[j])
                if abs(data[p]) > min(weak * high, joining * low):
                    labels[j], waiting[left] = count, j
                    left += 1
        count += 1
    return count
