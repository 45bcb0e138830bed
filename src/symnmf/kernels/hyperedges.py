"""Passes over hyperedges: the rate of each is a sum over its pairs of nodes.

Both take time linear in the total size, since a sum over pairs is one over running sums.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled

#: A rate below this counts as this, so that a hyperedge without one costs much, not infinity.
LEAST = 1e-30


@compiled(fastmath=REORDER)
def hyperedge_rates(indptr, members, U, sums, rates, begin, end):  # type: ignore[no-untyped-def]
    """Write sum_i u_i and sum_{i<j} <u_i, u_j> over the nodes of hyperedges ``begin..end``.

    Pairs are added to a running sum, so nothing cancels as in (|sum u|^2 - sum |u|^2) / 2.
    """
    rank = U.shape[1]
    for e in range(begin, end):
        for k in range(rank):
            sums[e, k] = 0.0
        rate = 0.0
        for place in range(indptr[e], indptr[e + 1]):
            i = members[place]
            for k in range(rank):
                rate += sums[e, k] * U[i, k]
                sums[e, k] += U[i, k]
        rates[e] = max(rate, LEAST)


@compiled(fastmath=REORDER)
def hyperedge_pull(indptr, hyperedges, weights, rates, sums, U, pull, begin, end):  # type: ignore[no-untyped-def]
    """Write, for nodes, the sum over their hyperedges of w_e / rate_e (sum_j u_j - u_i)."""
    rank = U.shape[1]
    row = np.empty(rank)
    for i in range(begin, end):
        for k in range(rank):
            row[k] = 0.0
        for place in range(indptr[i], indptr[i + 1]):
            e = hyperedges[place]
            share = weights[e] / rates[e]
            for k in range(rank):
                row[k] += share * max(sums[e, k] - U[i, k], 0.0)
        for k in range(rank):
            pull[i, k] = row[k]
