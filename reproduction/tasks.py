"""Small pure tasks (one method, one problem, one seed), kept on disk and run by worker processes.

A task is its parameters and nothing else, so figures that need the same run share it, and an
interrupted reproduction resumes. Seconds are those of the processor in the solver, on
one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import functools
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf import __version__
from symnmf.archives import read_archive, write_archive
from symnmf.datasets import synthetic
from symnmf.errors import InputError
from symnmf.metrics import clustering_accuracy
from symnmf.parallel import available_cores

if TYPE_CHECKING:
    from symnmf.run.result import Result

TaskProgress = Callable[[int, int, str], Any]
Record = dict[str, np.ndarray]

FORMAT = f"symnmf-task-2 of symnmf {__version__}"

#: The data sets of table 1: points, classes and stored entries of the graph (for the estimate).
SIZES = {
    "orl": (400, 40, 4_670),
    "coil20": (1440, 20, 19_428),
    "mnist_train3147": (3147, 10, 54_072),
    "tdt2": (3147, 2, 58_268),
    "mnist_test_sorted3147": (3147, 3, 53_480),
}

#: What the files of data sets are called that cannot be downloaded.
FILES = {"tdt2": "TDT2_first3147"}

#: Seconds of one iteration on a dense X: constant, per n^2 r, per n r^2 and per r^3.
DENSE_COST = {
    "symanls": (3e-5, 1.6e-10, 6.5e-9, 0.0),
    "kuang-anls": (3e-5, 1.6e-10, 6.5e-9, 0.0),
    "symhals": (3e-5, 2e-10, 2e-10, 0.0),
    "a-symhals": (3e-5, 2e-10, 3e-10, 0.0),
    "admm": (3e-5, 1.6e-10, 3.6e-9, 0.0),
    "tsvd": (6e-5, 0.0, 1.5e-10, 3.5e-9),
    "beta-snmf": (3e-5, 9e-11, 2e-10, 0.0),
    "pgd": (1e-4, 1.8e-10, 3e-10, 0.0),
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
class Instance:
    """A random X of the paper's kind, or the similarity graph of a data set.

    Noise is drawn for every entry apart, as the paper writes it, so that X is not symmetric;
    ``mirrored`` copies the upper triangle of N to the lower one.
    """

    n: int = 0
    rank: int = 0
    noise: float = 0.0
    kind: str = "gaussian"
    dataset: str = ""
    mirrored: bool = False

    def __str__(self) -> str:
        if self.dataset:
            return self.dataset
        mirrored = "-mirrored" if self.mirrored else ""
        return f"n{self.n}-r{self.rank}-s{self.noise:g}-{self.kind}{mirrored}"


@dataclass(frozen=True)
class Task:
    """One run. ``seed`` draws both the data (where they are random) and the start.

    Attributes
    ----------
    tol : float
        Stops a run on a graph by its stationarity.
    until_rest : bool
        Stop a run on a random X once E has stayed within ``REST`` over ``REST_ITERATIONS``, or is
        below ``ROUNDING``.
    setting : {"paper", "fixed", "scaled"}
        The paper's; lambda = 0.66, as in the authors' MATLAB; the start scaled to X and no
        safeguard against empty columns, as :func:`symnmf.factorize` starts.
    repetition : int
        Tells apart runs that differ in their clock only.
    alone : bool
        Not beside a worker, since its clock matters.
    """

    method: str
    problem: Instance
    seed: int
    max_iter: int
    record_every: int
    tol: float = 0.0
    until_rest: bool = False
    setting: str = "paper"
    repetition: int = 0
    alone: bool = False

    @property
    def name(self) -> str:
        setting = "" if self.setting == "paper" else f"_{self.setting}"
        rest = "_rest" if self.until_rest else ""
        repetition = f"_again{self.repetition}" if self.repetition else ""
        return (
            f"{self.problem}_{self.method}{setting}_seed{self.seed}_k{self.max_iter}"
            f"_every{self.record_every}_tol{self.tol:g}{rest}{repetition}"
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

    data = datasets.load(FILES.get(dataset, dataset))
    assert data.target is not None
    with warnings.catch_warnings():  # of components, which these data are known to have
        warnings.simplefilter("ignore", graphs.GraphWarning)
        A = graphs.build(data.data, n_neighbors=data.data.shape[0].bit_length(), n_jobs=1)
    return A, data.target, data.n_clusters


def random_problem(problem: Instance, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and U* of a random problem; the mirrored X has the same upper triangle."""
    if problem.mirrored or problem.noise == 0:
        return synthetic(
            problem.n, problem.rank, problem.noise, noise_kind=problem.kind, random_state=seed
        )
    rng = np.random.default_rng(seed)
    X, truth = synthetic(problem.n, problem.rank, random_state=rng)
    draw: dict[str, Any] = {
        "gaussian": rng.standard_normal,
        "uniform": rng.random,
        "lognormal": rng.lognormal,
    }
    N: np.ndarray = draw[problem.kind](size=X.shape)
    return X + problem.noise * np.abs(N), truth


