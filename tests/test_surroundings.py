"""Where the library is used: process pools, forks, unwritable folders, warnings as errors."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem


def fit(seed: int) -> np.ndarray:
    X = synthetic_problem(150, 4, 0.1, seed=0)
    return symnmf.factorize(X, 40, random_state=seed, tol=0, max_iter=20, n_jobs=2).U


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
        found = pool.map_async(fit, range(3)).get()
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


def test_blas_threads_are_given_back():
    import threadpoolctl

    def counts():
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]

    fit(0)
    with threadpoolctl.threadpool_limits(2, "blas"):
        before = counts()
        fit(0)
        assert counts() == before
