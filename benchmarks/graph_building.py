"""Time and peak memory of building the self-tuning graph of MNIST.

    python benchmarks/graph_building.py [--n 70000] [--approximate] [--folder DATA]

The peak includes the points themselves (n x 784 float64: 439 MB for all 70 000).
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import warnings

from symnmf import datasets, graphs


def peak_megabytes() -> float:
    """Largest resident set of this process so far; macOS counts it in bytes, Linux in KB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=70000, help="number of images, from the first")
    parser.add_argument("--approximate", action="store_true", help="search with pynndescent")
    parser.add_argument("--folder", help="where MNIST_full.npz is")
    arguments = parser.parse_args()

    X = datasets.load("mnist_full", arguments.folder).data[: arguments.n]
    loaded = peak_megabytes()
    start, cpu_start = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", graphs.GraphWarning)
        A = graphs.self_tuning(X, approximate=arguments.approximate)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    print(f"points         {X.shape[0]} x {X.shape[1]}")
    print(f"graph          {A.nnz} entries, {A.nnz / A.shape[0]:.1f} per point")
    print(f"seconds        {seconds:.1f} ({cpu:.1f} of processor time, all threads)")
    print(f"peak RSS       {peak_megabytes():.0f} MB ({loaded:.0f} MB once the points were loaded)")
    for warning in seen:
        print(f"warning        {warning.message}")


if __name__ == "__main__":
    main()
