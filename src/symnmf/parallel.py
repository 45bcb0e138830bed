"""The threads of the process: compiled kernels and dense products run on them, by row chunks.

BLAS is held to one thread while a factorization runs and the rows of X are shared out here
instead. Two pools that both want all cores spin against each other: OpenBLAS beside numba's own
made small iterations 60 times slower in a trial.
"""

from __future__ import annotations

import _thread
import functools
import itertools
import operator
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from symnmf.errors import InputError

T = TypeVar("T")

Bounds = tuple[int, int]

#: Floating point operations below which another thread costs more than it brings, since it needs
#: the interpreter to begin and to report.
SMALLEST_SHARE = 1_000_000


def available_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


class _Work:
    """The calls of one task, which the caller and its helpers take one after another.

    So nobody waits for a helper that the system has put aside before it began.
    """

    def __init__(self, task: Callable[..., Any], parts: Sequence[tuple[Any, ...]]) -> None:
        self.task, self.parts = task, parts
        self.results: list[Any] = [None] * len(parts)
        self.left = iter(range(len(parts)))
        self.error: BaseException | None = None
        self.at_work: list[Any] = []  # a lock for each helper, held while it is at work

    def take(self) -> None:
        """Do what nobody else has begun."""
        for number in self.left:
            self.results[number] = self.task(*self.parts[number])

    def help(self, at_work: Any) -> None:
        with at_work:
            try:
                self.take()
            except BaseException as error:  # whoever waits raises it
                self.error = error

    def settle(self) -> None:
        """Return when no helper is at work on this, or will be."""
        for _ in self.left:
            pass
        for lock in self.at_work:
            with lock:
                pass


class _Workers:
    """The threads of the process, whatever ``n_jobs`` their users have; more than cores only wait.

    Python's own pools wait for ever for a thread that could not start for want of memory. Here
    whoever waits does the work, and threads that are there help.
    """

    def __init__(self) -> None:
        self.here = threading.local()
        self._begin()
        if hasattr(os, "register_at_fork"):  # a child has the queue but not its threads
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._queue: SimpleQueue[tuple[_Work, Any]] = SimpleQueue()
        self._started = 0

    @property
    def inside(self) -> bool:
        """Whether the caller is one of the threads, all of which may wait like this one."""
        return getattr(self.here, "inside", False)

    def ask(self, work: _Work, helpers: int) -> None:
        """Ask so many threads to help."""
        while self._started < min(helpers, os.cpu_count() or 1):
            self._started += 1
            try:
                _thread.start_new_thread(self._serve, (self._queue,))
            except (RuntimeError, MemoryError):  # the system has none: the caller does more
                self._started -= 1
                break
        for _ in range(min(helpers, self._started)):
            lock = _thread.allocate_lock()
            work.at_work.append(lock)
            self._queue.put((work, lock))

    def _serve(self, queue: SimpleQueue[tuple[_Work, Any]]) -> None:
        self.here.inside = True
        while True:
            work, lock = queue.get()
            work.help(lock)
            del work  # and what it holds of its caller, while this waits


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
        self._cut: dict[tuple[int, float], list[Bounds]] = {}

    def parts(self, cost: float) -> int:
        """Return into how many parts to cut work of so many floating point operations."""
        return max(1, min(self.count, int(cost // SMALLEST_SHARE)))

    def split(self, n: int, cost_per_row: float) -> list[Bounds]:
        """Cut ``range(n)`` into one chunk per thread, or fewer where the work is small."""
        key = n, cost_per_row
        if key not in self._cut:  # a run asks the same few things in every iteration
            parts = max(1, min(self.parts(n * cost_per_row), n))
            edges = [n * part // parts for part in range(parts + 1)]
            self._cut[key] = list(itertools.pairwise(edges))
        return self._cut[key]

    def run(self, task: Callable[..., T], parts: Sequence[tuple[Any, ...]]) -> list[T]:
        """Return ``[task(*part) for part in parts]``, computed at the same time."""
        if len(parts) == 1 or self.count == 1 or _workers.inside:
            return [task(*part) for part in parts]
        work = _Work(task, parts)
        _workers.ask(work, min(self.count, len(parts)) - 1)
        try:
            work.take()
            work.settle()
        except BaseException:
            work.settle()  # none may write into an array that the caller has left
            raise
        if work.error is not None:
            raise work.error
        return work.results
