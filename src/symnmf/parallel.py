"""The one thread pool: every compiled kernel and every dense product runs on it, by row chunks.

BLAS is held to one thread while a factorization runs and the rows of X are shared out here
instead. Two pools that both want all cores spin against each other: OpenBLAS beside numba's own
made small iterations 60 times slower in a trial.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from symnmf.errors import InputError

T = TypeVar("T")

Bounds = tuple[int, int]

#: Below this many floating point operations a second thread costs more than it brings.
SMALLEST_SHARE = 1_500_000

#: Parts for each thread where a part is worth so many of the smallest.
SPARE_PARTS, LONG = 4, 4


def available_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


class _Job:
    """Parts of one piece of work, taken one after another by whoever is free."""

    def __init__(self, task: Callable[[int, int], Any], bounds: Sequence[Bounds]) -> None:
        self.task, self.bounds = task, bounds
        self.results: list[Any] = [None] * len(bounds)
        self.error: BaseException | None = None
        # counting is atomic, so that no lock is needed for taking a part or reporting one
        self._taken, self._reported = itertools.count(), itertools.count(1)
        self._finished = threading.Lock()
        self._finished.acquire()

    def work(self) -> None:
        """Compute parts until none are left to take."""
        total = len(self.bounds)
        for part in self._taken:
            if part >= total:
                return
            try:
                self.results[part] = self.task(*self.bounds[part])
            except BaseException as error:  # the caller raises it
                self.error = error
            if next(self._reported) == total:
                self._finished.release()

    def wait(self) -> list[Any]:
        """Return the results when all parts are done."""
        self._finished.acquire()
        if self.error is not None:
            raise self.error
        return self.results


class _Worker(threading.Thread):
    """A thread that sleeps until it is given a job."""

    def __init__(self, idle: deque[_Worker], number: int) -> None:
        super().__init__(name=f"symnmf-{number}", daemon=True)
        self._idle = idle
        self._job: _Job | None = None
        self._called = threading.Lock()
        self._called.acquire()

    def help(self, job: _Job) -> None:
        self._job = job
        self._called.release()

    def run(self) -> None:
        while True:
            self._called.acquire()
            job, self._job = self._job, None
            assert job is not None
            job.work()
            del job  # what it holds is not this thread's to keep
            self._idle.append(self)


class _Workers:
    """The threads of the process, whatever ``n_jobs`` their users have.

    ``n_jobs`` says how many of them one caller may have. Workers sleep on a lock of their own and
    take parts by counting: a future for every part cost more than most parts, and a caller that
    did all the work itself would still wait for a worker to wake up. Nobody waits for a worker to
    be free, so that tasks may share out work themselves.
    """

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):  # a child has the objects but not the threads
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._starting = threading.Lock()
        self._idle: deque[_Worker] = deque()
        self._started = 0

    def call(self, job: _Job, helpers: int) -> None:
        """Wake as many idle workers as are asked for and there are."""
        for _ in range(helpers):
            try:
                worker = self._idle.pop()
            except IndexError:
                new = self._start()
                if new is None:
                    return
                worker = new
            worker.help(job)

    def _start(self) -> _Worker | None:
        with self._starting:
            if self._started >= (os.cpu_count() or 1) - 1:
                return None
            self._started += 1
            worker = _Worker(self._idle, self._started)
        worker.start()
        return worker


_workers = _Workers()


@functools.cache
def _blas() -> tuple[Any, Any]:
    """The BLAS libraries whose number of threads belongs to the process, and to each thread."""
    import numpy as np
    import scipy.linalg
    from threadpoolctl import ThreadpoolController

    assert np
    assert scipy.linalg
    blas = ThreadpoolController().select(user_api="blas")
    own = [one.filepath for one in blas.lib_controllers if _is_openmp(one)]
    shared = [one.filepath for one in blas.lib_controllers if not _is_openmp(one)]
    return blas.select(filepath=shared), blas.select(filepath=own)


def _is_openmp(library: Any) -> bool:
    return getattr(library, "threading_layer", None) == "openmp"


def _change_blas(change: Callable[[], T]) -> T:
    """Call what sets BLAS threads, whichever thread did so before.

    Recent versions of threadpoolctl let only one thread at a time set them and ignore all others,
    so that the last of several runs could not restore what the first one found.
    """
    import threadpoolctl

    openblas = getattr(threadpoolctl, "OpenBLASController", None)
    release = getattr(openblas, "clear_controlling_thread", lambda force: None)
    release(force=True)
    try:
        return change()
    finally:
        release(force=True)


class _OneBlasThread:
    """BLAS at one thread for as long as anybody wants it.

    The number of threads belongs to the process, so the first to come sets it and the last to go
    restores what the first one found. If each restored what it found itself, one that came second
    and went last would leave BLAS at one thread for ever.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._holders: Counter[int] = Counter()  # blocks entered, by thread
        self._limit: Any = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    @contextmanager
    def held(self) -> Iterator[None]:
        me = threading.get_ident()
        shared, own = _blas()
        with self._changing:
            if not self._holders:
                self._limit = _change_blas(lambda: shared.limit(limits=1))
            self._holders[me] += 1
        try:
            with own.limit(limits=1):
                yield
        finally:
            with self._changing:
                self._leave(me)

    def _leave(self, thread: int) -> None:
        self._holders[thread] -= 1
        if not self._holders[thread]:
            del self._holders[thread]
        if not self._holders and self._limit is not None:
            _change_blas(self._limit.restore_original_limits)
            self._limit = None

    def _after_fork(self) -> None:
        """Forget the holders that a forked child has no threads for."""
        self._changing = threading.Lock()
        me = threading.get_ident()
        for thread in [thread for thread in self._holders if thread != me]:
            self._holders[thread] = 1
            self._leave(thread)


