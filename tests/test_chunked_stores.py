"""Zarr and HDF5 arrays: read as their libraries read them, and never more than that."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symnmf
from conftest import synthetic_problem
from symnmf.errors import InputError
from symnmf.storage import Blocks
from symnmf.storage.opening import open_store
from symnmf.storage.tiles import Tile

zarr = pytest.importorskip("zarr")
h5py = pytest.importorskip("h5py")
numcodecs = pytest.importorskip("numcodecs")

X = synthetic_problem(70, 3, 0.1, seed=0)
WHOLE = Tile(0, 70, 0, 70)


def whole(path: Path) -> np.ndarray:
    """All of it, in one tile and in squares that no chunk lines up with."""
    store = open_store(path)
    found = np.asarray(store.read(WHOLE)).copy()
    matrix = Blocks(path, memory=100_000, assume_symmetric=True)
    for tile, block in matrix.squares(17):
        assert np.array_equal(block, found[tile.top : tile.bottom, tile.left : tile.right])
    return found


COMPRESSORS = {
    "none": None,
    "zlib": numcodecs.Zlib(),
    "gzip": numcodecs.GZip(),
    "bz2": numcodecs.BZ2(),
    "zstd": numcodecs.Zstd(),
    "lz4": numcodecs.LZ4(),
    "blosc": numcodecs.Blosc(),
    "bit-shuffled blosc": numcodecs.Blosc(cname="zstd", shuffle=2),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("separator", [".", "/"])
@pytest.mark.parametrize("name", COMPRESSORS)
def test_zarr_2_is_read_as_the_library_reads_it(
    name: str, separator: str, order: str, tmp_path: Path
) -> None:
    array = zarr.create_array(
        tmp_path / "X",
        shape=X.shape,
        chunks=(30, 20),
        dtype=">f4" if name == "zstd" else "<f8",
        zarr_format=2,
        compressors=COMPRESSORS[name],
        order=order,
        chunk_key_encoding={"name": "v2", "separator": separator},
    )
    array[:] = X
    assert np.array_equal(whole(tmp_path / "X"), array[:])


@pytest.mark.parametrize("shards", [None, (40, 60)])
@pytest.mark.parametrize("compressor", ["none", "gzip", "zstd", "blosc", "checked"])
def test_zarr_3_is_read_as_the_library_reads_it(
    compressor: str, shards: tuple[int, int] | None, tmp_path: Path
) -> None:
    codecs = {
        "none": None,
        "gzip": zarr.codecs.GzipCodec(),
        "zstd": zarr.codecs.ZstdCodec(),
        "blosc": zarr.codecs.BloscCodec(),
        "checked": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()],
    }
    filters = [zarr.codecs.TransposeCodec(order=(1, 0))] if compressor == "gzip" else None
    array = zarr.create_array(
        tmp_path / "X",
        shape=X.shape,
        chunks=(20, 30),
        shards=shards,
        dtype="float64",
        compressors=codecs[compressor],
        filters=filters,
        fill_value=2.0,
    )
    array[:] = X
    array[0:20, 30:60] = 2.0  # an empty chunk, which is not written
    assert np.array_equal(whole(tmp_path / "X"), array[:])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (30, 20)},
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (33, 20)},
        {"fletcher32": True, "chunks": (7, 9), "dtype": "i1"},
        {"chunks": (30, 20), "dtype": ">f4"},
        {"dtype": "bool", "chunks": (30, 20)},
        {"userblock": 512},
    ],
)
def test_hdf5_is_read_as_the_library_reads_it(options: dict[str, Any], tmp_path: Path) -> None:
    options = {"dtype": "f8", **options}
    block = options.pop("userblock", 0)
    with h5py.File(tmp_path / "X.h5", "w", userblock_size=block) as file:
        array = file.create_dataset("X", data=X.astype(options["dtype"]), **options)
        expected = array[:].astype(float)
    if options["dtype"] in ("f8", ">f4", "bool"):
        assert np.array_equal(whole(tmp_path / "X.h5"), expected)
    else:
        store = open_store(tmp_path / "X.h5")
        assert np.array_equal(store.read(WHOLE), expected)


# What is refused


def refused(path: Path, *words: str, **options: Any) -> None:
    with pytest.raises(InputError) as caught:
        Blocks(path, **{"memory": "20MB", **options})
    assert all(word in str(caught.value) for word in words), str(caught.value)


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


PICKLE_2 = {"compressor": {"id": "pickle", "protocol": 5}}
FILTER_2 = {"filters": [{"id": "pickle", "protocol": 5}], "compressor": None}
PICKLE_3 = {
    "codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "numcodecs.pickle", "configuration": {"id": "pickle"}},
    ]
}


@pytest.mark.parametrize(
    ("version", "change"), [(2, PICKLE_2), (2, FILTER_2), (3, PICKLE_3)], ids=["2", "filter", "3"]
)
def test_no_code_runs_from_a_data_folder(
    version: int, change: dict[str, Any], tmp_path: Path
) -> None:
    folder, canary = tmp_path / "X", tmp_path / "ran"
    array = zarr.create_array(
        folder, shape=(8, 8), chunks=(8, 8), dtype="f8", zarr_format=version, compressors=None
    )
    array[:] = np.ones((8, 8))
    metadata = folder / (".zarray" if version == 2 else "zarr.json")
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | change))
    chunk = folder / ("0.0" if version == 2 else "c/0/0")
    chunk.write_bytes(pickle.dumps(Touch(str(canary))))
    with pytest.raises(InputError, match="pickle"):
        symnmf.factorize(folder, 1)
    refused(folder, "pickle")
    assert not canary.exists()


def test_hdf5_arrays_in_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(X.tobytes())
    with h5py.File(tmp_path / "external.h5", "w") as file:
        place = [(str(tmp_path / "secret"), 0, X.nbytes)]
        file.create_dataset("X", X.shape, "f8", external=place)
    refused(tmp_path / "external.h5", "in other files")
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["X"] = X
    layout = h5py.VirtualLayout(X.shape, "f8")
    layout[:] = h5py.VirtualSource(tmp_path / "source.h5", "X", X.shape)
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    refused(tmp_path / "virtual.h5", "in other files")
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["X"] = h5py.ExternalLink("source.h5", "X")
    refused(tmp_path / "link.h5", "0 two-dimensional arrays")
    with h5py.File(tmp_path / "lzf.h5", "w") as file:
        file.create_dataset("X", data=X, compression="lzf")
    refused(tmp_path / "lzf.h5", "filter 32000", "gzip")


def zeros(path: Path, n: int, chunks: tuple[int, int], version: int = 2) -> Path:
    """A matrix of zeros, of which one chunk is stored."""
    array = zarr.create_array(
        path, shape=(n, n), chunks=chunks, dtype="f8", zarr_format=version, fill_value=0
    )
    array[:1, :1] = 1.0
    return path


@pytest.mark.parametrize("chunks", [(20_000, 20_000), (5_000, 5_000)])
def test_chunks_larger_than_the_memory_are_refused(chunks: tuple[int, int], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file.create_dataset("X", (20_000, 20_000), "f8", chunks=chunks, compression="gzip")
    metadata = {
        "zarr_format": 2,
        "shape": [20_000, 20_000],
        "chunks": list(chunks),
        "dtype": "<f8",
        "fill_value": 0,
        "order": "C",
        "filters": None,
        "compressor": {"id": "gzip"},
    }
    (tmp_path / "X").mkdir()
    (tmp_path / "X" / ".zarray").write_text(json.dumps(metadata))
    for path in (tmp_path / "X.h5", tmp_path / "X"):
        refused(path, "chunks of", "smaller chunks", memory="100MB")
    refused(zarr.open_array(tmp_path / "X", mode="r"), "smaller chunks", memory="100MB")


PEAK = """
import sys, resource
from symnmf.storage import Blocks
from symnmf.errors import InputError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    Blocks(sys.argv[1], memory=sys.argv[2], assume_symmetric=len(sys.argv) > 3)
except InputError as error:
    print(error, file=sys.stderr)
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def peak_of(path: Path, memory: str, *more: str) -> int:
    """Bytes by which opening a matrix makes a process grow."""
    command = [sys.executable, "-c", PEAK, str(path), memory, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
@pytest.mark.parametrize("chunks", [(4_000, 1), (1, 4_000)])
def test_long_chunks_are_read_within_the_memory(chunks: tuple[int, int], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "X.h5", "w") as file:  # 128 MB of zeros in a file of kilobytes
        file.create_dataset("X", (4_000, 4_000), "f8", chunks=chunks, compression="gzip")
    for more in ([], ["assume symmetric"]):
        assert peak_of(tmp_path / "X.h5", "12MB", *more) < 12e6 + 25e6  # and compiled code


def bomb(size: int) -> dict[str, bytes]:
    content = bytes(size)
    return {
        "gzip": gzip.compress(content),
        "zlib": zlib.compress(content),
        "bz2": numcodecs.BZ2().encode(content),
        "zstd": bytes(numcodecs.Zstd().encode(content)),
        "lz4": bytes(numcodecs.LZ4().encode(content)),
        "blosc": bytes(numcodecs.Blosc().encode(content)),
    }


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
def test_a_chunk_that_unpacks_to_more_is_refused(tmp_path: Path) -> None:
    zeros(tmp_path / "X", 100, (100, 100))
    metadata = tmp_path / "X" / ".zarray"
    sound = json.loads(metadata.read_text())
    for name, content in bomb(10**8).items():
        metadata.write_text(json.dumps(sound | {"compressor": {"id": name}}))
        (tmp_path / "X" / "0.0").write_bytes(content)
        refused(tmp_path / "X", "chunk (0, 0) cannot be read")
        if name == "gzip":
            assert peak_of(tmp_path / "X", "20MB") < 40e6
    with h5py.File(tmp_path / "X.h5", "w") as file:
        array = file.create_dataset("X", (100, 100), "f8", chunks=(100, 100), compression="gzip")
        array.id.write_direct_chunk((0, 0), bomb(3 * 10**7)["zlib"])
    refused(tmp_path / "X.h5", "chunk (0, 0) cannot be read", "more bytes")


def test_more_rows_than_the_files_account_for_are_refused(tmp_path: Path) -> None:
    zeros(tmp_path / "X", 100, (100, 100))
    metadata = tmp_path / "X" / ".zarray"
    sound = json.loads(metadata.read_text())
    for n, words in ((2**18, "far more"), (10**12, "chunks"), (10**30, "")):
        metadata.write_text(json.dumps(sound | {"shape": [n, n]}))
        refused(tmp_path / "X", words)


@pytest.mark.skipif(os.name != "posix", reason="pipes and links are POSIX's")
def test_chunks_that_are_no_files_of_the_folder_are_refused(tmp_path: Path) -> None:
    zeros(tmp_path / "X", 100, (100, 100))
    (tmp_path / "elsewhere").write_bytes((tmp_path / "X" / "0.0").read_bytes())
    (tmp_path / "X" / "0.0").unlink()
    (tmp_path / "X" / "0.0").symlink_to(tmp_path / "elsewhere")
    refused(tmp_path / "X", "outside of the folder")
    (tmp_path / "X" / "0.0").unlink()
    os.mkfifo(tmp_path / "X" / "0.0")
    refused(tmp_path / "X", "not a regular file")
    (tmp_path / "X" / ".zarray").unlink()
    os.mkfifo(tmp_path / "X" / ".zarray")
    refused(tmp_path / "X", "not a regular file")


@pytest.mark.parametrize("content", ["[" * 10**5, "{}", "[]", "nul", '{"zarr_format": 2}', ""])
def test_metadata_that_nobody_wrote_is_refused(content: str, tmp_path: Path) -> None:
    for name in (".zarray", "zarr.json"):
        (tmp_path / name).write_text(content)
        refused(tmp_path, "not a readable Zarr array")
