"""What ``assign_labels="likelihood"`` gains over the largest entry of a row of U.

    python benchmarks/labels.py

The mean mutual information (NMI) and adjusted Rand index (ARI) with known classes, for the largest
entry and after 1 and 10 rounds. "Better" and "worse" count graphs whose NMI changes by over 0.005.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import symnmf
from normalize import correlations, with_hubs
from planted import equal_groups
from symnmf import datasets, graphs
from symnmf.graphs import assigning

NETWORKS = (
    "karate",
    "dolphins",
    "football",
    "polbooks",
    "email_eu_core",
    "planetoid_cora",
    "planetoid_citeseer",
)
SEEDS = range(3)

Case = tuple[Any, np.ndarray]


def networks() -> Iterator[Case]:
    for name in NETWORKS:
        data = datasets.load(name)
        assert data.target is not None
        yield sp.csr_array(data.data).astype(float), data.target


def block_models() -> Iterator[Case]:
    for seed in SEEDS:
        for groups, snr in ((2, 1.5), (3, 1.3), (3, 1.6), (5, 1.5), (5, 2.0), (10, 1.5)):
            yield equal_groups(groups, snr, seed), np.arange(800) % groups


def hubs() -> Iterator[Case]:
    for seed in SEEDS:
        for groups, mixing in ((2, 0.12), (5, 0.3), (10, 0.3)):
            yield with_hubs(groups, mixing, seed)


def unequal() -> Iterator[Case]:
    y = np.repeat(np.arange(4), [500, 200, 70, 30])
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        for density in (1.0, 0.6):
            inside = density * np.array([0.05, 0.05, 0.2, 0.4])
            chance = np.where(y[:, None] == y, inside[y][:, None], 0.008)
            upper = np.triu(rng.random(chance.shape) < chance, 1)
            yield sp.csr_array((upper + upper.T).astype(float)), y


def lfr() -> Iterator[Case]:
    import networkx as nx

    for mixing in (0.3, 0.5):
        for seed in (0, 1):
            graph = nx.LFR_benchmark_graph(
                1000, 2.5, 1.5, mixing, average_degree=15, max_degree=60, min_community=20,
                max_community=100, seed=seed, max_iters=2000,
            )  # fmt: skip
            graph.remove_edges_from(nx.selfloop_edges(graph))
            sets = {frozenset(graph.nodes[node]["community"]) for node in graph}
            y = np.zeros(len(graph), int)
            for number, members in enumerate(sorted(sets, key=min)):
                y[list(members)] = number
            yield sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float)), y


def points() -> Iterator[Case]:
    from sklearn import datasets as made

    for name in ("orl", "coil20", "mnist_train3147"):
        data = datasets.load(name)
        assert data.target is not None
        yield graphs.self_tuning(data.data), data.target
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = table(name)
        yield graphs.self_tuning(X), y
    for seed in (0, 1):
        for X, y in (
            made.make_moons(300, noise=0.08, random_state=seed),
            made.make_circles(300, noise=0.05, factor=0.5, random_state=seed),
            made.make_blobs(500, centers=5, cluster_std=0.9, random_state=seed),
            made.make_blobs(500, cluster_std=[1.0, 2.5, 0.5], random_state=170 + seed),
        ):
            yield graphs.self_tuning(X), y


def dense() -> Iterator[Case]:
    from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

    for seed in SEEDS:
        yield correlations(seed)
    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, y = table(name)
        for kernel in (rbf_kernel, cosine_similarity):
            A = np.maximum(kernel(X), 0.0)
            np.fill_diagonal(A, 0.0)
            yield A, y


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets as made

    data = getattr(made, f"load_{name}")()
    X = data.data
    return X if name == "digits" else (X - X.mean(axis=0)) / X.std(axis=0), data.target


def scores(A: Any, y: np.ndarray) -> np.ndarray:
    """Return NMI and ARI by the largest entry, after one round and after ten."""
    known = (y >= 0) & (np.asarray(A.sum(axis=1)).ravel() > 0)
    k = len(np.unique(y[known]))
    model = symnmf.SymNMF(k, affinity="precomputed", assign_labels="largest", random_state=0)
    labels = model.fit(A).labels_
    found = []
    for rounds in (0, 1, 10):
        assigning.ROUNDS = rounds
        now = assigning.reassigned(A, labels, k)[known]
        found += [normalized_mutual_info_score(y[known], now), adjusted_rand_score(y[known], now)]
    return np.array(found)


def main() -> None:
    warnings.simplefilter("ignore")
    families = {
        "networks with classes": networks,
        "block models, equal groups": block_models,
        "block models with hubs": hubs,
        "block models, unequal groups": unequal,
        "LFR graphs": lfr,
        "neighbour graphs of points": points,
        "dense similarities": dense,
    }
    print("| graphs | number | NMI / ARI, largest | 1 round | 10 rounds | better | worse |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    every = []
    for name, family in families.items():
        tell(name, found := np.array([scores(A, y) for A, y in family()]))
        every.append(found)
    tell("all", np.concatenate(every))


def tell(name: str, found: np.ndarray) -> None:
    mean, change = found.mean(axis=0), found[:, 4] - found[:, 0]
    columns = " | ".join(f"{mean[i]:.3f} / {mean[i + 1]:.3f}" for i in (0, 2, 4))
    better, worse = int((change > 0.005).sum()), int((change < -0.005).sum())
    print(f"| {name} | {len(found)} | {columns} | {better} | {worse} |", flush=True)


if __name__ == "__main__":
    main()
