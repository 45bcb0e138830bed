"""Matrices on disk with damage that knows their structure: a program of its own.

Run as ``python damaged_stores.py COUNT FOLDER``. Folders of blocks, Zarr folders of both versions
(sharded too), HDF5 and .npy files are damaged in what describes them and in what they hold, opened
within a small memory and multiplied. The answer is an ``InputError``, or numbers.
What was done is kept in FOLDER, so that it may be stopped and started again.
"""

from __future__ import annotations

import faulthandler
import json
import random
import shutil
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError
from symnmf.storage import Blocks
from symnmf.storage.folder import FolderWriter
from symnmf.storage.names import read_names

N = 40
RNG = np.random.default_rng(0)
FACTOR = RNG.random((N, 3))
X = np.round(FACTOR @ FACTOR.T, 2)
MEMORY = 200_000
PATIENCE = 60
ROUND = 500

JSON_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, -(10**30), 0.5, 1e999, -1e999),
    *("", "x", "NaN", "C", "F", "<f8", ">f4", "|O", "<U8", "float32", "gzip", "pickle", "zstd"),
    *("../..", "/etc/passwd", "little", "big", [], {}, [1], [40], [40, 40], [0, 0], [1, 1]),
    *([40, 40, 40], [10**9, 10**9], {"id": "pickle"}, {"id": "zlib"}, {"name": "bytes"}),
]


def make_blocks(path: Path, kind: str) -> Path:
    with FolderWriter(path, [0, 15, 40], np.dtype(np.float64), kind) as writer:
        for i, j in ((0, 0), (0, 1), (1, 1)):
            part = X[[0, 15, 40][i] : [0, 15, 40][i + 1], [0, 15, 40][j] : [0, 15, 40][j + 1]]
            writer.add(i, j, sp.csr_array(part) if kind == "csr" else part)
        writer.add_names(np.arange(N) + 7)
    return path


def make_zarr(path: Path, version: int, **options: Any) -> Path:
    import zarr

    array = zarr.create_array(
        path, shape=X.shape, chunks=(16, 16), dtype="f8", zarr_format=version, **options
    )
    array[:] = X
    return path


def make_hdf5(path: Path, **options: Any) -> Path:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, **options)
    return path


def make_npy(path: Path) -> Path:
    np.save(path, X)
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {
    "dense blocks": lambda folder: make_blocks(folder / "dense", "dense"),
    "sparse blocks": lambda folder: make_blocks(folder / "csr", "csr"),
    "npy": lambda folder: make_npy(folder / "X.npy"),
    "zarr 2": lambda folder: make_zarr(folder / "zarr2", 2),
    "zarr 3": lambda folder: make_zarr(folder / "zarr3", 3),
    "sharded zarr": lambda folder: make_zarr(folder / "zarr3s", 3, shards=(32, 32)),
    "hdf5": lambda folder: make_hdf5(folder / "X.h5"),
    "chunked hdf5": lambda folder: make_hdf5(
        folder / "Xc.h5", chunks=(16, 16), compression="gzip", shuffle=True, fletcher32=True
    ),
}


