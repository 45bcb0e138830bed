"""Runs that are short of something: memory in steps, files, processes, disk. A program of its own.

Run as ``python short_of.py COUNT SEED``. Each run is a fork of a process in which everything is
compiled already, under a limit that is drawn. It ends with a result, or with a MemoryError, an
OSError or an ``InputError`` that says what was missing; never in a crash, a hang or a wrong result.
"""

from __future__ import annotations

import ctypes
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

# OpenBLAS starts its threads anew in a fork, and interrupts a process that may not have any
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import scipy.sparse as sp

import symnmf
from symnmf.errors import InputError
from symnmf.storage import Blocks

#: X is large enough that its copies are asked of the system, and small enough for many runs.
ROWS = 500
#: Bytes above what the process has already: about what the tasks need at most.
MOST = 8e6

RNG = np.random.default_rng(0)
FACTOR = RNG.random((ROWS, 4))
X = FACTOR @ FACTOR.T
SPARSE = sp.csr_array(np.where(np.quantile(X, 0.9) < X, X, 0.0))
PATIENCE = 120
NOBODY = 65534
libc = ctypes.CDLL(None)
CODES = {0: "done", 10: "MemoryError", 11: "OSError", 12: "InputError", 13: "could not start"}


def tasks(folder: Path) -> dict[str, Any]:
    """What is run; each ends in numbers that are checked."""
    np.save(folder / "X.npy", X)
    np.savetxt(folder / "X.csv", X, delimiter=",")

    def check(result: symnmf.Result, matrix: Any) -> None:
        dense = matrix.toarray() if sp.issparse(matrix) else matrix
        error = np.linalg.norm(dense - result.U @ result.U.T) ** 2 / np.linalg.norm(dense) ** 2
        assert abs(error - result.error) < 1e-6, (error, result.error)

    run = {"random_state": 0, "max_iter": 20, "tol": 1e-3, "n_jobs": 1}
    return {
        "dense": lambda: check(symnmf.factorize(X, 4, **run), X),
        "sparse": lambda: check(symnmf.factorize(SPARSE, 4, **run), SPARSE),
        "blocks": lambda: check(
            symnmf.factorize(Blocks(folder / "X.npy", memory="1MB"), 4, **run), X
        ),
        "reader": lambda: check(
            symnmf.factorize(symnmf.io.read(folder / "X.csv").data, 4, **run), X
        ),
        "threads": lambda: check(symnmf.factorize(X, 12, **{**run, "n_jobs": 4}), X),
        "starts": lambda: check(symnmf.factorize(X, 4, n_init=3, **{**run, "n_jobs": 3}), X),
        "shared readings": lambda: check(
            symnmf.factorize(Blocks(folder / "X.npy", memory="1MB"), 4, n_init=3, **run), X
        ),
        "checkpoint": lambda: check(
            symnmf.factorize(X, 4, **run, checkpoint=folder / f"{os.getpid()}.npz"), X
        ),
        "saved": lambda: symnmf.factorize(X, 4, **run).save(folder / f"{os.getpid()}-saved.npz"),
    }


def _give_back_memory() -> None:
    """Return free memory to the system, and let large arrays be asked of it one by one."""
    libc.mallopt(-3, 1 << 16)  # M_MMAP_THRESHOLD
    libc.mallopt(-1, 1 << 16)  # M_TRIM_THRESHOLD
    libc.malloc_trim(0)


def limit(rng: random.Random, step: float) -> tuple[str, int]:
    """Draw a limit; address space falls with ``step``, from what is needed to nothing."""
    kind = rng.choice(["memory"] * 12 + ["files", "processes", "processes", "disk"])
    if kind == "memory":
        _give_back_memory()
        # stacks of threads that ended before are kept; another size needs new ones
        threading.stack_size(rng.choice([1 << 18, 1 << 20, 1 << 22]))
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + int(MOST * (1 - step) * rng.random())
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        return kind, most
    if kind == "files":
        most = rng.randint(3, 40)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    elif kind == "processes":
        if os.geteuid() == 0:
            os.setuid(NOBODY)  # nothing limits the processes of root
        most = rng.randint(0, 3)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    else:
        most = rng.choice([0, 100, 5000])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    return kind, most


def in_child(task: Any, rng: random.Random, step: float) -> int:
    """Run a task under a limit in a fork; return the code that it ends with."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        signal.alarm(PATIENCE)
        warnings.simplefilter("ignore")
        limit(rng, step)
        task()
        code = 0
    except MemoryError:
        code = 10
    except InputError:
        code = 12
    except OSError:
        code = 11
    except RuntimeError as error:
        code = 13 if "start new thread" in str(error) else 1
        if code == 1:
            print(repr(error), file=sys.stderr, flush=True)
    except BaseException as error:
        import traceback

        traceback.print_exc()
        print(repr(error), file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def main(count: int, seed: int) -> int:
    rng, seen = random.Random(seed), Counter[str]()
    libc.mallopt(-8, 1)  # M_ARENA_MAX: each thread's own would be a reserve that no limit counts
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        todo = tasks(Path(place))
        for task in todo.values():
            task()  # compiles and imports whatever comes late
        for number in range(count):
            name = rng.choice(list(todo))
            drawn = random.Random(rng.random())
            code = in_child(todo[name], drawn, number / count)
            came = CODES.get(code, f"FAILED with {code}")
            seen[came] += 1
            if came.startswith("FAILED"):
                print(f"run {number}, {name}: {came}", flush=True)
    print(dict(seen), flush=True)
    return int(any(came.startswith("FAILED") for came in seen))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
