"""A sparse random graph with millions of nodes: time per iteration and peak memory.

python benchmarks/large.py                 5 000 000 nodes, 40 000 000 stored entries, r=16
python benchmarks/large.py --scaling       how the cost grows with n, dense and sparse
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

import symnmf


def random_graph(nodes: int, entries: int, dtype: type = np.float32) -> sp.csr_array:
    """A symmetric random graph with about ``entries`` stored ones and an empty diagonal."""
    rng = np.random.default_rng(0)
    count = entries // 2
    low, high = rng.integers(0, nodes, (2, count), dtype=np.int32)
    keep = low != high
    low, high = low[keep], high[keep]
    rows, cols = np.concatenate([low, high]), np.concatenate([high, low])
    graph = sp.csr_array((np.ones(len(rows), dtype), (rows, cols)), shape=(nodes, nodes))
    graph.data[:] = 1.0
    return graph


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def seconds_per_iteration(X: object, rank: int, iterations: int) -> tuple[float, symnmf.Result]:
    result = symnmf.factorize(
        X, rank, solver="a-symhals", random_state=0, max_iter=iterations, tol=0
    )
    return statistics.median(np.diff(result.history["seconds"]).tolist()), result


def one_run(nodes: int, entries: int, rank: int) -> dict[str, float]:
    graph = random_graph(nodes, entries)
    before = peak_gigabytes()
    clock = time.perf_counter()
    step, result = seconds_per_iteration(graph, rank, 10)
    stored = graph.data.nbytes + graph.indices.nbytes + graph.indptr.nbytes
    return {
        "nodes": nodes,
        "stored entries": graph.nnz,
        "seconds per iteration": step,
        "seconds in all": time.perf_counter() - clock,
        "peak before the run, GB": before,
        "peak, GB": peak_gigabytes(),
        "X, GB": stored / 1e9,
        "each factor, GB": result.U.nbytes / 1e9,
        "error": result.error,
    }


def scaling() -> dict[str, dict[str, float]]:
    dense = {}
    for n in (1_000, 3_000, 10_000):
        X = np.random.default_rng(0).random((n, n))
        X += X.T.copy()
        dense[str(n)] = seconds_per_iteration(X, 20, 8)[0]
    sparse = {}
    for n in (100_000, 1_000_000, 5_000_000):
        graph = random_graph(n, 8 * n, np.float64)
        sparse[str(n)] = seconds_per_iteration(graph, 16, 5)[0]
    return {"dense": dense, "sparse": sparse}


def exponent(times: dict[str, float]) -> float:
    """The fitted power of n."""
    sizes = np.log([float(size) for size in times])
    return float(np.polyfit(sizes, np.log(list(times.values())), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000_000)
    parser.add_argument("--entries", type=int, default=40_000_000)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.scaling:
        for kind, times in scaling().items():
            print(kind, {n: f"{t:.4g} s" for n, t in times.items()}, f"n^{exponent(times):.2f}")
    elif arguments.child:
        found = one_run(arguments.nodes, arguments.entries, arguments.rank)
        print(json.dumps(found, indent=2))
    else:  # in a process of its own, so that the peak is this run's
        subprocess.run([sys.executable, __file__, "--child", *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
