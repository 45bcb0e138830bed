"""Neighbourhoods of nodes as candidate communities: their conductance, and a choice of them."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled


@compiled()
def triangle_weights(indptr, indices, weights, rank):  # type: ignore[no-untyped-def]
    """Sum for each node the weights of the edges between its neighbours.

    ``rank`` orders the nodes by degree. Each triangle is found once, from its lowest node, through
    edges that lead upwards, of which a node has at most sqrt(2 m).
    """
    n = len(indptr) - 1
    opposite = np.zeros(n)
    mark = np.full(n, -1, np.int64)
    for u in range(n):
        for e in range(indptr[u], indptr[u + 1]):
            if rank[indices[e]] > rank[u]:
                mark[indices[e]] = e
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            if rank[v] > rank[u]:
                for g in range(indptr[v], indptr[v + 1]):
                    w = indices[g]
                    if rank[w] > rank[v] and mark[w] >= 0:
                        opposite[u] += weights[g]
                        opposite[v] += weights[mark[w]]
                        opposite[w] += weights[e]
        for e in range(indptr[u], indptr[u + 1]):
            mark[indices[e]] = -1
    return opposite


@compiled()
def choose_seeds(indptr, indices, order, covered, share):  # type: ignore[no-untyped-def]
    """Take neighbourhoods in order while at most ``share`` of their nodes are taken already.

    ``covered`` is updated; nodes that were taken before stay so.
    """
    chosen = np.zeros(len(order), np.int64)
    count = 0
    for i in order:
        size = indptr[i + 1] - indptr[i] + 1
        old = 1 if covered[i] else 0
        for e in range(indptr[i], indptr[i + 1]):
            if covered[indices[e]]:
                old += 1
        if old <= share * size and old < size:
            chosen[count] = i
            count += 1
            covered[i] = True
            for e in range(indptr[i], indptr[i + 1]):
                covered[indices[e]] = True
    return chosen[:count]


@compiled()
def boundary_rate(indptr, indices, weights, seeds):  # type: ignore[no-untyped-def]
    """Mean over seeds of the weight of a node outside that has an edge inside, per member."""
    n = len(indptr) - 1
    mark = np.full(n, -1, np.int64)
    total = 0.0
    for s in range(len(seeds)):
        i = seeds[s]
        inside, outside = 2 * s, 2 * s + 1
        mark[i] = inside
        for e in range(indptr[i], indptr[i + 1]):
            mark[indices[e]] = inside
        cut, around, size = 0.0, 0, 1 + indptr[i + 1] - indptr[i]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            for g in range(indptr[j], indptr[j + 1]):
                w = indices[g]
                if mark[w] != inside:
                    cut += weights[g]
                    if mark[w] != outside:
                        mark[w] = outside
                        around += 1
        if around > 0:
            total += cut / (size * around)
    return total / max(len(seeds), 1)
