"""Tensors of hypergraphs: T_ijk is the weight of the hyperedge {i, j, k}."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import graphs
from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.tensors.checking import ORDERS, Repeated, from_tuples
from symnmf.tensors.kernels import list_triangles
from symnmf.tensors.storage import SparseTensor

#: Subsets beyond which a list of large hyperedges is refused rather than spelt out.
MOST_SUBSETS = 200_000_000


@checked(order=("whole",))
def from_hyperedges(
    hyperedges: Iterable[Iterable[Hashable]],
    *,
    order: int = 3,
    weights: Sequence[float] | None = None,
    subsets: bool = False,
    repeated: Repeated = "unobserved",
    n_jobs: int | None = None,
) -> tuple[SparseTensor, list[Hashable]]:
    """Return the adjacency tensor of a hypergraph, and the names of its nodes.

    Parameters
    ----------
    hyperedges : iterable of collections of nodes
        Groups of nodes; nodes are any hashable names. A group that occurs several times counts
        several times. ``networkx.find_cliques(G)`` gives such a list.
    order : {3, 4}
        Nodes of a hyperedge.
    weights : sequence of float or None
        One per hyperedge; None for 1 each.
    subsets : bool
        Whether a larger hyperedge counts for each subset of ``order`` of its nodes, and a smaller
        one is ignored. If not, all must have ``order`` nodes.
    repeated : {"unobserved", "observed"}
        A hyperedge is a set, so an entry such as T_iij carries no information; "observed" treats it
        as 0.
    n_jobs : int or None
        Threads for every operation on T; None for all cores.

    Returns
    -------
    T : SparseTensor
    names : list
        The node of each index, in the order of first appearance.

    Examples
    --------
    >>> from symnmf import tensors
    >>> T, names = tensors.from_hyperedges([("ann", "bob", "cat"), ("bob", "cat", "dan")])
    >>> names
    ['ann', 'bob', 'cat', 'dan']
    """
    if order not in ORDERS:
        raise InputError(f"order must be 3 or 4, got {order!r}; for pairs use a matrix.")
    H = graphs.Hypergraph(hyperedges, weights)
    wrong = np.flatnonzero(H.sizes != order)
    if wrong.size and not subsets:
        raise InputError(
            f"hyperedges must be sets of {order} different nodes, but number {wrong[0]} has "
            f"{H.sizes[wrong[0]]}; leave it out, or pass subsets=True to count larger ones for "
            f"each of their subsets of {order}."
        )
    return tensor_of(H, order=order, repeated=repeated, n_jobs=n_jobs), H.names


def tensor_of(
    H: graphs.Hypergraph, *, order: int, repeated: Repeated, n_jobs: int | None = None
) -> SparseTensor:
    """Return the tensor of a hypergraph, with larger hyperedges for each of their subsets."""
    groups = [part.tolist() for part in np.split(H.members, H.incidence.indptr[1:-1])]
    per_group = [math.comb(len(group), order) for group in groups]
    count = sum(per_group)
    if count > MOST_SUBSETS:
        raise InputError(
            f"hyperedges have {count} subsets of {order} nodes in all, more than {MOST_SUBSETS}; "
            f"leave out the largest."
        )
    if not count:
        raise InputError(f"none of the hyperedges has {order} nodes; choose a smaller order.")
    flat = itertools.chain.from_iterable(
        itertools.chain.from_iterable(itertools.combinations(group, order) for group in groups)
    )
    tuples = np.fromiter(flat, np.int64, count * order).reshape(count, order)
    tuples, values = _summed(np.sort(tuples, axis=1), np.repeat(H.weights, per_group))
    return from_tuples(tuples, values, side=len(H.names), repeated=repeated, n_jobs=n_jobs)


@checked()
def triangles(
    G: Any,
    *,
    weight: str | None = "weight",
    repeated: Repeated = "unobserved",
    n_jobs: int | None = None,
) -> tuple[SparseTensor, list[Any]]:
    """Return the tensor of the triangles of a graph, and the names of its nodes.

    T_ijk is 1 if i, j and k are all connected to each other, and 0 otherwise. With edge weights it
    is the geometric mean of the three weights, the intensity of the triangle (Onnela and others,
    2005).

    Parameters
    ----------
    G : networkx.Graph, igraph.Graph, scipy sparse matrix or array
        Undirected; weights finite and nonnegative. Loops are left out.
    weight, repeated, n_jobs
        As in :func:`symnmf.communities` and :func:`from_hyperedges`.

    Returns
    -------
    T : SparseTensor
    names : list
        The node of each index: all nodes of G, whether or not in a triangle.
    """
    A, names = graphs.from_graph(G, weight=weight)
    coo = sp.coo_array(A)
    degrees = np.diff(A.indptr)
    # towards nodes of higher degree only: lists stay short even at hubs
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.lexsort((np.arange(len(names)), degrees))] = np.arange(len(names))
    forward = rank[coo.row] < rank[coo.col]
    ends = rank[coo.row[forward]], rank[coo.col[forward]]
    upward = sp.csr_array((coo.data[forward], ends), shape=A.shape)
    upward.sort_indices()
    count = list_triangles(upward.indptr, upward.indices, np.empty((0, 3), np.int64))
    if not count:
        raise InputError(
            "G has no triangles, so there is nothing to factorize; use its edges instead."
        )
    found = np.empty((count, 3), np.int64)
    list_triangles(upward.indptr, upward.indices, found)
    if (upward.data == 1.0).all():
        values = np.ones(count)
    else:
        sides = [upward[found[:, a], found[:, b]] for a, b in ((0, 1), (0, 2), (1, 2))]
        values = np.cbrt(math.prod(np.asarray(side).ravel() for side in sides))
    nodes = np.argsort(rank)[found]
    tensor = from_tuples(nodes, values, side=len(names), repeated=repeated, n_jobs=n_jobs)
    return tensor, names


def normalize(T: SparseTensor) -> SparseTensor:
    r"""Return T_ijk / (d_i d_j d_k)^(1/3), d_i the sum of row i; of order 4 with the fourth root.

    This corresponds to :math:`D^{-1/2} A D^{-1/2}` for a graph: hubs do not dominate.
    """
    if not isinstance(T, SparseTensor):
        raise InputError(
            f"T must be a sparse tensor, as symnmf.tensors.from_tuples makes one, got "
            f"{type(T).__name__}."
        )
    degrees = T.matmul(np.ones((T.shape[0], 1), T.dtype))[:, 0]
    roots = np.where(degrees > 0, degrees, 1) ** (-1.0 / T.order)
    return T.reweighted(T.data * roots[T.indices].prod(axis=1))


def _summed(tuples: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add up the values of equal tuples."""
    order = np.lexsort(tuples.T[::-1])
    tuples, values = tuples[order], values[order]
    new = np.ones(len(tuples), dtype=bool)
    new[1:] = (tuples[1:] != tuples[:-1]).any(axis=1)
    return tuples[new], np.add.reduceat(values, np.flatnonzero(new))
