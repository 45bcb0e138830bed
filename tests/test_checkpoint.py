"""Nothing computed is lost: checkpoints survive kills and full disks; runs resume bit for bit."""

from __future__ import annotations

import errno
import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from symnmf.errors import InputError
from symnmf.run.result import History
from symnmf.solvers import SOLVERS
from symnmf.storage import LowRank

SETTINGS = {"init": "scaled-random", "random_state": 0, "tol": 0.0, "n_jobs": 1}


@pytest.fixture(scope="module")
def X():
    return synthetic_problem(30, 3, 0.1, seed=0)


def exactly_low_rank(X):
    """Return a matrix of which little but rounding is left after a few iterations."""
    values, vectors = np.linalg.eigh(X)
    U = np.maximum(vectors[:, -3:] * np.sqrt(values[-3:]), 0.0)
    return U @ U.T + 1e-7 * X


#: Storages and precisions, and what is told besides X.
CASES = {
    "dense": (np.asarray, {}),
    "sparse": (sp.csr_array, {}),
    "float32": (np.float32, {}),
    "nearly exact": (exactly_low_rank, {}),
    "nearly exact, float32": (lambda X: np.float32(exactly_low_rank(X)), {}),
    "low rank": (lambda X: LowRank(X[:, :5], np.eye(5)), {}),
    "a mask": (np.asarray, {"ignore_diagonal": True}),
    "terms": (sp.csr_array, {"l1": 0.1, "ridge": 0.1}),
}


#: Solvers of X itself, without weights or terms.
PLAIN = {"admm", "tsvd", "beta-snmf", "alpha-snmf", "newton", "cd"}


@pytest.mark.parametrize(
    ("solver", "case"),
    [(s, c) for s in SOLVERS for c in CASES if s not in PLAIN or c not in ("a mask", "terms")],
)
def test_a_resumed_run_is_the_uninterrupted_one(X, tmp_path, solver, case):
    """To the last digit of every column of its history, however it was recorded."""
    kind, options = CASES[case]
    X, path = kind(X), tmp_path / "run.npz"
    options = {"solver": solver, "record_every": 4, **options, **SETTINGS}
    whole = symnmf.factorize(X, 3, max_iter=24, **options)
    for limit in (0, 5, 9, 24):
        rest = symnmf.factorize(X, 3, max_iter=limit, checkpoint=path, **options)
    assert np.array_equal(rest.U, whole.U)
    assert np.array_equal(rest.V, whole.V)
    assert (rest.n_iter, rest.value, rest.error) == (whole.n_iter, whole.value, whole.error)
    columns = [column for column in History.columns if column != "seconds"]
    for column in columns:
        assert np.array_equal(rest.history[column], whole.history[column]), column
    assert (np.diff(rest.history["seconds"]) >= 0).all()


@pytest.mark.parametrize(
    "coupling", ["adaptive", "rising", "shrinking", "geometric", "theory", 0.5]
)
def test_every_coupling_resumes_exactly(X, tmp_path, coupling):
    path = tmp_path / "run.npz"
    options = {"solver": "a-symhals", "coupling": coupling, **SETTINGS}
    whole = symnmf.factorize(X, 3, max_iter=20, **options)
    symnmf.factorize(X, 3, max_iter=7, checkpoint=path, **options)
    rest = symnmf.factorize(X, 3, max_iter=20, checkpoint=path, **options)
    assert np.array_equal(rest.U, whole.U)
    assert rest.coupling == whole.coupling


def test_another_run_is_refused_and_the_sentence_says_what_differs(X, tmp_path):
    path = tmp_path / "run.npz"
    options = {"solver": "a-symhals", "coupling": 1.0, **SETTINGS}
    symnmf.factorize(X, 3, max_iter=2, checkpoint=path, **options)
    other = X.copy()
    other[0, 0] += 1e-9
    for call, message in (
        (lambda: symnmf.factorize(other, 3, checkpoint=path, **options), "does not match this X"),
        (lambda: symnmf.factorize(X, 2, checkpoint=path, **options), r"rank 2 \(it has 3\)"),
        (
            lambda: symnmf.factorize(X, 3, checkpoint=path, **{**options, "solver": "symhals"}),
            "solver .*SymHALS.*ASymHALS",
        ),
        (
            lambda: symnmf.factorize(X, 3, checkpoint=path, **{**options, "coupling": 2.0}),
            "coupling .*2.0.*1.0",
        ),
    ):
        with pytest.raises(InputError, match=message):
            call()


class FullDisk:
    """A file on a disk that is full after ``capacity`` bytes."""

    def __init__(self, stream, capacity):
        self.stream, self.capacity = stream, capacity

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stream.close()

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def write(self, data):
        self.capacity -= len(data)
        if self.capacity < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.stream.write(data)


@pytest.mark.parametrize("capacity", [0, 100, 1000])
def test_a_full_disk_keeps_the_previous_checkpoint_and_the_run_goes_on(
    X, tmp_path, monkeypatch, capacity
):
    monkeypatch.setattr("symnmf.run.checkpoint.SECONDS_BETWEEN", 0.0)
    path = tmp_path / "run.npz"
    symnmf.factorize(X, 3, max_iter=4, checkpoint=path, **SETTINGS)
    before = path.read_bytes()
    opened = os.fdopen

    def open_on_a_full_disk(file, mode="r", *args, **options):
        stream = opened(file, mode, *args, **options)
        return FullDisk(stream, capacity) if mode == "wb" else stream

    monkeypatch.setattr("os.fdopen", open_on_a_full_disk)
    with pytest.warns(RuntimeWarning, match="could not be written.*No space left"):
        result = symnmf.factorize(X, 3, max_iter=8, checkpoint=path, **SETTINGS)
    assert result.n_iter == 8
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]
    rest = symnmf.factorize(X, 3, max_iter=8, checkpoint=path, **SETTINGS)
    assert np.array_equal(rest.U, result.U)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_write_a_last_checkpoint_and_return(X, tmp_path, number):
    path = tmp_path / "run.npz"

    def send(now):
        if now.iteration == 6:
            os.kill(os.getpid(), number)

    stopped = symnmf.factorize(X, 3, max_iter=50, checkpoint=path, callback=send, **SETTINGS)
    assert stopped.status == "stopped"
    assert stopped.n_iter < 50
    whole = symnmf.factorize(X, 3, max_iter=50, **SETTINGS)
    rest = symnmf.factorize(X, 3, max_iter=50, checkpoint=path, **SETTINGS)
    assert np.array_equal(rest.U, whole.U)
