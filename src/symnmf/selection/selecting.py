"""How many clusters: :func:`select_rank`."""

from __future__ import annotations

import dataclasses
import json
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symnmf.archives import read_archive, write_archive
from symnmf.errors import InputError
from symnmf.matrices import DenseMatrix, HostMatrix, SparseMatrix
from symnmf.matrices.observing import hide
from symnmf.parallel import Threads, one_blas_thread
from symnmf.run.interrupts import watching
from symnmf.run.multistart import DEFAULT_STARTS, Plan
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.settings import Settings
from symnmf.run.start import RandomState, as_generator
from symnmf.selection.choosing_rank import (
    Choice,
    by_eigengap,
    by_heldout,
    by_stability,
    recommend,
)
from symnmf.selection.folds import Fold, pair_folds
from symnmf.selection.paths import rank_path
from symnmf.selection.spectra import bethe_hessian_count, normalised_eigenvalues
from symnmf.selection.stability import agreements, consensus, without_clusters

CRITERIA = ("heldout", "stability", "eigengap")
FORMAT = "symnmf-ranks-1"
#: Runs on a matrix without clusters, against which agreement is judged.
NULL_RUNS = 3

#: Called with the fits done and all there are to do; a true return value stops.
Progress = Callable[[int, int], Any]


@dataclass(frozen=True, eq=False)
class RankSelection:
    """What :func:`select_rank` found.

    Attributes
    ----------
    recommendation : int or None
        The number of clusters; None where there is no clear one.
    reason : str
        Why, in one sentence.
    choices : dict of str to Choice
        What each criterion says, with the ranks it cannot tell apart.
    table : dict of str to ndarray
        One row per rank; see :meth:`to_frame`.
    best : Result or None
        The best of several starts on all of X with the recommended rank.
    bethe_hessian : int or None
        Negative eigenvalues of the Bethe-Hessian, for graphs without weights.
    status : str
        "done", or "stopped" where it was interrupted and rests on the runs done by then.
    """

    recommendation: int | None
    reason: str
    choices: dict[str, Choice]
    table: dict[str, np.ndarray] = field(repr=False)
    best: Result | None = field(repr=False)
    bethe_hessian: int | None = None
    status: str = "done"

    def __str__(self) -> str:
        number = "no clear number" if self.recommendation is None else str(self.recommendation)
        lines = [f"Clusters: {number}. {self.reason}"]
        lines += [f"  {name:14} {choice}" for name, choice in self.choices.items()]
        if self.bethe_hessian is not None:
            lines.append(f"  {'Bethe-Hessian':14} {self.bethe_hessian} negative eigenvalues")
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame (needs the extra ``pandas``)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "RankSelection.to_frame needs pandas: pip install 'symnmf[pandas]'."
            ) from error
        return pd.DataFrame(self.table)

    def plot(self) -> Any:
        """Return a matplotlib Figure with the score of each criterion against the rank."""
        from symnmf.selection.figures import draw

        return draw(self)


