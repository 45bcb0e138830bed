"""How many nats it takes to describe a graph with the help of a partition of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.partition import between, merges, numbered
from symnmf.graphs.adjacency import normalized
from symnmf.run.spectral import leading_subspace
from symnmf.storage import as_symmetric

#: Numbers of groups that are described at first, and twice as many until the shortest description
#: has at most so large a part of them.
FIRST, INSIDE = 16, 0.7


@dataclass
class Described:
    """Descriptions of a network with two groups and more."""

    lengths: dict[int, float]
    labels: np.ndarray
    shortest: float = np.inf

    def add(self, count: int, length: float, labels: np.ndarray) -> None:
        """Note how long a description is, and its groups if none is shorter."""
        if count > 1:
            self.lengths[count] = min(length, self.lengths.get(count, np.inf))
            if length < self.shortest:
                self.shortest, self.labels = length, labels.copy()


def by_eigenvectors(edges: sp.csr_array) -> Described:
    """Describe a network with groups read off its leading eigenvectors, for every number."""
    n = edges.shape[0]
    found = Described({}, np.zeros(n, dtype=np.int64))
    scaled = as_symmetric(normalized(edges, 1.0))
    most, seen, reach = max(n // 3, 2), 1, FIRST
    while True:
        basis = leading_subspace(scaled, min(reach, most))
        for count in range(seen + 1, len(basis.values) + 1):
            labels = numbered(basis.leading(count).labels())
            found.add(int(labels.max()) + 1, description_length(edges, labels), labels)
        seen = max(seen, len(basis.values))
        inside = found.labels.max() + 1 <= INSIDE * seen
        if inside or seen >= most or reach > seen:
            return found
        reach *= 2


def by_merging(edges: sp.csr_array, labels: np.ndarray) -> Described:
    """Describe a network with fine groups, and with fewer as these are merged."""
    labels = numbered(labels)
    sizes = np.bincount(labels)
    degrees = float(_log_factorial(np.asarray(edges.sum(axis=1)).ravel()).sum())
    found = Described({}, labels)
    found.add(len(sizes), length_of(between(edges, labels), sizes, degrees), labels)
    alive = np.ones(len(sizes), dtype=bool)
    for kept, joined, _, ties in merges(edges, labels):
        sizes[kept] += sizes[joined]
        alive[joined] = False
        labels = np.where(labels == joined, kept, labels)
        some = np.flatnonzero(alive)
        found.add(len(some), length_of(ties[np.ix_(some, some)], sizes[some], degrees), labels)
    found.labels = numbered(found.labels)
    return found


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
    group = numbered(labels)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    return length_of(between(A, group), np.bincount(group), float(_log_factorial(degrees).sum()))


def length_of(ties: np.ndarray, sizes: np.ndarray, degrees: float) -> float:
    """Return the same from what is between groups, their sizes and the sum of ln k_i!."""
    n, B = int(sizes.sum()), len(sizes)
    length = float(_log_factorial(n) - _log_factorial(sizes).sum()) - degrees
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
