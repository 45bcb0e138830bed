"""Threads that help in compiled code, however the process ends and whatever it is short of."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

from symnmf import parallel
from symnmf.ops.host import HostOps

B = np.random.default_rng(0).random((300, 4))
SHARED = {"SMALLEST_PART": 1, "LEAST_SHARED": 0, "available_cores": lambda: 4}

PROGRAM = """
import atexit, os, sys, threading, time
import numpy as np, symnmf
from symnmf import parallel
from symnmf.kernels import team

parallel.SMALLEST_PART, parallel.LEAST_SHARED, parallel.available_cores = 1, 0, lambda: 4
B = np.random.default_rng(0).random((300, 4))

def fit():
    return symnmf.factorize(B @ B.T, 4, random_state=0, max_iter=10, tol=0.0, n_jobs=4).error

def for_ever():
    while True:
        fit()

found = fit()
assert len(team._helpers._alarms) == 3
"""
#: What a process does last, while the helpers are awake.
ENDS = {
    "returns": "team._helpers._patience = 10**12; time.sleep(0.01); fit(); time.sleep(0.01)",
    "is inside passes": """
for _ in range(2):
    threading.Thread(target=for_ever, daemon=True).start()
time.sleep(0.05)
""",
    "goes on at exit": "atexit.register(fit)",
    "forks": """
child = os.fork()
assert fit() == found
if child:
    assert os.waitpid(child, 0)[1] == 0
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_while_helpers_are_awake(end: str) -> None:
    if end == "forks" and not hasattr(os, "fork"):
        pytest.skip("this platform does not fork")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM + ENDS[end]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this platform has no timers")
def test_an_interrupt_between_passes_loses_no_row() -> None:
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        with mock.patch.multiple(parallel, **SHARED):
            ops = HostOps(parallel.Threads(4))
            expected = ops.inner(B, B)
            for wait in np.linspace(0.001, 0.01, 20):
                with contextlib.suppress(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, wait)
                    while True:
                        assert ops.inner(B, B) == expected
            assert ops.inner(B, B) == expected
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on threads is Linux's")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("threads", [0, 2])
def test_without_threads_the_caller_does_all_parts(threads: int) -> None:
    import resource

    with mock.patch.multiple(parallel, **SHARED):
        ops = HostOps(parallel.Threads(4))
        expected = ops.inner(B, B)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if os.geteuid() == 0:
                    os.setuid(65534)  # nothing limits the threads of root
                resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
                code = int(ops.inner(B, B) != expected)
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
