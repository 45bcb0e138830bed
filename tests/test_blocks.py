"""A matrix on disk gives what the same matrix in memory gives, and is never in memory whole."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from symnmf.errors import InputError
from symnmf.readers.converting import convert
from symnmf.storage import Blocks, blocks
from symnmf.storage.blocks import as_bytes
from symnmf.storage.folder import FolderWriter
from symnmf.storage.stores import panels

N, RANK = 230, 5


def similarities(n=N, rank=RANK, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    B = rng.random((n, rank))
    noise = 0.1 * rng.random((n, n))
    return (B @ B.T + noise + noise.T).astype(dtype)


def graph(n=N, seed=0):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=0.05, rng=rng, format="csr")
    return sp.csr_array(A + A.T)


def write_folder(folder, X, side):
    """Write X, dense or sparse, as a folder of blocks."""
    n, sparse = X.shape[0], sp.issparse(X)
    bounds = [*range(0, n, side), n]
    writer = FolderWriter(Path(folder), bounds, X.dtype, "csr" if sparse else "dense")
    for i in range(len(bounds) - 1):
        for j in range(i, len(bounds) - 1):
            writer.add(i, j, X[bounds[i] : bounds[i + 1], bounds[j] : bounds[j + 1]])
    writer.close()
    return folder


def stored(kind, X, folder):
    """Put X on disk in some way; return what a user would pass."""
    if kind == "npy":
        np.save(folder / "X.npy", X)
        return folder / "X.npy"
    if kind == "memmap":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r")
    if kind == "fortran":
        np.save(folder / "X.npy", np.asfortranarray(X))
        return str(folder / "X.npy")
    if kind == "part of a memmap":
        wide = np.zeros((X.shape[0] + 3, X.shape[0] + 3), X.dtype)
        wide[3:, 3:] = X
        np.save(folder / "X.npy", wide)
        return np.load(folder / "X.npy", mmap_mode="r")[3:, 3:]
    if kind == "copy on write":
        np.save(folder / "X.npy", np.zeros_like(X))
        mapped = np.load(folder / "X.npy", mmap_mode="c")
        mapped[...] = X
        return mapped
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / "X.h5", "w") as file:
            file.create_dataset("group/X", data=X, chunks=(50, 70))
        return folder / "X.h5"
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(folder / "X.zarr", shape=X.shape, dtype=X.dtype, chunks=(60, 60))
        array[...] = X
        return folder / "X.zarr"
    if kind == "open zarr":
        path = stored("zarr", X, folder)
        return pytest.importorskip("zarr").open_array(path, mode="r")
    return write_folder(folder / "blocks", X, 60)


KINDS = ["npy", "memmap", "fortran", "part of a memmap", "copy on write", "hdf5", "zarr"]
KINDS += ["open zarr", "folder"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_store_X_gives_the_iterates_of_memory(kind, tmp_path):
    X = similarities()
    matrix = Blocks(stored(kind, X, tmp_path), memory=200_000)
    assert len(matrix.tiles) >= 5
    assert matrix.sqnorm == pytest.approx(float(np.sum(X**2)), rel=1e-13)
    # quasi-Newton and Gauss-Newton steps blow rounding up with every iteration
    for solver, iterations in (("a-symhals", 12), ("symanls", 12), ("auto", 5)):
        if solver == "auto" and matrix.entries is None:
            continue  # the first sweep goes entry by entry where entries can be read
        run = {"solver": solver, "random_state": 0, "max_iter": iterations, "tol": 0}
        run["init"] = "scaled-random"  # blocks begin on a sketch otherwise, which memory does not
        expected, found = (symnmf.factorize(M, RANK, **run) for M in (X, matrix))
        np.testing.assert_allclose(found.U, expected.U, rtol=0, atol=1e-11 * expected.U.max())
        np.testing.assert_allclose(found.error, expected.error, rtol=1e-10)


def test_sparse_blocks_give_the_iterates_of_memory(tmp_path):
    A = graph()
    matrix = Blocks(write_folder(tmp_path / "blocks", A, 50), memory=200_000)
    for solver in ("a-symhals", "hals-newton"):
        run = {"solver": solver, "random_state": 0, "max_iter": 12, "tol": 0}
        expected = symnmf.factorize(sp.csr_array(A), RANK, **run)
        found = symnmf.factorize(matrix, RANK, **run)
        if solver == "a-symhals":
            np.testing.assert_allclose(found.U, expected.U, rtol=0, atol=1e-12 * expected.U.max())
        assert found.error == pytest.approx(expected.error, rel=0.05)
    assert matrix.residual_sqnorm(found.U, found.U) == pytest.approx(
        np.sum((A.toarray() - found.U @ found.U.T) ** 2), rel=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 3000), st.integers(1, 20), st.integers(1, 20))
def test_tiles_cover_the_upper_triangle_once(n, most, rows, columns):
    covered = np.zeros((n, n), int)
    for tile in panels(n, most, rows, columns):
        assert tile.left >= tile.top
        assert tile.on_diagonal or tile.left >= tile.bottom
        covered[tile.top : tile.bottom, tile.left : tile.right] += 1
        size = (tile.bottom - tile.top) * (tile.right - tile.left)
        assert size <= max(most, rows * max(rows, columns), n)
    upper = np.triu_indices(n)
    assert (covered[upper] == 1).all()


def test_results_do_not_depend_on_threads_and_the_fingerprint_not_on_blocks(tmp_path):
    X = similarities(300)
    np.save(tmp_path / "X.npy", X)
    one, three = (Blocks(tmp_path / "X.npy", memory=300_000, n_jobs=jobs) for jobs in (1, 3))
    V = np.random.default_rng(1).random((300, 40))
    assert np.array_equal(one.matmul(V), three.matmul(V))
    coarse = Blocks(tmp_path / "X.npy", memory=3_000_000, assume_symmetric=True)
    sparse = Blocks(write_folder(tmp_path / "blocks", sp.csr_array(X), 70), memory="3MB")
    assert one.digest() == three.digest() == coarse.digest() == sparse.digest()
    X[17, 4] = X[4, 17] = X[17, 4] * (1 + 1e-15)
    np.save(tmp_path / "Y.npy", X)
    assert Blocks(tmp_path / "Y.npy", memory="3MB").digest() != one.digest()


def test_entries_out_of_range_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", similarities() * 1e40)
    with pytest.raises(symnmf.InputError, match=r"the largest entry of .* must be from 1e-30"):
        Blocks(tmp_path / "X.npy", memory=200_000)


def test_a_nearly_perfect_fit_is_measured_entry_by_entry(tmp_path):
    U = np.random.default_rng(0).random((N, 3))
    np.save(tmp_path / "X.npy", U @ U.T)
    result = symnmf.factorize(
        Blocks(tmp_path / "X.npy", memory=200_000), 3, init=U * (1 + 1e-9), max_iter=0
    )
    exact = np.sum((U @ U.T * ((1 + 1e-9) ** 2 - 1)) ** 2) / np.sum((U @ U.T) ** 2)
    assert result.error == pytest.approx(exact, rel=1e-4)


def test_float32_and_integers_are_worked_in_their_precision(tmp_path):
    np.save(tmp_path / "single.npy", similarities(dtype=np.float32))
    np.save(tmp_path / "whole.npy", np.round(10 * similarities()).astype(np.int16))
    single, whole = (
        Blocks(tmp_path / f"{name}.npy", memory=200_000) for name in ("single", "whole")
    )
    assert single.dtype == np.float32
    assert symnmf.factorize(single, 3, max_iter=3, tol=0).U.dtype == np.float32
    V = np.ones((N, 2))
    assert np.array_equal(whole.matmul(V), np.round(10 * similarities()) @ V)


def test_small_files_are_read_whole_and_large_ones_in_blocks(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", similarities())
    symnmf.factorize(str(tmp_path / "X.npy"), 3, max_iter=2, tol=0)
    assert not isinstance(symnmf.storage.as_symmetric(tmp_path / "X.npy"), Blocks)
    monkeypatch.setattr("symnmf.storage.blocks.MEMORY", 1000)
    assert isinstance(symnmf.storage.as_symmetric(tmp_path / "X.npy"), Blocks)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(symnmf.storage.as_symmetric(mapped), Blocks)


def test_checkpoints_go_on_bit_for_bit_whatever_the_block_size(tmp_path):
    np.save(tmp_path / "X.npy", similarities())
    matrix = Blocks(tmp_path / "X.npy", memory=200_000)
    run = {"random_state": 0, "tol": 0, "solver": "a-symhals"}
    whole = symnmf.factorize(matrix, RANK, max_iter=10, **run)
    symnmf.factorize(matrix, RANK, max_iter=4, checkpoint=tmp_path / "run.npz", **run)
    resumed = symnmf.factorize(
        Blocks(tmp_path / "X.npy", memory=200_000, assume_symmetric=True),
        RANK,
        max_iter=10,
        checkpoint=tmp_path / "run.npz",
        **run,
    )
    assert np.array_equal(whole.U, resumed.U)


MEASURED = """
import sys, numpy as np, symnmf
from symnmf import parallel
from symnmf.storage import Blocks

