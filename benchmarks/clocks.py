"""A clock that other work on the machine does not disturb."""

from __future__ import annotations

import time
from types import SimpleNamespace

from symnmf.run import loop


def count_cpu_time() -> None:
    """Let ``seconds`` and ``max_time`` count the CPU time of this thread; runs take n_jobs=1."""
    vars(loop)["time"] = SimpleNamespace(perf_counter=time.thread_time, monotonic=time.monotonic)
