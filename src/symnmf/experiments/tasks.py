"""Small pure tasks (one method, one problem, one seed), kept on disk and run by worker processes.

A task is its parameters and nothing else, so figures that need the same run share it, and an
interrupted reproduction goes on where it was.
"""

from __future__ import annotations

import functools
import multiprocessing
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symnmf import __version__
from symnmf.archives import read_archive, write_archive
from symnmf.datasets import synthetic
from symnmf.errors import ConvergenceWarning, InputError
from symnmf.metrics import clustering_accuracy
from symnmf.parallel import available_cores

Progress = Callable[[int, int, str], Any]
Record = dict[str, np.ndarray]

FORMAT = f"symnmf-task-1 of symnmf {__version__}"

#: The data sets of table 1: points, classes and stored entries of the graph (for the estimate).
SIZES = {
    "orl": (400, 40, 4_670),
    "coil20": (1440, 20, 19_428),
    "mnist_train3147": (3147, 10, 54_072),
    "tdt2": (3147, 2, 58_268),
    "mnist_test_sorted3147": (3147, 3, 53_480),
}

#: Seconds of one iteration on a dense X: constant, per n^2 r, per n r^2 and per r^3.
DENSE_COST = {
    "symanls": (3e-5, 1.6e-10, 6.5e-9, 0.0),
    "kuang-anls": (3e-5, 1.6e-10, 6.5e-9, 0.0),
    "symhals": (3e-5, 1.6e-10, 2e-10, 0.0),
    "a-symhals": (3e-5, 1.6e-10, 3e-10, 0.0),
    "admm": (3e-5, 1.6e-10, 4.5e-9, 0.0),
    "tsvd": (6e-5, 0.0, 1.5e-10, 3.5e-9),
    "beta-snmf": (3e-5, 9e-11, 2e-10, 0.0),
    "pgd": (1e-4, 2e-10, 3e-10, 0.0),
}

#: The same on a sparse graph, as a multiple of SymHALS's.
SPARSE_COST = {
    "symanls": 1.6,
    "symhals": 1.0,
    "a-symhals": 1.1,
    "admm": 1.8,
    "tsvd": 0.2,
    "beta-snmf": 0.7,
    "pgd": 1.4,
}


@dataclass(frozen=True, order=True)
class Problem:
    """A random X of the paper's kind, or the similarity graph of a data set."""

    n: int = 0
    rank: int = 0
    noise: float = 0.0
    kind: str = "gaussian"
    dataset: str = ""

    def __str__(self) -> str:
        if self.dataset:
            return self.dataset
        return f"n{self.n}-r{self.rank}-s{self.noise:g}-{self.kind}"


@dataclass(frozen=True)
class Task:
    """One run. ``seed`` draws both the data (where they are random) and the start."""

    method: str
    problem: Problem
    seed: int
    max_iter: int
    record_every: int
    tol: float = 0.0

    @property
    def name(self) -> str:
        return (
            f"{self.problem}_{self.method}_seed{self.seed}_k{self.max_iter}"
            f"_every{self.record_every}_tol{self.tol:g}"
        )

    @property
    def cost(self) -> float:
        """Expected seconds, from costs per iteration measured on the two-core machine."""
        if self.problem.dataset:
            n, r, stored = SIZES[self.problem.dataset]
            sweep = 2e-7 * n + 8e-10 * stored * r + 2e-10 * n * r * r
            return 1.0 + self.max_iter * SPARSE_COST[self.method] * sweep
        n, r = self.problem.n, self.problem.rank
        constant, product, rows, small = DENSE_COST[self.method]
        evaluation = 2e-10 * n * n * r / self.record_every
        iteration = constant + product * n * n * r + rows * n * r * r + small * r**3
        return 0.05 + self.max_iter * (iteration + evaluation)


@functools.lru_cache(maxsize=2)
def _graph(dataset: str) -> tuple[Any, np.ndarray, int]:
    from symnmf import datasets, graphs

    data = datasets.load(dataset)
    assert data.target is not None
    with warnings.catch_warnings():  # several components, which these data are known to have
        warnings.simplefilter("ignore", graphs.GraphWarning)
        return graphs.self_tuning(data.data, n_jobs=1), data.target, data.n_clusters


def run(task: Task) -> Record:
    """Do a task: the columns of the history, how the run ended, and what the data were."""
    problem = task.problem
    record: Record = {}
    accuracy: list[float] = []
    if problem.dataset:
        X, target, rank = _graph(problem.dataset)

        def watch(snapshot: Any) -> None:
            accuracy.append(clustering_accuracy(target, np.argmax(snapshot.U, axis=1)))

        history = _history(task, X, rank, record, init="scaled-random", callback=watch)
        record["accuracy"] = np.array(accuracy)
    else:
        X, truth = synthetic(
            problem.n,
            problem.rank,
            problem.noise,
            noise_kind=problem.kind,
            random_state=task.seed,
        )
        signal, noise = np.sum((truth @ truth.T) ** 2), np.sum((X - truth @ truth.T) ** 2)
        record["noise_share"] = np.array(noise / np.sum(X**2))
        record["signal_to_noise"] = np.array(signal / noise if problem.noise else np.inf)
        history = _history(task, X, problem.rank, record, init="random")
    return {"format": np.array(FORMAT), **history, **record}


def _history(task: Task, X: Any, rank: int, record: Record, **settings: Any) -> Record:
    from symnmf.run.loop import factorize  # which loads numba: not for an estimate

    common: dict[str, Any] = {
        "solver": task.method,
        "penalty": None if task.method == "kuang-anls" else "adaptive",
        "inner_sweeps": 2,
        "random_state": task.seed,
        "n_jobs": 1,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status says as much
        # so that no clock counts the loading of compiled code
        factorize(X, rank, tol=0.0, max_iter=1, init=settings["init"], **common)
        result = factorize(
            X,
            rank,
            tol=task.tol,
            max_iter=task.max_iter,
            record_every=task.record_every,
            **common,
            **settings,
        )
    if result.status == "stopped":  # Ctrl-C in the worker: half a run must not be kept
        raise KeyboardInterrupt
    record["status"] = np.array(result.status)
    return {column: result.history[column] for column in result.history.columns}


def load(task: Task, folder: Path) -> Record | None:
    """Return what a finished task left, or None where it has to be done (again)."""
    try:
        return read_archive(folder / f"{task.name}.npz", FORMAT)
    except InputError:
        return None


def _perform(task: Task, folder: Path) -> None:
    write_archive(folder / f"{task.name}.npz", run(task))


def _one_thread() -> None:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def execute(
    tasks: Iterable[Task], folder: Path, jobs: int | None = None, progress: Progress | None = None
) -> int:
    """Do the tasks that are not on disk yet, the longest first; return how many there were.

    ``jobs`` worker processes (all cores where None) have one thread each. They are spawned, so a
    script that gets here must do so under ``if __name__ == "__main__":``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys(tasks))
    pending = sorted(
        (task for task in wanted if load(task, folder) is None), key=lambda task: -task.cost
    )
    done = len(wanted) - len(pending)
    jobs = min(available_cores() if jobs is None else jobs, max(1, len(pending)))

    def tell(task: Task) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(wanted), task.name)

    if jobs == 1:
        for task in pending:
            _perform(task, folder)
            tell(task)
        return len(pending)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_one_thread) as pool:
        futures = {pool.submit(_perform, task, folder): task for task in pending}
        try:
            for future in as_completed(futures):
                future.result()
                tell(futures[future])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return len(pending)
