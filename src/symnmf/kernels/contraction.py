"""Groups of nodes that a graph is contracted by."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled


@compiled()
def match_neighbors(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    roots: np.ndarray,
    order: np.ndarray,
    group: np.ndarray,
) -> int:
    """Put every node into a group with the neighbour it is tied to most; return how many there are.

    Ties are divided by the ``roots`` of both nodes. Nodes are visited in ``order``. One that is in
    no group yet makes one with the strongest neighbour that is free; where none is, it joins the
    group of its strongest neighbour, so that the leaves of a hub do not stay behind. ``group`` is
    all -1 and is filled in.
    """
    count = 0
    for i in order:
        if group[i] >= 0:
            continue
        free, taken = -1, -1
        strongest, next_strongest = 0.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if j == i:
                continue
            value = values[p] / (roots[i] * roots[j])
            if group[j] < 0:
                if value > strongest:
                    free, strongest = j, value
            elif value > next_strongest:
                taken, next_strongest = j, value
        if free < 0 and taken >= 0:
            group[i] = group[taken]
            continue
        group[i] = count
        if free >= 0:
            group[free] = count
        count += 1
    return count


@compiled()
def add_up_groups(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    group: np.ndarray,
    members: np.ndarray,
    ends: np.ndarray,
    new_indptr: np.ndarray,
    new_indices: np.ndarray,
    new_values: np.ndarray,
) -> None:
    """Write the CSR matrix of sums over pairs of groups, whose rows are in no order.

    ``members`` are the nodes group by group, which end at ``ends``.
    """
    place = np.full(len(ends), -1, np.int64)
    filled = begin = 0
    for row in range(len(ends)):
        first = filled
        for m in range(begin, ends[row]):
            for p in range(indptr[members[m]], indptr[members[m] + 1]):
                column = group[indices[p]]
                if place[column] < first:
                    place[column] = filled
                    new_indices[filled], new_values[filled] = column, values[p]
                    filled += 1
                else:
                    new_values[place[column]] += values[p]
        begin, new_indptr[row + 1] = ends[row], filled
