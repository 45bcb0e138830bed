"""Matrices on disk, in folders and files: whatever was done to them is one InputError."""

from __future__ import annotations

import io
import json
import os
import random
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from hostile_files import header_by_hand, mutate
from symnmf.errors import InputError
from symnmf.storage.folder import FolderWriter

X = synthetic_problem(40, 3, 0.1, seed=0)


def folder_of_blocks(path, kind):
    writer = FolderWriter(path, [0, 20, 40], np.dtype(np.float64), kind)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        block = X[20 * i : 20 * i + 20, 20 * j : 20 * j + 20]
        writer.add(i, j, sp.csr_array(block) if kind == "csr" else block)
    writer.close()
    return path


def fitted(path):
    return symnmf.factorize(path, 3, random_state=0, max_iter=2, tol=0.0).U


@pytest.mark.filterwarnings("ignore:.*created on Python 2:UserWarning")
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_damaged_blocks_are_refused_or_used_as_they_are(tmp_path, kind):
    folder = folder_of_blocks(tmp_path / "X", kind)
    block = folder / ("0-0.npy" if kind == "dense" else "0-0.npz")
    whole, rng, refusals = block.read_bytes(), random.Random(3), []
    for _ in range(200):
        by_hand = kind == "dense" and rng.random() < 0.3
        block.write_bytes(header_by_hand(rng) if by_hand else mutate(rng, block.name, whole))
        try:
            assert np.isfinite(fitted(folder)).all()
        except InputError as error:
            refusals.append(str(error))
    assert len(refusals) > 50
    assert all(said.endswith(".") for said in refusals)


@pytest.mark.filterwarnings("ignore:.*created on Python 2:UserWarning")
def test_damaged_array_files_are_refused_or_used_as_they_are(tmp_path):
    path, rng, refusals = tmp_path / "X.npy", random.Random(4), []
    np.save(path, X)
    whole = path.read_bytes()
    for _ in range(200):
        path.write_bytes(header_by_hand(rng) if rng.random() < 0.5 else mutate(rng, "X.npy", whole))
        try:
            assert np.isfinite(fitted(path)).all()
        except InputError as error:
            refusals.append(str(error))
    assert len(refusals) > 50
    assert all(said.endswith(".") for said in refusals)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": float("inf")}, "not that of a folder of blocks"),
        ({"blocks": [[0, float("inf")]]}, "not that of a folder of blocks"),
        ({"n": 10**23, "bounds": [0, 10**23], "blocks": []}, "far more than its blocks"),
        ({"n": 4 * 10**12, "bounds": [0, 4 * 10**12], "blocks": []}, "far more than its blocks"),
        ("[" * 100_000, "not that of a folder of blocks"),
    ],
    ids=["infinite", "infinite block", "beyond integers", "beyond memory", "deep"],
)
def test_a_manifest_that_nobody_wrote_is_refused(tmp_path, change, words):
    manifest = folder_of_blocks(tmp_path / "X", "csr") / "manifest.json"
    sound = json.loads(manifest.read_text())
    manifest.write_text(change if isinstance(change, str) else json.dumps(sound | change))
    with pytest.raises(InputError, match=words):
        fitted(tmp_path / "X")


@pytest.mark.parametrize("name", ["manifest.json", "0-0.npy", "../X.npy"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path, name):
    folder = folder_of_blocks(tmp_path / "X", "dense")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match="not a regular file"):
        fitted(tmp_path / "X.npy" if name == "../X.npy" else folder)


def test_compressed_blocks_count_as_what_they_unpack_to(tmp_path):
    folder = folder_of_blocks(tmp_path / "X", "csr")
    expected = fitted(folder)
    block = folder / "0-1.npz"
    sp.save_npz(block, sp.load_npz(block), compressed=True)  # as SciPy does unless told
    assert np.array_equal(fitted(folder), expected)
    bomb = io.BytesIO()
    np.save(bomb, np.zeros(2 * 10**6))
    with zipfile.ZipFile(block, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("data", "indices", "indptr", "shape", "format"):
            archive.writestr(f"{name}.npy", bomb.getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="blocks of up to 8000"):
            fitted(folder)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
