"""How much to add to the degrees of a graph before it is normalised."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import calls
from symnmf.arguments import checked
from symnmf.graphs.adjacency import affinities, degrees, normalized
from symnmf.graphs.partitions import Partition
from symnmf.parallel import one_blas_thread
from symnmf.run.spectral import Basis, affordable, leading_subspace
from symnmf.storage import SymmetricArray
from symnmf.storage.wrapping import stored

#: What is tried, in mean degrees.
STEPS = (0.0, 0.25, 0.5, 1.0, 2.0, 5.0, 20.0)

#: Least effective number of clusters, as a part of those asked for, that is no collapse.
SPREAD = 0.7

#: Modularity by which a larger tau has to be better than a smaller one.
WORTH = 0.01

#: Part of its modularity by which A as it is has to be better than A normalised.
PLAIN_AHEAD = 0.02

#: Standard deviation of the degrees, in mean degrees, up to which they are nearly the same. It is
#: 0.06 to 0.13 on graphs of images that are normalised already.
EVEN = 0.15


@checked(A=("matrix",))
def choose_degree_offset(A: Any, clusters: int) -> float:
    """How much to add to the degrees, in mean degrees: nothing, unless the plain graph collapses.

    The leading eigenvectors of D^-1/2 A D^-1/2 can belong to small components and whiskers, which
    are attached to the rest by a few edges. Then all clusters but one are tiny. With D + tau I this
    does not happen (Zhang and Rohe 2018), but an unnecessary tau costs accuracy. So tau is 0 if the
    labels from the eigenvectors then have an effective number of clusters, exp(entropy of the
    sizes), of at least 0.7 k. Clusters can also be truly unequal. So otherwise 0, 1/4, 1/2, 1, 2, 5
    and 20 are compared by the modularity of such labels, and the smallest value within 0.01 of the
    best is chosen. With more components than clusters it is at least 1/4, because the eigenvectors
    with tau = 0 then belong to components.
    """
    if not isinstance(A, SymmetricArray):
        A = affinities(A, "A", signed=True)
    return with_degree_offset(A, clusters)[0]


def with_degree_offset(A: Any, clusters: int) -> tuple[float, Any, Basis | None]:
    """Return the tau of :func:`choose_degree_offset`, A normalised by it, and its eigenvectors.

    The eigenvectors are None where none were computed.
    """
    away = isinstance(A, SymmetricArray)
    if clusters < 2 or (A.signed if away else A.min() < 0):  # signed graphs have no such rule yet
        return 0.0, normalized(A), None
    if not affordable(A.shape[0], clusters):  # no time to look: the literature's choice
        return 1.0, normalized(A, 1.0), None
    pieces = 0  # of what is known by its products alone they cannot be counted
    if not away:
        from scipy.sparse.csgraph import connected_components

        count, part = connected_components(sp.csr_array(A), directed=False)
        pieces = count - int((np.bincount(part) == 1).sum())
    inside = degrees(A) > 0
    tried: list[tuple[float, float, Any, Basis]] = []
    for tau in STEPS[1:] if pieces > clusters else STEPS:
        scaled = normalized(A, tau)
        X = scaled if away else stored(scaled)
        with one_blas_thread():
            basis = leading_subspace(X, clusters)
            labels = basis.labels()
        if tau == 0.0 and effective_number(labels[inside]) >= SPREAD * clusters:
            return tau, scaled, basis
        modularity = Partition.of(A, labels, clusters).modularity
        # of weights whose sum is no number there is none
        tried.append((float(np.nan_to_num(modularity, nan=-1.0)), tau, scaled, basis))
        if calls.out_of_time():
            break
    enough = max(modularity for modularity, *_ in tried) - WORTH
    _, tau, scaled, basis = next(one for one in tried if one[0] >= enough)
    return tau, scaled, basis


def with_scaling(A: Any, clusters: int) -> tuple[float | None, Any, Basis | None]:
    """Return tau, A normalised by it and its eigenvectors, or None, A itself and its eigenvectors.

    The eigenvectors are None where they were not computed.

    Hubs hold the leading eigenvectors of A as it is, and rows with next to no similarities those
    of the normalised A. Labels are read off the eigenvectors of either, and the partition of higher
    modularity wins. That of the normalised A does unless the other is better by 2%: it has lost
    little then, and with hubs much is to be won. A sparse A whose degrees are nearly the same has
    been normalised already, or has no need of it, and stays as it is.
    """
    if clusters < 2 or isinstance(A, SymmetricArray) or A.min() < 0:
        return None, A, None
    if _even(A):
        return None, A, None
    tau, scaled, basis = with_degree_offset(A, clusters)
    if basis is None or calls.out_of_time():
        return tau, scaled, basis
    with one_blas_thread():
        plain = leading_subspace(stored(A), clusters)
        found = [Partition.of(A, one.labels(), clusters).modularity for one in (basis, plain)]
    if found[1] > found[0] + PLAIN_AHEAD * abs(found[0]):
        return None, A, plain
    return tau, scaled, basis


def _even(A: Any) -> bool:
    """Whether the degrees of a sparse A differ so little that dividing by them changes little."""
    if not sp.issparse(A):
        return False
    known = degrees(A)
    known = known[known > 0]
    return bool(known.std() <= EVEN * known.mean())


def effective_number(labels: np.ndarray) -> float:
    """exp(entropy of the sizes): k for k equal clusters, near 1 where one holds nearly all."""
    share = np.bincount(labels) / max(len(labels), 1)
    share = share[share > 0]
    return float(np.exp(-(share * np.log(share)).sum()))