def run(task: Task) -> Record:
    """Do a task: the columns of the history, how the run ended, and what the data were."""
    from reproduction import published  # which loads numba: not for an estimate

    problem = task.problem
    record: Record = {}
    watches: list[Callable[[Any], bool]] = []
    solver = task.method if task.setting == "scaled" else published.solver(task.method)
    if problem.dataset:
        X, target, rank = _graph(problem.dataset)
        accuracy: list[float] = []

        def label(snapshot: Any) -> bool:
            split = task.method in published.LABELS_FROM_V
            factor = snapshot.V if split else snapshot.U
            accuracy.append(clustering_accuracy(target, np.argmax(factor, axis=1)))
            return False

        watches.append(label)
        history = _history(task, X, rank, solver, record, watches)
        record["accuracy"] = np.array(accuracy)
    else:
        X, truth = random_problem(problem, task.seed)
        signal, noise = np.sum((truth @ truth.T) ** 2), np.sum((X - truth @ truth.T) ** 2)
        asymmetry = np.sum((X - X.T) ** 2) / 4
        record["noise_share"] = np.array(noise / np.sum(X**2))
        record["asymmetric_share"] = np.array(asymmetry / np.sum(X**2))
        record["signal_to_noise"] = np.array(signal / noise if problem.noise else np.inf)
        if asymmetry > 0:
            from reproduction.asymmetric import AsymmetricMatrix, LeftTSVD
            from symnmf.parallel import Threads

            X = AsymmetricMatrix(X, Threads(1))
            solver = LeftTSVD() if task.method == "tsvd" else solver
        if task.until_rest:
            watches.append(AtRest(task.record_every))
        history = _history(task, X, problem.rank, solver, record, watches)
    return {"format": np.array(FORMAT), **history, **record}


#: A run on a random X is at rest when E stayed within this share over so many iterations.
REST, REST_ITERATIONS = 2e-4, 2000
ROUNDING = 1e-14


class AtRest:
    """Says when E has come to rest."""

    def __init__(self, record_every: int) -> None:
        self.window = REST_ITERATIONS // record_every
        self.errors: list[float] = []

    def __call__(self, snapshot: Any) -> bool:
        self.errors.append(snapshot.error)
        late = self.errors[-self.window - 1 :]
        still = len(late) > self.window and max(late) - min(late) <= REST * max(late)
        return still or snapshot.error < ROUNDING


def _history(
    task: Task,
    X: Any,
    rank: int,
    solver: Any,
    record: Record,
    watches: list[Callable[[Any], bool]],
) -> Record:
    from reproduction import published
    from symnmf.run.problem import Problem
    from symnmf.run.settings import Settings
    from symnmf.run.solving import solve
    from symnmf.solvers import as_solver

    rule = published.LAMBDA if task.setting == "fixed" else "adaptive"
    own = task.method == "kuang-anls" and task.setting != "fixed"
    settings = Settings.of(
        solver,
        rule if as_solver(solver).has_coupling and not own else None,
        tol=task.tol,
        max_iter=task.max_iter,
        record_every=task.record_every,
        clock=time.thread_time,
    )
    init = "scaled-random" if task.setting == "scaled" else "random"
    problem = Problem.of(X, n_jobs=1)
    rested = False

    def watch(snapshot: Any) -> bool:
        nonlocal rested
        rested = any(each(snapshot) for each in watches)
        return rested

    def go(how: Settings, callback: Callable[[Any], bool] | None) -> Result:
        return solve(problem, rank, how, init=init, random_state=task.seed, callback=callback)

    go(settings.within(tol=0.0, max_iter=2), None)  # so that no clock counts loading of kernels
    result = go(settings, watch)
    if result.status == "stopped" and not rested:  # Ctrl-C: half a run must not be kept
        raise KeyboardInterrupt
    record["status"] = np.array("at rest" if rested else result.status)
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
    tasks: Iterable[Task],
    folder: Path,
    jobs: int | None = None,
    progress: TaskProgress | None = None,
) -> int:
    """Do the tasks that are not on disk yet; return how many there were.

    ``jobs`` worker processes (all cores where None) have one thread each and take the longest
    first. They are spawned, so a script that gets here must do so under ``if __name__ ==
    "__main__":``. Tasks whose clock matters come after them, one at a time in this process, all
    first runs before all second ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys(tasks))
    pending = [task for task in wanted if load(task, folder) is None]
    done = len(wanted) - len(pending)
    jobs = available_cores() if jobs is None else jobs

    def tell(task: Task) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(wanted), task.name)

    together = [task for task in pending if not task.alone and jobs > 1]
    if together:
        together.sort(key=lambda task: -task.cost)
        context = multiprocessing.get_context("spawn")
        workers = min(jobs, len(together))
        with ProcessPoolExecutor(workers, mp_context=context, initializer=_one_thread) as pool:
            futures = {pool.submit(_perform, task, folder): task for task in together}
            try:
                for future in as_completed(futures):
                    future.result()
                    tell(futures[future])
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    left = [task for task in pending if task not in set(together)]
    for task in sorted(left, key=lambda task: task.repetition):
        _perform(task, folder)
        tell(task)
    return len(pending)
