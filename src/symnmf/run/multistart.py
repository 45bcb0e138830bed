"""Several starts, the best kept: what the estimator and ``communities`` share."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from symnmf import calls
from symnmf.arguments import check_options
from symnmf.bars import Watcher
from symnmf.objectives import Objective
from symnmf.ops import HostOps
from symnmf.outputs import check_output
from symnmf.parallel import Threads
from symnmf.run.checkpoint import Checkpoint
from symnmf.run.interrupts import watching
from symnmf.run.problem import Problem
from symnmf.run.result import Result, Snapshot
from symnmf.run.settings import Limits, Settings
from symnmf.run.solving import solve
from symnmf.run.spectral import Basis, SpectralStarts
from symnmf.run.start import (
    AUTO,
    SPECTRAL,
    RandomState,
    as_generator,
    as_start,
    origin_of,
)
from symnmf.state import Point
from symnmf.storage.wrapping import torch_device

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

    ``best`` is one of the ``finished``, the earlier of equal ones. ``bound`` is the error that no U
    of this rank comes below, about, from the leading eigenvalues; NaN where they were not computed.
    """

    best: Result
    finished: tuple[Result, ...]
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


@dataclass(frozen=True, eq=False)
class Plan:
    """How X is to be factorized from ``n_init`` starts; checked when it is made.

    ``basis`` are the leading eigenvectors of X, if they are known.
    """

    rank: int
    settings: Settings = field(default_factory=Settings.of)
    n_init: int = 1
    init: Any = AUTO
    random_state: RandomState = None
    n_jobs: int | None = None
    device: Any = None
    checkpoint: str | Path | None = None
    progress: Watcher | None = None
    basis: Basis | None = None

    @classmethod
    def of(cls, rank: int, options: Mapping[str, Any]) -> Plan:
        """Return the plan that options of an entry point describe."""
        limits = {each.name: options[each.name] for each in fields(Limits) if each.name in options}
        own = {each.name: options[each.name] for each in fields(cls) if each.name in options}
        settings = Settings.of(options["solver"], options["coupling"], **limits)
        return cls(**own | {"rank": rank, "settings": settings, "progress": None, "basis": None})

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

    @property
    def from_eigenvectors(self) -> bool:
        """Whether the starts are turned eigenvectors, which the seed changes little."""
        return isinstance(self.init, str) and self.init in (SPECTRAL, AUTO)

    def problem(self, X: Any, **observing: Any) -> Problem:
        """Return X, checked, where and on as many threads as this plan says."""
        return Problem.of(X, n_jobs=self.n_jobs, device=self.device, **observing)

    def search(self, X: Any) -> Search:
        """Run the starts, and keep the result with the smallest value.

        Ctrl-C (and SIGTERM where a checkpoint is kept) ends the starts under way and leaves out
        the others; the status is then "stopped".
        """
        with calls.opened(self.settings.limits.max_time) as call:
            with calls.timed("check"):
                problem = (X if isinstance(X, Problem) else self.problem(X)).for_rank(self.rank)
            settings = self.settings.checked(problem.objective)
            if self.from_eigenvectors and not problem.objective.spectral:
                search = replace(self, init="scaled-random")._run(problem, settings, call)
            else:
                search = self._run(problem, settings, call)
            return replace(search, best=search.best.of_call(call))

    def _run(self, problem: Problem, settings: Settings, call: calls.Call) -> Search:
        f = problem.objective
        X: Any = problem.X
        apart, workers = self._apart(f), 1
        if apart:
            workers = min(self.starts, Threads(self.n_jobs).count)
        seed = self.random_state
        if seed is None:  # short enough to be noted and typed again
            seed = int(np.random.default_rng().integers(2**31))
        first = as_generator(seed)
        generators = [first, *first.spawn(self.starts - 1)] if self.starts > 1 else [first]
        spectral = SpectralStarts(self.basis)
        settings = settings.within(max_time=self._seconds(workers))

        def run(start: int) -> Result | None:
            if start and calls.out_of_time():
                return None

            def callback(now: Snapshot) -> bool:
                if self.progress and self.progress(start, now):
                    call.stopping = True  # the starts beside this one stop too
                return call.stopped

            return solve(
                problem,
                self.rank,
                settings,
                init=spectral.start(start) if self.from_eigenvectors else self.init,
                random_state=generators[start],
                callback=callback,
                checkpoint=self._kept(start),
            )

        results: list[Result] = []
        rounds = [range(self.starts)]
        if self.from_eigenvectors and self.starts > 1:
            rounds = [range(1), range(1, self.starts)]
        # signals reach the main thread only, so starts in others learn of them by the call
        signals = [signal.SIGINT, *([signal.SIGTERM] if self.checkpoint else [])]
        if workers == 1:
            signals = []  # which each start watches for
        with watching(call, *signals):
            for group in rounds:
                if apart and (len(group) > 1 or self._small(f)):
                    # one thread each wastes none on waiting, and makes the result independent of
                    # n_jobs
                    problem = problem.with_threads(Threads(1))
                results += (result for result in _in_order(run, group, workers) if result)
                if _stopped(results) or calls.out_of_time():
                    break
                if len(rounds) > 1:
                    if not spectral.can_prepare(X, int(self.rank)):
                        break
                    spectral.prepare(X, int(self.rank))  # which a resumed start did not need
                    possible = 1.0 - spectral.least_error(X)
                    if not 1.0 - results[0].error < SPECTRAL_SHARE_TO_STOP * possible:
                        break
        # a diverged start has no value to compare
        best = min(results, key=lambda one: one.value if np.isfinite(one.value) else np.inf)
        if call.stopped or _stopped(results):
            best = replace(best, status="stopped")
        best = _without_remainders(best, problem).as_given(problem.given)
        return Search(best, tuple(results), seed, spectral.least_error(X))

    def _kept(self, start: int) -> Checkpoint | None:
        """Return where a start is saved, and resumed from if it was saved before."""
        if self.checkpoint is None:
            return None
        path = Path(self.checkpoint)
        file = f"{path.stem}.start-{start}{path.suffix}" if start else path.name
        return Checkpoint(
            path.with_name(file), start=start, **origin_of(self.init, self.random_state)
        )

    def _seconds(self, at_once: int) -> float | None:
        seconds = self.settings.limits.max_time
        if seconds is None:
            return None
        # what a graph or the check of X has taken is gone
        return max(0.0, min(seconds, calls.seconds_left())) / -(-self.starts // at_once)

    def _apart(self, f: Objective) -> bool:
        """Whether the starts run at the same time, on one thread each."""
        fits = f.shape[0] * int(self.rank) * f.dtype.itemsize <= APART_UP_TO
        enough = fits and self.starts >= Threads(self.n_jobs).count
        return isinstance(f.ops, HostOps) and (enough or self._small(f))

    def _small(self, f: Objective) -> bool:
        """Whether an iteration is too small for several threads."""
        return f.storage.cost(int(self.rank)) < SMALL_PRODUCT


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


def _stopped(results: list[Result]) -> bool:
    return any(result.status == "stopped" for result in results)


def _without_remainders(result: Result, problem: Problem) -> Result:
    """Set the rows of the factors to 0 where the row of X is: their best fit.

    Split methods only come near to it, and the share of such a remainder would be arbitrary.
    """
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
    result = replace(result, U=U, V=V, others=tuple(others))
    whole = Point(f.ops, f.ops.put(result.factors[0]))
    misfit = f.misfit(whole)
    value = 0.5 * misfit + f.added(whole)
    return replace(result, error=f.relative(misfit), value=value)