def damaged_json(rng: random.Random, value: Any, depth: int = 0) -> Any:
    """The same description with something else in one place of it."""
    if isinstance(value, dict) and value and (depth == 0 or rng.random() < 0.8):
        changed, key = dict(value), rng.choice(list(value))
        action = rng.randrange(6)
        if action == 0:
            del changed[key]
        elif action == 1:
            changed[rng.choice(["filters", "compressor", "codecs", "new", "order"])] = rng.choice(
                JSON_VALUES
            )
        else:
            changed[key] = damaged_json(rng, value[key], depth + 1)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.7:
        other, place = list(value), rng.randrange(len(value))
        if rng.random() < 0.2:
            return other[:place] if rng.random() < 0.5 else other + other
        other[place] = damaged_json(rng, value[place], depth + 1)
        return other
    if isinstance(value, int) and rng.random() < 0.5:
        return value + rng.choice([-1, 1, -2, 2, 1000, -1000])
    return rng.choice(JSON_VALUES)


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(content) + 1)
        action = rng.randrange(6)
        if action == 0:
            content = content[:place]
        elif action == 1:
            content = content[:place] + rng.randbytes(rng.randint(1, 8)) + content[place:]
        elif action == 2:
            content = content[:place] + bytes(rng.randint(1, 64)) + content[place + 8 :]
        elif action == 3:
            many = rng.choice([b"\xff" * 8, b"\0" * 8, (2**31).to_bytes(8, "little")])
            content = content[:place] + many + content[place + 8 :]
        elif action == 4 and content:
            place = min(place, len(content) - 1)
            flipped = content[place] ^ 1 << rng.randrange(8)
            content = content[:place] + bytes([flipped]) + content[place + 1 :]
        else:
            other = rng.randrange(len(content) + 1)
            content = content[:place] + content[other : other + 64] + content[place:]
        content = content or b"\0"
    return content


def damage(rng: random.Random, path: Path) -> tuple[Path, bytes]:
    """Damage one file; return it with what it held."""
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        described = [
            file for file in files if file.name in ("manifest.json", ".zarray", "zarr.json")
        ]
        if described and rng.random() < 0.5:
            files = described
    file = rng.choice(files)
    whole = file.read_bytes()
    described_in = file.suffix == ".json" or file.name == ".zarray"
    if described_in and rng.random() < 0.85:
        file.write_text(json.dumps(damaged_json(rng, json.loads(whole))))
        return file, whole
    file.write_bytes(damaged_bytes(rng, whole))
    return file, whole


class Late(BaseException):
    """Opening or reading took too long."""


def _too_late(*_: object) -> None:
    raise Late


def use(path: Path) -> str:
    """Open a matrix, read it twice, and return what came of it."""
    try:
        matrix = Blocks(path, memory=MEMORY)
        product = matrix.matmul(np.ones((matrix.shape[0], 1), matrix.dtype))
        # entries near the largest float overflow here; a run refuses them
        assert not np.isnan(product).any(), "numbers that are none"
        if path.is_dir():
            read_names(path, matrix.shape[0])
    except InputError as error:
        said = str(error)
        assert said.endswith(".")
        assert "\n" not in said or len(said) < 1000
        return "refused"
    return "read"


def one_round(kind: str, number: int, count: int, folder: Path) -> Counter[str]:
    rng, seen = random.Random(f"{kind} {number}"), Counter[str]()
    place = folder / "stores"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    path = MAKERS[kind](place)
    assert use(path) == "read"
    before = signal.signal(signal.SIGALRM, _too_late)
    try:
        for _ in range(count):
            file, whole = damage(rng, path)
            hurt = file.read_bytes()
            signal.alarm(PATIENCE)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    seen[use(path)] += 1
            except BaseException as error:
                error.add_note(f"{kind}, {file.name}: {hurt[:600]!r}")
                raise
            finally:
                signal.alarm(0)
            file.write_bytes(whole)
    finally:
        signal.signal(signal.SIGALRM, before)
    return seen


def main(count: int, folder: Path) -> None:
    faulthandler.enable()
    done = folder / "stores.json"
    seen: dict[str, Any] = json.loads(done.read_text()) if done.exists() else {}
    for number in range(-(-count // ROUND)):
        for kind in MAKERS:
            so_far = seen.get(kind, {"rounds": 0, "read": 0, "refused": 0})
            if number < so_far["rounds"]:
                continue
            found = one_round(kind, number, min(ROUND, count - number * ROUND), folder)
            seen[kind] = {
                "rounds": number + 1,
                "read": so_far["read"] + found["read"],
                "refused": so_far["refused"] + found["refused"],
            }
            done.write_text(json.dumps(seen, indent=1))
    print(json.dumps(seen))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
