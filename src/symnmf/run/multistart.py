"""Several starts, the best kept: what the estimator and ``communities`` share."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import secrets
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symnmf import errors
from symnmf.archives import clear_leftovers, read_archive, write_archive
from symnmf.errors import InputError
from symnmf.matrices import SymmetricMatrix, observed
from symnmf.matrices.observing import OBSERVING
from symnmf.matrices.shared import SharedReading
from symnmf.matrices.wrapping import torch_device
from symnmf.naming import lookup
from symnmf.parallel import Threads
from symnmf.penalty import as_penalty
from symnmf.run.checkpoint import OwnedPath, errors_so_far
from symnmf.run.interrupts import Interrupt, watching
from symnmf.run.loop import Limits, Snapshot, factorize
from symnmf.run.race import Race
from symnmf.run.result import Result
from symnmf.run.spectral import Basis, SpectralStarts
from symnmf.run.start import STARTS, RandomState, as_generator, drawn_seed
from symnmf.run.units import Units
from symnmf.solvers import as_solver

#: Called with the number of the start and its latest snapshot; a true return value stops them all.
Progress = Callable[[int, Snapshot], Any]

#: What ``n_init`` and ``init`` are where nobody says otherwise; see :class:`symnmf.SymNMF` for the
#: reasons.
DEFAULT_STARTS = 5
SPECTRAL = "spectral"
DEFAULT_INIT = SPECTRAL

FORMAT = "symnmf-starts-2"

#: Part of what the leading eigenvectors explain that makes more starts pointless: on thirteen data
#: sets the best of them gained less than a tenth of the rest.
ENOUGH = 0.99

#: Bytes of a factor beyond which starts at the same time would take each other's memory traffic.
APART_UP_TO = 32 * 2**20


@dataclass(frozen=True, eq=False)
class Search:
    """What several starts came to.

    Attributes
    ----------
    best : Result
        The one with the smallest error.
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

    @property
    def errors(self) -> np.ndarray:
        """The error of every start that ran to its end, in the order of the starts."""
        return np.array([result.error for result in self.finished])


