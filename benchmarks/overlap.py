"""Overlapping communities beside other methods: scores, seconds of CPU and memory.

    python benchmarks/overlap.py egos planted lfr subgraphs     # minutes
    python benchmarks/overlap.py dblp                           # com-DBLP whole, some minutes
    python benchmarks/overlap.py egos --methods symnmf,bigclam --seeds 10

Every method but Leiden, label propagation, k-cliques and those of cdlib gets the true number of
communities; "auto" does not. On com-DBLP F1 of the known communities rewards many sets, so F1 of
the found ones and their number stand beside it, and "cpm, largest" keeps the 13 477 largest sets.
cdlib's DEMON and SLPA are run where cdlib is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import igraph
import networkx as nx
import numpy as np
import scipy.sparse as sp

import symnmf
from bigclam import bigclam
from symnmf import datasets, metrics

Sets = list[np.ndarray]
Method = Callable[[sp.csr_array, int, int], Sets]


# --- graphs with known communities


def egos() -> Iterator[tuple[str, sp.csr_array, Sets]]:
    """Three ego networks of Facebook with circles."""
    for ego in ("348", "414", "686"):
        data = datasets.load(f"ego_circles_{ego}")
        yield f"ego {ego}", data.data, list(data.communities or ())


def planted(seeds: int = 3) -> Iterator[tuple[str, sp.csr_array, Sets]]:
    """1000 nodes in 20 groups, mean degree 20, a fifth of the nodes in two groups."""
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        members = np.zeros((1000, 20))
        members[rng.permutation(1000), np.arange(1000) % 20] = 1
        for i in rng.choice(1000, 200, replace=False):
            members[i, rng.choice(np.flatnonzero(members[i] == 0))] = 1
        shared = members @ members.T
        np.fill_diagonal(shared, 0)
        inside = 0.8 * 20 * 1000 / shared.sum()
        rate = 1 - (1 - 0.2 * 20 / 1000) * (1 - inside) ** shared
        upper = np.triu(rng.random(rate.shape) < rate, 1)
        A = sp.csr_array((upper | upper.T).astype(float))
        yield "planted", A, [np.flatnonzero(column) for column in members.T]


def lfr(seeds: int = 3) -> Iterator[tuple[str, sp.csr_array, Sets]]:
    """Power laws of degrees and sizes, mixing 0.2, a fifth of 1000 nodes in two groups.

    After Lancichinetti and Fortunato (2009): a node's edges inside are dealt out over its groups,
    and ends are matched at random within each group and outside.
    """
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        n, mixing = 1000, 0.2
        degrees = np.minimum((rng.pareto(1.5, n) + 1) * 8, 60).astype(int)
        sizes: list[int] = []
        while sum(sizes) < 1.2 * n:
            sizes.append(int(min((rng.pareto(1.0) + 1) * 25, 90)))
        places = np.repeat(np.arange(len(sizes)), sizes)[: int(1.2 * n)]
        rng.shuffle(places)
        nodes = np.concatenate([np.arange(n), rng.choice(n, len(places) - n, replace=False)])
        edges = []
        groups = [np.unique(nodes[places == k]) for k in range(len(sizes))]
        count = np.bincount(np.concatenate(groups), minlength=n)
        for members in groups:
            ends = np.repeat(
                members, np.round((1 - mixing) * degrees[members] / count[members]).astype(int)
            )
            edges.append(_matched(ends, rng))
        edges.append(_matched(np.repeat(np.arange(n), np.round(mixing * degrees).astype(int)), rng))
        pairs = np.concatenate(edges)
        A = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        A = sp.csr_array(A + A.T)
        A.data[:] = 1
        A.setdiag(0)
        A.eliminate_zeros()
        yield "LFR", A, [members for members in groups if len(members)]


def _matched(ends: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    rng.shuffle(ends)
    return ends[: len(ends) // 2 * 2].reshape(-1, 2)


def top_communities() -> tuple[sp.csr_array, Sets]:
    """com-DBLP, and SNAP's 5000 communities of best quality."""
    with np.load("../shared/data/com_dblp.npz") as stored:
        groups = np.split(stored["top5000_members"], stored["top5000_indptr"][1:-1])
    return datasets.load("com_dblp").data, list(groups)


def subgraphs(count: int = 150, seed: int = 0) -> Iterator[tuple[str, sp.csr_array, Sets]]:
    """The communities of random com-DBLP nodes that are in two or more of the best 5000."""
    graph, groups = top_communities()
    owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    flat = np.concatenate(groups)
    order = np.argsort(flat, kind="stable")
    flat, owner = flat[order], owner[order]
    several = np.flatnonzero(np.bincount(flat) >= 2)
    done = 0
    for node in np.random.default_rng(seed).permutation(several):
        mine = owner[np.searchsorted(flat, node) : np.searchsorted(flat, node, side="right")]
        nodes = np.unique(np.concatenate([groups[k] for k in mine]))
        if 20 <= len(nodes) <= 600:
            done += 1
            A = sp.csr_array(graph[nodes][:, nodes])
            yield "com-DBLP subgraphs", A, [np.searchsorted(nodes, groups[k]) for k in mine]
        if done == count:
            return


# --- methods

MOST_CLIQUES = 3000


class TooMuch(Exception):
    """A method that would not end."""


def ours(A: sp.csr_array, k: int, seed: int) -> Sets:
    return _sets(symnmf.communities(A, k, overlapping=True, random_state=seed))


def ours_auto(A: sp.csr_array, k: int, seed: int) -> Sets:
    return _sets(symnmf.communities(A, "auto", overlapping=True, random_state=seed))


