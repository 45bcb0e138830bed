"""A matrix on disk gives what the same matrix in memory gives, and is never in memory whole."""

import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import symnmf
from symnmf.errors import InputError
from symnmf.storage import Blocks
from symnmf.storage.blocks import as_bytes

N, RANK = 230, 5


def similarities(n=N, rank=RANK, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    B = rng.random((n, rank))
    noise = 0.1 * rng.random((n, n))
    return (B @ B.T + noise + noise.T).astype(dtype)


class Sliced:
    """Anything with shape, dtype and slices."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, key):
        rows, columns = key
        assert isinstance(rows, slice)
        assert isinstance(columns, slice)
        return self.X[key]


def stored(kind, X, folder):
    """Put X on disk in some way; return what a user would pass."""
    if kind == "npy":
        np.save(folder / "X.npy", X)
        return folder / "X.npy"
    if kind == "fortran":
        np.save(folder / "X.npy", np.asfortranarray(X))
        return str(folder / "X.npy")
    if kind == "part of a memmap":
        wide = np.zeros((X.shape[0] + 3, X.shape[0] + 3), X.dtype)
        wide[3:, 3:] = X
        np.save(folder / "X.npy", wide)
        return np.load(folder / "X.npy", mmap_mode="r")[3:, 3:]
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / "X.h5", "w") as file:
            file.create_dataset("group/X", data=X, chunks=(50, 70), compression="gzip")
        return folder / "X.h5"
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(folder / "X.zarr", shape=X.shape, dtype=X.dtype, chunks=(60, 60))
        array[...] = X
        return folder / "X.zarr"
    if kind == "open zarr":
        path = stored("zarr", X, folder)
        return pytest.importorskip("zarr").open_array(path, mode="r")
    return Sliced(X)


KINDS = ["npy", "fortran", "part of a memmap", "hdf5", "zarr", "open zarr", "anything with slices"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_store_X_gives_the_iterates_of_memory(kind, tmp_path):
    X = similarities()
    matrix = Blocks(stored(kind, X, tmp_path), memory=200_000)
    assert len(matrix.tiles) >= 5
    assert matrix.sqnorm == pytest.approx(float(np.sum(X**2)), rel=1e-13)
    assert matrix.largest() == X.max()
    # quasi-Newton and Gauss-Newton steps blow rounding up with every iteration
    for solver, iterations in (("a-symhals", 12), ("symanls", 12), ("cd", 3), ("auto", 5)):
        run = {"solver": solver, "random_state": 0, "max_iter": iterations, "tol": 0}
        run["init"] = "scaled-random"  # blocks begin on a sketch otherwise, which memory does not
        expected, ours = (symnmf.factorize(M, RANK, **run) for M in (X, matrix))
        np.testing.assert_allclose(ours.U, expected.U, rtol=0, atol=1e-11 * expected.U.max())
        np.testing.assert_allclose(ours.error, expected.error, rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 90), st.integers(1, 100))
def test_tiles_cover_the_upper_triangle_once(n, side):
    covered = np.zeros((n, n), int)
    for tile in Blocks(np.ones((n, n)), memory=3 * 8 * side**2).tiles:
        assert tile.left == tile.top or tile.left >= tile.bottom
        covered[tile.top : tile.bottom, tile.left : tile.right] += 1
    assert (covered[np.triu_indices(n)] == 1).all()


def test_results_do_not_depend_on_threads_and_the_fingerprint_not_on_blocks(tmp_path):
    X = similarities(1300)
    one, three = (Blocks(Sliced(X), memory=9_000_000, n_jobs=jobs) for jobs in (1, 3))
    V = np.random.default_rng(1).random((1300, 40))
    assert np.array_equal(one.matmul(V), three.matmul(V))
    coarse = Blocks(Sliced(X), memory=90_000_000, assume_symmetric=True)
    assert one.digest() == three.digest() == coarse.digest()
    X[17, 4] = X[4, 17] = X[17, 4] * (1 + 1e-15)
    assert Blocks(Sliced(X), memory="3MB").digest() != one.digest()
    swapped = similarities(1300)[::-1, ::-1]  # the same entries elsewhere
    assert Blocks(Sliced(swapped), memory="3MB").digest() != one.digest()


def test_entries_out_of_range_are_refused():
    refused(r"the largest entry of .* must be from 1e-30", Sliced(similarities() * 1e40))


def test_a_nearly_perfect_fit_is_measured_entry_by_entry(tmp_path):
    U = np.random.default_rng(0).random((N, 3))
    X = Blocks(Sliced(U @ U.T), memory=200_000)
    result = symnmf.factorize(X, 3, init=U * (1 + 1e-9), max_iter=0)
    exact = np.sum((U @ U.T * ((1 + 1e-9) ** 2 - 1)) ** 2) / np.sum((U @ U.T) ** 2)
    assert result.error == pytest.approx(exact, rel=1e-4)


def test_float32_and_integers_are_worked_in_their_precision():
    single = Blocks(Sliced(similarities(dtype=np.float32)), memory=200_000)
    whole = Blocks(Sliced(np.round(10 * similarities()).astype(np.int16)), memory=200_000)
    assert single.dtype == np.float32
    assert symnmf.factorize(single, 3, max_iter=3, tol=0).U.dtype == np.float32
    V = np.ones((N, 2))
    assert np.array_equal(whole.matmul(V), np.round(10 * similarities()) @ V)


def mapped_graph(folder, change=None):
    """Put a graph on disk as the three arrays of a CSR matrix; return it as memory maps."""
    A = sp.random_array((400, 400), density=0.05, rng=np.random.default_rng(0))
    A = sp.csr_array(A + A.T)
    if change is not None:
        A.data[change] += 0.5
    for name in ("indptr", "indices", "data"):
        np.save(folder / f"{name}.npy", getattr(A, name))
    maps = [
        np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")
    ]
    return sp.csr_array(tuple(maps), shape=A.shape), A, maps


@pytest.mark.parametrize("solver", ["a-symhals", "auto"])
def test_a_sparse_matrix_of_memory_maps_stays_on_disk(solver, tmp_path):
    on_disk, A, maps = mapped_graph(tmp_path)
    X = symnmf.storage.as_symmetric(on_disk)
    for own, mapped in zip((X.data, X.indices, X.indptr), maps, strict=True):
        assert np.shares_memory(own, mapped)
    assert X.digest() == symnmf.storage.as_symmetric(A).digest()
    run = {"solver": solver, "random_state": 0, "max_iter": 8, "tol": 0}
    there, here = (symnmf.factorize(M, 4, **run) for M in (on_disk, A))
    np.testing.assert_array_equal(there.U, here.U)


@pytest.mark.parametrize("place", [0, 1234, -1])
def test_an_entry_that_differs_from_its_mirror_image_on_disk_is_refused(place, tmp_path):
    on_disk, *_ = mapped_graph(tmp_path, place)
    with pytest.raises(InputError, match="is not symmetric"):
        symnmf.storage.as_symmetric(on_disk)


def test_small_files_are_read_whole_and_large_ones_in_blocks(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", similarities())
    symnmf.factorize(str(tmp_path / "X.npy"), 3, max_iter=2, tol=0)
    assert not isinstance(symnmf.storage.as_symmetric(tmp_path / "X.npy"), Blocks)
    monkeypatch.setattr("symnmf.storage.blocks.MEMORY", 1000)
    assert isinstance(symnmf.storage.as_symmetric(tmp_path / "X.npy"), Blocks)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(symnmf.storage.as_symmetric(mapped), Blocks)


def test_checkpoints_go_on_bit_for_bit(tmp_path):
    np.save(tmp_path / "X.npy", similarities())
    matrix = Blocks(tmp_path / "X.npy", memory=200_000)
    run = {"random_state": 0, "tol": 0, "solver": "a-symhals"}
    whole = symnmf.factorize(matrix, RANK, max_iter=10, **run)
    symnmf.factorize(matrix, RANK, max_iter=4, checkpoint=tmp_path / "run.npz", **run)
    again = Blocks(tmp_path / "X.npy", memory=200_000, assume_symmetric=True)
    run |= {"max_iter": 10, "checkpoint": tmp_path / "run.npz"}
    assert np.array_equal(whole.U, symnmf.factorize(again, RANK, **run).U)


def test_memory_stays_at_three_blocks_and_a_few_factors(tmp_path):
    half = np.random.default_rng(0).random((3000, 3000), dtype=np.float32)
    np.save(tmp_path / "X.npy", half + half.T)
    del half
    memory = 6_000_000

    def fit(solver):
        X = Blocks(tmp_path / "X.npy", memory=memory)
        return symnmf.factorize(X, 8, solver=solver, random_state=0, max_iter=5, tol=0).U

    for solver in ("a-symhals", "auto"):
        fit(solver)  # compiles
        tracemalloc.start()
        U = fit(solver)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # X has 36 MB; a start on a sketch has factors of four times the columns
        assert peak <= memory + 30 * U.nbytes + 3_000_000


# --- what is refused


def refused(match, source, **options):
    with pytest.raises(InputError, match=match):
        Blocks(source, **{"memory": 200_000, **options})


@pytest.mark.parametrize(
    ("value", "what"), [(-1.0, "negative"), (np.nan, "NaN"), (np.inf, "NaN or infinite")]
)
def test_a_bad_entry_is_refused_and_its_block_named(value, what):
    X = similarities()
    X[200, 40] = X[40, 200] = value
    refused(rf"{what}.* in rows \d+ to \d+, columns", Sliced(X))


def test_asymmetry_is_refused_and_its_block_named_unless_declared():
    X = similarities()
    X[200, 40] += 0.5
    refused("not symmetric in rows .* differ .* by up to 0.5", Sliced(X))
    Blocks(Sliced(X), memory=200_000, assume_symmetric=True)


def test_a_file_that_is_no_matrix_is_refused(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, similarities())
    content = path.read_bytes()
    for spoilt in (content[: len(content) // 2], b"nothing of the kind", b""):
        path.write_bytes(spoilt)
        refused("not a readable .npy array", path)
    np.save(path, np.array([[{}]]), allow_pickle=True)
    refused("not a readable .npy array", path)
    refused("does not exist", tmp_path / "Y.npy")
    np.save(path, np.ones((3, 4)))
    refused("must be square, got shape 3 x 4", path)
    np.save(path, np.ones((3, 3), dtype=complex))
    refused("must be real", path)
    refused("'4XB'", path, memory="4XB")
    refused("must be a memory map", object())
    for name in ("X.h5", "X.zarr"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        refused("not a readable", tmp_path / name)


def test_a_store_that_fails_during_a_run_is_one_error():
    class Failing(Sliced):
        healthy = True

        def __getitem__(self, key):
            if not self.healthy:
                raise OSError("the disk is gone")
            return super().__getitem__(key)

    source = Failing(similarities())
    matrix = Blocks(source, memory=200_000)

    def fail(now):
        source.healthy = now.iteration < 3

    with pytest.raises(InputError, match=r"cannot be read any more \(the disk is gone"):
        symnmf.factorize(matrix, 3, callback=fail, random_state=0, tol=0)


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

    class Slow(Sliced):
        reads = 0

        def __getitem__(self, key):
            self.reads += 1
            assert self.reads < 3 or go.wait(30)
            return super().__getitem__(key)

    source = Slow(similarities())
    matrix = Blocks(source, memory=10**8, assume_symmetric=True)  # one block, one reading
    matrix.tiles = Blocks(Sliced(similarities()), memory=200_000).tiles
    stream = matrix.parts()
    next(stream)
    closing = threading.Thread(target=stream.close, daemon=True)
    closing.start()
    closing.join(10)
    waited = closing.is_alive()
    go.set()
    assert not waited
