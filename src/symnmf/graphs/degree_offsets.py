"""How much to add to the degrees of a graph before it is normalised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from symnmf import calls
from symnmf.graphs.adjacency import degrees, normalized
from symnmf.graphs.contraction import SHRINKING, coarse_rows, contracted, groups_of_neighbors
from symnmf.graphs.partitions import Partition
from symnmf.parallel import one_blas_thread
from symnmf.run.sketch import improved
from symnmf.run.spectral import Basis, affordable, leading_subspace
from symnmf.storage import SymmetricArray
from symnmf.storage.components import connected
from symnmf.storage.wrapping import stored

#: What is tried, in mean degrees: nothing, and the literature's choice.
OFFSETS = (0.0, 1.0)

#: Least effective number of clusters, as a part of those asked for, that is no collapse.
SPREAD = 0.7

#: Entries of U above which a graph is contracted before its clusters are looked at.
LOOKED_AT = 2**20

#: Where a factorization that only has to show whether clusters collapse may end.
QUICK_TOL, QUICK_STEPS = 1e-3, 100

#: Rounding of the largest eigenvalue of a normalised matrix.
SAME = 1e-6


class Scaled(NamedTuple):
    """A graph, normalised or not, with what was learnt of it on the way.

    ``tau`` was added to its degrees, in mean degrees. ``basis`` are its leading eigenvectors, where
    they were computed.
    """

    tau: float
    graph: Any
    basis: Basis | None = None


def with_degree_offset(A: Any, clusters: int, n_jobs: int | None = None) -> Scaled:
    """Return A normalised with D + tau I, tau nothing or 1 where the graph collapses.

    The best factorization of D^-1/2 A D^-1/2 can belong to small components and whiskers, which
    are attached to the rest by a few edges. Then all clusters but one are tiny. With D + tau I this
    does not happen (Zhang and Rohe 2018), but an unnecessary tau costs accuracy. So tau is 0 if the
    labels of a quick factorization then have an effective number of clusters, exp(entropy of the
    sizes), of at least 0.7 k. Clusters can also be truly unequal. So otherwise it is 0 or 1, by the
    log-likelihood that such labels gain in a block model that keeps the degrees. Modularity would
    rather split a large group. With more components than clusters it is 1, because the
    factorization with tau = 0 then finds components. A large graph is contracted first.
    """
    away = isinstance(A, SymmetricArray)
    if clusters < 2 or (A.signed if away else A.min() < 0):  # signed graphs have no such rule yet
        return Scaled(0.0, normalized(A))
    if not affordable(A.shape[0], clusters):  # no time to look: the literature's choice
        return Scaled(OFFSETS[1], normalized(A, OFFSETS[1]))
    pieces = 0  # of what is known by its products alone they cannot be counted
    if not away:
        count, part = connected(sp.csr_array(A))
        pieces = count - int((np.bincount(part) == 1).sum())
    graph, known, rows = _contracted(A, clusters)
    best, most = Scaled(0.0, A), -np.inf
    for tau in OFFSETS[1:] if pieces > clusters else OFFSETS:
        mean = known.sum() / max(rows.sum(), 1.0)
        scaled = normalized(graph, known=known + tau * mean * rows)
        basis, labels = _quick_labels(scaled, clusters, n_jobs)
        entries = A.nnz if sp.issparse(A) else A.shape[0] ** 2
        found = replace(Partition.of(graph, labels, clusters), entries=int(entries))
        gain = float(np.nan_to_num(found.gain, nan=-1.0))  # of weights whose sum is no number
        if gain > most:
            best, most = Scaled(tau, scaled, basis), gain
        share = np.bincount(labels, rows) / max(rows.sum(), 1.0)
        effective = np.exp(-np.sum(share * np.log(np.where(share > 0, share, 1.0))))
        if (tau == 0.0 and effective >= SPREAD * clusters) or calls.out_of_time():
            break
    if graph is not A:
        return Scaled(best.tau, normalized(A, best.tau))
    return best


def _contracted(A: Any, clusters: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Contract a large sparse graph; return its degrees, and rows with edges in each of its rows.

    Partitions of its rows have the modularity that they have in the whole graph.
    """
    graph, known = A, degrees(A)
    rows: np.ndarray = (known > 0).astype(np.float64)
    if sp.issparse(A) and A.shape[0] * clusters > LOOKED_AT:
        while graph.shape[0] > coarse_rows(clusters):
            group, count = groups_of_neighbors(sp.csr_array(graph))
            smaller = contracted(sp.csr_array(graph), group, count)
            if smaller.nnz > SHRINKING * graph.nnz:
                break
            graph = smaller
            known, rows = (np.bincount(group, one, count) for one in (known, rows))
    return graph, known, rows


def _quick_labels(scaled: Any, clusters: int, n_jobs: int | None) -> tuple[Basis, np.ndarray]:
    """Return the leading eigenvectors, and labels of a factorization that ends early."""
    X: Any = scaled if isinstance(scaled, SymmetricArray) else stored(scaled, n_jobs)
    with one_blas_thread():
        basis = leading_subspace(X, clusters)
        if calls.out_of_time():
            return basis, basis.labels()
        U = improved(X, basis.start(X, None), tol=QUICK_TOL, steps=QUICK_STEPS)
        return basis, U.argmax(axis=1)


def is_normalized(A: Any) -> bool:
    """Whether the largest eigenvalue of a sparse A is 1, as where degrees were divided by."""
    if not sp.issparse(A) or A.shape[0] < 3 or not A.nnz:
        return False
    known = degrees(A)
    if known.mean() > 1.0 + SAME:  # the largest eigenvalue is at least this
        return False
    largest = eigsh(A, k=1, v0=np.sqrt(known), tol=SAME, return_eigenvectors=False)[0]
    return bool(abs(largest - 1.0) <= SAME)
