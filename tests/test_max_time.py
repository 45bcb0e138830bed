"""``max_time`` bounds the call, whatever part of it is under way; on a clock that counts work.

The clock moves with products only, so that what is tested does not depend on the machine.
"""

from __future__ import annotations

import types
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

import symnmf
from conftest import synthetic_problem
from shell import command
from symnmf import calls
from symnmf.run.hasty import hasty_start
from symnmf.storage import as_symmetric
from symnmf.storage.host import HostMatrix


class Clock:
    """Seconds that only work adds to."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """A clock by which a product takes 0.015 s for each column."""
    found = Clock()
    monkeypatch.setattr(calls, "time", types.SimpleNamespace(perf_counter=found.perf_counter))
    multiply = HostMatrix.matmul

    def slow(X, V, out=None):
        found.now += 0.015 * V.shape[1]
        return multiply(X, V, out)

    monkeypatch.setattr(HostMatrix, "matmul", slow)
    return found


def network(n=600, groups=5, seed=0):
    """Return a block model with known groups: row i is in group i mod ``groups``."""
    rng = np.random.default_rng(seed)
    same = np.equal.outer(np.arange(n) % groups, np.arange(n) % groups)
    A = np.triu(rng.random((n, n)) < np.where(same, 0.08, 0.004), 1)
    return sp.csr_array((A + A.T).astype(float))


CALLS: dict[str, Any] = {
    "factorize": lambda A, t: symnmf.factorize(A, 5, tol=0, max_iter=10**6, max_time=t),
    "sketch": lambda A, t: symnmf.factorize(
        A.toarray(), 5, init="sketch", tol=0, max_iter=10**6, max_time=t
    ),
    "levels": lambda A, t: symnmf.factorize(A, 5, init="levels", tol=0, max_iter=10**6, max_time=t),
    "n_init": lambda A, t: symnmf.factorize(
        A, 5, n_init=20, init="scaled-random", tol=0, max_iter=10**6, max_time=t
    ),
    "communities": lambda A, t: symnmf.communities(A, 5, max_time=t, random_state=0),
    "communities, many": lambda A, t: symnmf.communities(A, 25, max_time=t, n_init=20),
    "communities, auto": lambda A, t: symnmf.communities(A, "auto", max_time=t),
    "SymNMF": lambda A, t: symnmf.SymNMF(5, affinity="precomputed", max_time=t).fit(A),
}


@pytest.mark.parametrize("seconds", [1.0, 3.0, 8.0])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_returns_in_time_whatever_it_is_doing(clock, name, seconds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CALLS[name](network(), seconds)
    assert clock.now <= 1.2 * seconds + 1.0
    U = found.embedding_ if name == "SymNMF" else getattr(found, "result", found).U
    assert np.isfinite(U).all()
    assert U.any()


@pytest.mark.parametrize("seconds", [1.0, 3.0])
@pytest.mark.parametrize("line", ["cluster A.npz -k auto", "factorize A.npz -r 5 -o U.npz --tol 0"])
def test_a_command_ends_in_time_too(clock, tmp_path, monkeypatch, line, seconds):
    monkeypatch.chdir(tmp_path)
    sp.save_npz("A.npz", network())
    ran = command(f"{line} --max-time {seconds} -q")
    assert ran.exit_code in (0, 3), ran.stderr
    assert clock.now <= 1.2 * seconds + 1.0


@pytest.mark.parametrize("dense", [False, True])
def test_a_hasty_start_takes_no_product_with_a_factor_and_has_the_scale_of_X(clock, dense):
    A = 7.0 * network()
    X = as_symmetric(A.toarray() if dense else A)
    U = hasty_start(X, 5)
    assert clock.now <= 0.02  # one vector at most
    assert U.shape == (600, 5)
    fit, size = np.vdot(A @ U, U), np.linalg.norm(U.T @ U) ** 2
    assert 0.5 < np.sqrt(fit / size) < 2.0  # its best multiple


def test_a_hasty_start_on_a_graph_is_more_than_noise():
    A = network()
    truth = np.arange(600) % 5
    labels = hasty_start(as_symmetric(A), 5).argmax(axis=1)
    assert normalized_mutual_info_score(truth, labels) > 0.2


def test_a_hasty_start_has_no_zero_column_where_there_are_few_neighbourhoods():
    A = sp.csr_array(synthetic_problem(30, 3, 0.1) > 0.5, dtype=float)
    A.setdiag(0.0)
    A.eliminate_zeros()
    U = hasty_start(as_symmetric(sp.csr_array(A)), 20)
    assert U.any(axis=0).all()
    assert len(np.unique(U, axis=1).T) == 20
