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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

    def take(self) -> None:
        """Do what nobody else has begun."""
        try:
            for number in self.left:
                self.results[number] = self.task(*self.parts[number])
        except BaseException as error:  # the caller raises it
            self.error = error
            for _ in self.left:
                pass

    def finish(self, locks: list[Any]) -> list[Any]:
        """Wait for the helpers, and return the results."""
        for lock in locks:  # none may write into an array that the caller has left
            with lock:
                pass
        results, error = self.results, self.error
        del self.task, self.parts, self.results  # a helper that comes late would keep them alive
        if error is not None:
            raise error
        return results


class _Helpers:
    """The threads of the process, whatever ``n_jobs`` their users have; more than cores only wait.

    Python's own pools wait for ever for a thread that could not start for want of memory, and
    their futures cost as much as a small task.
    """

    def __init__(self) -> None:
        self.here = threading.local()
        self._begin()
        if hasattr(os, "register_at_fork"):  # a child has the queue but not its threads
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._queue: SimpleQueue[tuple[_Work, Any]] = SimpleQueue()
        self._started = 0

    def ask(self, work: _Work, count: int) -> list[Any]:
        """Ask so many threads to help; return a lock for each, held while it is at work."""
        while self._started < min(count, os.cpu_count() or 1):
            try:
                _thread.start_new_thread(self._serve, (self._queue,))
            except (RuntimeError, MemoryError):  # the system has none: the caller does more
                break
            self._started += 1
        locks = [_thread.allocate_lock() for _ in range(min(count, self._started))]
        for lock in locks:
            self._queue.put((work, lock))
        return locks

    def _serve(self, queue: SimpleQueue[tuple[_Work, Any]]) -> None:
        self.here.inside = True
        while True:
            work, lock = queue.get()
            with lock:
                work.take()
            del work  # and what it holds of its caller, while this waits


_helpers = _Helpers()


@functools.cache
def _blas() -> Any:
    import numpy as np
    import scipy.linalg
    from threadpoolctl import ThreadpoolController

    assert np  # what is not imported yet is not found
    assert scipy.linalg
    return ThreadpoolController().select(user_api="blas")


class _OneBlasThread:
    """BLAS at one thread for as long as anybody wants it.

    The number of threads belongs to the process, so the first to come sets it and the last to go
    restores what the first one found. If each restored what it found itself, one that came second
    and went last would leave BLAS at one thread for ever.
    """

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):  # a child has the holders but not their threads
            os.register_at_fork(after_in_child=self._after_fork)

    def _begin(self) -> None:
        self._changing = threading.Lock()
        self._holders: list[int] = []

    @contextmanager
    def held(self) -> Iterator[None]:
        me = threading.get_ident()
        with self._changing:
            if not self._holders:
                _free_control()
                self._limit = _blas().limit(limits=1)
            self._holders.append(me)
        try:
            yield
        finally:
            with self._changing:
                self._holders.remove(me)
                self._restore()

    def _restore(self) -> None:
        if not self._holders:
            _free_control()
            self._limit.restore_original_limits()

    def _after_fork(self) -> None:
        before, me = self._holders, threading.get_ident()
        self._begin()
        self._holders = [holder for holder in before if holder == me]
        if before:
            self._restore()


def _free_control() -> None:
    """Let this thread set BLAS threads, whichever thread did so before.

    Recent versions of threadpoolctl let only one thread at a time set them and ignore all others,
    so that the last of several runs could not restore what the first one found.
    """
    import threadpoolctl

    openblas = getattr(threadpoolctl, "OpenBLASController", None)
    getattr(openblas, "clear_controlling_thread", lambda force: None)(force=True)


#: Hold BLAS to one thread inside a ``with`` block, whoever else does so at the same time.
one_blas_thread = _OneBlasThread().held


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

    def parts(self, cost: float) -> int:
        """Return into how many parts to cut work of so many floating point operations."""
        return max(1, min(self.count, int(cost // SMALLEST_SHARE)))

    def split(self, n: int, cost_per_row: float) -> list[Bounds]:
        """Cut ``range(n)`` into one chunk per thread, or fewer where the work is small."""
        parts = 1 if self.count == 1 else min(self.parts(n * cost_per_row), n)
        if parts <= 1:
            return [(0, n)]
        return list(itertools.pairwise(n * part // parts for part in range(parts + 1)))

    def run(self, task: Callable[..., T], parts: Sequence[tuple[Any, ...]]) -> list[T]:
        """Return ``[task(*part) for part in parts]``, computed at the same time."""
        if len(parts) == 1:
            return [task(*parts[0])]
        # all helpers may wait like this one
        if self.count == 1 or getattr(_helpers.here, "inside", False):
            return [task(*part) for part in parts]
        work = _Work(task, parts)
        locks = _helpers.ask(work, min(self.count, len(parts)) - 1)
        work.take()
        return work.finish(locks)
