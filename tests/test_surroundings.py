"""Where the library is used: process pools, forks, unwritable folders, warnings as errors."""

from __future__ import annotations

import _thread
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
import threadpoolctl

import symnmf
from conftest import MINUTES, synthetic_problem


def fit(seed: int) -> np.ndarray:
    X = synthetic_problem(150, 4, 0.1, seed=0)
    return symnmf.factorize(
        X, 40, init="scaled-random", random_state=seed, tol=0, max_iter=20, n_jobs=2
    ).U


@pytest.fixture(scope="module")
def expected():
    return [fit(seed) for seed in range(3)]  # also starts the pool, so forks inherit its object


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_under_joblib(expected, backend):
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(fit)(s) for s in range(3))
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_under_multiprocessing(expected, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform has no {method}")
    with multiprocessing.get_context(method).Pool(2) as pool:
        # a pool waits for ever for a worker that died
        found = pool.map_async(fit, range(3)).get(MINUTES)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


SMALL = (
    "import numpy as np, symnmf;"
    "B = np.random.default_rng(0).random((20, 2));"
    "print(symnmf.factorize(B @ B.T, 2, random_state=0).status)"
)


def test_warnings_as_errors():
    done = run_python(SMALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "converged\n"


def test_an_install_nobody_can_write_to(tmp_path):
    """Neither the package's folder nor the home can hold numba's cache."""
    package = tmp_path / "site" / "symnmf"
    shutil.copytree(
        Path(symnmf.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    # a plain file where numba wants a folder stops even root
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("not a folder")
    home = tmp_path / "home"
    home.write_text("not a folder")
    code = SMALL + f";assert symnmf.__file__.startswith({str(tmp_path)!r})"
    done = run_python(
        code,
        PYTHONPATH=str(tmp_path / "site"),
        HOME=str(home),
        XDG_CACHE_HOME=str(home),
        NUMBA_CACHE_DIR="",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "converged\n"


def blas_threads():
    pools = threadpoolctl.threadpool_info()
    return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]


def test_blas_threads_are_given_back():
    fit(0)
    with threadpoolctl.threadpool_limits(2, "blas"):
        before = blas_threads()
        fit(0)
        assert blas_threads() == before


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


def test_staggered_factorizations_give_blas_back():
    before = blas_threads()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(fit, range(6)))
    assert blas_threads() == before


def forked_threads(pipe):
    pipe.send(blas_threads())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_the_runs_of_its_parent():
    """The child has no other threads, so nobody else there would ever give BLAS back."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this platform has no fork")
    from symnmf.parallel import one_blas_thread

    fork = multiprocessing.get_context("fork")
    inside, done = threading.Event(), threading.Event()

    def stay():
        with one_blas_thread():
            inside.set()
            done.wait(MINUTES)

    before = blas_threads()
    run = threading.Thread(target=stay, daemon=True)
    run.start()
    assert inside.wait(MINUTES)
    here, there = fork.Pipe(duplex=False)
    child = fork.Process(target=forked_threads, args=(there,))
    child.start()
    try:
        assert here.poll(MINUTES)
        assert here.recv() == before
        child.join(MINUTES)
    finally:
        child.kill()
        done.set()
        run.join(MINUTES)


def test_one_pool_whatever_the_number_of_jobs():
    X = synthetic_problem(150, 4, 0.1, seed=0)
    before = _thread._count()
    for jobs in range(2, 40):
        symnmf.factorize(X, 40, random_state=0, max_iter=1, tol=0, n_jobs=jobs)
    assert _thread._count() - before <= os.cpu_count()


def test_tasks_that_share_out_work_themselves_do_not_wait_for_each_other():
    """More callers than the pool has threads, each with tasks inside tasks."""
    from symnmf.parallel import Threads

    threads = Threads(8)
    parts = [(k, k + 1) for k in range(8)]

    def outer(begin, end):
        return sum(threads.run(lambda a, b: a * b, parts))

    callers = 4 * os.cpu_count()
    with ThreadPoolExecutor(callers) as pool:
        found = list(pool.map(lambda _: threads.run(outer, parts), range(callers)))
    assert found == [[sum(a * b for a, b in parts)] * 8] * callers


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
LIMIT = (
    "import resource, signal;"
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY));"
)


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


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
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


def test_kernels_are_compiled_again_when_another_one_changes(tmp_path):
    """They call each other by address, and numba looks at the file of each of them alone."""
    package = tmp_path / "symnmf"
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(symnmf.__file__).parent, package, ignore=without)
    code = (
        "from symnmf.kernels.quartics import quartic_step as k; k(-1.0, 1.0, 0.0, 1.0);"
        "print(sum(k.stats.cache_hits.values()), sum(k.stats.cache_misses.values()))"
    )
    places = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}

    def hits_and_misses():
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            env={**os.environ, **places},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert [hits_and_misses() for _ in range(2)] == ["0 1\n", "1 0\n"]
    other = package / "kernels" / "dense_products.py"
    kept = other.stat()
    other.write_text(other.read_text() + "\n# as another version has it\n")
    os.utime(other, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert [hits_and_misses() for _ in range(2)] == ["0 1\n", "1 0\n"]


def test_kernels_that_cannot_be_compiled_are_refused_in_a_sentence():
    code = (
        "import numpy as np, symnmf\n"
        "try: symnmf.factorize(np.eye(5), 2)\n"
        "except symnmf.InputError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("NUMBA_DISABLE_JIT is set, but")


@pytest.mark.skipif(os.name != "posix", reason="the limit on file sizes is POSIX's")
def test_a_full_disk_under_the_cache_of_numba_stops_nothing(tmp_path):
    done = run_kernels(tmp_path, LIMIT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3.0 8\n"
    assert done.stderr.count("numba's cache in") == 1


@pytest.mark.parametrize("clock", [lambda: 0.0, lambda: 7.3e9, lambda: random.uniform(-1e9, 9e9)])
def test_the_wall_clock_may_say_what_it_likes(clock, monkeypatch, tmp_path):
    monkeypatch.setattr("symnmf.run.checkpoint.SECONDS_BETWEEN", 0.0)
    """A machine whose clock is at 1970, or jumps: limits of time are those of another clock."""
    X = synthetic_problem(30, 2, 0.1, seed=0)
    run = {"random_state": 0, "tol": 0, "max_iter": 20}
    usual = symnmf.factorize(X, 2, **run)
    monkeypatch.setattr(time, "time", clock)
    monkeypatch.setattr(time, "time_ns", lambda: int(clock() * 1e9))
    kept = tmp_path / "run.npz"
    symnmf.factorize(X, 2, **(run | {"max_iter": 9}), checkpoint=kept)
    found = symnmf.factorize(X, 2, **run, checkpoint=kept, max_time=1e4)
    assert found.status == "max_iter"
    assert np.array_equal(found.U, usual.U)
    found.save(tmp_path / "fit.npz")
    assert np.array_equal(symnmf.Result.load(tmp_path / "fit.npz").U, usual.U)


NO_SHARED_MEMORY = """
import _multiprocessing, multiprocessing.synchronize
import numpy as np, symnmf

def refuse(*_, **__):
    raise OSError(30, "Read-only file system")

_multiprocessing.SemLock = refuse
try:
    multiprocessing.Lock()
except OSError:
    B = np.random.default_rng(0).random((200, 4))
    run = {"n_jobs": 2, "n_init": 2, "max_iter": 10, "tol": 0.1}
    print(symnmf.factorize(B @ B.T, 4, random_state=0, **run).status)
"""


def test_nothing_of_dev_shm_is_needed():
    """Where it is absent or read-only, as in some containers, no lock between processes is made."""
    done = run_python(NO_SHARED_MEMORY)
    assert done.stdout == "converged\n", done.stderr


FACTORIZED = """
import sys, multiprocessing
from concurrent.futures import ProcessPoolExecutor

def work(seed):
    import numpy as np, symnmf
    from symnmf import parallel
    parallel.SMALLEST_PART = 1  # so that threads share every pass, however small
    B = np.random.default_rng(0).random((200, 4))
    run = {"n_jobs": 2, "n_init": 2, "max_iter": 10, "tol": 0.1}
    return symnmf.factorize(B @ B.T, 4, random_state=seed, **run).U

if __name__ == "__main__":
    here = work(0)  # so that a fork has had threads
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(sys.argv[1])) as pool:
        assert (next(pool.map(work, [0])) == here).all()
    print("the same")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="not every system forks")
@pytest.mark.parametrize("how", ["spawn", "forkserver", "fork"])
def test_a_worker_process_finds_what_its_parent_finds(how, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FACTORIZED)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program, how], capture_output=True, text=True, check=False
    )
    assert done.stdout == "the same\n", done.stderr
