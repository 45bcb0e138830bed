"""A Dask array gives the same bits on threads, on a cluster, and on one that loses workers."""

import os
import random
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import MINUTES
from symnmf.errors import InputError
from symnmf.storage import DaskMatrix

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, RANK, SIDE = 260, 4, 70
RUN = {"solver": "a-symhals", "random_state": 0, "max_iter": 6, "tol": 0}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    B, noise = rng.random((N, RANK)), 0.1 * rng.random((N, N))
    return B @ B.T + noise + noise.T


@pytest.fixture(scope="module")
def path(X, tmp_path_factory):
    path = tmp_path_factory.mktemp("dask") / "X.npy"
    np.save(path, X)
    return path


@pytest.fixture(scope="module")
def cluster():
    patient = {
        # a survivor asks a dead worker for data this long before it asks the scheduler
        "distributed.comm.timeouts.connect": "5s",
        # a nanny is closed if its worker is away this long after one was lost, even if it was there
        # meanwhile and has just been killed once more
        "distributed.deploy.lost-worker-timeout": "1 day",
    }
    with (
        dask.config.set(patient),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def from_file(path, side=SIDE, pause=0.0, change=None):
    """Blocks that are read from a file wherever they are needed."""

    def load(block_info=None):

        import numpy as np

        time.sleep(pause)
        (a, b), (c, d) = block_info[None]["array-location"]
        block = np.memmap(path, dtype, mode="r", offset=offset, shape=(n, n))[a:b, c:d]
        place = block_info[None]["chunk-location"]
        return block if change is None else change(np.array(block), place)

    # the header is read once: CPython 3.11 may raise a SystemError where two threads parse one
    whole = np.load(path, mmap_mode="r")
    n, dtype, offset = len(whole), whole.dtype, whole.offset
    sizes = tuple(min(side, n - first) for first in range(0, n, side))
    return da.map_blocks(load, chunks=(sizes, sizes), dtype=float, meta=np.empty((0, 0)))


def test_threads_give_the_iterates_of_memory(X, path):
    expected = symnmf.factorize(X, RANK, **RUN)
    for blocks in (from_file(path), da.from_array(X, chunks=(90, 130))):
        found = symnmf.factorize(blocks, RANK, **RUN)
        np.testing.assert_allclose(found.U, expected.U, rtol=0, atol=1e-12 * expected.U.max())
    matrix = DaskMatrix(from_file(path), assume_symmetric=True)
    assert matrix.residual_sqnorm(found.U, found.V) == pytest.approx(
        np.sum((X - found.U @ found.V.T) ** 2), rel=1e-10
    )
    assert str(found.certificate(matrix))


def test_sparse_blocks_give_the_iterates_of_memory(X):
    A = sp.csr_array(np.where(np.quantile(X, 0.9) < X, X, 0))
    blocks = da.from_array(A.toarray(), chunks=SIDE).map_blocks(sp.csr_array)
    found, expected = (symnmf.factorize(M, RANK, **RUN) for M in (blocks, A))
    np.testing.assert_allclose(found.U, expected.U, rtol=0, atol=1e-12 * expected.U.max())
    assert DaskMatrix(blocks).is_sparse


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda block, place: block[1:] if place == (0, 1) else block, r"block \(0, 1\).* is 69 x"),
        (
            lambda block, place: block * (1j if place == (1, 2) else 1),
            r"block \(1, 2\).*complex128",
        ),
        (lambda block, place: block + (place == (0, 2)), r"symmetric in block \(0, 2\)"),
        (lambda block, place: block - 9 * (place == (1, 1)), r"negative .* in block \(1, 1\)"),
        (
            lambda block, place: block.astype("f") if place == (0, 0) else block,
            "of float32 and should",
        ),
    ],
)
def test_a_bad_block_is_named(change, said, path):
    with pytest.raises(InputError, match=said):
        DaskMatrix(from_file(path, change=change))


def kill(client, killed, number=None):
    """End a worker as the kernel would, without a word to anybody."""
    workers = client.run(os.getpid, on_error="ignore", callback_timeout=MINUTES)
    pids = sorted(workers.values())
    if pids:
        pid = random.choice(pids) if number is None else pids[number % len(pids)]
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)


@pytest.mark.long
def test_lost_workers_cost_work_and_not_the_result(path, cluster):
    undisturbed = symnmf.factorize(from_file(path), RANK, **RUN)
    killed = []

    def every_second_iteration(now):
        if now.iteration in (1, 3):  # each worker in turn
            kill(cluster, killed, len(killed))

    with cluster.as_current():
        found = symnmf.factorize(
            from_file(path, pause=0.02), RANK, callback=every_second_iteration, **RUN
        )
    assert len(set(killed)) == 2
    assert np.array_equal(found.U, undisturbed.U)
