"""X on disk: seconds and peak memory of a run, from a cold page cache.

python benchmarks/blocks.py dense --rows 14143           200 000 000 entries, 1.6 GB, in blocks
python benchmarks/blocks.py sparse --rows 20000000       200 000 000 entries in three memory maps

Data are kept in --folder (default out/blocks) for the next run. Memory is what the process
allocates (RssAnon): pages of files belong to the system, which takes them back when it needs them.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf.storage import Blocks, as_symmetric

DEGREE = 10


def write_dense(path: Path, n: int) -> list[Path]:
    """Write U U^T plus symmetric noise, a few rows at a time."""
    if not path.exists():
        rng = np.random.default_rng(0)
        U, factor = rng.random((n, 10)), 0.3 * rng.random(n)
        out = np.lib.format.open_memmap(path, "w+", np.float64, (n, n))
        for first in range(0, n, 512):
            rows = slice(first, first + 512)
            # noise that is its own mirror image: a function of i + j
            noise = np.abs(np.sin(np.add.outer(np.arange(n)[rows], np.arange(n)) * 12.9898))
            out[rows] = U[rows] @ U.T + noise * np.outer(factor[rows], factor)
        out.flush()
    return [path]


def write_sparse(folder: Path, n: int) -> list[Path]:
    """Write a ring lattice whose rows have DEGREE neighbours near them, with random weights."""
    names = ("indptr", "indices", "data")
    files = [folder / f"{name}-{n}.npy" for name in names]
    if not files[-1].exists():
        half = DEGREE // 2
        steps = np.r_[-half:0, 1 : half + 1]
        weights = np.random.default_rng(0).random((half, n), np.float32)  # of i and i + 1 + k
        np.save(files[0], np.arange(n + 1, dtype=np.int32) * DEGREE)
        indices = np.lib.format.open_memmap(files[1], "w+", np.int32, (n * DEGREE,))
        data = np.lib.format.open_memmap(files[2], "w+", np.float32, (n * DEGREE,))
        for first in range(0, n, 2**20):
            rows = np.arange(first, min(first + 2**20, n))
            ends = (rows[:, None] + steps) % n
            distance = np.abs(steps) - 1
            lower = np.where(steps > 0, rows[:, None], ends)
            order = np.argsort(ends, axis=1)
            place = slice(first * DEGREE, (first + len(rows)) * DEGREE)
            indices[place] = np.take_along_axis(ends, order, 1).ravel()
            values = weights[np.broadcast_to(distance, ends.shape), lower]
            data[place] = np.take_along_axis(values, order, 1).ravel()
        indices.flush()
        data.flush()
    return files


def open_sparse(files: list[Path]) -> Any:
    indptr, indices, data = (np.load(path, mmap_mode="r") for path in files)
    n = len(indptr) - 1
    return sp.csr_array((data, indices, indptr), shape=(n, n))


def forget(files: list[Path]) -> None:
    """Drop files from the page cache, so that they are read from the disk."""
    for path in files:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Peak:
    """The largest RssAnon of this process while a ``with`` block runs."""

    def __enter__(self) -> Peak:
        self.bytes, self._done = 0, threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            now = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.bytes = max(self.bytes, 1024 * now)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("dense", "sparse"))
    parser.add_argument("--rows", type=int, default=14143)
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--solver", default="a-symhals")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--memory", default="192MiB")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=Path("out/blocks"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    dense = given.kind == "dense"
    name = given.folder / f"dense-{given.rows}.npy"
    files = write_dense(name, given.rows) if dense else write_sparse(given.folder, given.rows)
    forget(files)
    with Peak() as peak:
        clock = time.perf_counter()
        X = (
            Blocks(files[0], memory=given.memory, n_jobs=given.jobs)
            if dense
            else as_symmetric(open_sparse(files), n_jobs=given.jobs)
        )
        checked = time.perf_counter() - clock
        V = np.ones((given.rows, given.rank), X.dtype)
        forget(files)
        clock = time.perf_counter()
        X.matmul(V)
        cold = time.perf_counter() - clock
        clock = time.perf_counter()
        X.matmul(V)
        warm = time.perf_counter() - clock
        run = {"solver": given.solver, "random_state": 0, "max_iter": given.iterations, "tol": 0}
        clock = time.perf_counter()
        result = symnmf.factorize(X, given.rank, **run)
        seconds = time.perf_counter() - clock
    print(f"check {checked:.1f} s, product {cold:.2f} s cold, {warm:.2f} s from the page cache")
    print(f"{given.iterations} iterations of {given.solver}: {seconds:.1f} s, E {result.error:.6g}")
    size = sum(path.stat().st_size for path in files)
    print(
        f"X {size / 1e9:.2f} GB, U {result.U.nbytes / 1e9:.2f} GB, peak {peak.bytes / 1e9:.2f} GB"
    )


if __name__ == "__main__":
    main()
