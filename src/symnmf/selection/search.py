"""The runs behind a choice of rank: which there are, where they are kept, and what they say."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symnmf import calls
from symnmf.archives import read_archive, write_archive
from symnmf.errors import InputError
from symnmf.objectives import Objective
from symnmf.objectives.likelihood import likelihood_without
from symnmf.objectives.losses import FROBENIUS
from symnmf.objectives.observing import hide
from symnmf.parallel import Threads
from symnmf.pools import Pool
from symnmf.run.checkpoint import check_identity
from symnmf.run.interrupts import Interrupt
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.selection.choosing_rank import (
    Choice,
    by_eigengap,
    by_heldout,
    by_stability,
    recommend,
)
from symnmf.selection.folds import Fold, calibrated, pair_folds
from symnmf.selection.found import RankSelection
from symnmf.selection.paths import rank_path
from symnmf.selection.spectra import bethe_hessian_count, normalised_eigenvalues
from symnmf.selection.stability import agreements, consensus, without_clusters
from symnmf.storage import HostMatrix, SparseMatrix

FORMAT = "symnmf-ranks-3"

#: Runs on a matrix without clusters, against which agreement is judged.
NULL_RUNS = 3

#: Entries of the widest factor below which runs at the same time wait for each other: measured.
TOGETHER_FROM = 20_000

#: What to do where time ran out.
ADVICE = "Raise max_time or try fewer ranks."

#: Called with the fits done and all there are to do; a true return value stops.
RankProgress = Callable[[int, int], Any]


@dataclass
class RankSearch:
    """The runs, each of them a path through all ranks, and the judgement on them.

    All draws come from ``seed``, and that from ``random_state`` where it is a number. Where it is
    ``settled``, a file with another is refused; otherwise the search goes on with the file's.
    """

    X: HostMatrix
    ranks: list[int]
    criteria: tuple[str, ...]
    n_runs: int
    n_folds: int
    seed: int
    random_state: int | None
    settled: bool
    settings: Settings
    callback: RankProgress | None
    loss: str = FROBENIUS
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

    def run(self, path: Path | None, workers: int, interrupt: Interrupt) -> None:
        """Do the runs that ``path`` does not hold, until all are done or something stops them."""
        if path is not None and path.is_file():
            self._resume(path)
        todo = [name for name in self.tasks if name not in self.done]
        self.fits = self._count(set(self.tasks) - set(todo))
        if self.X.shape[0] * self.ranks[-1] < TOGETHER_FROM:
            workers = 1
        with Pool(workers) as pool:

            def one(name: str) -> None:
                factors = self._path(
                    name, lambda: self.halt.is_set() or bool(interrupt) or calls.out_of_time()
                )
                if factors is None:
                    return
                with self.lock:
                    self.done[name] = factors
                    if path is not None:
                        self._keep(path)

            list(pool.map(calls.in_this_call(one), todo))

    def ranks_of(self, name: str) -> list[int]:
        """Return the ranks of a run: fewer without clusters, where little depends on the rank."""
        return spaced(self.ranks) if name.startswith("null") else self.ranks

    def _count(self, names: Iterable[str]) -> int:
        return sum(len(self.ranks_of(name)) for name in names)

    def _path(self, name: str, stop: Callable[[], bool]) -> np.ndarray | None:
        """Return the factors of all ranks side by side, or None where it was stopped."""
        fold = self.tasks[name]
        source = self.null if name.startswith("null") else self.X
        alone = source.with_threads(Threads(1))
        hidden: Objective
        if self.loss == FROBENIUS:
            hidden = hide(alone, fold.rows, fold.columns)
        else:
            hidden = likelihood_without(alone, self.loss, fold.rows, fold.columns)
        ranks, factors = self.ranks_of(name), []
        for result in rank_path(Problem.of(hidden), ranks, stop, self.settings):
            factors.append(result.U)
            with self.lock:
                self.fits += 1
                if self.callback is not None and self.callback(self.fits, self._count(self.tasks)):
                    self.halt.set()
        if len(factors) < len(ranks):
            return None
        return np.hstack(factors).astype(np.float32)

    def _identity(self) -> dict[str, Any]:
        return {
            "X": self.X.digest(),
            "ranks": self.ranks,
            "n_runs": self.n_runs,
            "n_folds": self.n_folds,
            "solver": repr(self.settings.solver),
            **({} if self.loss == FROBENIUS else {"loss": self.loss}),
            "tol": self.settings.limits.tol,
            "max_iter": self.settings.limits.max_iter,
            "random_state": self.random_state,
        }

    def _keep(self, path: Path) -> None:
        write_archive(
            path,
            {
                "format": np.array(FORMAT),
                "identity": np.array(json.dumps(self._identity())),
                "seed": np.array(str(self.seed)),
                **self.done,
            },
        )

    def _resume(self, path: Path) -> None:
        stored = read_archive(path, FORMAT)
        identity = self._identity()
        if not self.settled:
            del identity["random_state"]
        try:
            found = json.loads(str(stored["identity"]))
            check_identity(path, found, identity, "search")
            self.seed, self.random_state = int(str(stored["seed"])), found["random_state"]
            self.__post_init__()
        except InputError:
            raise
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{path} is not a whole checkpoint of a search ({error}).") from error
        self.done = {name: stored[name] for name in self.tasks if name in stored}
        for name, factors in self.done.items():
            shape = self.X.shape[0], sum(self.ranks_of(name))
            whole = factors.shape == shape and factors.dtype == np.float32
            if not (whole and np.isfinite(factors).all() and (factors >= 0).all()):
                raise InputError(
                    f"{path} is not a whole checkpoint of a search ({name} is not the factors of "
                    f"its ranks)."
                )

    # --- judging

    def factors(self, name: str, rank: int) -> np.ndarray:
        """Return U of one run."""
        before = sum(other for other in self.ranks_of(name) if other < rank)
        return self.done[name][:, before : before + rank].astype(np.float64)

    def judge(self, interrupt: Interrupt) -> RankSelection:
        """Return what the runs that are done say; an interrupt leaves out what is not known yet."""
        table: dict[str, np.ndarray] = {"rank": np.array(self.ranks)}
        choices: dict[str, Choice] = {}
        heeded = bool(interrupt)  # it stopped the runs; what they say is still worth knowing

        def stop() -> bool:
            return bool(interrupt) and not heeded

        runs = [name for name in self.tasks if name.startswith("run") and name in self.done]
        nulls = [name for name in self.tasks if name.startswith("null") and name in self.done]
        held = [name for name in runs if int(name.split("-")[1]) < self.n_folds]
        if "heldout" in self.criteria and len(held) > 1:
            choices["heldout"] = self._heldout(held, table)
        if "stability" in self.criteria and len(runs) > 1 and len(nulls) > 1:
            stability = self._stability(runs[: self.n_runs], nulls, table, stop)
            if stability is not None:
                choices["stability"] = stability
        bethe = None
        if "eigengap" in self.criteria and not stop():
            values = normalised_eigenvalues(self.X, self.ranks[-1] + 1)
            table["eigenvalue"] = np.array([_at(values, rank - 1) for rank in self.ranks])
            table["gap"] = table["eigenvalue"] - [_at(values, rank) for rank in self.ranks]
            choices["eigengap"] = by_eigengap(self.ranks, values)
            bethe = bethe_hessian_count(self.X, 2 * self.ranks[-1])
        undone = [name for name in self.tasks if name not in self.done]
        partial = self._partial(choices, undone)
        for name in partial & set(choices):
            choices[name] = dataclasses.replace(choices[name], so_far=True)
        heldout = choices.get("heldout")
        decided = heldout is not None and not (heldout.so_far or heldout.at_edge)
        if not partial or decided:
            rank, reason = recommend(choices, self.ranks)
        else:
            what = (
                "runs that decide are not done" if undone else "criteria that decide are not known"
            )
            rank, reason = None, f"The {what}."
        found = RankSelection(rank, reason, choices, table, None, bethe, settings=self._told())
        total = self._count(self.tasks)
        if undone:
            when = f"after {self.fits} of {total} fits"
            if decided or heeded or self.halt.is_set():
                return found.stopped(when)
            reason = f"No recommendation: time ran out {when}. {ADVICE}"
            return dataclasses.replace(found, status="stopped", reason=reason)
        if partial:
            return found.stopped(f"after all {total} fits, before they were judged")
        return found.stopped("before the final fit") if interrupt else found

    def _partial(self, choices: dict[str, Choice], undone: list[str]) -> set[str]:
        """Return the criteria that do not rest on all the runs they are meant to rest on."""
        partial = {name for name in self.criteria if name not in choices}
        if any(name.startswith("null") or int(name[4:]) < self.n_runs for name in undone):
            partial |= {"stability"} & set(self.criteria)
        if any(name.startswith("run") and int(name[4:]) < self.n_folds for name in undone):
            partial |= {"heldout"} & set(self.criteria)
        return partial

    def _told(self) -> dict[str, Any]:
        return {
            "ranks": [rank for rank in self.ranks if rank > 1],
            "n_folds": self.n_folds,
            "n_runs": self.n_runs,
            "random_state": self.random_state,
            "loss": self.loss,
            "fits_done": self.fits,
            "fits": self._count(self.tasks),
        }

    def _errors(self, runs: list[str]) -> np.ndarray:
        """The error on hidden pairs of each run and rank."""
        if self.loss == FROBENIUS:
            return np.array(
                [[self.tasks[run].error(self.factors(run, k)) for k in self.ranks] for run in runs]
            )
        edges = self.loss == "bernoulli"
        left = [
            [
                self.tasks[run].deviance_left(self.factors(run, k), bernoulli=edges)
                for k in self.ranks
            ]
            for run in runs
        ]
        return calibrated(np.array(left))

    def _heldout(self, runs: list[str], table: dict[str, np.ndarray]) -> Choice:
        errors = self._errors(runs)
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

    def _stability(
        self,
        runs: list[str],
        nulls: list[str],
        table: dict[str, np.ndarray],
        stop: Callable[[], bool],
    ) -> Choice | None:
        rng = np.random.default_rng(self.seed)
        columns: dict[str, np.ndarray] = {}
        for prefix, names in (("", runs), ("null_", nulls)):
            ranks = self.ranks_of(names[0])
            scores = []
            for rank in ranks:
                if stop():
                    return None
                scores.append(self._agreement(names, rank, rng))
            for name in scores[0]:
                known = [score[name] for score in scores]
                columns[prefix + name] = np.interp(self.ranks, ranks, known)
        table |= columns
        excess = table["ami"] - table["null_ami"]
        excess[np.array(self.ranks) == 1] = 0.0  # one cluster is always found again
        table["ami_excess"] = excess
        return by_stability(self.ranks, excess, table["ami_spread"] + table["null_ami_spread"])

    def _agreement(self, names: list[str], rank: int, rng: np.random.Generator) -> dict[str, float]:
        factors = [self.factors(name, rank) for name in names]
        labels, cosines = agreements(factors)
        pac, dispersion = consensus(factors, rng)
        return {
            "ami": float(labels.mean()),
            "ami_spread": float(labels.std() / np.sqrt(len(names))),
            "cosine": float(cosines.mean()),
            "pac": pac,
            "dispersion": dispersion,
        }


def spaced(ranks: list[int]) -> list[int]:
    """Return some of the ranks, from the last down, each at most two thirds of the one above.

    What a matrix without clusters says changes slowly with the rank, so the others lie between.
    """
    chosen = [ranks[-1]]
    for rank in reversed(ranks[:-1]):
        if 3 * rank <= 2 * chosen[0]:
            chosen.insert(0, rank)
    return chosen


def _at(values: np.ndarray, place: int) -> float:
    return float(values[place]) if place < len(values) else float("nan")
