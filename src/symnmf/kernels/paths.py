"""Whether short paths join pairs of nodes."""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import compiled


@compiled()
def joined(indptr, indices, first, second, length):  # type: ignore[no-untyped-def]
    """Say of each pair, which is no edge, whether a path of two edges, or of three, joins it."""
    found = np.zeros(len(first), np.float64)
    mark = np.full(len(indptr) - 1, -1, np.int64)
    for pair in range(len(first)):
        i, j = first[pair], second[pair]
        if length == 3 and indptr[i + 1] - indptr[i] > indptr[j + 1] - indptr[j]:
            i, j = j, i
        for e in range(indptr[j], indptr[j + 1]):
            mark[indices[e]] = pair
        for e in range(indptr[i], indptr[i + 1]):
            u = indices[e]
            if length == 2:
                if mark[u] == pair:
                    found[pair] = 1.0
            elif u != j:
                for g in range(indptr[u], indptr[u + 1]):
                    if mark[indices[g]] == pair and indices[g] != i:
                        found[pair] = 1.0
                        break
            if found[pair] > 0.0:
                break
    return found