@dataclass(frozen=True)
class Plan:
    """How many starts, from where, under which limits; everything but the matrix.

    The first start is the one ``factorize(..., random_state=random_state)`` sets out from, and
    raising ``n_init`` adds starts without changing the earlier ones (but for rounding where
    several share one reading of X).

    Starts from eigenvectors run as a race. No U does better than the eigenvectors themselves;
    where the first start has 99% of what they explain, the others are left out. Else the others
    run, each until it can be seen to end above the first. Which starts run and where they stop
    depends on errors alone, not on clocks or cores.

    Starts run one per core where there is one for each core or an iteration is too small for
    several, unless the factors are large. On a dense X of at least 2000 rows and a rank up to 4
    an iteration is mostly the reading of X, and the starts share it (without a checkpoint only,
    since which starts are under way changes the rounding). All others run one after another.

    Attributes
    ----------
    rank : int
        Columns of U.
    n_init : int
        Starts, at most; a given U_0 and "nndsvd" always lead to the same place and are run once.
    max_time : float or None
        Most seconds in the solver for all starts together; those that run at the same time have
        the same seconds, and others an equal share.
    checkpoint : path or None
        A small file that says which fit this is; the start number i keeps its state beside it
        (``fit.npz`` and ``fit.<drawn for this fit>.start-i.npz``), so that no two fits have files
        in common and none ever has to be removed.
    basis : Basis or None
        The leading eigenvectors of X, where they are known already.
    options : dict
        Further options of :func:`symnmf.factorize`.
    """

    rank: int
    n_init: int = DEFAULT_STARTS
    init: Any = DEFAULT_INIT
    random_state: RandomState = None
    max_time: float | None = None
    n_jobs: int | None = None
    device: Any = None
    checkpoint: str | Path | None = None
    checkpoint_every: float = 60.0
    progress: Progress | None = None
    basis: Basis | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def check(self) -> None:
        """Refuse settings that :func:`symnmf.factorize` would refuse, before a graph is built."""
        whole = isinstance(self.n_init, int | np.integer) and not isinstance(self.n_init, bool)
        if not whole or self.n_init < 1:
            raise InputError(f"n_init must be a whole number of at least 1, got {self.n_init!r}.")
        if isinstance(self.init, str):
            lookup(self.init, STARTS, "init")
        as_solver(
            self.options.get("solver", "auto"),
            inner_sweeps=self.options.get("inner_sweeps", 2),
        )
        if self.options.get("penalty") is not None:
            as_penalty(self.options["penalty"])
        Limits(
            self.options.get("tol", Limits.tol),
            self.options.get("max_iter", Limits.max_iter),
            self.max_time,
            self.options.get("record_every", Limits.record_every),
        )
        Threads(self.n_jobs)
        if self.device is not None:
            torch_device(None, self.device)
        self._check_checkpoint()

    def _check_checkpoint(self) -> None:
        if self.checkpoint is None:
            return
        if not isinstance(self.checkpoint, str | os.PathLike):
            raise InputError(
                f"checkpoint must be the path of a file or None, got {self.checkpoint!r}."
            )
        path = Path(self.checkpoint)
        if not path.parent.is_dir():
            raise InputError(
                f"checkpoint={str(path)!r} cannot be written, since there is no folder "
                f"{str(path.parent)!r}; make it first, or name a file elsewhere."
            )
        if path.is_dir():
            raise InputError(
                f"checkpoint={str(path)!r} is a folder; name a file, such as "
                f"{str(path / 'fit.npz')!r}."
            )

    @property
    def starts(self) -> int:
        """How many starts are worth running."""
        fixed = self.init == "nndsvd" if isinstance(self.init, str) else not callable(self.init)
        return 1 if fixed else int(self.n_init)

    def best(self, X: Any) -> Result:
        """Return the result with the smallest fitting error E; the earlier of equal ones."""
        return self.search(X).best

    def search(self, X: Any) -> Search:
        """Run the starts.

        Ctrl-C (and SIGTERM where a checkpoint is kept) ends the starts under way and leaves out
        the others; the status is then "stopped".

        Rows of U and V whose row of X is zero are exactly zero: that is their best fit, which
        split methods only come near to, and the share of such a remainder would be arbitrary.
        """
        self.check()
        matrix = self._wrapped(X)
        options = {name: value for name, value in self.options.items() if name not in OBSERVING}
        # a tensor has no eigenvectors to turn; with gaps or negative entries they say little
        signed = bool(self.options.get("allow_negative"))
        if self._spectral and (matrix.order > 2 or matrix.weighted or signed):
            return dataclasses.replace(self, init="scaled-random").search(X)
        workers, seats = self._at_once(matrix)
        apart = seats == 1 and self._apart(matrix)
        kept, seed = self._persistence(matrix)
        generators = _generators(seed, self.starts)
        at_once = max(workers, seats)
        halt, race, spectral = threading.Event(), Race(), SpectralStarts(self.basis)
        seconds = self._seconds(at_once)
        signals = [signal.SIGINT, *([signal.SIGTERM] if kept else [])] if at_once > 1 else []

        def run(start: int, reading: SharedReading | None = None) -> Result | None:
            with nullcontext(matrix) if reading is None else reading.seat(start) as seen:
                if start and (interrupt or halt.is_set()):
                    return None
                keeping = kept(start) if kept else {}
                if keeping.get("resume"):
                    race.remember(start, errors_so_far(keeping["resume"].path))
                result = factorize(
                    seen,
                    self.rank,
                    init=spectral(start) if self._spectral else self.init,
                    random_state=generators[start],
                    max_time=seconds,
                    callback=self._callback(start, interrupt, halt, race),
                    **keeping,
                    **options,
                )
                return None if race.lost(start) else result

        results: list[Result | None] = []
        # signals reach the main thread only, so starts in others learn of them by callback
        with _quiet(), watching(*signals) as interrupt:
            for group in self._rounds():
                if apart and (len(group) > 1 or matrix.threads_for(int(self.rank)) == 1):
                    # one thread each wastes none on waiting, and makes the bits independent of
                    # n_jobs
                    matrix = matrix.on(Threads(1))
                if seats > 1:
                    results += _sharing(run, group, seats, matrix)
                else:
                    results += _in_order(run, group, workers)
                if interrupt or halt.is_set() or _stopped(results):
                    break
                if self._spectral:
                    race.open(results)
                    spectral.prepare(matrix, int(self.rank))  # a resumed start had no need of them
                    if results[0] is not None and spectral.explained(results[0].error) >= ENOUGH:
                        break
        ended = bool(interrupt) or halt.is_set()
        best = _without_remainders(_best(results, ended), matrix).as_given(X)
        finished = tuple(result for result in results if result is not None)
        return Search(best, finished, len(results), seed, spectral.bound)

    @property
    def _spectral(self) -> bool:
        return isinstance(self.init, str) and self.init == SPECTRAL

    def _rounds(self) -> list[range]:
        if self._spectral and self.starts > 1:
            return [range(1), range(1, self.starts)]
        return [range(self.starts)]

    def seconds_each(self, X: Any) -> float | None:
        """Return the most seconds one start may take: all at the same time have the same ones."""
        return (
            None if self.max_time is None else self._seconds(max(self._at_once(self._wrapped(X))))
        )

    def _seconds(self, at_once: int) -> float | None:
        return None if self.max_time is None else self.max_time / -(-self.starts // at_once)

    def _wrapped(self, X: Any) -> SymmetricMatrix:
        told = {name: self.options[name] for name in OBSERVING if name in self.options}
        return observed(X, n_jobs=self.n_jobs, device=self.device, **told)

    def _at_once(self, matrix: SymmetricMatrix) -> tuple[int, int]:
        """Return how many starts run at the same time, and how many share one reading of X."""
        seats = self._seats(matrix)
        apart = seats == 1 and self._apart(matrix)
        return min(self.starts, Threads(self.n_jobs).count) if apart else 1, seats

    def _apart(self, matrix: SymmetricMatrix) -> bool:
        """Whether the starts run at the same time, on one thread each."""
        threads = matrix.threads_for(int(self.rank))
        if threads <= 1:  # none where another device does the work, else too small for more
            return threads == 1
        factor = matrix.shape[0] * int(self.rank) * matrix.dtype.itemsize
        return self.starts >= Threads(self.n_jobs).count and factor <= APART_UP_TO

    def _seats(self, matrix: SymmetricMatrix) -> int:
        """Return how many starts share one reading of X; 1 where that does not pay."""
        if self.checkpoint is not None or not 1 <= self.rank <= matrix.shape[0]:
            return 1
        seats = min(self.starts, matrix.starts_per_reading(int(self.rank)))
        # in other units each start would rescale a copy of X
        return seats if seats == 1 or Units.of(matrix) == Units() else 1

    def _callback(
        self, start: int, interrupt: Interrupt, halt: threading.Event, race: Race
    ) -> Callable[[Snapshot], bool]:
        def callback(now: Snapshot) -> bool:
            if self.progress and self.progress(start, now):
                halt.set()  # the fit is to stop, so the starts beside this one stop too
            return halt.is_set() or bool(interrupt) or race.see(start, now.error)

        return callback

    def _persistence(
        self, matrix: SymmetricMatrix
    ) -> tuple[Callable[[int], dict[str, Any]] | None, RandomState]:
        """Return what ``factorize`` needs to keep or resume a start, and the seed of them all."""
        if self.checkpoint is None:
            return None, drawn_seed() if self.random_state is None else self.random_state
        path = Path(self.checkpoint)
        identity: dict[str, Any] = {
            "X": matrix.digest(),
            "n_clusters": int(self.rank),
            "init": self._origin(),
        }
        if isinstance(self.random_state, int | np.integer):
            identity["random_state"] = int(self.random_state)
        if os.path.lexists(path):
            seed, fit = _stored_fit(path, identity)
        else:
            fit = secrets.token_hex(8)
            seed = identity.get("random_state", -1)
            if seed < 0:  # drawn once and kept, so that the starts are the same next time
                state = self.random_state
                seed = drawn_seed() if state is None else int(as_generator(state).integers(2**62))
            clear_leftovers(path)
            write_archive(
                path,
                {
                    "format": np.array(FORMAT),
                    "identity": np.array(json.dumps(identity)),
                    "seed": np.array(str(seed)),
                    "fit": np.array(fit),
                },
            )

        def keep(start: int) -> dict[str, Any]:
            name = f"{path.stem}.{fit}.start-{start}{path.suffix}"
            own = OwnedPath(path.with_name(name), f"start {start} of fit {fit}")
            return {
                "checkpoint": own,
                "checkpoint_every": self.checkpoint_every,
                "resume": own if own.path.is_file() else None,
            }

        return keep, seed

    def _origin(self) -> str:
        if isinstance(self.init, str):
            return self.init
        if callable(self.init):
            return str(getattr(self.init, "__qualname__", type(self.init).__qualname__))
        return hashlib.blake2b(np.ascontiguousarray(self.init).data, digest_size=8).hexdigest()


def _stored_fit(path: Path, identity: dict[str, Any]) -> tuple[int, str]:
    """Return the seed of a fit and the name its starts go by."""
    stored = read_archive(path, FORMAT)
    try:
        found, seed = json.loads(str(stored["identity"])), int(str(stored["seed"]))
        fit = str(stored["fit"])
        if not isinstance(found, dict) or seed < 0 or not re.fullmatch("[0-9a-f]{16}", fit):
            raise ValueError("its fields are not what a fit writes")
    except (KeyError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a whole checkpoint of a fit ({error}).") from error
    for key, value in identity.items():
        if found.get(key) != value:
            what = "X" if key == "X" else f"{key} {value!r} (it has {found.get(key)!r})"
            raise InputError(
                f"checkpoint {str(path)!r} belongs to another fit: it does not match this {what}; "
                f"pass what it was made with, or name another file to start afresh."
            )
    return seed, fit


def _generators(random_state: RandomState, count: int) -> list[np.random.Generator]:
    first = as_generator(random_state)
    return [first, *(first.spawn(count - 1) if count > 1 else [])]


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back the warnings of single starts; only the best one's end concerns the caller."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.ConvergenceWarning)
        yield


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
        with ThreadPoolExecutor(workers, thread_name_prefix="symnmf-start") as pool:
            yield from pool.map(run, starts)


def _sharing(
    run: Callable[[int, SharedReading], Result | None],
    starts: range,
    seats: int,
    X: SymmetricMatrix,
) -> Iterator[Result | None]:
    """Run ``seats`` starts at a time, the same ones from first to last, so that nothing is luck."""
    for first in range(starts.start, starts.stop, seats):
        group = range(first, min(first + seats, starts.stop))
        reading = SharedReading(X, len(group))
        with ThreadPoolExecutor(len(group), thread_name_prefix="symnmf-start") as pool:
            results = list(pool.map(lambda start, shared=reading: run(start, shared), group))
        yield from results
        if _stopped(results):
            return


def _stopped(results: list[Result | None]) -> bool:
    return any(result is not None and result.status == "stopped" for result in results)


def _best(results: list[Result | None], ended: bool) -> Result:
    done = [result for result in results if result is not None]
    # a diverged start has no error to compare
    best = min(done, key=lambda result: result.error if np.isfinite(result.error) else np.inf)
    return dataclasses.replace(best, status="stopped") if ended or _stopped(results) else best


def _without_remainders(result: Result, X: SymmetricMatrix) -> Result:
    """Set the rows of the factors to 0 where the row of X is."""
    if X.weighted:  # rows of which nothing is observed are 0 from the start
        return result
    # positive, and such that entries of both signs do not cancel: only a row of zeros gives 0
    probe = 0.5 + np.random.default_rng(0).random((X.shape[0], 1))
    sums = X.ops.get(X.matmul(X.ops.put(probe.astype(X.dtype))))
    alone = sums[:, 0] == 0
    if not alone.any():
        return result
    U, V, *others = (
        np.where(alone[:, None], 0, factor) for factor in (result.U, result.V, *result.others)
    )
    if X.order > 2:
        return dataclasses.replace(result, U=U, V=V, others=tuple(others))
    units = Units.of(X)
    sqnorm = units.matrix(X).sqnorm
    # the error falls by what the rows had of U U^T: nothing to speak of after convergence
    lost, kept = (units.factor_in(factor).astype(np.float64) for factor in (result.U[alone], U))
    share = np.vdot(lost.T @ lost, lost.T @ lost + 2 * (kept.T @ kept)) / (sqnorm or np.inf)
    return dataclasses.replace(result, U=U, V=V, error=max(result.error - float(share), 0.0))


def warn_unless_converged(result: Result, tol: float, starts: int, *, stacklevel: int) -> None:
    """Say in one sentence that the best start ended early, where the caller should know."""
    name = result.solver if starts == 1 else f"the best of {starts} starts of {result.solver}"
    limit = result.status
    if limit in ("max_iter", "max_time") and tol > 0.0 and (result.n_iter or limit == "max_time"):
        reached = result.history["stationarity"][-1]
        message = (
            f"{name} did not converge in {result.n_iter} iterations (stationarity {reached:.2g}, "
            f"tol {tol:.2g}); raise {limit} or tol."
        )
    elif result.status == "diverged":
        message = f"{name} diverged after {result.n_iter} iterations; use another solver or init."
    else:
        return
    warnings.warn(message, errors.ConvergenceWarning, stacklevel=stacklevel + 1)