_one_blas_thread = _OneBlasThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold BLAS to one thread inside a ``with`` block, whoever else does so at the same time."""
    return _one_blas_thread.held()


class Threads:
    """Runs row-wise tasks on ``n_jobs`` threads.

    Parameters
    ----------
    n_jobs : int or None
        None or -1 for all cores of the process; -2 for all but one, and so on.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        cores = available_cores()
        try:
            jobs = cores if n_jobs is None else operator.index(n_jobs)
        except TypeError:
            jobs = 0
        if jobs == 0 or isinstance(n_jobs, bool):
            raise InputError(
                f"n_jobs must be None, a positive number of threads or a negative one counted "
                f"from all cores, got {n_jobs!r}."
            )
        self.count: int = jobs if jobs > 0 else max(1, cores + 1 + jobs)

    def parts(self, cost: float, *, finer: bool = False) -> int:
        """Return into how many parts to cut work of so many floating point operations.

        One for each thread, or fewer where the work is small. ``finer`` cuts long work into more
        of them, for whoever is done first: cores and parts are never quite equal.
        """
        affordable = int(cost // SMALLEST_SHARE)
        if finer and self.count > 1 and affordable >= LONG * SPARE_PARTS * self.count:
            return SPARE_PARTS * self.count
        return max(1, min(self.count, affordable))

    def split(self, n: int, cost_per_row: float) -> list[Bounds]:
        """Cut ``range(n)`` into chunks for all threads, or for fewer where the work is small."""
        parts = min(self.parts(n * cost_per_row), n)
        edges = [n * part // parts for part in range(parts + 1)]
        return list(itertools.pairwise(edges))

    def run(self, task: Callable[[int, int], T], bounds: Sequence[Bounds]) -> list[T]:
        """Return ``[task(begin, end) for begin, end in bounds]``, computed at the same time."""
        if len(bounds) == 1 or self.count == 1:
            return [task(*part) for part in bounds]
        job = _Job(task, bounds)
        _workers.call(job, min(self.count, len(bounds)) - 1)
        job.work()
        return job.wait()
