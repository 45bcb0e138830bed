"""The one thread pool: every compiled kernel and every dense product runs on it, by row chunks.

BLAS is held to one thread while a factorization runs and the rows of X are shared out here
instead. Two pools that both want all cores spin against each other: OpenBLAS beside numba's own
made small iterations 60 times slower in a trial.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from symnmf.errors import InputError

T = TypeVar("T")

Bounds = tuple[int, int]

#: Below this many floating point operations a second thread costs more than it brings.
SMALLEST_SHARE = 1_500_000


def available_cores() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


@functools.cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=size, thread_name_prefix="symnmf")


if hasattr(os, "register_at_fork"):  # a forked child has the pool object but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


@functools.cache
def _blas_controller() -> Any:
    import numpy as np
    import scipy.linalg
    from threadpoolctl import ThreadpoolController

    assert np
    assert scipy.linalg
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread inside a ``with`` block."""
    return _blas_controller().limit(limits=1, user_api="blas")


class Threads:
    """Runs row-wise tasks on ``n_jobs`` threads.

    Parameters
    ----------
    n_jobs : int or None
        None or -1 for all cores of the process; -2 for all but one, and so on.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        cores = available_cores()
        if n_jobs is None:
            n_jobs = cores
        if isinstance(n_jobs, bool) or int(n_jobs) != n_jobs or n_jobs == 0:
            raise InputError(
                f"n_jobs must be None, a positive number of threads or a negative one counted "
                f"from all cores, got {n_jobs!r}."
            )
        self.count = int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))

    def split(self, n: int, cost_per_row: float) -> list[Bounds]:
        """Cut ``range(n)`` into one chunk per thread, or fewer where the work is small."""
        affordable = int(n * cost_per_row // SMALLEST_SHARE)
        parts = max(1, min(self.count, affordable, n))
        edges = [n * part // parts for part in range(parts + 1)]
        return list(itertools.pairwise(edges))

    def run(self, task: Callable[[int, int], T], bounds: Sequence[Bounds]) -> list[T]:
        """Return ``[task(begin, end) for begin, end in bounds]``, computed at the same time."""
        if len(bounds) == 1:
            return [task(*bounds[0])]
        pool = _pool(self.count)
        others = [pool.submit(task, begin, end) for begin, end in bounds[1:]]
        first = task(*bounds[0])
        return [first, *(other.result() for other in others)]
