"""Adjacency matrices of graphs people already have, whatever holds them.

:func:`from_graph` takes networkx and igraph graphs, scipy matrices and arrays; every matrix of
affinities that the package is given is checked here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import TINY_TO_HUGE, checked
from symnmf.errors import InputError
from symnmf.interchange import is_dask, to_host
from symnmf.naming import USUAL_WEIGHT
from symnmf.storage import LowRank, SymmetricArray, as_symmetric
from symnmf.storage.indices import check_indices
from symnmf.storage.opening import is_stored
from symnmf.storage.wrapping import in_memory, refuse_no_matrix

if TYPE_CHECKING:
    from symnmf.graphs.neighbors import Array, Points

Graph: TypeAlias = sp.csr_array


@checked()
def from_graph(
    G: Any, *, weight: str | None = USUAL_WEIGHT, allow_negative: bool = False
) -> tuple[Graph, list[Any]]:
    """Adjacency matrix and node names of a graph of any supported type.

    Parameters
    ----------
    G : networkx.Graph, igraph.Graph, table of edges, sparse matrix, array or hypergraph
        Undirected, without parallel edges; weights finite and nonnegative. A table is a data frame
        or a list of pairs, as :func:`from_edges` takes them. The matrix of a
        :class:`symnmf.graphs.Hypergraph` is its clique graph.
    weight : str, optional
        Edge attribute, or column of a table, to use.  Edges without it count 1, and with None
        every edge does; a name other than ``"weight"`` that no edge has is an error.
    allow_negative : bool, default False
        Whether weights may be negative, as in a signed graph.

    Returns
    -------
    A : csr_array of shape (n, n)
        A self-loop of weight w is kept as ``A[i, i] = w``; ``A.setdiag(0)`` drops them.
    names : list
        Node of each row: networkx nodes, igraph's ``name`` attribute, what a table of edges calls
        them, a square frame's index, or 0..n-1.
    """
    from symnmf.graphs.edges import read_graph
    from symnmf.graphs.hypergraph import Hypergraph

    if isinstance(G, Hypergraph):
        return G.clique_graph(), G.names
    edges = read_graph(G, weight)
    if edges is not None:
        return edges.adjacency("G", allow_negative=allow_negative), edges.names
    A = sp.csr_array(affinities(G, "G", signed=allow_negative))
    return A, row_names(G) or list(range(A.shape[0]))


@checked()
def normalize(
    A: Any,
    n_clusters: int | None = None,
    *,
    degree_offset: float | None = None,
    allow_negative: bool = False,
) -> Graph | Array:
    """``(D + tau I)^-1/2 A (D + tau I)^-1/2`` with D the row sums of ``|A|``.

    Isolated nodes keep their zero rows.

    Parameters
    ----------
    A : array, sparse matrix
        Affinities, such as the adjacency matrix of a graph as it comes.
    n_clusters : int, optional
        Clusters that will be looked for; tau is then chosen for them where it is not given.
    degree_offset : float, optional
        tau, in mean degrees of the nodes that have edges. None chooses it for ``n_clusters``, and
        is 0 without.
    allow_negative : bool, default False
        Accept negative entries, of edges that keep nodes apart.
    """
    from symnmf.graphs.degree_offsets import with_degree_offset

    checked = affinities(A, "A", signed=allow_negative)
    if degree_offset is None:
        return with_degree_offset(checked, n_clusters or 1).graph
    return normalized(checked, degree_offset)


# Matrices -------------------------------------------------------------------------------------


def affinities(A: Any, name: str, *, signed: bool = False) -> Graph | Array:
    """A in its own precision, checked as :func:`symnmf.factorize` does; stored zeros are dropped.

    Entries may be negative where it may be ``signed``.
    """
    checked = in_memory(as_storage(A, name, signed=signed))
    if sp.issparse(checked) and not checked.data.all():
        checked = checked.copy()
        checked.eliminate_zeros()
    return checked


def as_storage(A: Any, name: str, *, signed: bool = False, n_jobs: int | None = None) -> Any:
    """The same, in the memory layout that products need."""
    check_order(A, name)
    refuse_foreign(A, name)
    A = to_host(A)
    if is_stored(A) or is_dask(A):  # all entries are needed at hand
        A = np.asarray(A)
    return as_symmetric(A, name=name, allow_negative=signed, n_jobs=n_jobs)


def degrees(A: Any) -> Array:
    """Return the row sums of ``|A|``, on every backend; NaN counts as 0."""
    if isinstance(A, SymmetricArray):
        ones = A.ops.put(np.ones((A.shape[0], 1), A.dtype))
        return np.asarray(A.ops.get(A.matmul(ones)), dtype=np.float64)[:, 0]
    if not sp.issparse(A):
        return np.asarray(np.nansum(np.abs(A), axis=1), dtype=np.float64)
    positive = A.format == "csr" and A.nnz > 0 and A.data.min() >= 0
    return np.asarray((A if positive else abs(A)).sum(axis=1), dtype=np.float64).ravel()


def attraction(A: Any) -> Any:
    """Return the positive part of a matrix: what holds rows together.

    Older versions of SciPy let ``maximum`` share the indices of A, so it is copied.
    """
    if A.min() >= 0:
        return A
    return sp.csr_array(A.maximum(0), copy=True) if sp.issparse(A) else np.maximum(A, 0)


def refuse_foreign(X: Any, name: str) -> None:
    """Refuse what is no matrix, or one that stays where it is, where entries are needed."""
    if not sp.issparse(X):  # one of SciPy's kinds is a dict
        refuse_no_matrix(X, name)
    if isinstance(X, SymmetricArray):
        raise InputError(
            f"{name} is a {type(X).__name__}; symnmf.factorize takes it, and here an array or a "
            f"sparse matrix is needed."
        )


def row_names(A: Any) -> list[Any] | None:
    """The index of a pandas frame, or None."""
    index = getattr(A, "index", None)
    return list(index) if index is not None and hasattr(A, "columns") else None


def check_order(A: Any, name: str) -> None:
    """Refuse a frame of affinities whose rows and columns are the same names in another order."""
    rows = row_names(A)
    if rows is None or list(A.columns) == rows or len(A.columns) != len(rows):
        return
    if set(A.columns) == set(rows):
        raise InputError(
            f"{name} has the same names in its index and its columns, but in different order; pass "
            f"{name}.loc[{name}.columns] so that entry (i, j) and (j, i) belong together."
        )


def numbers(X: Any, name: str) -> Points:
    """A nonempty finite float64 matrix; a sparse one in canonical format, never the caller's.

    Its entries can be squared.
    """
    refuse_foreign(X, name)
    if sp.issparse(X):
        check_indices(X, name)
    try:
        entries = X if sp.issparse(X) else np.asarray(X)
        if sp.issparse(X):
            checked: Any = sp.csr_array(X, dtype=np.float64, copy=True)
            checked.sum_duplicates()
            checked.eliminate_zeros()
        else:
            checked = entries.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} must be a matrix of numbers, in rows of one length: {error}."
        ) from None
    if entries.dtype.kind in "mMc":
        held = "complex numbers" if entries.dtype.kind == "c" else "dates or times"
        raise InputError(f"{name} holds {held}; turn them into real numbers first.")
    if checked.ndim != 2 or 0 in checked.shape:
        raise InputError(
            f"{name} must be a nonempty two-dimensional array, not of shape {checked.shape}."
        )
    values = checked.data if sp.issparse(checked) else checked
    bad = values.size - np.count_nonzero(np.isfinite(values))
    if bad:
        raise InputError(f"{name} has {bad} NaN or infinite entries; impute or drop them first.")
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest and not TINY_TO_HUGE[0] <= largest <= TINY_TO_HUGE[1]:
        raise InputError(
            f"{name} has a largest entry of {largest:.2g}, whose square is no number of float64; "
            f"divide it by a constant first."
        )
    return checked


def normalized(A: Any, degree_offset: float = 0.0, known: Array | None = None) -> Any:
    """What :func:`normalize` gives for a matrix that has been checked already.

    ``known`` are the degrees, where they are not those of A.
    """
    sums = degrees(A) if known is None else known  # of a signed graph: of the sizes
    some = sums > 0
    if degree_offset and some.any():
        sums = sums + degree_offset * sums[some].mean()
    root = np.sqrt(sums).astype(A.dtype)
    root[root == 0] = 1
    if isinstance(A, LowRank):
        return LowRank(A.B / root[:, None], A.C)
    if not sp.issparse(A):
        return A / np.outer(root, root)
    # One divisor per entry, not two scalings: (a / x) / y and (a / y) / x round differently.
    divisor = np.repeat(root, np.diff(A.indptr)) * root[A.indices]
    return sp.csr_array((A.data / divisor, A.indices, A.indptr), shape=A.shape)


def divided(rows: Any, roots: Array, extra: float = 0.0) -> Graph:
    """Return similarities of new rows to those with such roots of degrees, divided by both roots.

    ``extra`` is added to the degrees of the new ones.
    """
    rows = sp.csr_array(rows)
    own = np.sqrt(np.asarray(abs(rows).sum(axis=1)).ravel() + extra)
    left, right = (1 / np.where(root > 0, root, 1.0) for root in (own, roots))
    return sp.csr_array(sp.diags_array(left) @ rows @ sp.diags_array(right))


def csr(n: int, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> sp.csr_array:
    """The n x n matrix of these entries in canonical format, without stored zeros."""
    # narrow indices where they fit: scikit-learn refuses the wide ones
    index = np.int32 if max(n, len(rows)) < 2**31 else np.int64
    ends = (rows.astype(index), columns.astype(index))
    graph = sp.csr_array(sp.coo_array((values, ends), shape=(n, n)))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph
