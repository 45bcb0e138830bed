"""Several starts, the best kept: what the estimator and ``communities`` share."""

from __future__ import annotations

import dataclasses
import functools
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symnmf import calls
from symnmf.arguments import check_options
from symnmf.objectives import Objective
from symnmf.ops import HostOps
from symnmf.outputs import check_output
from symnmf.parallel import Threads
from symnmf.run.checkpoint import Checkpointing
from symnmf.run.fits import open_fit
from symnmf.run.interrupts import Interrupt, watching
from symnmf.run.problem import Problem
from symnmf.run.result import Result, Snapshot
from symnmf.run.settings import Settings
from symnmf.run.solving import solve
from symnmf.run.spectral import Basis, SpectralStarts
from symnmf.run.start import (
    AUTO,
    RandomState,
    as_generator,
    as_start,
    drawn_seed,
    origin_of,
)
from symnmf.state import Point
from symnmf.storage.wrapping import torch_device

#: Called with the number of the start and its latest snapshot; a true return value stops them all.
StartProgress = Callable[[int, Snapshot], Any]

SPECTRAL = "spectral"

#: Part of what the leading eigenvectors explain that makes more starts pointless: on twenty data
#: sets the best of twelve others then was lower by at most a ten thousandth of the error.
SPECTRAL_SHARE_TO_STOP = 0.97

#: Seconds that a product takes on one thread, below which several would mostly wait.
SMALL_PRODUCT = 1e-3

#: Bytes of a factor beyond which starts at the same time would take each other's memory traffic.
APART_UP_TO = 32 * 2**20


@dataclass(frozen=True, eq=False)
class Search:
    """What several starts came to.

    Attributes
    ----------
    best : Result
        The one with the smallest value of what is minimised.
    finished : tuple of Result
        Every start that ran to its end, the best among them.
    begun : int
        Starts that were begun; those that could be seen to end above the best were given up.
    seed : int, Generator or RandomState
        What all of them came from.
    bound : float
        The error that no U of this rank comes below, about, from the leading eigenvalues; NaN
        where they were not computed.
    """

    best: Result
    finished: tuple[Result, ...]
    begun: int
    seed: RandomState
    bound: float = float("nan")

    @functools.cached_property
    def gap(self) -> float:
        """By which part of itself the best error could be lower at most, whatever U is chosen.

        NaN where no bound is known, and where X is too large for a quick one.
        """
        best = self.best
        if best.problem is None or not np.isfinite(best.error):
            return float("nan")
        from symnmf.run.bounding import quick_bound  # loads much that other calls do not need

        bound = quick_bound(best.problem, best)
        return float("nan") if bound is None else bound.gap

    @property
    def errors(self) -> np.ndarray:
        """The error of every start that ran to its end, in the order of the starts."""
        return np.array([result.error for result in self.finished])


