"""Kills runs that keep a checkpoint, at random moments, until they are done: a program of its own.

Run as ``python kills.py COUNT SEED FOLDER``. Every run is started again from what the killed one
left; when it ends, its result must be that of a run nobody disturbed, bit for bit. Children are
forked from a process that has everything loaded, so that they die during the work.
It prints the number of kills that met a living process, by what was running.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import symnmf
import symnmf.cli
from symnmf.run import checkpoint
from symnmf.solvers import SOLVERS
from symnmf.storage import LowRank

checkpoint.SECONDS_BETWEEN = 0.0  # so that a kill meets a state that was saved

Work = Callable[[Path], None]


RNG = np.random.default_rng(1)
FACTOR, NOISE = (np.abs(RNG.standard_normal((60, width))) for width in (5, 60))
X = FACTOR @ FACTOR.T + 0.1 * (NOISE + NOISE.T)

#: What runs are killed on: noisy and exact, in both precisions, in several storages.
KINDS: dict[str, Callable[[], Any]] = {
    "noisy": lambda: X,
    "noisy, float32": lambda: X.astype(np.float32),
    "exact": lambda: FACTOR @ FACTOR.T,
    "exact, float32": lambda: (FACTOR @ FACTOR.T).astype(np.float32),
    "sparse": lambda: sp.csr_array(np.where(np.median(X) < X, X, 0.0)),
    "low rank": lambda: LowRank(X[:, :8], np.eye(8)),
}


def by_factorize(solver: str, kind: str) -> Work:
    def work(folder: Path) -> None:
        path = folder / "run.npz"
        options = {"solver": solver, "random_state": 0, "tol": 0.0, "n_jobs": 1, "max_iter": 40}
        result = symnmf.factorize(KINDS[kind](), 5, checkpoint=path, **options)
        result.save(folder / "result.npz")

    return work


def by_estimator(folder: Path) -> None:
    model = symnmf.SymNMF(
        5,
        affinity="precomputed",
        n_init=3,
        random_state=0,
        tol=0.0,
        max_iter=30,
        n_jobs=1,
        checkpoint=folder / "fit.npz",
    )
    model.fit(X)
    np.save(folder / "embedding.npy", model.embedding_)


def command(line: str) -> Work:
    def work(folder: Path) -> None:
        from symnmf.cli import main

        os.chdir(folder)
        np.save("X.npy", X)
        sys.argv = ["symnmf", *line.split(), "--checkpoint", "run.npz", "-q", "--jobs", "1"]
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise

    return work


KEPT = "--seed 0 --tol 0 --max-iter 40"
WORK: dict[str, Work] = {
    **{
        f"factorize {name}, {kind}": by_factorize(name, kind)
        for name in SOLVERS
        for kind in KINDS
        if name != "lbfgs"
    },
    "SymNMF": by_estimator,
    "symnmf factorize": command(f"factorize X.npy -r 5 -o U.csv {KEPT}"),
    "symnmf cluster": command(
        f"cluster X.npy -k 5 -o labels.csv --affinity precomputed --starts 3 {KEPT}"
    ),
}
OUTPUTS = ("result.npz", "embedding.npy", "U.csv", "labels.csv")


def child(work: Work, folder: Path, log: Path) -> int:
    """Fork, do the work there, and return the number of the process."""
    number = os.fork()
    if number:
        return number
    try:
        stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(stream, 1)
        os.dup2(stream, 2)
        work(folder)
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def outcome(folder: Path) -> dict[str, bytes]:
    """What a finished run wrote, without its clock."""
    found = {}
    for name in OUTPUTS:
        path = folder / name
        if path.exists() and name == "result.npz":
            result = symnmf.Result.load(path)
            rows = np.delete(result.history.to_array(), 1, axis=1)
            found[name] = result.U.tobytes() + result.V.tobytes() + rows.tobytes()
        elif path.exists():
            found[name] = path.read_bytes()
    return found


def undisturbed(work: Work, folder: Path, log: Path) -> tuple[dict[str, bytes], float]:
    folder.mkdir()
    begun = time.monotonic()
    number = child(work, folder, log)
    _, status = os.waitpid(number, 0)
    assert status == 0, log.read_text()
    seconds = time.monotonic() - begun
    expected = outcome(folder)
    assert expected
    shutil.rmtree(folder)
    return expected, seconds


def main(count: int, seed: int, base: Path) -> None:
    rng, kills = random.Random(seed), Counter[str]()
    log = base / "log.txt"
    folder = base / "work"
    known = {}
    # whatever is compiled or imported late is so once, before the fork
    for module in pkgutil.iter_modules(symnmf.cli.__path__, "symnmf.cli."):
        importlib.import_module(module.name)
    for work in WORK.values():
        (base / "warm").mkdir()
        here = os.getcwd()
        if work is by_estimator or work.__qualname__.startswith("by_factorize"):
            work(base / "warm")
        os.chdir(here)
        shutil.rmtree(base / "warm")
    while kills.total() < count:
        group = rng.choice(("factorize", "SymNMF", "symnmf factorize", "symnmf cluster"))
        name = rng.choice([name for name in WORK if name == group or name.split()[0] == group])
        if name not in known:
            known[name] = undisturbed(WORK[name], folder, log)
        expected, seconds = known[name]
        folder.mkdir()
        # then it may go on in peace, so that a slow one does not take all kills
        left, finished = rng.randint(1, 12), False
        while not finished:
            number = child(WORK[name], folder, log)
            if left and kills.total() < count:
                left -= 1
                time.sleep(rng.uniform(0.0, seconds))
                os.kill(number, signal.SIGKILL)
            _, status = os.waitpid(number, 0)
            if os.WIFSIGNALED(status):
                kills[name] += 1
            else:
                assert status == 0, f"{name}: {log.read_text()}"
                finished = True
        assert outcome(folder) == expected, name
        shutil.rmtree(folder)
        print(kills.total(), dict(kills), file=sys.stderr, flush=True)
    print(kills.total(), dict(kills), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
