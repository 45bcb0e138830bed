"""Reading a large edge list: CPU seconds and peak memory beside pandas and SciPy.

Run as ``python benchmarks/edge_lists.py [EDGES]``. Each reading is a process of its own, so that
its peak memory is its own; the second of two counts, when compiled code comes from the cache.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np


def write(path: Path, count: int, weighted: bool) -> None:
    """Write a random graph of ten edges per node."""
    rng = np.random.default_rng(0)
    with path.open("w") as stream:
        for first in range(0, count, 10**6):
            ends = rng.integers(0, max(count // 10, 2), (min(10**6, count - first), 2))
            lines = (f"{u} {v}" for u, v in ends.tolist())
            if weighted:  # the same whichever end comes first, so that no edge contradicts itself
                lines = (f"{u} {v} {(u * v) % 1000 / 8}" for u, v in ends.tolist())
            stream.write("\n".join(lines) + "\n")


def by_pandas(path: str) -> Any:
    import pandas as pd
    import scipy.sparse as sp

    table = pd.read_csv(path, sep=" ", header=None)
    u, v = table[0].to_numpy(), table[1].to_numpy()
    w = table[2].to_numpy() if 2 in table else np.ones(len(u))
    n = int(max(u.max(), v.max())) + 1
    ends = np.concatenate([u, v]), np.concatenate([v, u])
    matrix = sp.coo_array((np.concatenate([w, w]), ends), shape=(n, n)).tocsr()
    matrix.sum_duplicates()
    return matrix


def by_symnmf(path: str) -> Any:
    from symnmf.readers import read_matrix

    return read_matrix(path).data


READERS = {"pandas": by_pandas, "symnmf": by_symnmf}


def measure(reader: str, path: Path) -> tuple[float, float]:
    """Return CPU seconds and peak gigabytes of one reading in a process of its own."""
    line = [sys.executable, __file__, reader, str(path)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    seconds, kilobytes = map(float, done.stdout.split())
    return seconds, kilobytes / 1e6


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.edges"
        for weighted in (False, True):
            write(path, count, weighted)
            best: dict[str, tuple[float, float]] = {}
            for name in list(READERS) * 3:
                best[name] = min(best.get(name, (np.inf, np.inf)), measure(name, path))
            print(f"{count} edges, {'weighted' if weighted else 'plain'}")
            for name, (seconds, size) in best.items():
                print(f"  {name:8} {seconds:6.2f} s {size:6.2f} GB")
            time_ratio, size_ratio = np.divide(best["symnmf"], best["pandas"])
            print(f"  ratio    {time_ratio:6.2f}   {size_ratio:6.2f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        begun = time.process_time()
        READERS[sys.argv[1]](sys.argv[2])
        print(time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