def ours_shares(A: sp.csr_array, k: int, seed: int) -> Sets:
    return _sets(symnmf.communities(A, k, overlapping=True, threshold=0.25, random_state=seed))


def leiden(A: sp.csr_array, k: int, seed: int) -> Sets:
    return _leiden(A, "modularity", 1.0)


def cpm(resolution: float) -> Method:
    return lambda A, k, seed: _leiden(A, "CPM", resolution)


def _leiden(A: sp.csr_array, objective: str, resolution: float) -> Sets:
    found = _igraph(A).community_leiden(
        objective_function=objective, resolution=resolution, n_iterations=-1
    )
    return [np.array(c) for c in found]


def label_propagation(A: sp.csr_array, k: int, seed: int) -> Sets:
    return [np.array(c) for c in _igraph(A).community_label_propagation()]


def cliques(size: int) -> Method:
    def method(A: sp.csr_array, k: int, seed: int) -> Sets:
        graph = nx.from_scipy_sparse_array(A)
        found = list(itertools.islice(nx.find_cliques(graph), MOST_CLIQUES))
        if len(found) == MOST_CLIQUES:  # all pairs of them are compared, for hours
            raise TooMuch
        sets = nx.community.k_clique_communities(graph, size, found)
        return [np.array(sorted(c)) for c in sets]

    return method


def cdlib_method(name: str, *parameters: Any) -> Method:
    def method(A: sp.csr_array, k: int, seed: int) -> Sets:
        from cdlib import algorithms

        graph = nx.from_scipy_sparse_array(A)
        found = getattr(algorithms, name)(graph, *parameters).communities
        return [np.array(sorted(c)) for c in found]

    return method


def _igraph(A: sp.csr_array) -> Any:
    i, j = sp.triu(A, k=1).coords
    return igraph.Graph(n=A.shape[0], edges=np.column_stack([i, j]))


def _sets(found: Any) -> Sets:
    return [np.fromiter(nodes, dtype=np.int64) for nodes in found]


METHODS: dict[str, Method] = {
    "symnmf": ours,
    "symnmf-auto": ours_auto,
    "symnmf-shares": ours_shares,
    "bigclam": bigclam,
    "leiden": leiden,
    "cpm-0.1": cpm(0.1),
    "cpm-0.3": cpm(0.3),
    "labels": label_propagation,
    "3-cliques": cliques(3),
    "4-cliques": cliques(4),
}
if importlib.util.find_spec("cdlib"):
    METHODS |= {"demon": cdlib_method("demon", 0.25), "slpa": cdlib_method("slpa")}
SMALL = {"egos": egos, "planted": planted, "lfr": lfr, "subgraphs": subgraphs}
#: what there is no sense in on a graph of 300 000 nodes
ONLY_SMALL = ("symnmf-shares", "3-cliques", "4-cliques", "demon", "slpa")


def score(known: Sets, found: Sets, n: int) -> list[float]:
    """ONMI, omega, F1 of known, F1 of found."""
    if not found:
        return [0.0, 0.0, 0.0, 0.0]
    return [
        metrics.overlapping_nmi(known, found, n),
        metrics.omega_index(known, found, n),
        *metrics.best_match_f1(known, found),
    ]


def run_small(name: str, methods: list[str], seeds: int) -> None:
    print(f"\n{name}: ONMI, omega, F1 of known, F1 of found, F1, CPU s a graph")
    graphs = list(SMALL[name]())
    for method in methods:
        rows: dict[str, list[list[float]]] = {}
        began = time.process_time()
        for title, A, known in graphs:
            for seed in range(1 if name == "subgraphs" else seeds):
                try:
                    found = METHODS[method](A, len(known), seed)
                except TooMuch:
                    continue
                rows.setdefault(title, []).append(score(known, found, A.shape[0]))
        count = sum(map(len, rows.values()))
        if not count:
            print(f"  {method:14} has no end on any of them", flush=True)
            continue
        each = (time.process_time() - began) / count
        for title, scores in rows.items():
            mean = np.mean(scores, axis=0)
            print(
                f"  {method:14} {title:20}", *(f"{x:.3f}" for x in mean), f"{mean[2:].mean():.3f}"
            )
        means = np.mean([np.mean(scores, axis=0) for scores in rows.values()], axis=0)
        print(f"  {method:14} {'mean':20}", *(f"{x:.3f}" for x in means), f"{means[2:].mean():.3f}",
              f"{each:.3f}", flush=True)  # fmt: skip


def run_dblp(methods: list[str]) -> None:
    A, known = top_communities()
    print("\ncom-DBLP: sets, F1 of the 5000 known, F1 of found, CPU s, seconds, GB so far")
    for method in [m for m in methods if m not in ONLY_SMALL]:
        began, clock = time.process_time(), time.perf_counter()
        found = METHODS[method](A, 13_477, 0)
        cpu, seconds = time.process_time() - began, time.perf_counter() - clock
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        largest = sorted(found, key=len, reverse=True)[:13_477]
        for title, sets in ((method, found), (f"{method}, largest", largest)):
            if title == method or len(found) > len(largest):
                both = metrics.best_match_f1(known, sets)
                print(f"  {title:20} {len(sets):7}", *(f"{x:.3f}" for x in both),
                      f"{cpu:.1f} {seconds:.1f} {memory:.2f}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", choices=[*SMALL, "dblp"])
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = given.methods.split(",")
    for name in given.graphs:
        if name == "dblp":
            run_dblp(methods)
        else:
            run_small(name, methods, given.seeds)


if __name__ == "__main__":
    main()
