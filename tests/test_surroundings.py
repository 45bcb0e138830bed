"""Where the library is used: process pools, forks, unwritable folders, warnings as errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import threadpoolctl

import symnmf
from conftest import MINUTES, synthetic_problem


def blas_threads():
    pools = threadpoolctl.threadpool_info()
    return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]


def test_blas_threads_are_given_back_after_runs_that_overlap():
    """Three threads come one after another and go in the same order: no run holds all others."""
    from symnmf.parallel import one_blas_thread

    came, may_go = [threading.Event() for _ in range(3)], [threading.Event() for _ in range(3)]

    def stay(place):
        with one_blas_thread():
            came[place].set()
            may_go[place].wait(MINUTES)

    with threadpoolctl.threadpool_limits(2, "blas"):
        before = blas_threads()
        runs = [threading.Thread(target=stay, args=(k,), daemon=True) for k in range(3)]
        for run, arrived in zip(runs, came, strict=True):
            run.start()
            assert arrived.wait(MINUTES)
        for run, leave in zip(runs, may_go, strict=True):
            assert set(blas_threads()) == {1}
            leave.set()
            run.join(MINUTES)
        assert blas_threads() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_the_caller_ignores_stays_ignored(tmp_path, number):
    X = synthetic_problem(30, 3, 0.1, seed=0)

    def send(now):
        if now.iteration == 3:
            os.kill(os.getpid(), number)

    before = signal.signal(number, signal.SIG_IGN)
    try:
        result = symnmf.factorize(
            X, 3, max_iter=9, tol=0, callback=send, checkpoint=tmp_path / "run.npz"
        )
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
    assert result.n_iter == 9
    assert result.status == "max_iter"


#: Kernels of the library's own kind that compile in a moment; all of it takes minutes.
KERNELS = """
from symnmf.kernels.compiling import compiled

@compiled()
def double(x):
    return 2 * x

@compiled()
def quadruple(x):
    return double(double(x))
"""


def run_kernels(folder: Path, code: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "kernels_here.py").write_text(KERNELS)
    code += "import kernels_here as k; print(k.double(1.5), k.quadruple(2))"
    return subprocess.run(
        [sys.executable, "-B", "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("ending", [".nbi", pytest.param(".nbc", marks=pytest.mark.long)])
def test_a_damaged_cache_of_numba_is_said_once_and_made_again(tmp_path, ending):
    assert run_kernels(tmp_path).returncode == 0
    damaged = sorted((tmp_path / "cache").rglob(f"*{ending}"))
    assert len(damaged) >= 2
    for place, file in enumerate(damaged):
        whole = file.read_bytes()
        file.write_bytes([b"", whole[: len(whole) // 2], b"\x80\x05garbage."][place % 3])
    done = run_kernels(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3.0 8\n"
    assert done.stderr.count("numba's cache in") == 1
    again = run_kernels(tmp_path)
    assert again.stdout == "3.0 8\n"
    assert not again.stderr
