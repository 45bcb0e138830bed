"""Whether a network has groups: what some of its edges say must be seen in the others.

Half of the edges come first, then a tenth at a time. Two halves of the nodes are found from the
edges so far, and the edges of the next tenth inside them are counted. In a random graph with the
same degrees the ends that are left are matched at random, whatever came before; so what is counted
has a known mean, the differences from it add up, and the p-value is one. No random graphs are
drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.partition import as_graph, halves, numbered

#: The part of the edges that comes first, and the parts that the rest comes in.
FIRST, PARTS = 0.5, 5

#: Edges from which on the rest comes at once: there are enough of them.
MANY = 100_000

#: A graph with fewer edges is not judged.
FEWEST = 8

#: Edges depend on each other where more than this part of those held out close a triangle or a
#: square that groups do not explain. Block models and LFR graphs have 0.03, graphs that grow by
#: closing triangles, lattices and projections 0.1 and more.
CLOSED = 1 / 15

#: Draws of the ends of edges within groups, to know what groups explain, and edges looked at.
SWAPS, LOOKED_AT = 20, 20_000


#: Orders of the ends of held-out hyperedges that their own is ranked among.
ORDERS = 999


@dataclass(frozen=True, eq=False)
class Halves:
    """Edges so far as a graph, and edges that were held out of it."""

    known: sp.csr_array
    i: np.ndarray
    j: np.ndarray
    left: np.ndarray  #: ends of edges that each node has outside of ``known``


def p_value(edges: sp.csr_array, rng: np.random.Generator) -> float:
    """Return the chance of as many held-out edges inside halves if there are no groups."""
    if edges.nnz < 2 * FEWEST or edges.shape[0] < 4:
        return 1.0
    inside, expected, held = 0, 0.0, 0
    for split in splits(edges, rng):
        labels = halves(split.known)
        held += len(split.i)
        inside += int(np.count_nonzero(labels[split.i] == labels[split.j]))
        expected += len(split.i) * chance_inside(split, labels)
    from scipy.stats import binom

    return float(binom.sf(inside - 1, held, min(max(expected / held, 1e-12), 1.0)))


def p_of_hyperedges(incidence: sp.csr_array, rng: np.random.Generator) -> float:
    """Return the same of hyperedges, the rows of ``incidence``.

    Pairs in one hyperedge depend on each other. So the pairs inside halves are ranked among those
    that the same hyperedges have with their ends in other orders.
    """
    count = incidence.shape[0]
    if count < FEWEST:
        return 1.0
    incidence = sp.csr_array(incidence[rng.permutation(count)])
    inside = np.zeros(ORDERS + 1)
    for begin, end in pairwise(np.linspace(FIRST * count, count, PARTS + 1).round().astype(int)):
        side = halves(clique_graph(incidence[:begin])).astype(np.int64)
        held = sp.csr_array(incidence[begin:end])
        edge = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
        ends = side[held.indices]
        for order in range(ORDERS + 1):
            sizes = np.bincount(edge * 2 + ends, minlength=held.shape[0] * 2)
            inside[order] += float((sizes * (sizes - 1)).sum()) / 2
            ends = rng.permutation(ends)
    return float(np.mean(inside >= inside[0]))


def clique_graph(incidence: sp.csr_array) -> sp.csr_array:
    """Return how often two nodes are in one hyperedge."""
    return as_graph(incidence.T @ incidence)


def splits(
    edges: sp.csr_array, rng: np.random.Generator, parts: int | None = None
) -> Iterator[Halves]:
    """Yield the edges so far and the next ones, in an order drawn at random."""
    upper = sp.triu(edges, 1).tocoo()
    count, n = upper.nnz, edges.shape[0]
    order = rng.permutation(count)
    i, j = upper.row[order], upper.col[order]
    degrees = np.diff(edges.indptr)
    parts = parts or (1 if count >= MANY else PARTS)
    cuts = np.linspace(FIRST * count, count, parts + 1).round().astype(int)
    for begin, end in pairwise(cuts.tolist()):
        if end > begin:
            half = sp.coo_array((np.ones(begin), (i[:begin], j[:begin])), shape=(n, n)).tocsr()
            known = sp.csr_array(half + half.T)
            known.sort_indices()
            left = (degrees - np.diff(known.indptr)).astype(np.float64)
            yield Halves(known, i[begin:end], j[begin:end], left)


def chance_inside(split: Halves, labels: np.ndarray) -> float:
    """Return the chance that two ends that are left and are no edge yet are of one group."""
    left, known = split.left, split.known
    row = np.repeat(np.arange(len(left)), np.diff(known.indptr))
    taken = left[row] * left[known.indices]
    same = labels[row] == labels[known.indices]
    itself = float((left**2).sum())
    inside = float((np.bincount(labels, left) ** 2).sum()) - itself - float(taken[same].sum())
    every = float(left.sum() ** 2) - itself - float(taken.sum())
    return inside / every if every > 0.0 else 1.0


def bipartite(edges: sp.csr_array) -> bool:
    """Whether every edge joins one side of the nodes to the other: two copies are not connected."""
    from scipy.sparse.csgraph import connected_components

    copies = sp.block_array([[None, edges], [edges, None]], format="csr")
    return bool(connected_components(copies)[0] == 2 * connected_components(edges)[0])


def closed(edges: sp.csr_array, labels: np.ndarray, rng: np.random.Generator) -> float:
    """Return the part of held-out edges that close a path and that groups do not explain.

    The path has two edges, or three. What groups explain is what the same ends have after their
    partners were swapped within groups.
    """
    split, groups = next(splits(edges, rng, parts=1)), numbered(labels)
    i, j = np.r_[split.i, split.j].astype(np.int64), np.r_[split.j, split.i].astype(np.int64)
    if len(i) > LOOKED_AT:
        some = rng.choice(len(i), LOOKED_AT, replace=False)
        i, j = i[some], j[some]
    ends, partners = np.tile(i, SWAPS), np.tile(j, SWAPS)
    by_group = np.argsort(groups[partners], kind="stable")
    partners[by_group] = partners[np.lexsort((rng.random(len(ends)), groups[partners]))]
    new = (ends != partners) & (np.asarray(split.known[ends, partners]).ravel() == 0.0)
    ends, partners = ends[new], partners[new]
    apart = int(groups.max()) + 1
    real, swapped = (
        np.where(groups[one] == groups[other], groups[one], apart)
        for one, other in ((i, j), (ends, partners))
    )
    seen = np.bincount(swapped, minlength=apart + 1)
    from symnmf.kernels.paths import joined

    graph, most = (split.known.indptr, split.known.indices), 0.0
    for paths in (2, 3):
        hits = np.bincount(swapped, joined(*graph, ends, partners, paths), minlength=apart + 1)
        explained = np.where(seen > 0, hits / np.maximum(seen, 1), 1.0)[real]
        most = max(most, float(np.mean(joined(*graph, i, j, paths) - explained)))
    return most
