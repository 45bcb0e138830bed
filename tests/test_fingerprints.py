"""A fingerprint is of all of X: whichever entry is another, it is another."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from extras import optional
from symnmf import InputError, Problem, factorize
from symnmf.storage import Blocks, as_symmetric

dask_array = optional("dask.array")


def mapped(X, path):
    np.save(path / "X.npy", X)
    return np.load(path / "X.npy", mmap_mode="r")


#: Each makes a storage of an array, in a folder of its own.
STORAGES = {
    "dense": lambda X, path: as_symmetric(X),
    "dense float32": lambda X, path: as_symmetric(X.astype(np.float32)),
    "csr": lambda X, path: as_symmetric(sp.csr_array(X)),
    "Blocks": lambda X, path: Blocks(mapped(X, path), memory=1e6),
    "Dask": lambda X, path: as_symmetric(dask_array.from_array(X, chunks=len(X) // 2)),
}


def changed(X, i, j):
    Y = X.copy()
    Y[i, j] = Y[j, i] = Y[i, j] + 0.5
    return Y


@pytest.mark.parametrize("kind", STORAGES)
def test_every_entry_counts(kind, tmp_path):
    X = np.ones((6, 6))
    digests = {STORAGES[kind](X, tmp_path).digest()}
    places = list(itertools.combinations_with_replacement(range(6), 2))
    for i, j in places:
        digests.add(STORAGES[kind](changed(X, i, j), tmp_path).digest())
    assert len(digests) == len(places) + 1
    assert STORAGES[kind](X, tmp_path).digest() in digests


def test_a_checkpoint_of_an_x_with_another_last_entry_is_refused(tmp_path):
    X = np.random.default_rng(1).random((40, 40))
    X += X.T
    run = {"random_state": 0, "max_iter": 3, "tol": 0, "checkpoint": tmp_path / "run.npz"}
    factorize(X, 3, **run)
    with pytest.raises(InputError, match="this X"):
        factorize(changed(X, 38, 39), 3, **run)


def test_a_problem_is_told_apart_by_all_it_was_told():
    X = np.ones((5, 5)) + np.eye(5)
    mask, weights = np.ones((5, 5), dtype=bool), np.ones((5, 5))
    mask[3, 4] = mask[4, 3] = False
    weights[3, 4] = weights[4, 3] = 0.5
    problems = [
        Problem(X),
        Problem(changed(X, 3, 4)),
        Problem(X, mask=mask),
        Problem(X, weights=weights),
        Problem(X, ignore_diagonal=True),
        Problem(X, l1=0.1),
        Problem(X, l1=0.2),
        Problem(X, ridge=0.1),
        Problem(X, links=np.eye(5)),
        Problem(X, links=changed(np.eye(5), 3, 4)),
    ]
    assert len({problem.digest for problem in problems}) == len(problems)
    assert Problem(X.copy(), mask=mask).digest == problems[2].digest
