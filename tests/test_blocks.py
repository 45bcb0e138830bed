"""A matrix on disk gives what the same matrix in memory gives, and is never in memory whole."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from symnmf.errors import InputError
from symnmf.storage import Blocks

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


def test_a_name_that_no_system_takes_does_not_exist():
    with pytest.raises(InputError, match="does not exist"):
        symnmf.storage.Blocks("x" * 5000)
