"""X on disk and on Dask workers: memory, time per iteration, and what the scheduling costs.

python benchmarks/blocks.py dense                  8 GB on disk in a process capped to 2 GB
python benchmarks/blocks.py sparse                 20 000 000 nodes, 200 000 000 entries, r=16
python benchmarks/blocks.py dask                   overhead per product, and efficiency

Data go to --folder (default out/blocks), are kept for the next run and removed with --remove.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf.storage import Blocks, DaskMatrix
from symnmf.storage.folder import FolderWriter


def peak() -> int:
    """Peak resident bytes of this process since :func:`forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def forget(files: list[Path]) -> None:
    """Drop files from the page cache, so that they are read from the disk."""
    for path in files:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# Dense, on disk ---------------------------------------------------------------------------------


def write_dense(path: Path, n: int, rank: int) -> None:
    """U U^T plus symmetric noise, written panel by panel."""
    if path.exists():
        return
    rng = np.random.default_rng(0)
    U = rng.random((n, rank))
    factor = 0.3 * rng.random(n)
    out = np.lib.format.open_memmap(path, "w+", np.float64, (n, n))
    for first in range(0, n, 512):
        rows = slice(first, first + 512)
        # noise that is its own mirror image: a function of i + j and i * j
        noise = np.abs(np.sin(np.add.outer(np.arange(n)[rows], np.arange(n)) * 12.9898))
        out[rows] = U[rows] @ U.T + noise * np.outer(factor[rows], factor)
    out.flush()


def dense(folder: Path, n: int, rank: int, memory: str) -> dict[str, object]:
    path = folder / f"dense-{n}.npy"
    write_dense(path, n, rank)
    if not (folder / f"dense-{n}" / "manifest.json").exists():
        convert = [sys.executable, "-m", "symnmf", "convert", str(path), str(folder / f"dense-{n}")]
        subprocess.run([*convert, "--memory", memory], check=True, stdout=subprocess.DEVNULL)
    command = [sys.executable, __file__, "--folder", str(folder), "--rank", str(rank)]
    command += ["--nodes", str(n), "--memory", memory, "capped"]
    found: dict[str, object] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    U = np.load(folder / "U.npy")
    memory_lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) for line in memory_lines if line.startswith("MemAvailable"))
    if 1.5 * n * n * 8 < 1024 * free:
        whole = symnmf.factorize(np.load(path), rank, **RUN)
        found["difference to memory"] = float(np.abs(U - whole.U).max() / whole.U.max())
    return found


RUN: dict[str, Any] = {"solver": "a-symhals", "random_state": 0, "max_iter": 4, "tol": 0}


def capped(folder: Path, n: int, rank: int, memory: str) -> dict[str, object]:
    """Factorize in this process, whose memory is capped to a quarter of X."""
    path = folder / f"dense-{n}.npy"
    np.save(folder / "small.npy", np.eye(300))
    symnmf.factorize(Blocks(folder / "small.npy", memory=200_000), rank, **RUN)  # compiles
    size = n * n * 8
    resource.setrlimit(resource.RLIMIT_DATA, (size // 4, size // 4))
    before = forget_peak()
    clock = time.perf_counter()
    X = Blocks(path, memory=memory)
    checked = time.perf_counter() - clock
    result = symnmf.factorize(X, rank, **RUN)
    grown = peak() - before
    np.save(folder / "U.npy", result.U)
    V = np.random.default_rng(1).random((n, rank))
    block = max(t.shape[0] * t.shape[1] for t in X.tiles) * 8
    return {
        "X, bytes": size,
        "cap, bytes": size // 4,
        "peak beyond the interpreter, bytes": grown,
        "three blocks and six factors, bytes": 3 * block + 6 * V.nbytes,
        "seconds to check": checked,
        "seconds per iteration": statistics.median(np.diff(result.history["seconds"]).tolist()),
        "one file": _products(X, [path], V),
        "a folder of blocks": _products(
            Blocks(folder / f"dense-{n}", memory=memory),
            sorted((folder / f"dense-{n}").glob("*.npy")),
            V,
        ),
    }


def _products(X: Blocks, files: list[Path], V: np.ndarray) -> dict[str, object]:
    """Time products whose X comes from the disk, beside what the disk and the cores can do."""
    upper = sum(t.shape[0] * t.shape[1] for t in X.tiles) * 8
    rounds = [_round(X, files, V, upper) for _ in range(5)]
    straight, read, product, work = (min(column) for column in zip(*rounds, strict=True))
    return {
        "upper triangle, bytes": upper,
        "seconds to read as many bytes in one run": straight,
        "seconds to read the upper triangle": read,
        "seconds of a product from disk": product,
        "seconds of its arithmetic alone": work,
        "product over the larger of one run and arithmetic": statistics.median(
            one[2] / max(one[0], one[3]) for one in rounds
        ),
        "rounds": rounds,
    }


def _straight(files: list[Path], size: int) -> float:
    """Seconds to read so many bytes of files from their beginning, past the page cache."""
    buffer = mmap.mmap(-1, 2**20)
    clock = time.perf_counter()
    for path in files:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        got = 1
        while got and size > 0:
            got = os.readv(file, [buffer])
            size -= got
        os.close(file)
    return time.perf_counter() - clock


def _round(X: Blocks, files: list[Path], V: np.ndarray, upper: int) -> tuple[float, ...]:
    """Seconds to read as many bytes in one run, the upper triangle, for a product, to multiply."""
    straight = _straight(files, upper)
    forget(files)
    clock = time.perf_counter()
    for _ in X._stream():
        pass
    read = time.perf_counter() - clock
    forget(files)
    clock = time.perf_counter()
    X.matmul(V)
    product = time.perf_counter() - clock
    work = 0.0
    from symnmf.parallel import one_blas_thread
    from symnmf.storage.tiles import add_products

    out = np.zeros_like(V)
    with one_blas_thread():
        for tile, block in X._stream():
            clock = time.perf_counter()
            rows, columns = slice(tile.top, tile.bottom), slice(tile.left, tile.right)
            add_products(
                block, tile, (V[rows], V[columns]), (out[rows], out[tile.mirrored : tile.right]),
                X.threads,
            )  # fmt: skip
            work += time.perf_counter() - clock
    return straight, read, product, work


# Sparse, on disk --------------------------------------------------------------------------------


def write_sparse(folder: Path, nodes: int, entries: int, side: int) -> None:
    """A random graph, block by block: about ``entries`` stored ones in the whole matrix."""
    if (folder / "manifest.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    bounds = [*range(0, nodes, side), nodes]
    writer = FolderWriter(folder, bounds, np.dtype(np.float32), "csr")
    for i in range(len(bounds) - 1):
        for j in range(i, len(bounds) - 1):
            rows, columns = bounds[i + 1] - bounds[i], bounds[j + 1] - bounds[j]
            rng = np.random.default_rng([i, j])
            count = int(entries * (rows / nodes) * (columns / nodes)) // (2 if i == j else 1)
            low = rng.integers(0, rows, count, dtype=np.int32)
            high = rng.integers(0, columns, count, dtype=np.int32)
            block = sp.coo_array((np.ones(count, np.float32), (low, high)), shape=(rows, columns))
            block = block.tocsr()
            if i == j:
                block = (block + block.T).tocsr()
            block.data[:] = 1.0
            writer.add(i, j, block)
    writer.close()


def sparse(folder: Path, nodes: int, entries: int, rank: int, memory: str) -> dict[str, object]:
    blocks = folder / f"sparse-{nodes}-{entries}"
    clock = time.perf_counter()
    write_sparse(blocks, nodes, entries, max(1, nodes // 10))
    found: dict[str, object] = {"seconds to write": time.perf_counter() - clock}
    found["bytes on disk"] = sum(file.stat().st_size for file in blocks.iterdir())
    for solver in ("a-symhals", "auto"):
        command = [sys.executable, __file__, "--folder", str(blocks), "--rank", str(rank)]
        command += ["--memory", memory, "--solver", solver, "iterate"]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        found[solver] = json.loads(run.stdout)
    return found


def iterate(folder: Path, rank: int, memory: str, solver: str) -> dict[str, object]:
    before = peak()
    clock = time.perf_counter()
    X = Blocks(folder, memory=memory)
    checked = time.perf_counter() - clock
    result = symnmf.factorize(X, rank, solver=solver, random_state=0, max_iter=3, tol=0)
    return {
        "seconds to check": checked,
        "seconds per iteration": statistics.median(np.diff(result.history["seconds"]).tolist()),
        "peak, bytes": peak(),
        "peak before, bytes": before,
        "a factor, bytes": result.U.nbytes,
        "largest block, bytes": max(f.stat().st_size for f in folder.glob("*-*.npz")),
        "errors": result.history["error"].tolist(),
    }


# Dask -------------------------------------------------------------------------------------------


def on_dask(n: int, side: int, rank: int, pause: float, rounds: int) -> dict[str, object]:
    """Products on one worker and on two beside the same work in one process, interleaved.

    Blocks are computed, not read, so that the disk is no part of it. Overhead is the time of a
    product less the time that each worker spent in tasks, which is the same work as in one
    process; the difference of whole times is stated too, but two runs of the same arithmetic
    differ by more than the overhead.
    """
    import dask.array as da

    def block(block_info=None):  # type: ignore[no-untyped-def]
        (a, b), (c, d) = block_info[None]["array-location"]
        end = time.thread_time() + pause
        made = np.add.outer(np.arange(a, b) % 7 + 1.0, np.arange(c, d) % 7 + 1.0)
        while time.thread_time() < end:
            made[:1] @ made[:1].T
        return made

    sizes = tuple(min(side, n - first) for first in range(0, n, side))
    X = da.map_blocks(block, chunks=(sizes, sizes), dtype=float, meta=np.empty((0, 0)))
    V = np.random.default_rng(0).random((n, rank))
    count = len(sizes)
    found: dict[str, object] = {"blocks": count**2, "blocks computed": count * (count + 1) // 2}
    for workers in (1, 2):
        found[f"{workers} workers"] = _beside_one_process(X, V, workers, rounds)
    return found


def _beside_one_process(X: Any, V: np.ndarray, workers: int, rounds: int) -> dict[str, float]:
    import dask
    from distributed import Client, LocalCluster, get_task_stream

    taken = []
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        M = DaskMatrix(X, assume_symmetric=True)
        M.matmul(V)
        for _ in range(rounds):
            with dask.config.set(scheduler="sync"):
                clock, cpu = time.perf_counter(), time.process_time()
                alone = M.matmul(V)
                one, one_cpu = time.perf_counter() - clock, time.process_time() - cpu
            with get_task_stream(client=client) as stream:
                before = client.run(time.process_time)
                clock, cpu = time.perf_counter(), time.process_time()
                shared = M.matmul(V)
                all_, here = time.perf_counter() - clock, time.process_time() - cpu
                after = client.run(time.process_time)
            assert np.array_equal(alone, shared)
            steps = [step for task in stream.data for step in task["startstops"]]
            inside = sum(one["stop"] - one["start"] for one in steps if one["action"] == "compute")
            cpu = here + sum(after[name] - before[name] for name in after) - one_cpu
            overhead, efficiency = all_ - inside / workers, one / all_ / workers
            taken.append((one, all_, overhead, all_ - one / workers, efficiency, here, cpu))
    names = (
        "seconds in one process of one thread",
        "seconds on the workers",
        "overhead: seconds beyond those in tasks, per worker",
        "seconds beyond an equal share of those in one process",
        "efficiency",
        "CPU seconds of client and scheduler",
        "CPU seconds beyond those in one process",
    )
    middle = (statistics.median(column) for column in zip(*taken, strict=True))
    return dict(zip(names, middle, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["dense", "sparse", "dask", "capped", "iterate"])
    parser.add_argument("--folder", type=Path, default=Path("out/blocks"))
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--entries", type=int, default=200_000_000)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--memory", default="192MiB")
    parser.add_argument("--solver", default="a-symhals")
    parser.add_argument("--pause", type=float, default=0.0, help="CPU seconds a block takes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--remove", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.what in ("dense", "capped"):
        act = dense if given.what == "dense" else capped
        found = act(given.folder, given.nodes or 32_000, given.rank or 10, given.memory)
    elif given.what == "sparse":
        nodes = given.nodes or 20_000_000
        found = sparse(given.folder, nodes, given.entries, given.rank or 16, given.memory)
    elif given.what == "iterate":
        found = iterate(given.folder, given.rank, given.memory, given.solver)
    else:
        n = given.nodes or 20_000
        found = on_dask(n, n // 4, given.rank or 20, given.pause, given.rounds)
    print(json.dumps(found, indent=2))
    if given.remove:
        shutil.rmtree(given.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
