"""How many nats it takes to describe a graph with the help of a partition of its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.partition import between, numbered
from symnmf.graphs.adjacency import normalized
from symnmf.run.spectral import leading_subspace
from symnmf.storage import as_symmetric

#: Numbers of groups that are described at first, and twice as many until the shortest description
#: has at most so large a part of them.
FIRST, INSIDE = 16, 0.7


def shortest_description(edges: sp.csr_array) -> tuple[np.ndarray, dict[int, float]]:
    """Return the groups, two or more, that describe a network in the fewest nats; all lengths.

    Groups are read off the leading eigenvectors, for every number. Without any, there is no length.
    """
    n = edges.shape[0]
    labels = np.zeros(n, dtype=np.int64)
    lengths: dict[int, float] = {}
    scaled = as_symmetric(normalized(edges, 1.0))
    most, seen, reach = max(n // 3, 2), 1, FIRST
    while True:
        basis = leading_subspace(scaled, min(reach, most))
        for number in range(seen + 1, len(basis.values) + 1):
            groups = numbered(basis.leading(number).labels())
            count, length = int(groups.max()) + 1, description_length(edges, groups)
            if count > 1:
                if length < min(lengths.values(), default=np.inf):
                    labels = groups
                lengths[count] = min(length, lengths.get(count, np.inf))
        seen = max(seen, len(basis.values))
        if labels.max() + 1 <= INSIDE * seen or seen >= most or reach > seen:
            return labels, lengths
        reach *= 2


def description_length(A: Any, labels: np.ndarray) -> float:
    r"""Return the description length, in nats, of a graph, by the shorter of two block models.

    Both are degree-corrected and microcanonical. Weights count as numbers of edges. With B groups
    of n_r nodes and e_r ends of edges, e_rs edges between groups r and s, and E in all, the first
    (Peixoto 2017) lets every two groups have edges of their own,

    .. math::
        \Sigma_1 = \sum_r \ln e_r! - \sum_{r<s} \ln e_{rs}! - \sum_r \ln (2 e_{rr})!!
        + \sum_r \ln \tbinom{n_r + e_r - 1}{e_r} + \ln \tbinom{B(B+1)/2 + E - 1}{E},

    and the second (Zhang and Peixoto 2020) knows only how many edges are inside groups, so that it
    can afford more of them than about the root of n,

    .. math::
        \Sigma_2 = e_{in} \ln \tfrac B2 + e_{out} \ln \tbinom B2 - \ln e_{in}! - \ln e_{out}!
        + \ln(E + 1) + \sum_r \ln \frac{(e_r + n_r - 1)!}{(n_r - 1)!}.

    To either the degrees and the partition are added,
    :math:`- \sum_i \ln k_i! + \ln \tbinom{n-1}{B-1} + \ln n! - \sum_r \ln n_r! + \ln n`, so that
    groups that explain little cost more than they save.
    """
    ties, sizes = between(A, labels), np.bincount(labels)
    n, B = len(labels), len(sizes)
    length = float(_log_factorial(n) - _log_factorial(sizes).sum())
    length -= float(_log_factorial(np.asarray(A.sum(axis=1)).ravel()).sum())
    length += float(_log_binomial(n - 1, B - 1) + np.log(n))
    return length + min(_any_edges(ties, sizes), _edges_inside(ties, sizes))


def _any_edges(between: np.ndarray, sizes: np.ndarray) -> float:
    ends, edges, B = between.sum(axis=1), float(between.sum()) / 2, len(sizes)
    inside = between.diagonal() / 2
    length = float(_log_factorial(ends).sum() + _log_binomial(sizes + ends - 1, ends).sum())
    length -= float(_log_factorial(between[np.triu_indices(B, 1)]).sum())
    length -= float((_log_factorial(inside) + inside * np.log(2.0)).sum())
    return length + float(_log_binomial(B * (B + 1) / 2 + edges - 1, edges))


def _edges_inside(between: np.ndarray, sizes: np.ndarray) -> float:
    ends, edges, B = between.sum(axis=1), float(between.sum()) / 2, len(sizes)
    inside = float(between.trace()) / 2
    outside = max(edges - inside, 0.0)
    length = inside * np.log(B / 2) - float(_log_factorial(inside) + _log_factorial(outside))
    if B > 1:
        length += outside * np.log(B * (B - 1) / 2) + np.log(edges + 1)
    return length + float((_log_factorial(ends + sizes - 1) - _log_factorial(sizes - 1)).sum())


def _log_factorial(count: np.ndarray | float) -> np.ndarray:
    from scipy.special import gammaln

    return np.asarray(gammaln(np.asarray(count, dtype=np.float64) + 1.0))


def _log_binomial(n: np.ndarray | float, k: np.ndarray | float) -> np.ndarray:
    return _log_factorial(n) - _log_factorial(k) - _log_factorial(np.asarray(n) - k)