def select_rank(
    X: Any,
    ranks: Iterable[int] = range(2, 21),
    *,
    criteria: Sequence[str] = CRITERIA,
    n_runs: int = 5,
    n_folds: int = 5,
    n_init: int = DEFAULT_STARTS,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    callback: Progress | None = None,
    tol: float = 1e-3,
    max_iter: int = 200,
    solver: Any = "auto",
) -> RankSelection:
    """Recommend a number of clusters for a symmetric nonnegative X, or say that none is clear.

    Parameters
    ----------
    X : array-like or scipy sparse, n x n
        As for :func:`symnmf.factorize`.
    ranks : iterable of int
        Numbers to try; 1 is always tried too, to be compared with.
    criteria : sequence of str
        "heldout": the pairs (i, j) are cut into folds and each fold is predicted from the others;
        the smallest number within one standard error of the best. "stability": how much runs on
        perturbed matrices agree, beyond what they do on a matrix with the same degrees and no
        clusters. "eigengap": where the eigenvalues of the normalised matrix fall furthest.
    n_runs : int
        Perturbed runs that are compared with each other.
    n_folds : int
        Folds of pairs; (i, j) and (j, i) are in one fold, and the diagonal in none.
    n_init : int
        Starts of the final fit on all of X.
    random_state, n_jobs, solver
        As in :func:`symnmf.factorize`; the runs share the threads out.
    checkpoint : path or None
        Keep finished runs in this npz file, and go on from it where it is there.
    callback : callable or None
        Called with the number of fits done and of all fits; a true return value stops.
    tol, max_iter
        For the runs; the final fit has the defaults of :class:`symnmf.SymNMF`.

    Returns
    -------
    RankSelection
        ``recommendation``, ``reason``, ``choices``, ``table``, ``best``, ``plot()``.

    Examples
    --------
    >>> import symnmf
    >>> X, _ = symnmf.datasets.synthetic(120, 4, 0.05, random_state=0)
    >>> symnmf.select_rank(X, range(2, 8), criteria=("heldout",), random_state=0).recommendation
    4
    """
    settings = Settings.of(solver, tol=tol, max_iter=max_iter)
    problem = Problem.of(X, n_jobs=n_jobs)
    matrix = problem.X
    wanted = _checked_ranks(ranks, matrix.shape[0])
    _check(criteria, n_runs, n_folds, matrix)
    assert isinstance(matrix, HostMatrix)
    search = _Search(
        matrix,
        wanted,
        tuple(criteria),
        n_runs if "stability" in criteria else 0,
        n_folds,
        int(as_generator(random_state).integers(2**62)),
        settings,
        callback,
    )
    with one_blas_thread():
        search.run(None if checkpoint is None else Path(checkpoint), Threads(n_jobs).count)
        found = search.judge()
    if found.recommendation is None or found.status == "stopped":
        return found
    plan = Plan(
        found.recommendation,
        Settings.of(solver, tol=1e-4),
        n_init=n_init,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return dataclasses.replace(found, best=plan.best(problem))


def _checked_ranks(ranks: Any, n: int) -> list[int]:
    try:
        given = sorted({int(rank) for rank in ranks if int(rank) == rank})
    except (TypeError, ValueError) as error:
        raise InputError(
            f"ranks must be whole numbers, such as range(2, 21), got {ranks!r}."
        ) from error
    if not given or given[0] < 1 or given[-1] > n:
        raise InputError(f"ranks must be whole numbers from 1 to the {n} rows of X, got {ranks!r}.")
    return given if given[0] == 1 else [1, *given]


def _check(criteria: Any, n_runs: Any, n_folds: Any, X: Any) -> None:
    unknown = [name for name in criteria if name not in CRITERIA]
    if isinstance(criteria, str) or unknown or not len(criteria):
        raise InputError(
            f"criteria must be some of {', '.join(map(repr, CRITERIA))} in a tuple, got "
            f"{criteria!r}."
        )
    for name, value in (("n_runs", n_runs), ("n_folds", n_folds)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 2:
            raise InputError(f"{name} must be a whole number of at least 2, got {value!r}.")
    if not isinstance(X, DenseMatrix | SparseMatrix):
        raise InputError(
            f"X must be an array or a sparse matrix to hold pairs out, got {type(X).__name__}."
        )
    if X.shape[0] < 10:
        raise InputError(f"X has {X.shape[0]} rows; at least 10 are needed to hold pairs out.")


@dataclass
class _Search:
    """The runs, each of them a path through all ranks, and the judgement on them."""

    X: HostMatrix
    ranks: list[int]
    criteria: tuple[str, ...]
    n_runs: int
    n_folds: int
    seed: int
    settings: Settings
    callback: Progress | None
    done: dict[str, np.ndarray] = field(default_factory=dict)
    fits: int = 0
    halt: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        folds = pair_folds(self.X, self.n_folds, rng)
        count = self.n_folds if "heldout" in self.criteria else 0
        self.tasks: dict[str, Fold] = {
            f"run-{k}": folds[k] for k in range(min(max(count, self.n_runs), self.n_folds))
        }
        more = self.n_runs - len(self.tasks)
        while more > 0:  # further perturbations: the pairs cut anew
            folds = pair_folds(self.X, self.n_folds, rng)[:more]
            for fold in folds:
                self.tasks[f"run-{len(self.tasks)}"] = fold
            more -= len(folds)
        if self.n_runs:
            null = without_clusters(self.X, rng, self.X.threads)
            self.null = null
            for k, fold in enumerate(pair_folds(null, max(NULL_RUNS, self.n_folds), rng)):
                if k < NULL_RUNS:
                    self.tasks[f"null-{k}"] = fold

    # --- running

    def run(self, path: Path | None, workers: int) -> None:
        identity = json.dumps(
            {
                "X": self.X.digest(),
                "ranks": self.ranks,
                "runs": [self.n_runs, self.n_folds],
                "solver": repr(self.settings.solver),
                "limits": [self.settings.limits.tol, self.settings.limits.max_iter],
            }
        )
        if path is not None and path.is_file():
            self._resume(path, identity)
        todo = [name for name in self.tasks if name not in self.done]
        self.fits = len(self.ranks) * (len(self.tasks) - len(todo))
        with watching(signal.SIGINT) as interrupt, ThreadPoolExecutor(workers) as pool:

            def one(name: str) -> None:
                factors = self._path(name, lambda: self.halt.is_set() or bool(interrupt))
                if factors is None:
                    return
                with self.lock:
                    self.done[name] = factors
                    if path is not None:
                        self._keep(path, identity)

            list(pool.map(one, todo))

    def _path(self, name: str, stop: Callable[[], bool]) -> np.ndarray | None:
        """Return the factors of all ranks side by side, or None where it was stopped."""
        fold = self.tasks[name]
        source = self.null if name.startswith("null") else self.X
        hidden = hide(source.on(Threads(1)), fold.rows, fold.columns)
        rng = np.random.default_rng([self.seed, len(name), int(name.split("-")[1])])
        factors = []
        for result in rank_path(Problem.of(hidden), self.ranks, rng, stop, self.settings):
            factors.append(result.U)
            with self.lock:
                self.fits += 1
                total = len(self.ranks) * len(self.tasks)
                if self.callback is not None and self.callback(self.fits, total):
                    self.halt.set()
        if len(factors) < len(self.ranks):
            return None
        return np.hstack(factors).astype(np.float32)

    def _keep(self, path: Path, identity: str) -> None:
        write_archive(
            path,
            {
                "format": np.array(FORMAT),
                "identity": np.array(identity),
                "seed": np.array(str(self.seed)),
                **self.done,
            },
        )

    def _resume(self, path: Path, identity: str) -> None:
        stored = read_archive(path, FORMAT)
        if str(stored.get("identity")) != identity:
            raise InputError(
                f"checkpoint {str(path)!r} belongs to another search; pass the X and settings it "
                f"was made with, or name another file."
            )
        try:
            self.seed = int(str(stored["seed"]))
            self.__post_init__()
        except (KeyError, ValueError) as error:
            raise InputError(f"{path} is not a whole checkpoint of a search ({error}).") from error
        self.done = {name: stored[name] for name in self.tasks if name in stored}
        shape = self.X.shape[0], sum(self.ranks)
        for name, factors in self.done.items():
            whole = factors.shape == shape and factors.dtype == np.float32
            if not (whole and np.isfinite(factors).all() and (factors >= 0).all()):
                raise InputError(
                    f"{path} is not a whole checkpoint of a search ({name} is not the factors of "
                    f"its ranks)."
                )

    # --- judging

    def factors(self, name: str, rank: int) -> np.ndarray:
        """Return U of one run."""
        before = sum(other for other in self.ranks if other < rank)
        return self.done[name][:, before : before + rank].astype(np.float64)

    def judge(self) -> RankSelection:
        table: dict[str, np.ndarray] = {"rank": np.array(self.ranks)}
        choices: dict[str, Choice] = {}
        status = "done" if len(self.done) == len(self.tasks) else "stopped"
        runs = [name for name in self.tasks if name.startswith("run") and name in self.done]
        nulls = [name for name in self.tasks if name.startswith("null") and name in self.done]
        held = [name for name in runs if int(name.split("-")[1]) < self.n_folds]
        if "heldout" in self.criteria and len(held) > 1:
            choices["heldout"] = self._heldout(held, table)
        if "stability" in self.criteria and len(runs) > 1 and len(nulls) > 1:
            choices["stability"] = self._stability(runs[: self.n_runs], nulls, table)
        bethe = None
        if "eigengap" in self.criteria:
            values = normalised_eigenvalues(self.X, self.ranks[-1] + 1)
            table["eigenvalue"] = np.array([_at(values, rank - 1) for rank in self.ranks])
            table["gap"] = table["eigenvalue"] - [_at(values, rank) for rank in self.ranks]
            choices["eigengap"] = by_eigengap(self.ranks, values)
            bethe = bethe_hessian_count(self.X, 2 * self.ranks[-1])
        if choices:
            rank, reason = recommend(choices)
        else:
            rank, reason = None, "Stopped before two runs were done."
        return RankSelection(rank, reason, choices, table, None, bethe, status)

    def _heldout(self, runs: list[str], table: dict[str, np.ndarray]) -> Choice:
        errors = np.array(
            [[self.tasks[run].error(self.factors(run, k)) for k in self.ranks] for run in runs]
        )
        table["heldout_error"] = errors.mean(axis=0)
        table["heldout_spread"] = errors.std(axis=0, ddof=1) / np.sqrt(len(runs))
        first = self.tasks[runs[0]].values
        if isinstance(self.X, SparseMatrix) and np.all((first == 0) | (first == 1)):
            table["heldout_auc"] = np.array(
                [
                    np.mean([self.tasks[run].auc(self.factors(run, k)) for run in runs])
                    for k in self.ranks
                ]
            )
        return by_heldout(self.ranks, errors)

    def _stability(self, runs: list[str], nulls: list[str], table: dict[str, np.ndarray]) -> Choice:
        rng = np.random.default_rng(self.seed)
        columns: dict[str, list[float]] = {}
        for rank in self.ranks:
            for prefix, names in (("", runs), ("null_", nulls)):
                factors = [self.factors(name, rank) for name in names]
                labels, cosines = agreements(factors)
                pac, dispersion = consensus(factors, rng)
                for name, value in (
                    ("ami", labels.mean()),
                    ("ami_spread", labels.std() / np.sqrt(len(names))),
                    ("cosine", cosines.mean()),
                    ("pac", pac),
                    ("dispersion", dispersion),
                ):
                    columns.setdefault(prefix + name, []).append(float(value))
        table |= {name: np.array(column) for name, column in columns.items()}
        excess = table["ami"] - table["null_ami"]
        excess[np.array(self.ranks) == 1] = 0.0  # one cluster is always found again
        table["ami_excess"] = excess
        return by_stability(self.ranks, excess, table["ami_spread"] + table["null_ami_spread"])


def _at(values: np.ndarray, place: int) -> float:
    return float(values[place]) if place < len(values) else float("nan")