@dataclass(frozen=True)
class Plan:
    """How many starts, from where, by which settings; everything but the matrix.

    It is checked when it is made, before a graph is built or a file is read.

    The first start is the one ``factorize(..., random_state=random_state)`` starts from, and
    raising ``n_init`` adds starts without changing the earlier ones.

    No U does better than the leading eigenvectors of X themselves. Where the first start from these
    has 97% of what they explain, the others are left out; that depends on errors alone, not on
    clocks or cores.

    Starts run one per core if there is one for each core or an iteration is too small for
    several, unless the factors are large. All others run one after another.

    Attributes
    ----------
    rank : int
        Columns of U.
    settings : Settings
        The method and its limits. ``max_time`` bounds the whole search: starts that run at the
        same time have the same seconds, and others an equal share of them.
    n_init : int
        Starts, at most; a given U_0 always leads to the same place and is run once.
    checkpoint : path or None
        A small file that says which fit this is; the start number i keeps its state beside it
        (``fit.npz`` and ``fit.<drawn for this fit>.start-i.npz``), so that no two fits have files
        in common and none ever has to be removed.
    basis : Basis or None
        The leading eigenvectors of X, where they are known already.
    """

    rank: int
    settings: Settings = dataclasses.field(default_factory=Settings.of)
    n_init: int = 1
    init: Any = AUTO
    random_state: RandomState = None
    n_jobs: int | None = None
    device: Any = None
    checkpoint: str | Path | None = None
    progress: StartProgress | None = None
    basis: Basis | None = None

    def __post_init__(self) -> None:
        check_options({"n_init": self.n_init})
        object.__setattr__(self, "init", as_start(self.init))
        Threads(self.n_jobs)
        if self.device is not None:
            torch_device(None, self.device)
        if self.checkpoint is not None:
            check_output(self.checkpoint, "checkpoint")

    @property
    def starts(self) -> int:
        """How many starts are worth running."""
        given = not isinstance(self.init, str) and not callable(self.init)
        return 1 if given else int(self.n_init)

    def problem(self, X: Any, **observing: Any) -> Problem:
        """Return X, checked, where and on as many threads as this plan says."""
        return Problem.of(X, n_jobs=self.n_jobs, device=self.device, **observing)

    def best(self, X: Any) -> Result:
        """Return the result with the smallest value; the earlier of equal ones."""
        return self.search(X).best

    def search(self, X: Any) -> Search:
        """Run the starts.

        Ctrl-C (and SIGTERM where a checkpoint is kept) ends the starts under way and leaves out
        the others; the status is then "stopped".

        Rows of U and V whose row of X is zero are exactly zero: that is their best fit, which
        split methods only come near to, and the share of such a remainder would be arbitrary.
        """
        with calls.opened(self.settings.limits.max_time) as call:
            with calls.timed("check"):
                problem = (X if isinstance(X, Problem) else self.problem(X)).for_rank(self.rank)
            found = self._run(problem, self.settings.checked(problem.objective))
            return dataclasses.replace(found, best=found.best.of_call(call))

    def _run(self, problem: Problem, settings: Settings) -> Search:
        f = problem.objective
        if self.from_eigenvectors and not f.spectral:
            return dataclasses.replace(self, init="scaled-random")._run(problem, settings)
        workers = self._workers(f)
        kept, seed = self._opened(problem)
        generators = _generators(seed, self.starts)
        halt, spectral = threading.Event(), SpectralStarts(self.basis)
        settings = settings.within(max_time=self._seconds(workers))
        signals = [signal.SIGINT, *([signal.SIGTERM] if kept else [])] if workers > 1 else []

        def run(start: int) -> Result | None:
            if start and (interrupt or halt.is_set() or calls.out_of_time()):
                return None
            return solve(
                problem,
                self.rank,
                settings,
                init=spectral(start) if self.from_eigenvectors else self.init,
                random_state=generators[start],
                callback=self._callback(start, interrupt, halt),
                checkpointing=kept(start) if kept else None,
            )

        results: list[Result | None] = []
        # signals reach the main thread only, so starts in others learn of them by callback
        with watching(*signals) as interrupt:
            for group in self._rounds():
                if self._apart(f) and (len(group) > 1 or self._small(f)):
                    # one thread each wastes none on waiting, and makes the result independent of
                    # n_jobs
                    problem = problem.with_threads(Threads(1))
                results += _in_order(run, group, workers)
                if interrupt or halt.is_set() or _stopped(results) or calls.out_of_time():
                    break
                if self.from_eigenvectors:
                    # a resumed start had no need of them
                    if not spectral.can_prepare(f.storage, int(self.rank)):
                        break
                    spectral.prepare(f.storage, int(self.rank))
                    first = results[0]
                    if first is None or spectral.explained(first.error) >= SPECTRAL_SHARE_TO_STOP:
                        break
        ended = bool(interrupt) or halt.is_set()
        best = _without_remainders(_best(results, ended), problem).as_given(problem.given)
        finished = tuple(result for result in results if result is not None)
        return Search(best, finished, len(results), seed, spectral.bound)

    def _opened(
        self, problem: Problem
    ) -> tuple[Callable[[int], Checkpointing] | None, RandomState]:
        """Return how a start is kept or resumed, and the seed of them all."""
        if self.checkpoint is None:
            return None, drawn_seed() if self.random_state is None else self.random_state
        identity = {"X": problem.digest, "n_clusters": int(self.rank)}
        identity |= origin_of(self.init, self.random_state)
        fit = open_fit(Path(self.checkpoint), identity, self.random_state)
        return fit.checkpointing, fit.seed

    @property
    def from_eigenvectors(self) -> bool:
        """Whether the starts are turned eigenvectors, which the seed changes little."""
        return isinstance(self.init, str) and self.init in (SPECTRAL, AUTO)

    def _rounds(self) -> list[range]:
        if self.from_eigenvectors and self.starts > 1:
            return [range(1), range(1, self.starts)]
        return [range(self.starts)]

    def _seconds(self, at_once: int) -> float | None:
        seconds = self.settings.limits.max_time
        if seconds is None:
            return None
        # what a graph or the check of X has taken is gone
        return max(0.0, min(seconds, calls.seconds_left())) / -(-self.starts // at_once)

    def _workers(self, f: Objective) -> int:
        """Return how many starts run at the same time."""
        return min(self.starts, Threads(self.n_jobs).count) if self._apart(f) else 1

    def _apart(self, f: Objective) -> bool:
        """Whether the starts run at the same time, on one thread each."""
        if not isinstance(f.ops, HostOps) or self._small(f):
            return isinstance(f.ops, HostOps)
        factor = f.shape[0] * int(self.rank) * f.dtype.itemsize
        return self.starts >= Threads(self.n_jobs).count and factor <= APART_UP_TO

    def _small(self, f: Objective) -> bool:
        """Whether an iteration is too small for several threads."""
        return f.cost(int(self.rank)) < SMALL_PRODUCT

    def _callback(
        self, start: int, interrupt: Interrupt, halt: threading.Event
    ) -> Callable[[Snapshot], bool]:
        def callback(now: Snapshot) -> bool:
            if self.progress and self.progress(start, now):
                halt.set()  # the fit is to stop, so the starts beside this one stop too
            return halt.is_set() or bool(interrupt)

        return callback


def _generators(random_state: RandomState, count: int) -> list[np.random.Generator]:
    first = as_generator(random_state)
    return [first, *(first.spawn(count - 1) if count > 1 else [])]


def _in_order(
    run: Callable[[int], Result | None], starts: range, workers: int
) -> Iterator[Result | None]:
    if workers == 1:
        for start in starts:
            result = run(start)
            yield result
            if result is not None and result.status == "stopped":
                return
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(calls.in_this_call(run), starts)


def _stopped(results: list[Result | None]) -> bool:
    return any(result is not None and result.status == "stopped" for result in results)


def _best(results: list[Result | None], ended: bool) -> Result:
    done = [result for result in results if result is not None]
    # a diverged start has no value to compare
    best = min(done, key=lambda result: result.value if np.isfinite(result.value) else np.inf)
    return dataclasses.replace(best, status="stopped") if ended or _stopped(results) else best


def _without_remainders(result: Result, problem: Problem) -> Result:
    """Set the rows of the factors to 0 where the row of X is."""
    f = problem.objective
    if not f.unit_weights:  # rows of which nothing is observed are 0 from the start
        return result
    # positive, and such that entries of both signs do not cancel: only a row of zeros gives 0
    probe = 0.5 + np.random.default_rng(0).random((f.shape[0], 1))
    sums = f.ops.get(f.storage.matmul(f.ops.put(probe.astype(f.dtype))))
    alone = sums[:, 0] == 0
    if not result.U[alone[: len(result.U)]].any():
        return result
    kept = ~alone[: len(result.U), None]
    U, V, *others = (factor * kept for factor in (result.U, result.V, *result.others))
    result = dataclasses.replace(result, U=U, V=V, others=tuple(others))
    whole = Point(f.ops, f.ops.put(result.factors[0]))
    misfit = f.misfit(whole)
    value = 0.5 * misfit + f.added(whole)
    return dataclasses.replace(result, error=misfit / f.sqnorm, value=value)
