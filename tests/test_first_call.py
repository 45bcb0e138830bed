"""What a first call on a small problem does not have to compile."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import symnmf
from symnmf.kernels import reductions
from symnmf.ops import host
from symnmf.parallel import Threads
from symnmf.storage import SparseMatrix, as_symmetric, sparse


def not_needed(*_):
    raise AssertionError("this would be compiled")


@pytest.fixture
def small_calls_only(monkeypatch):
    """Refuse kernels that share work out, and those that BLAS stands in for."""
    for module in (host, sparse):
        monkeypatch.setattr(module, "together", not_needed)
    for name in ("inner_rows", "cross_gram_rows"):
        monkeypatch.setattr(reductions, name, not_needed)


@pytest.mark.usefixtures("small_calls_only")
def test_small_problems_need_no_shared_passes_and_no_kernels_for_what_blas_does():
    graph = nx.planted_partition_graph(4, 50, 0.3, 0.02, seed=0)
    assert len(symnmf.communities(graph, 4, random_state=0, n_jobs=2).labels) == 200
    B = np.random.default_rng(0).random((200, 2))
    assert symnmf.factorize(B @ B.T, 2, random_state=0, n_jobs=2).status == "converged"


def test_indices_of_64_bits_are_kept_in_32():
    A = nx.to_scipy_sparse_array(nx.karate_club_graph(), dtype=float)
    wide = sp.csr_array(A)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    X = as_symmetric(wide)
    assert isinstance(X, SparseMatrix)
    assert X.indices.dtype == X.indptr.dtype == np.int32
    V = np.random.default_rng(0).random((34, 3))
    np.testing.assert_allclose(X.matmul(V), A @ V)


def test_sums_of_float32_are_those_of_float64():
    A, B = np.random.default_rng(0).random((2, 50_000, 3)).astype(np.float32)
    ops = host.HostOps(Threads(1))
    whole = A.astype(np.float64), B.astype(np.float64)
    assert ops.inner(A, B) == pytest.approx(np.vdot(*whole), rel=1e-12)
    np.testing.assert_allclose(ops.cross(A, B), whole[0].T @ whole[1], rtol=1e-6)
