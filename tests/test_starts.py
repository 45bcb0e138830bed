"""Where runs begin: turned eigenvectors, a sketch of a large dense X, random numbers."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from conftest import synthetic_problem
from symnmf import calls
from symnmf.objectives import Frobenius
from symnmf.run.sketch import sketch_of
from symnmf.run.start import named_start
from symnmf.storage import as_symmetric


def blocks(sizes, weight=1.0, seed=0):
    """A block diagonal similarity: dense groups, the later ones ``weight`` as strong."""
    rng = np.random.default_rng(seed)
    parts = []
    for number, size in enumerate(sizes):
        part = 1.0 + 0.2 * rng.random((size, size))
        parts.append((part + part.T) * (weight if number else 1.0))
    return sp.block_diag(parts).toarray()


def low_rank_similarity(n, rank, seed=0, noise=0.02):
    """Nonnegative, near rank ``rank``, with a long tail."""
    rng = np.random.default_rng(seed)
    B = rng.random((n, rank)) * (rng.random((n, rank)) < 0.3)
    tail = rng.random((n, 60))
    return B @ B.T + noise * tail @ tail.T / 60


def test_the_default_start_finds_small_components_that_random_ones_lose():
    X = blocks([60, 40], weight=0.1)
    found = symnmf.factorize(X, 2)
    assert found.labels[:60].std() == 0 == found.labels[60:].std()
    assert found.labels[0] != found.labels[-1]


def test_the_default_start_does_not_depend_on_the_seed_and_random_ones_do():
    X = synthetic_problem(60, 4, 0.3)
    one, two = (symnmf.factorize(X, 4, random_state=seed, max_iter=3, tol=0) for seed in (0, 1))
    np.testing.assert_array_equal(one.U, two.U)
    one, two = (
        symnmf.factorize(X, 4, init="scaled-random", random_state=seed, max_iter=3, tol=0)
        for seed in (0, 1)
    )
    assert not np.allclose(one.U, two.U)


def test_published_methods_and_odd_matrices_begin_at_random():
    X, rank = synthetic_problem(40, 3), 3
    dense = Frobenius(as_symmetric(X))
    n = 1500
    large = Frobenius(as_symmetric(np.ones((n, n))))
    assert named_start("auto", dense, rank) == "spectral"
    assert named_start("auto", large, rank) == "sketch"
    assert named_start("auto", large, n // 4) == "spectral"
    assert named_start("auto", large, rank, at_random=True) == "scaled-random"
    masked = symnmf.Problem(X, ignore_diagonal=True).objective
    assert named_start("auto", masked, rank) == "scaled-random"
    signed = symnmf.Problem(X - 1.0, allow_negative=True).objective
    assert named_start("auto", signed, rank) == "scaled-random"
    graph = Frobenius(as_symmetric(sp.eye_array(2 * n, format="csr")))
    assert named_start("auto", graph, rank) == "spectral"
    random = {
        info.name for info in symnmf.solvers.available()
        if symnmf.solvers.as_solver(info.name).starts_at_random
    }  # fmt: skip
    assert {"symanls", "symhals", "a-symhals", "pgd", "cd", "admm"} <= random
    assert not {"auto", "hals-newton"} & random


def test_a_result_is_a_start():
    X = synthetic_problem(40, 3, 0.3)
    first = symnmf.factorize(X, 3, tol=1e-2, random_state=0)
    options = {"tol": 1e-6, "random_state": 0}
    expected = symnmf.factorize(X, 3, init=first.U, **options)
    for n_init in (1, 2):
        again = symnmf.factorize(X, 3, init=first, n_init=n_init, **options)
        np.testing.assert_array_equal(again.U, expected.U)
    fitted = (symnmf.SymNMF(3, affinity="precomputed", init=U).fit(X) for U in (first, first.U))
    np.testing.assert_array_equal(*(model.embedding_ for model in fitted))
    compared = symnmf.compare(X, 3, ["auto"], init=first, **options).results["auto", 0]
    np.testing.assert_array_equal(compared.U, expected.U)
    with pytest.raises(symnmf.InputError, match=r"init must have shape 40 x 4 .* got 40 x 3"):
        symnmf.factorize(X, 4, init=first)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sketch_is_x_on_its_leading_eigenvectors(dtype):
    X = low_rank_similarity(400, 5).astype(dtype)
    sketch, basis = sketch_of(as_symmetric(X), 5)
    values = np.linalg.eigvalsh(X.astype(np.float64))[::-1]
    np.testing.assert_allclose(basis.values, values[:5], rtol=1e-4)
    entries = sketch.matmul(np.eye(400, dtype=dtype))
    # no matrix of that rank comes nearer than the eigenvectors, and a sketch is nearly as near
    width = sketch.B.shape[1]
    least = float(np.sqrt(np.sum(values[width:] ** 2)))
    assert np.linalg.norm(entries - X) <= 1.3 * least + 1e-5 * np.linalg.norm(X)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent by kill")
def test_ctrl_c_in_a_start_gives_what_there_is():
    X = low_rank_similarity(400, 5)

    class Interrupting(type(as_symmetric(np.eye(3)))):
        count = 0

        def matmul(self, V, out=None):
            type(self).count += 1
            if self.count == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return super().matmul(V, out)

    result = symnmf.factorize(Interrupting(X, as_symmetric(X).threads), 5, init="spectral")
    assert result.status == "stopped"
    assert result.n_iter == 0
    assert Interrupting.count < 12
    assert not calls.out_of_time()
