"""X is checked and scanned once, however much is done with it; so are settings."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from shell import command
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.storage import dense, wrapping


@pytest.fixture
def looks(monkeypatch):
    """Count how often entries are compared with their mirror images, and scanned."""
    counts = {"symmetry": 0, "scans": 0}
    check, largest = wrapping.check_asymmetry, dense.DenseMatrix.compute_largest

    def counted_check(*args, **options):
        counts["symmetry"] += 1
        return check(*args, **options)

    def counted_largest(self):
        counts["scans"] += 1
        return largest(self)

    monkeypatch.setattr(wrapping, "check_asymmetry", counted_check)
    monkeypatch.setattr(dense.DenseMatrix, "compute_largest", counted_largest)
    return counts


def test_a_fit_with_its_certificate_looks_at_x_once(looks):
    X = synthetic_problem(60, 3, 0.1, seed=0)
    result = symnmf.factorize(X, 3, init="scaled-random", random_state=0)
    assert result.certificate().certified
    assert looks == {"symmetry": 1, "scans": 0}


def test_a_comparison_and_a_certificate_take_what_was_checked_before(looks):
    problem = Problem.of(synthetic_problem(40, 3, 0.1, seed=1))
    table = symnmf.compare(problem, 3, ["cd", "auto"], n_init=2, max_iter=30, random_state=0)
    table.results["auto", 0].certificate(problem)
    assert looks == {"symmetry": 1, "scans": 0}


def test_the_command_looks_at_x_once(looks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", synthetic_problem(40, 3, 0.1, seed=1))
    assert command("factorize X.npy -r 3 -o U.npz --seed 0").exit_code == 0
    assert looks == {"symmetry": 1, "scans": 0}


def test_a_problem_knows_what_was_observed():
    X = synthetic_problem(30, 2, 0.1, seed=2)
    X[3, 4] = X[4, 3] = np.nan
    problem = Problem.of(X, missing="nan")
    found = symnmf.factorize(problem, 2, random_state=0)
    said = symnmf.factorize(X, 2, missing="nan", random_state=0)
    np.testing.assert_array_equal(found.U, said.U)
    with pytest.raises(symnmf.InputError, match="X is a Problem"):
        symnmf.factorize(problem, 2, missing="nan")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fits_in_threads_leave_the_filters_of_warnings_alone(n_jobs):
    X = synthetic_problem(80, 3, 0.1, seed=4)
    before = list(warnings.filters), warnings.showwarning

    def fit(seed):
        model = symnmf.SymNMF(3, affinity="precomputed", n_init=3, max_iter=20, n_jobs=n_jobs)
        model.set_params(random_state=seed, init="scaled-random", tol=1e-3).fit(X)

    threads = [threading.Thread(target=fit, args=(seed,)) for seed in range(6)]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            warnings.warn("of the caller's own", stacklevel=1)
            threads[0].join(0.001)
            threads = [thread for thread in threads if thread.is_alive()] or threads[:1]
    assert any("of the caller's own" in str(w.message) for w in seen)
    assert (list(warnings.filters), warnings.showwarning) == before


def test_settings_speak_of_their_own_arguments():
    with pytest.raises(symnmf.InputError, match="solver 'hal' is not known"):
        Settings.of("hal")
    with pytest.raises(symnmf.InputError, match="max_iter must be"):
        Settings.of(max_iter=-1)
    assert Settings.of("symanls", tol=1e-3).within(max_iter=5).limits.tol == 1e-3
