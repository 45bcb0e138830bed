"""Results, checkpoints and fits on disk: damaged, swapped or made up, they are one InputError."""

from __future__ import annotations

import os

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from symnmf.archives import read_archive, write_archive
from symnmf.errors import InputError
from symnmf.run import checkpoint
from symnmf.run.result import RESULT

FORMAT = "test-1"


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "format": np.array(FORMAT),
        "U": np.asfortranarray(rng.random((4, 3))),
        "none": np.zeros((0, 3), np.float32),
        "number": np.array(2.5),
        "text": np.array("Zoë"),
    }


def test_an_archive_gives_back_what_was_written(tmp_path, arrays):
    write_archive(tmp_path / "a.npz", arrays)
    found = read_archive(tmp_path / "a.npz", FORMAT)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert np.array_equal(found[name], array)
        assert found[name].flags.c_contiguous
        assert found[name].flags.writeable
    with np.load(tmp_path / "a.npz", allow_pickle=False) as plain:  # an npz like any other
        assert np.array_equal(plain["U"], arrays["U"])


def test_every_changed_byte_is_refused_or_harmless(tmp_path, arrays):
    path = tmp_path / "a.npz"
    write_archive(path, arrays)
    whole = path.read_bytes()
    harmless = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            found = read_archive(path, FORMAT)
        except InputError:
            continue
        harmless += 1  # the time of writing, say
        for name, array in arrays.items():
            assert np.array_equal(found[name], array)
    assert harmless < len(whole) // 2


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "run.npz")
    with pytest.raises(InputError, match="not a regular file"):
        symnmf.Result.load(tmp_path / "run.npz")
    X = synthetic_problem(8, 2)
    with pytest.raises(InputError, match="not a regular file"):
        symnmf.factorize(X, 2, checkpoint=tmp_path / "run.npz")


def spoiled(path, name, change):
    """Rewrite one array of an archive, with a checksum that fits."""
    stored = read_archive(path, str(np.load(path)["format"]))
    stored[name] = np.asarray(change(stored[name]))
    write_archive(path, stored)


RESULTS = {
    "negative": ("U", lambda U: -U),
    "nan": ("V", lambda V: np.full_like(V, np.nan)),
    "shape": ("V", lambda V: V[:-1]),
    "status": ("status", lambda status: "perfect"),
    "history order": ("history", lambda rows: rows[::-1]),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_result_that_no_run_gave_is_refused(tmp_path, case):
    path = tmp_path / "result.npz"
    result = symnmf.factorize(synthetic_problem(8, 2), 2, random_state=0, max_iter=3, tol=0.0)
    result.save(path)
    loaded = symnmf.Result.load(path)
    assert np.array_equal(loaded.U, result.U)
    assert np.array_equal(loaded.history.to_array(), result.history.to_array())
    spoiled(path, *RESULTS[case])
    with pytest.raises(InputError, match=r"result\.npz is not a whole symnmf result"):
        symnmf.Result.load(path)


def test_a_field_that_is_missing_is_refused(tmp_path):
    path = tmp_path / "result.npz"
    symnmf.factorize(synthetic_problem(8, 2), 2, max_iter=1, tol=0.0).save(path)
    whole = read_archive(path, RESULT)
    for name in whole.keys() - {"format", "order"}:  # a matrix where no order is told
        write_archive(path, {key: value for key, value in whole.items() if key != name})
        with pytest.raises(InputError, match=name):
            symnmf.Result.load(path)


def resumed(X, path, solver, **more):
    options = {"solver": solver, "random_state": 0, "tol": 0.0, "n_jobs": 1, "max_iter": 12}
    options["init"] = "scaled-random"  # so far from the end that no step is Gauss-Newton's yet
    return symnmf.factorize(X, 3, **{**options, **more})


CHECKPOINTS = {
    "counters": ("hals-newton", "memory_counters", lambda c: c + 1000),
    "steps flat": ("hals-newton", "memory_steps", lambda c: c.reshape(-1, 3)),
    "dots": ("hals-newton", "memory_pair_dots", lambda d: d[:, :1]),
    "gradient nan": ("hals-newton", "memory_gradient", lambda g: np.full_like(g, np.nan)),
    "weight": ("hals-newton", "memory_weight", lambda w: -w),
    "product": ("hals-newton", "product", lambda p: p[:2]),
    "gram": ("hals-newton", "gram_U", lambda g: g[:1]),
    "U negative": ("hals-newton", "U", lambda U: U - 1.0),
    "U nan": ("hals-newton", "U", lambda U: np.where(U.max() == U, np.nan, U)),
    "V negative": ("a-symhals", "V", lambda V: -V),
    "previous": ("a-symhals", "schedule_previous", lambda P: P[:3]),
    "rho": ("admm", "memory_admm_rho", lambda rho: -rho),
    "step": ("pgd", "memory_pgd_step", lambda step: np.ones(2)),
    "scalars": ("symhals", "scalars", lambda s: s[:3]),
    "lambda": ("symhals", "scalars", lambda s: s * [-1, 1, 1, 1]),
    "iteration": ("symhals", "scalars", lambda s: s + np.array([0, 0.5, 0, 0])),
    "history": ("symhals", "history", lambda h: h[:, :6]),
    "identity": ("symhals", "identity", lambda i: "[" * 100_000),
    "unknown memory": ("symhals", "memory_surprise", lambda _: np.ones(3)),
    "second factor": ("hals-newton", "V", lambda _: np.ones((30, 3))),
}


@pytest.mark.parametrize("case", CHECKPOINTS)
def test_a_checkpoint_no_run_wrote_is_refused(tmp_path, case):
    """With a checksum that fits: compiled code would follow the counters wherever they lead."""
    solver, name, change = CHECKPOINTS[case]
    X, path = synthetic_problem(30, 3, 0.1, seed=0), tmp_path / "run.npz"
    resumed(X, path, solver, checkpoint=path, max_iter=6)
    whole = path.read_bytes()
    stored = read_archive(path, checkpoint.FORMAT)
    stored[name] = np.asarray(change(stored.get(name)))
    write_archive(path, stored)
    with pytest.raises(InputError, match=r"run\.npz is not a whole symnmf checkpoint"):
        resumed(X, path, solver, checkpoint=path)
    path.write_bytes(whole)
    expected = resumed(X, path, solver)
    assert np.array_equal(resumed(X, path, solver, checkpoint=path).U, expected.U)