# so that the small run loads every kernel of the large one
parallel.SMALLEST_PART, parallel.LEAST_SHARED = 1, 0

def peak(reset=False):
    if reset:
        open("/proc/self/clear_refs", "w").write("5")
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

small, large, memory = sys.argv[1], sys.argv[2], int(sys.argv[3])
for solver in ("a-symhals", "auto"):
    def run(path):
        X = Blocks(path, memory=memory)
        return symnmf.factorize(X, 8, solver=solver, random_state=0, max_iter=5, tol=0).U
    run(small)
    before = peak(reset=True)
    U = run(large)
    print(peak() - before, U.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_memory_stays_at_three_blocks_and_a_few_factors(tmp_path):
    for name, n in (("small", 300), ("large", 3000)):
        half = np.random.default_rng(0).random((n, n), dtype=np.float32)
        np.save(tmp_path / f"{name}.npy", half + half.T)
    memory = 6_000_000
    command = [sys.executable, "-c", MEASURED, tmp_path / "small.npy", tmp_path / "large.npy"]
    lines = subprocess.run(
        [*map(str, command), str(memory)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for line in lines:
        grown, factor = map(int, line.split())
        # X has 36 MB; quasi-Newton keeps six factors of its own besides those of every method
        assert grown <= memory + 20 * factor + 3_000_000


# --- what is refused


def refused(match, source, **options):
    with pytest.raises(InputError, match=match) as caught:
        Blocks(source, memory=options.pop("memory", 200_000), **options)
    assert str(caught.value).count(".  ") == 0
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "what"), [(-1.0, "negative"), (np.nan, "NaN"), (np.inf, "NaN or infinite")]
)
def test_a_bad_entry_is_refused_and_its_block_named(value, what, tmp_path):
    X = similarities()
    X[200, 40] = X[40, 200] = value
    np.save(tmp_path / "X.npy", X)
    refused(rf"{what}.* in rows \d+ to \d+, columns", tmp_path / "X.npy")
    refused(f"{what}.* in block 0-3.npy", write_folder(tmp_path / "blocks", X, 60))


def test_asymmetry_is_refused_and_its_block_named_unless_declared(tmp_path):
    X = similarities()
    X[200, 40] += 0.5
    np.save(tmp_path / "X.npy", X)
    refused("not symmetric in rows .* differ .* by up to 0.5", tmp_path / "X.npy")
    Blocks(tmp_path / "X.npy", memory=200_000, assume_symmetric=True)
    X[200, 40] -= 0.5
    X[61, 62] += 0.5
    refused("not symmetric in block 1-1.npz", write_folder(tmp_path / "b", sp.csr_array(X), 60))


def test_a_truncated_or_missing_file_is_refused(tmp_path):
    np.save(tmp_path / "X.npy", similarities())
    content = (tmp_path / "X.npy").read_bytes()
    (tmp_path / "X.npy").write_bytes(content[: len(content) // 2])
    refused("ends after 11[45] of its 230 rows", tmp_path / "X.npy")
    (tmp_path / "X.npy").write_bytes(b"nothing of the kind")
    refused("not a .npy array", tmp_path / "X.npy")
    refused("does not exist", tmp_path / "Y.npy")
    np.save(tmp_path / "X.npy", np.ones((3, 4)))
    refused("must be square, got shape 3 x 4", tmp_path / "X.npy")
    np.save(tmp_path / "X.npy", np.ones((3, 3), dtype=complex))
    refused("must be real", tmp_path / "X.npy")
    refused("'4XB'", tmp_path / "X.npy", memory="4XB")


def test_a_dense_block_of_other_numbers_is_seen_by_its_checksum(tmp_path):
    X = similarities()
    write_folder(tmp_path / "blocks", X, 60)
    block = tmp_path / "blocks" / "0-1.npy"
    content = bytearray(block.read_bytes())
    content[-80:] = bytes(80)  # zeros: numbers like any others
    block.write_bytes(content)
    refused("block 0-1.npy .*its checksum is wrong", tmp_path / "blocks")
    manifest = json.loads((tmp_path / "blocks" / "manifest.json").read_text())
    manifest["checksums"].pop()
    (tmp_path / "blocks" / "manifest.json").write_text(json.dumps(manifest))
    refused("not one checksum for each block", tmp_path / "blocks")
    del manifest["checksums"]  # as in a folder made by hand
    (tmp_path / "blocks" / "manifest.json").write_text(json.dumps(manifest))
    assert Blocks(tmp_path / "blocks", memory=400_000).shape == X.shape


def broken(folder, what):
    block = folder / "0-2.npz"
    whole = sp.load_npz(block)
    if what == "missing":
        block.unlink()
    elif what == "truncated":
        block.write_bytes(block.read_bytes()[:200])
    elif what == "shape":
        sp.save_npz(block, whole[:, :-1])
    elif what == "dtype":
        sp.save_npz(block, whole.astype(np.float32))
    else:
        whole.indices[0] = 10_000
        np.savez(
            block, format=b"csr", shape=whole.shape, data=whole.data,
            indices=whole.indices, indptr=whole.indptr,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("missing", "misses its block 0-2.npz"),
        ("truncated", "block 0-2.npz .* damaged or cut short"),
        ("shape", "block 0-2.npz .* is 60 x 59 and should be 60 x 60"),
        ("dtype", "block 0-2.npz .* holds float32 and should hold float64"),
        ("indices", "block 0-2.npz "),
    ],
)
def test_a_bad_block_is_named_before_or_during_the_run(what, said, tmp_path):
    folder = write_folder(tmp_path / "blocks", graph(), 60)
    matrix = Blocks(folder, memory=200_000)
    settings = {"solver": "a-symhals", "random_state": 0, "tol": 0}
    kept = tmp_path / "run.npz"

    def spoil(now):
        if now.iteration == 3:
            broken(folder, what)

    with pytest.raises(InputError, match=said):
        symnmf.factorize(
            matrix, 3, max_iter=9, callback=spoil, checkpoint=kept, checkpoint_every=0, **settings
        )
    refused(said, folder)
    # the checkpoint is whole: repair the folder, resume, and reach the undisturbed result
    repaired = Blocks(write_folder(tmp_path / "repaired", graph(), 60), memory=200_000)
    resumed = symnmf.factorize(repaired, 3, max_iter=9, checkpoint=kept, **settings)
    whole = symnmf.factorize(repaired, 3, max_iter=9, **settings)
    assert np.array_equal(resumed.U, whole.U)


def test_manifests_are_not_trusted(tmp_path):
    folder = write_folder(tmp_path / "blocks", graph(), 60)
    good = json.loads((folder / "manifest.json").read_text())
    for change, said in [
        ({"n": 10}, "bounds do not rise"),
        ({"format": "other"}, "format is 'other'"),
        ({"blocks": [[1, 0]]}, "not pairs I <= J"),
        ({"kind": "pickle"}, "kind is 'pickle'"),
        ({"dtype": "O"}, "must hold numbers"),
    ]:
        (folder / "manifest.json").write_text(json.dumps(good | change))
        refused(said, folder)
    (folder / "manifest.json").write_text("{")
    refused("not that of a folder of blocks", folder)
    (folder / "manifest.json").unlink()
    refused("no readable manifest.json", folder)


def test_blocks_that_do_not_fit_the_memory_are_refused(tmp_path):
    folder = write_folder(tmp_path / "blocks", graph(), 60)
    refused("allow more, or convert the matrix again", folder, memory=3000)


def test_sizes_are_read_as_people_write_them():
    assert as_bytes("4GB") == 4 * 10**9
    assert as_bytes("512 MiB") == 512 * 2**20
    assert as_bytes("1.5k") == 1500
    for bad in ("", "GB", "-1", "4 XB", 0, True, float("nan")):
        with pytest.raises(InputError, match="memory must be"):
            as_bytes(bad)


def test_a_stream_that_is_given_up_waits_for_nobody():
    """The garbage collector may be the one to close it, in a thread that holds a lock."""
    go = threading.Event()

    def read(tile, turn):
        return tile == 0 or go.wait(30)

    stream = blocks._ahead([0, 1], read)
    next(stream)
    closing = threading.Thread(target=stream.close, daemon=True)
    closing.start()
    closing.join(10)
    waited = closing.is_alive()
    go.set()
    assert not waited


@pytest.mark.parametrize("kind", ["npy", "blocks"])
@pytest.mark.parametrize("how", ["overwrite", "cut", "remove"])
def test_a_matrix_that_changes_during_a_run_is_refused(kind, how, tmp_path):
    """Half of the products would be those of another matrix, and the error of neither."""
    B = np.random.default_rng(0).random((60, 3))
    path = tmp_path / "X.npy"
    np.save(path, B @ B.T)
    if kind == "blocks":
        convert(path, tmp_path / "blocks", memory=20_000)
        path = tmp_path / "blocks"

    def change(now):
        if now.iteration != 1:
            return
        for file in [path] if path.is_file() else path.glob("*.npy"):
            content = file.read_bytes()
            if how == "remove":
                file.unlink()
            else:
                half = len(content) // 2
                file.write_bytes(content[:half] + (content[:half] if how == "overwrite" else b""))

    matrix = symnmf.storage.Blocks(path, memory=20_000)
    symnmf.factorize(matrix, 3, random_state=0, max_iter=3, tol=0)
    with pytest.raises(InputError, match=r"changed while|cut short|misses|any more|no longer"):
        symnmf.factorize(matrix, 3, random_state=0, max_iter=5, tol=0, callback=change)
