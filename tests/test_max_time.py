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

import symnmf
from shell import command
from symnmf import calls
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
