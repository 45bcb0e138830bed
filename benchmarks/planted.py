"""Graphs and points whose clusters are known, or that have none; not a benchmark by itself."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def equal_groups(
    groups: int, snr: float, seed: int, n: int = 800, degree: float = 12.0
) -> sp.csr_array:
    """A block model; snr = (c_in - c_out) / (q sqrt(c)), with 1 the threshold of detection."""
    apart, group = snr * np.sqrt(degree), np.arange(n) % groups
    inside, outside = degree + (groups - 1) * apart, degree - apart
    chance = np.where(group[:, None] == group, inside, outside) / n
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float))


def lfr(mixing: float, seed: int) -> tuple[sp.csr_array, int]:
    """An LFR graph and how many communities it has; seeds that do not end are left out."""
    import networkx as nx

    while True:
        try:
            graph = nx.LFR_benchmark_graph(
                1000,
                2.5,
                1.5,
                mixing,
                average_degree=15,
                max_degree=60,
                min_community=20,
                max_community=100,
                seed=seed,
                max_iters=500,
            )
            break
        except nx.ExceededMaxIterations:
            seed += 1000
    graph.remove_edges_from(nx.selfloop_edges(graph))
    found = {frozenset(graph.nodes[node]["community"]) for node in graph}
    return sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float)), len(found)


def same_degrees(seed: int, n: int = 800) -> sp.csr_array:
    """A configuration model whose degrees fall as a power."""
    import networkx as nx

    degrees = np.minimum(4 * np.random.default_rng(seed).pareto(1.5, n) + 3, 100).astype(int)
    degrees[0] += degrees.sum() % 2
    graph = nx.Graph(nx.configuration_model(degrees.tolist(), seed=seed))
    graph.remove_edges_from(nx.selfloop_edges(graph))
    return sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


def preferential(seed: int, n: int = 800) -> sp.csr_array:
    import networkx as nx

    return sp.csr_array(
        nx.to_scipy_sparse_array(nx.barabasi_albert_graph(n, 3, seed=seed), dtype=float)
    )


def points(name: str, seed: int) -> np.ndarray:
    from sklearn import datasets

    rng = np.random.default_rng(seed)
    if name.startswith("random blobs"):  # centres anywhere, so that some groups touch
        groups, deviation = name.split()[2:]
        made = datasets.make_blobs(
            500, centers=int(groups), cluster_std=float(deviation), random_state=seed
        )
        return np.asarray(made[0])
    if name == "blobs":
        centres = np.array([[0, 0], [10, 0], [5, 8.66]])
        return datasets.make_blobs(300, centers=centres, random_state=seed)[0]
    if name == "moons":
        return datasets.make_moons(300, noise=0.05, random_state=seed)[0]
    if name.startswith("circles"):
        factor = float(name.split()[1])
        return datasets.make_circles(300, noise=0.05, factor=factor, random_state=seed)[0]
    if name.startswith("uniform"):
        return rng.random((300, int(name.split()[1])))
    X = getattr(datasets, f"load_{name}")().data
    return X if name == "digits" else (X - X.mean(axis=0)) / X.std(axis=0)
