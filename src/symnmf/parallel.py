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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import numpy as np

from symnmf.errors import InputError
from symnmf.pools import Pool, Task

T = TypeVar("T")

#: Parts of one pass of compiled code, at most.
MOST_PARTS = 256

Bounds = tuple[int, int]

#: Floating point operations below which another thread costs more than it brings: one of the pool,
#: which needs the interpreter to begin and to report, and one that waits in compiled code.
SMALLEST_SHARE, SMALLEST_PART = 1_500_000, 250_000

#: Floating point operations, some tenths of a millisecond, below which a pass has one thread only:
#: what shares it out would have to be compiled first, which takes seconds.
LEAST_SHARED = 1_000_000


def available_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


class _Workers:
    """One pool for the whole process, whatever ``n_jobs`` its users have.

    ``n_jobs`` says into how many parts work is cut; more threads than cores would only wait.
    """

    def __init__(self) -> None:
        self.here = threading.local()
        self._begin()
        if hasattr(os, "register_at_fork"):  # a child has the pool object but not its threads
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._starting = threading.Lock()
        self._pool: Pool | None = None

    def _enter(self) -> None:
        self.here.inside = True

    @property
    def inside(self) -> bool:
        """Whether the caller runs on the pool, where waiting for its other tasks may never end."""
        return getattr(self.here, "inside", False)

    @property
    def pool(self) -> Pool:
        with self._starting:
            if self._pool is None:
                # threads start when they are first needed, so a generous limit costs nothing
                self._pool = Pool(os.cpu_count() or 1, self._enter)
            return self._pool


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
        self._bounds: dict[tuple[int, float, int], np.ndarray | None] = {}

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

    def bounds(self, n: int, cost_per_row: float, each: int = 1) -> np.ndarray | None:
        """Cut ``range(n)`` for threads that wait in compiled code; None where one does all of it.

        ``each`` is how many parts there are for each thread if there is enough work.
        """
        key = n, cost_per_row, each
        if key not in self._bounds:
            parts = min(self.shared_parts(n * cost_per_row, each), n)
            cut = [n * part // parts for part in range(parts + 1)]
            self._bounds[key] = np.array(cut, np.int64) if parts > 1 else None
        return self._bounds[key]

    def shared_parts(self, cost: float, each: int = 1) -> int:
        """Return into how many parts threads that wait in compiled code cut such work."""
        if self.count == 1 or cost < LEAST_SHARED:
            return 1
        return max(1, min(int(cost // SMALLEST_PART), each * self.count, MOST_PARTS))

    def run(self, task: Callable[[int, int], T], bounds: Sequence[Bounds]) -> list[T]:
        """Return ``[task(begin, end) for begin, end in bounds]``, computed at the same time."""
        if len(bounds) == 1 or _workers.inside:
            return [task(*part) for part in bounds]
        pool = _workers.pool
        others: list[Task[T]] = []
        try:
            for begin, end in bounds[1:]:
                others.append(pool.submit(task, begin, end))
            first = task(*bounds[0])
            return [first, *(other.result() for other in others)]
        except BaseException:
            for other in others:  # none may write into an array that the caller has left
                other.settle()
            raise
