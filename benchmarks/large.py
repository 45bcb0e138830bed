"""A planted graph with millions of nodes, from its matrix to its communities.

    python benchmarks/large.py 1000000 10000000               nodes and edges, 50 groups
    python benchmarks/large.py 1000000 10000000 --leiden 600  igraph's Leiden, for so many seconds

Four of five edges lie inside groups. Prints a row of the table in docs/evidence.md. Each run is a
process of its own, so that the peak is its own.
"""

from __future__ import annotations

import argparse
import resource
import signal
import time

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

import symnmf


def planted(nodes: int, edges: int, groups: int, seed: int = 0) -> sp.csr_array:
    """The adjacency matrix in float32; node i is in group i mod ``groups``."""
    rng = np.random.default_rng(seed)
    first = rng.integers(nodes, size=edges, dtype=np.int32)
    second = rng.integers(nodes // groups, size=edges, dtype=np.int32)
    second *= np.int32(groups)
    second += first % np.int32(groups)
    outside = rng.random(edges, dtype=np.float32) >= 0.8
    second[outside] = rng.integers(nodes, size=np.count_nonzero(outside), dtype=np.int32)
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    entries = sp.coo_array((np.ones(2 * edges, np.float32), ends), shape=(nodes, nodes))
    del first, second, ends, outside
    entries.has_canonical_format = True  # not yet: the transpose of a csr array is sorted at once
    graph = entries.tocsr().T.tocsr()
    graph.has_canonical_format = False
    graph.sum_duplicates()
    graph.data[:] = 1.0
    return graph


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def leiden(graph: sp.csr_array, seconds: int) -> np.ndarray | None:
    """Labels by igraph's Leiden, as many groups as it finds, or None where time runs out."""
    import igraph

    def stop(*_: object) -> None:
        raise TimeoutError

    upper = sp.triu(graph, 1, format="coo")
    G = igraph.Graph(n=graph.shape[0], edges=np.stack([upper.row, upper.col], axis=1))
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return np.array(G.community_leiden("modularity").membership)
    except TimeoutError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nodes", type=int)
    parser.add_argument("edges", type=int)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--leiden", type=int, metavar="SECONDS")
    arguments = parser.parse_args()
    began = time.perf_counter()
    graph = planted(arguments.nodes, arguments.edges, arguments.groups)
    print(f"generated in {time.perf_counter() - began:.1f} s", flush=True)
    before, began, cpu = peak_gigabytes(), time.perf_counter(), time.process_time()
    if arguments.leiden:
        labels, parts = leiden(graph, arguments.leiden), {}
    else:
        found = symnmf.communities(graph, arguments.groups, random_state=0, n_jobs=arguments.jobs)
        labels, parts = found.labels, vars(found.result.seconds)
    listed = ", ".join(f"{name} {part:.1f}" for name, part in parts.items())
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    truth = np.arange(arguments.nodes) % arguments.groups
    nmi = np.nan if labels is None else normalized_mutual_info_score(truth, labels)
    print("| nodes | edges | seconds | CPU s | by part | NMI | peak, GB (before) |")
    print(
        f"| {arguments.nodes:.0e} | {graph.nnz // 2:.3g} | {seconds:.1f} | {cpu:.0f} | {listed} | "
        f"{nmi:.3f} | {peak_gigabytes():.1f} ({before:.1f}) |"
    )


if __name__ == "__main__":
    main()
