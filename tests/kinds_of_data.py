"""Kinds of data with known clusters and without any, to count how often judgements are wrong.

Each maker takes a generator. Networks are sparse matrices, points are arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.partition import as_graph

Maker = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Kind:
    """A kind of data: how it is made, and what is to be said of it.

    ``exact`` kinds are drawn from the null hypothesis itself. ``untested`` kinds have dependent
    edges, and no word but "cannot tell" is right. A planted kind has its ``labels``.
    """

    make: Maker
    labels: np.ndarray | None = None
    exact: bool = False
    untested: bool = False
    points: bool = False
    #: The least part of draws in which clusters are to be found.
    power: float = 0.0


# Networks -------------------------------------------------------------------------------------


def equal_groups(n: int, groups: int) -> list[int]:
    """Return the sizes of groups that are equal, but for what is left over."""
    return [n // groups + (group < n % groups) for group in range(groups)]


def of_sizes(sizes: Sequence[int]) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


def block_model(
    sizes: Sequence[int], inner: float, outer: float, rng: np.random.Generator
) -> sp.csr_array:
    """Return a graph with edges at one rate inside groups and another between them."""
    group = of_sizes(sizes)
    return drawn(np.where(group[:, None] == group, inner, outer), rng)


def at_threshold(groups: int, snr: float, rng: np.random.Generator) -> sp.csr_array:
    """Return 800 nodes in equal groups; above an ``snr`` of 1 they can be detected."""
    n, degree = 800, 12.0
    apart = snr * np.sqrt(degree)
    inner, outer = degree + (groups - 1) * apart, degree - apart
    return block_model(equal_groups(n, groups), inner / n, outer / n, rng)


def drawn(chance: np.ndarray, rng: np.random.Generator) -> sp.csr_array:
    upper = np.triu(rng.random(chance.shape) < chance, 1)
    return as_graph((upper + upper.T).astype(float))


def pareto_degrees(
    n: int, rng: np.random.Generator, sizes: Sequence[int] = (), mixing: float = 1.0
) -> sp.csr_array:
    """Return a graph whose expected degrees have a heavy tail, with groups if there are sizes."""
    weight = np.minimum(rng.pareto(2.0, n) + 1.0, n**0.5)
    chance = np.outer(weight, weight) * 8.0 / (weight.mean() ** 2 * n)
    if len(sizes):
        group = of_sizes(sizes)
        same = group[:, None] == group
        chance *= np.where(same, mixing + (1 - mixing) * len(sizes), mixing)
    return drawn(np.minimum(chance, 1.0), rng)


def weighted(make: Maker, draw: Callable[..., np.ndarray], rng: np.random.Generator) -> Any:
    half = sp.triu(make(rng), 1).tocsr()
    half.data = draw(rng, half.nnz)
    return as_graph(half + half.T)


def of_networkx(name: str, *arguments: Any) -> Maker:
    def make(rng: np.random.Generator) -> sp.csr_array:
        import networkx as nx

        G = getattr(nx, name)(*arguments, seed=int(rng.integers(2**31)))
        return as_graph(nx.to_scipy_sparse_array(G, dtype=float))

    return make


def grid(rng: np.random.Generator) -> sp.csr_array:
    side = int(rng.integers(16, 24))
    path = sp.diags_array([np.ones(side - 1)] * 2, offsets=[-1, 1], shape=(side, side))
    return as_graph(sp.kron(path, sp.eye_array(side)) + sp.kron(sp.eye_array(side), path))


def projection(rng: np.random.Generator) -> sp.csr_array:
    """Return people who were at the same events, at random."""
    there = sp.csr_array((rng.random((300, 150)) < 0.015).astype(float))
    A = as_graph(there @ there.T)
    A.data[:] = 1.0
    return A


def neighbour_graph(rng: np.random.Generator) -> sp.csr_array:
    from symnmf.graphs import build

    return as_graph(build(rng.standard_normal((400, 5)), "nearest_neighbors", normalize=False))


# Points ---------------------------------------------------------------------------------------


def sphere(rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((400, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def curved(rng: np.random.Generator) -> np.ndarray:
    x = rng.standard_normal(400)
    return np.c_[x, x**2 + 0.3 * rng.standard_normal(400)]


def swiss_roll(rng: np.random.Generator) -> np.ndarray:
    turn = 1.5 * np.pi * (1 + 2 * rng.random(400))
    return np.c_[turn * np.cos(turn), 21 * rng.random(400), turn * np.sin(turn)]


def gaussians(
    sizes: Sequence[int], columns: int, apart: float, rng: np.random.Generator
) -> np.ndarray:
    """Return normal clusters in the corners of a simplex, so many deviations from each other."""
    count = len(sizes)
    corners = np.zeros((count, max(columns, count)))
    corners[:, :count] = np.eye(count) * apart / np.sqrt(2)
    corners -= corners.mean(axis=0)
    if columns < count:  # a ring of neighbours
        angle = 2 * np.pi * np.arange(count) / count
        corners = np.zeros((count, columns))
        corners[:, :2] = np.c_[np.cos(angle), np.sin(angle)] * apart / (2 * np.sin(np.pi / count))
    elif count > 1:
        basis = np.linalg.qr(corners.T)[0][:, : count - 1]
        turned = np.zeros((count, columns))
        turned[:, : count - 1] = corners @ basis
        corners = turned
    return corners[of_sizes(sizes)] + rng.standard_normal((sum(sizes), columns))


def stretched(rng: np.random.Generator) -> np.ndarray:
    return gaussians([130, 130, 130], 2, 8.0, rng) @ np.array([[0.6, -0.6], [-0.4, 0.8]])


def cubes(rng: np.random.Generator) -> np.ndarray:
    """Return three uniform squares, which no normal cluster is like."""
    return rng.random((390, 2)) + np.repeat([[0.0, 0.0], [1.6, 0.0], [0.8, 1.6]], 130, axis=0)


def without(make: Maker, **options: Any) -> Kind:
    return Kind(make, **options)


def planted(make: Callable[..., Any], sizes: Sequence[int], power: float, **options: Any) -> Kind:
    return Kind(make, of_sizes(sizes), power=power, **options)


def lognormal(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.exp(1.5 * rng.standard_normal(size))


def pareto(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.pareto(1.5, size) + 1.0


random_graph = partial(block_model, [400], 0.025, 0.025)
four_groups = partial(block_model, equal_groups(400, 4), 0.08, 0.01)

NETWORKS_WITHOUT = {
    "Erdos-Renyi, 400 nodes": without(random_graph, exact=True),
    "Erdos-Renyi, 100 nodes": without(partial(block_model, [100], 0.06, 0.06), exact=True),
    "Erdos-Renyi, 60 nodes, dense": without(partial(block_model, [60], 0.3, 0.3), exact=True),
    "Erdos-Renyi, degree 4": without(partial(block_model, [600], 1 / 150, 1 / 150), exact=True),
    "6-regular": without(of_networkx("random_regular_graph", 6, 300), exact=True),
    "heavy-tailed degrees": without(partial(pareto_degrees, 400), exact=True),
    "preferential attachment": without(of_networkx("barabasi_albert_graph", 400, 4)),
    "lognormal weights": without(partial(weighted, random_graph, lognormal), exact=True),
    "Pareto weights": without(partial(weighted, random_graph, pareto), exact=True),
    "random tree": without(of_networkx("random_labeled_tree", 300)),
    "Holme-Kim": without(of_networkx("powerlaw_cluster_graph", 400, 3, 0.6), untested=True),
    "Watts-Strogatz": without(of_networkx("watts_strogatz_graph", 400, 8, 0.2), untested=True),
    "random geometric": without(of_networkx("random_geometric_graph", 400, 0.1), untested=True),
    "grid": without(grid, untested=True),
    "one-mode projection": without(projection, untested=True),
    "neighbours without points": without(neighbour_graph, untested=True),
}

POINTS_WITHOUT = {
    f"normal, d = {d}": without(partial(gaussians, [400], d, 0.0), points=True)
    for d in (2, 5, 10, 60)
} | {
    "normal, d = 5, 100 points": without(partial(gaussians, [100], 5, 0.0), points=True),
    "square": without(lambda rng: rng.random((400, 2)), points=True),
    "cube, d = 10": without(lambda rng: rng.random((400, 10)), points=True),
    "sphere": without(sphere, points=True),
    "tetrahedron": without(lambda rng: rng.dirichlet(np.ones(4), 400), points=True),
    "exponential, d = 5": without(lambda rng: rng.exponential(size=(400, 5)), points=True),
    "t with 3 degrees, d = 5": without(lambda rng: rng.standard_t(3, (400, 5)), points=True),
    "lognormal, d = 60": without(lambda rng: lognormal(rng, (400, 60)) ** 0.5, points=True),
    "curved cloud": without(curved, points=True),
    "compositions": without(lambda rng: rng.dirichlet(np.ones(10), 400), points=True),
}

NETWORKS_PLANTED = {
    "4 groups": planted(four_groups, equal_groups(400, 4), 0.95),
    "2 groups, SNR 1.5": planted(partial(at_threshold, 2, 1.5), equal_groups(800, 2), 0.95),
    "4 groups, SNR 1.6": planted(partial(at_threshold, 4, 1.6), equal_groups(800, 4), 0.95),
    "5 groups, SNR 1.6": planted(partial(at_threshold, 5, 1.6), equal_groups(800, 5), 0.95),
    "unequal groups": planted(
        partial(block_model, [200, 100, 60, 40], 0.15, 0.02), [200, 100, 60, 40], 0.95
    ),
    "20 groups of 20": planted(
        partial(block_model, equal_groups(400, 20), 0.4, 0.01), equal_groups(400, 20), 0.95
    ),
    "4 groups, Pareto weights": planted(
        partial(weighted, four_groups, pareto), equal_groups(400, 4), 0.95
    ),
    "4 groups, lognormal weights": planted(
        partial(weighted, four_groups, lognormal), equal_groups(400, 4), 0.95
    ),
    "4 groups, heavy-tailed degrees": planted(
        partial(pareto_degrees, 400, sizes=equal_groups(400, 4), mixing=0.2),
        equal_groups(400, 4),
        0.95,
    ),
    "2 small groups": planted(partial(block_model, [30, 30], 0.3, 0.04), [30, 30], 0.85),
}

POINTS_PLANTED = {
    f"{count} clusters, d = {d}, {apart} apart": planted(
        partial(gaussians, equal_groups(400, count), d, apart),
        equal_groups(400, count),
        power,
        points=True,
    )
    for count, d, apart, power in (
        (2, 2, 5.0, 0.95),
        (3, 2, 5.0, 0.95),
        (3, 10, 4.0, 0.75),
        (3, 10, 6.0, 0.95),
        (3, 50, 6.0, 0.95),
        (8, 2, 6.0, 0.95),
        (5, 20, 6.0, 0.95),
    )
} | {
    "380 + 20, 8 apart": planted(
        partial(gaussians, [380, 20], 2, 8.0), [380, 20], 0.75, points=True
    ),
    "300 : 80 : 20, 7 apart": planted(
        partial(gaussians, [300, 80, 20], 2, 7.0), [300, 80, 20], 0.75, points=True
    ),
    "stretched clusters": planted(stretched, [130] * 3, 0.95, points=True),
    "squares": planted(cubes, [130] * 3, 0.95, points=True),
}

WITHOUT = NETWORKS_WITHOUT | POINTS_WITHOUT
PLANTED = NETWORKS_PLANTED | POINTS_PLANTED
