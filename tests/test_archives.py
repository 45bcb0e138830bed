"""Results, checkpoints and fits on disk: damaged, swapped or made up, they are one InputError."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from symnmf.archives import read_archive, write_archive
from symnmf.errors import InputError
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


def test_every_digit_of_every_header_matters(tmp_path, arrays):
    """A zip's own checksums cover the bytes of a member; here they are made right again."""
    path = tmp_path / "a.npz"
    write_archive(path, arrays)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    changed = 0
    for name, content in members.items():
        header = 10 + int.from_bytes(content[8:10], "little")
        for place in range(header):
            if chr(content[place]).isdigit():
                digit = (content[place] - 48 + 1) % 10 + 48
                damaged = content[:place] + bytes([digit]) + content[place + 1 :]
                with zipfile.ZipFile(path, "w") as archive:
                    for other, kept in members.items():
                        archive.writestr(other, damaged if other == name else kept)
                changed += 1
                with pytest.raises(InputError):
                    read_archive(path, FORMAT)
    assert changed > 10


def test_a_small_file_cannot_become_a_large_array(tmp_path):
    path = tmp_path / "bomb.npz"
    content = io.BytesIO()
    np.save(content, np.zeros(10**7))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("format.npy", content.getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="not a whole npz archive"):
            read_archive(path, FORMAT)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "run.npz")
    with pytest.raises(InputError, match="not a regular file"):
        symnmf.Result.load(tmp_path / "run.npz")
    X = synthetic_problem(8, 2)
    with pytest.raises(InputError, match="not a regular file"):
        symnmf.factorize(X, 2, resume=tmp_path / "run.npz")


def spoiled(path, name, change):
    """Rewrite one array of an archive, with a checksum that fits."""
    stored = read_archive(path, str(np.load(path)["format"]))
    stored[name] = np.asarray(change(stored[name]))
    write_archive(path, stored)


RESULTS = {
    "negative": ("U", lambda U: -U),
    "nan": ("V", lambda V: np.full_like(V, np.nan)),
    "shape": ("V", lambda V: V[:-1]),
    "flat": ("U", lambda U: U.ravel()),
    "integers": ("U", lambda U: U.astype(np.int64)),
    "precision": ("V", lambda V: V.astype(np.float32)),
    "status": ("status", lambda status: "perfect"),
    "count": ("n_iter", lambda count: -1),
    "error": ("error", lambda error: np.nan),
    "list for a number": ("error", lambda error: np.ones(3)),
    "penalty": ("penalty", lambda penalty: -1.0),
    "history width": ("history", lambda rows: rows[:, :5]),
    "history order": ("history", lambda rows: rows[::-1]),
    "history count": ("history", lambda rows: rows + 0.5),
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
    for name in whole.keys() - {"format"}:
        write_archive(path, {key: value for key, value in whole.items() if key != name})
        with pytest.raises(InputError, match=name):
            symnmf.Result.load(path)
