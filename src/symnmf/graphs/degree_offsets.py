"""How much to add to the degrees of a graph before it is normalised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from symnmf import calls
from symnmf.arguments import checked
from symnmf.graphs.adjacency import affinities, degrees, normalized
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


@checked(A=("matrix",))
def choose_degree_offset(A: Any, clusters: int) -> float:
    """How much to add to the degrees, in mean degrees: nothing, or 1 where the graph collapses.

    The best factorization of D^-1/2 A D^-1/2 can belong to small components and whiskers, which
    are attached to the rest by a few edges. Then all clusters but one are tiny. With D + tau I this
    does not happen (Zhang and Rohe 2018), but an unnecessary tau costs accuracy. So tau is 0 if the
    labels of a quick factorization then have an effective number of clusters, exp(entropy of the
    sizes), of at least 0.7 k. Clusters can also be truly unequal. So otherwise it is 0 or 1, by the
    log-likelihood that such labels gain in a block model that keeps the degrees. Modularity would
    rather split a large group. With more components than clusters it is 1, because the
    factorization with tau = 0 then finds components. A large graph is contracted first.
    """
    if not isinstance(A, SymmetricArray):
        A = affinities(A, "A", signed=True)
    return with_degree_offset(A, clusters).tau or 0.0


@dataclass(frozen=True, eq=False)
class Scaled:
    """A graph, normalised or not, and what was learnt of it on the way.

    Attributes
    ----------
    tau : float or None
        What was added to the degrees, in mean degrees; None if the graph is as it was.
    graph : array, csr_array or SymmetricArray
    basis : Basis or None
        Its leading eigenvectors, where they were computed.
    modularity, gain : float or None
        Those of quick labels, if any were computed; see :class:`Partition`.
    """

    tau: float | None
    graph: Any
    basis: Basis | None = None
    modularity: float | None = None
    gain: float | None = None


def with_degree_offset(A: Any, clusters: int) -> Scaled:
    """Return A normalised with the tau of :func:`choose_degree_offset`."""
    away = isinstance(A, SymmetricArray)
    if clusters < 2 or (A.signed if away else A.min() < 0):  # signed graphs have no such rule yet
        return Scaled(0.0, normalized(A))
    if not affordable(A.shape[0], clusters):  # no time to look: the literature's choice
        return Scaled(OFFSETS[1], normalized(A, OFFSETS[1]))
    pieces = 0  # of what is known by its products alone they cannot be counted
    if not away:
        count, part = connected(sp.csr_array(A))
        pieces = count - int((np.bincount(part) == 1).sum())
    coarse = Coarse.of(A, clusters)
    tried: list[Scaled] = []
    for tau in OFFSETS[1:] if pieces > clusters else OFFSETS:
        scaled, labels = coarse.labelled(tau, clusters)
        tried.append(scaled)
        spread = coarse.effective_number(labels) >= SPREAD * clusters
        if (tau == 0.0 and spread) or calls.out_of_time():
            break
    return coarse.whole(A, max(tried, key=lambda scaled: scaled.gain or 0.0))


@dataclass(frozen=True, eq=False)
class Coarse:
    """A graph, or a contracted version of a large one, on which a tau is looked at.

    Attributes
    ----------
    graph : csr_array, array or SymmetricArray
        Partitions of its rows have the modularity that they have in the whole graph.
    degrees : ndarray
        Weight of the edges at its rows.
    sizes : ndarray
        How many rows of the whole graph that have an edge are in each.
    entries : int
        Stored entries of the whole graph.
    """

    graph: Any
    degrees: np.ndarray
    sizes: np.ndarray
    entries: int

    @classmethod
    def of(cls, A: Any, clusters: int) -> Coarse:
        """Contract a sparse graph that is large, and take any other as it is."""
        known: np.ndarray = degrees(A)
        sizes: np.ndarray = (known > 0).astype(np.float64)
        entries = A.nnz if sp.issparse(A) else A.shape[0] ** 2
        if sp.issparse(A) and A.shape[0] * clusters > LOOKED_AT:
            A = sp.csr_array(A)
            while A.shape[0] > coarse_rows(clusters):
                group, count = groups_of_neighbors(A)
                if count > SHRINKING * A.shape[0]:
                    break
                A = contracted(A, group, count)
                known, sizes = (np.bincount(group, one, count) for one in (known, sizes))
        return cls(A, known, sizes, int(entries))

    def labelled(self, tau: float, clusters: int) -> tuple[Scaled, np.ndarray]:
        """Return the graph normalised with D + tau I, and quick labels."""
        mean = self.degrees.sum() / max(self.sizes.sum(), 1.0)
        scaled = normalized(self.graph, known=self.degrees + tau * mean * self.sizes)
        X: Any = scaled if isinstance(scaled, SymmetricArray) else stored(scaled)
        with one_blas_thread():
            basis = leading_subspace(X, clusters)
            if not calls.out_of_time():
                U = improved(X, basis.start(X, None), tol=QUICK_TOL, steps=QUICK_STEPS)
                labels = U.argmax(axis=1)
            else:
                labels = basis.labels()
        found = Partition.of(self.graph, labels, clusters)
        found = replace(found, entries=self.entries)
        # of weights whose sum is no number there are none
        measures = (np.nan_to_num(one, nan=-1.0) for one in (found.modularity, found.gain))
        return Scaled(tau, scaled, basis, *map(float, measures)), labels

    def effective_number(self, labels: np.ndarray) -> float:
        """exp(entropy of the sizes): k for k equal clusters, near 1 where one holds nearly all."""
        share = np.bincount(labels, self.sizes) / max(self.sizes.sum(), 1.0)
        share = share[share > 0]
        return float(np.exp(-(share * np.log(share)).sum()))

    def whole(self, A: Any, chosen: Scaled) -> Scaled:
        """Return the same for the whole graph A."""
        if A.shape == self.graph.shape:
            return chosen
        return replace(chosen, graph=normalized(A, chosen.tau or 0.0), basis=None)


def with_scaling(A: Any, clusters: int) -> Scaled:
    """Return A normalised, unless it has been already or has no need of it.

    Hubs hold the leading eigenvectors of A as it is. A sparse A that is normalised already stays
    as it is, and so does one with negative entries.
    """
    if clusters < 2 or isinstance(A, SymmetricArray) or A.min() < 0 or _is_normalized(A):
        return Scaled(None, A)
    return with_degree_offset(A, clusters)


def _is_normalized(A: Any) -> bool:
    """Whether the largest eigenvalue of a sparse A is 1, as where degrees were divided by."""
    if not sp.issparse(A) or A.shape[0] < 3 or not A.nnz:
        return False
    known = degrees(A)
    if known.mean() > 1.0 + SAME:  # the largest eigenvalue is at least this
        return False
    largest = eigsh(A, k=1, v0=np.sqrt(known), tol=SAME, return_eigenvectors=False)[0]
    return bool(abs(largest - 1.0) <= SAME)
