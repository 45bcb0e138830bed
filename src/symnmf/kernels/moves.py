"""Moves of nodes between the groups of a graph that raise its modularity."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled


@compiled()
def move_nodes(indptr, indices, weights, degrees, order, labels):  # type: ignore[no-untyped-def]
    """Move nodes to the group where they add most, until none gains; ``labels`` are overwritten.

    Nodes wait in a queue, and the neighbours of one that has moved wait again.
    """
    n = len(degrees)
    total = max(degrees.sum(), 1e-300)
    volume = np.zeros(n)
    for i in range(n):
        volume[labels[i]] += degrees[i]
    queue, waiting = order.copy(), np.ones(n, np.bool_)
    head, length = 0, n
    tie, touched = np.zeros(n), np.empty(n, np.int64)
    while length > 0:
        i = queue[head]
        head = (head + 1) % n
        length -= 1
        waiting[i] = False
        old, count = labels[i], 0
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] != i:
                group = labels[indices[e]]
                if tie[group] == 0.0:
                    touched[count] = group
                    count += 1
                tie[group] += weights[e]
        volume[old] -= degrees[i]
        share = degrees[i] / total
        best, most = old, tie[old] - share * volume[old]
        for k in range(count):
            group = touched[k]
            gain = tie[group] - share * volume[group]
            if gain > most + 1e-12 * degrees[i]:
                best, most = group, gain
            tie[group] = 0.0
        volume[best] += degrees[i]
        if best != old:
            labels[i] = best
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                if not waiting[j] and labels[j] != best:
                    waiting[j] = True
                    queue[(head + length) % n] = j
                    length += 1


@compiled()
def refine_groups(indptr, indices, weights, degrees, order, labels):  # type: ignore[no-untyped-def]
    """Return parts of the groups: each begins as single nodes, which join parts they are tied to.

    Only a node or a part that is well connected to the rest of its group joins, or is joined.
    """
    n = len(degrees)
    total = max(degrees.sum(), 1e-300)
    group_volume, outer = np.zeros(n), np.zeros(n)
    for i in range(n):
        group_volume[labels[i]] += degrees[i]
    parts, volume = np.arange(n), degrees.copy()
    alone = np.ones(n, np.bool_)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] != i and labels[indices[e]] == labels[i]:
                outer[i] += weights[e]
    tie, touched = np.zeros(n), np.empty(n, np.int64)
    for i in order:
        rest = group_volume[labels[i]]
        if not alone[i] or outer[i] < degrees[i] * (rest - degrees[i]) / total:
            continue
        count = 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j != i and labels[j] == labels[i]:
                if tie[parts[j]] == 0.0:
                    touched[count] = parts[j]
                    count += 1
                tie[parts[j]] += weights[e]
        best, most, drawn = i, 0.0, 0.0
        for k in range(count):
            part = touched[k]
            gain = tie[part] - degrees[i] * volume[part] / total
            sound = outer[part] >= volume[part] * (rest - volume[part]) / total
            if sound and gain > most:
                best, most, drawn = part, gain, tie[part]
            tie[part] = 0.0
        if best != i:
            parts[i] = best
            alone[best] = False
            alone[i] = False
            volume[best] += degrees[i]
            outer[best] += outer[i] - 2.0 * drawn
    return parts


@compiled()
def contract(indptr, indices, weights, parts, count):  # type: ignore[no-untyped-def]
    """Return the arrays of a graph whose nodes are the parts; its entries are in no order."""
    n = len(parts)
    begin = np.zeros(count + 1, np.int64)
    for i in range(n):
        begin[parts[i] + 1] += 1
    for part in range(count):
        begin[part + 1] += begin[part]
    nodes, filled = np.empty(n, np.int64), begin.copy()
    for i in range(n):
        nodes[filled[parts[i]]] = i
        filled[parts[i]] += 1
    rows = np.zeros(count + 1, indptr.dtype)
    columns, sums = np.empty_like(indices), np.zeros_like(weights)
    place, length = np.full(count, -1), 0
    for part in range(count):
        for k in range(begin[part], begin[part + 1]):
            i = nodes[k]
            for e in range(indptr[i], indptr[i + 1]):
                other = parts[indices[e]]
                if place[other] < rows[part]:
                    place[other] = length
                    columns[length] = other
                    length += 1
                sums[place[other]] += weights[e]
        rows[part + 1] = length
    return rows, columns[:length], sums[:length]


@compiled()
def renumber(labels, order):  # type: ignore[no-untyped-def]
    """Number labels from 0 as they come in ``order``; they are overwritten. Return their number."""
    number = np.full(labels.max() + 1 if len(labels) else 0, -1)
    count = 0
    for i in order:
        if number[labels[i]] < 0:
            number[labels[i]] = count
            count += 1
    for i in range(len(labels)):
        labels[i] = number[labels[i]]
    return count


@compiled()
def raise_modularity(indptr, indices, weights, order, labels):  # type: ignore[no-untyped-def]
    """Move nodes between groups, then the parts of groups as nodes, until no parts join."""
    place, groups = np.arange(len(labels)), labels.copy()
    while True:
        n = len(indptr) - 1
        degrees = np.zeros(n)
        for i in range(n):
            degrees[i] = weights[indptr[i] : indptr[i + 1]].sum()
        move_nodes(indptr, indices, weights, degrees, order, groups)
        parts = refine_groups(indptr, indices, weights, degrees, order, groups)
        count = renumber(parts, order)
        if count == n:
            break
        of_parts = np.empty(count, np.int64)
        for i in range(n):
            of_parts[parts[i]] = groups[i]
        for i in range(len(place)):
            place[i] = parts[place[i]]
        indptr, indices, weights = contract(indptr, indices, weights, parts, count)
        order, groups = np.arange(count), of_parts
        renumber(groups, order)
    for i in range(len(place)):
        labels[i] = groups[place[i]]
    renumber(labels, np.arange(len(labels)))
