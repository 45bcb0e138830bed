"""Similarity graphs of points, by the name of their kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.graphs import adjacency
from symnmf.graphs.adjacency import Graph, from_graph
from symnmf.graphs.assembling import csr
from symnmf.graphs.neighbors import Array, Points, nearest, norms, over_pairs, row_dots, variance
from symnmf.graphs.pairwise import (
    DISTANCES,
    KERNELS,
    called_on_pairs,
    is_pairwise,
    kernel,
    neighbors_by_distance,
)
from symnmf.graphs.streaming import ROWS_AT_ONCE, is_streamed, mapped, scratch
from symnmf.graphs.warning import warn
from symnmf.naming import lookup

FAINT = 1e-10  # cosine similarities below it count as none: rounding cannot tell them from 0


@checked(n_clusters=("whole",))
def self_tuning(
    X: ArrayLike,
    *,
    n_neighbors: int | None = None,
    scale_neighbor: int = 7,
    normalize: bool = True,
    approximate: bool = False,
    n_jobs: int | None = None,
    device: Any = None,
    n_clusters: int = 1,
) -> Graph:
    r"""Self-tuning Gaussian similarity graph (Kuang, Yun & Park 2015, section 7.1).

    .. math:: A_{ij} = \exp\left(-\frac{\|x_i - x_j\|^2}{\sigma_i \sigma_j}\right)

    where :math:`\sigma_i` is the distance from :math:`x_i` to its 7th nearest neighbour, kept
    where i is among the k nearest neighbours of j or j among those of i, with zero diagonal,
    then normalised to :math:`D^{-1/2} A D^{-1/2}`.

    A point with at least ``scale_neighbor`` copies of itself has :math:`\sigma_i = 0`; its
    smallest positive distance along a kept edge replaces it.  If there is none, all its
    neighbours are copies and have similarity 1 under any scale.  Equal distances are ordered
    by index, and a point is not its own neighbour.

    Parameters
    ----------
    X : array-like, sparse matrix, memory map or Dask array of shape (n, d)
        One point per row. With ``approximate=True`` a memory map or a Dask array stays in a file
        and in float32 where it is; without, it is read whole.
    n_neighbors : int, optional
        k; by default ``floor(log2 n) + 1``.
    scale_neighbor : int, default 7
        Which neighbour's distance is the local scale.
    normalize : bool, default True
        Return :math:`D^{-1/2} A D^{-1/2}` instead of A.
    approximate : bool, default False
        Find neighbours with pynndescent (fixed seed; extra ``approximate``); some may be missed.
        Kept distances are exact all the same, and below 1000 points the search is exact.
    n_jobs : int, optional
        Threads of a tree or approximate search; brute force uses all OpenMP threads.
    device : str, torch.device or None
        "cuda" to search a dense X exactly on a GPU, through torch.
    n_clusters : int, default 1
        Clusters that will be looked for; more components than that are warned of.

    Returns
    -------
    csr_array of shape (n, n)

    Warns
    -----
    GraphWarning
        Fewer points than neighbours, vanishing scales, isolated points, several components.
    """
    points = _points(X, approximate)
    n = points.shape[0]
    k = _neighbor_count(n_neighbors, n)
    scale_at = _at_most(n - 1, _positive(scale_neighbor, "scale_neighbor"), "scale_neighbor")
    indices, distances = nearest(points, max(k, scale_at), approximate, n_jobs, device=device)
    low, high, length = _union(indices[:, :k], distances[:, :k])
    sigma = distances[:, scale_at - 1].copy() if scale_at else np.ones(n)
    flat = sigma == 0
    if flat.any():
        warn(
            f"{np.count_nonzero(flat)} of {n} points are identical to at least {scale_at} "
            f"others, so their scale sigma is 0 and their smallest positive neighbour distance "
            f"replaces it: consider dropping duplicates or raising scale_neighbor."
        )
        sigma[flat] = _smallest_positive(n, low, high, length)[flat]
    with np.errstate(over="ignore"):  # exp(-inf) = 0 is the right similarity
        weight = np.exp(-(length / sigma[low]) * (length / sigma[high]))
    return _assemble(n, low, high, weight, normalize, n_clusters)


@checked(n_clusters=("whole",))
def nearest_neighbors(
    X: ArrayLike,
    *,
    n_neighbors: int | None = 10,
    normalize: bool = True,
    approximate: bool = False,
    n_jobs: int | None = None,
    device: Any = None,
    n_clusters: int = 1,
) -> Graph:
    """Binary graph: 1 where i is among the k nearest neighbours of j, or j among those of i.

    Unlike the one of scikit-learn's ``SpectralClustering`` a point is not its own neighbour,
    k does not count it, and one-sided neighbours weigh 1 rather than 1/2.  The entries are 0
    and 1 with ``normalize=False``; other parameters as in :func:`self_tuning`.
    """
    points = _points(X, approximate)
    n = points.shape[0]
    k = _neighbor_count(n_neighbors, n)
    low, high, length = _union(*nearest(points, k, approximate, n_jobs, device=device))
    return _assemble(n, low, high, np.ones(length.size), normalize, n_clusters)


@checked(n_clusters=("whole",))
def rbf(
    X: ArrayLike,
    *,
    gamma: float | None = None,
    n_neighbors: int | Literal["all"] | None = None,
    normalize: bool = True,
    approximate: bool = False,
    n_jobs: int | None = None,
    device: Any = None,
    n_clusters: int = 1,
) -> Graph | Array:
    r"""Gaussian similarities :math:`\exp(-\gamma \|x_i - x_j\|^2)` with zero diagonal.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    gamma : float, optional
        By default ``1 / (d * X.var())``, which does not depend on the units of X.
    n_neighbors : int or "all", optional
        Keep the union of k nearest neighbours, by default ``floor(log2 n) + 1``.  ``"all"``
        keeps every pair and returns a dense array of 8 n^2 bytes (800 MB for 10 000 points).
    normalize, approximate, n_jobs, n_clusters
        As in :func:`self_tuning`.

    Returns
    -------
    csr_array of shape (n, n), or ndarray where ``n_neighbors="all"``
    """
    points = _points(X)
    n = points.shape[0]
    if gamma is None:
        spread = points.shape[1] * variance(points)
        gamma = 1 / spread if spread > 0 else 1.0
    elif not (np.isfinite(gamma) and gamma > 0):
        raise InputError(f"gamma must be a positive number, not {gamma!r}; pass None to derive it.")
    if isinstance(n_neighbors, str):
        if n_neighbors != "all":
            raise InputError(f"n_neighbors must be an integer, None or 'all', not {n_neighbors!r}.")
        from sklearn.metrics.pairwise import rbf_kernel

        kernel = rbf_kernel(points, gamma=gamma)
        kernel = np.maximum(kernel, kernel.T)
        np.fill_diagonal(kernel, 0)
        return adjacency.normalized(kernel) if normalize else kernel
    k = _neighbor_count(n_neighbors, n)
    low, high, length = _union(*nearest(points, k, approximate, n_jobs, device=device))
    return _assemble(n, low, high, np.exp(-gamma * length**2), normalize, n_clusters)


@checked(n_clusters=("whole",))
def cosine(
    X: ArrayLike,
    *,
    n_neighbors: int | None = None,
    normalize: bool = True,
    approximate: bool = False,
    n_jobs: int | None = None,
    device: Any = None,
    n_clusters: int = 1,
) -> Graph:
    r"""Cosine similarities :math:`x_i \cdot x_j / (\|x_i\| \|x_j\|)` to the k most similar points.

    The usual graph for text: a sparse X (tf-idf rows) is never made dense.  Similarities below
    1e-10, negative ones included, are no edge, since the factorization needs nonnegative
    weights.  Zero rows resemble nothing: they stay isolated, with a warning.  By default
    k is ``floor(log2 n) + 1``; parameters as in :func:`self_tuning`.
    """
    points = _points(X, approximate)
    n = points.shape[0]
    k = _neighbor_count(n_neighbors, n)
    lengths = norms(points)
    used = np.flatnonzero(lengths)
    if used.size < n:
        warn(
            f"{n - used.size} of {n} rows of X are zero and have no cosine similarity to "
            f"anything: they are isolated in the graph and belong to no cluster."
        )
    if used.size == 0:
        return _assemble(n, used, used, np.ones(0), normalize, n_clusters, told=n)
    if sp.issparse(points):
        unit = sp.csr_array(sp.diags_array(1 / lengths[used]) @ points[used])
    elif isinstance(points, np.memmap):
        unit = _unit_rows(points, lengths, used)
    else:
        unit = points[used] / lengths[used, None]
    # On unit rows |x - y|^2 = 2 - 2 cos, so the most similar rows are the nearest ones.
    limit = 2 * (1 - FAINT)
    found = nearest(unit, min(k, used.size - 1), approximate, n_jobs, limit, device)
    low, high, length = _union(*found)
    weight = np.minimum(over_pairs(unit, low, high, row_dots), 1)
    weight[length == 0] = 1
    weight[weight < FAINT] = 0
    told = n - used.size
    return _assemble(n, used[low], used[high], weight, normalize, n_clusters, told=told)


@checked(n_clusters=("whole",))
def build(
    X: Any,
    affinity: str | Callable[..., Any] = "self-tuning",
    *,
    n_neighbors: int | None = None,
    n_jobs: int | None = None,
    device: Any = None,
    n_clusters: int = 1,
    **params: Any,
) -> Graph | Array:
    """The graph of X by the name of its kind.

    Parameters
    ----------
    X : array-like, sparse matrix, or graph
        Points for the named kinds; the affinities themselves for ``"precomputed"``, as
        anything :func:`from_graph` takes.
    affinity : str or callable
        "self-tuning", "nearest_neighbors", "rbf", "cosine" or "precomputed"; the name of another
        kernel of :mod:`sklearn.metrics.pairwise`, which gives a dense graph; or
        "precomputed_nearest_neighbors" for X that holds distances. A callable gets X (and
        ``n_neighbors`` if given) and returns n x n affinities, or it gets two rows and returns
        their affinity.
    n_neighbors : int, optional
        None for the default of the kind; not used by ``"precomputed"``.
    n_jobs, device
        As in :func:`self_tuning`.
    n_clusters : int, default 1
        Clusters that will be looked for; more components than that are warned of.
    **params
        Further parameters of the kind, such as ``gamma`` or ``normalize``.

    Returns
    -------
    csr_array of shape (n, n); precomputed or callable affinities that are dense stay dense
    """
    if n_neighbors is not None:
        params["n_neighbors"] = n_neighbors
    if callable(affinity):
        if is_pairwise(affinity, params):
            return adjacency.affinities(called_on_pairs(affinity, X, params), "affinity's result")
        return _called(affinity, X, params, n_clusters)
    kind = lookup(str(affinity), _KINDS, "affinity")
    return kind(X, n_jobs=n_jobs, device=device, n_clusters=n_clusters, **params)


def _called(
    affinity: Callable[..., Any], X: Any, params: dict[str, Any], n_clusters: int
) -> Graph | Array:
    """What the callable makes of X, checked; refused before the call where it cannot be called.

    One that asks for ``n_clusters``, as the kinds of this module do, is told.
    """
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    try:
        signature = inspect.signature(affinity)
        if "n_clusters" in signature.parameters:
            params = {"n_clusters": n_clusters, **params}
        signature.bind(X, **params)
    except TypeError as error:
        call = ", ".join(["X", *(f"{name}={value!r}" for name, value in params.items())])
        raise InputError(
            f"affinity is called as affinity({call}) and must return the {n} x {n} matrix of "
            f"affinities, but it does not take these arguments ({error}); wrap it in a function "
            f"that does."
        ) from None
    except ValueError:  # compiled functions may not tell their signature
        pass
    A = adjacency.affinities(affinity(X, **params), "the result of affinity")
    if A.shape[0] != n:
        raise InputError(
            f"affinity must return the {n} x {n} matrix of affinities of the {n} rows of X, got "
            f"{A.shape[0]} x {A.shape[1]}."
        )
    return A


def _precomputed(
    X: Any,
    *,
    n_neighbors: int | None = None,
    n_jobs: int | None = None,
    device: Any = None,
    n_clusters: int = 1,
) -> Any:
    """X itself, checked; the others are there because every kind gets them."""
    return from_graph(X)[0] if adjacency.edge_list(X, "X") else adjacency.affinities(X, "X")


def _kernel(
    X: Any,
    *,
    kernel_name: str,
    normalize: bool = True,
    n_neighbors: int | None = None,
    n_jobs: int | None = None,
    device: Any = None,
    n_clusters: int = 1,
    **params: Any,
) -> Array:
    """A kernel of scikit-learn, dense; the others are there because every kind gets them."""
    if n_neighbors is not None:
        raise InputError(
            f"n_neighbors is for sparse graphs, and affinity={kernel_name!r} compares all pairs; "
            f"leave it out."
        )
    A = kernel(_points(X), kernel_name, **params)
    return adjacency.normalized(A) if normalize else A


def _by_distance(
    X: Any,
    *,
    normalize: bool = True,
    n_neighbors: int | None = None,
    n_jobs: int | None = None,
    device: Any = None,
    n_clusters: int = 1,
) -> Graph:
    """The graph of the nearest by distances that are given."""
    A = neighbors_by_distance(X, n_neighbors)
    return adjacency.normalized(A) if normalize else A


_KINDS: dict[str, Callable[..., Any]] = {
    "self-tuning": self_tuning,
    "nearest_neighbors": nearest_neighbors,
    "rbf": rbf,
    "cosine": cosine,
    "precomputed": _precomputed,
    DISTANCES: _by_distance,
    **{name: partial(_kernel, kernel_name=name) for name in KERNELS},
}


# Points and arguments -------------------------------------------------------------------------


def _points(X: Any, approximate: bool = False) -> Points:
    points: Points
    if is_streamed(X):
        # the approximate search works on the file; the exact one needs all points at hand
        points = mapped(X) if approximate else adjacency.numbers(np.asarray(mapped(X)), "X")
    else:
        points = adjacency.numbers(X, "X")
    values: Any = points.data if sp.issparse(points) else points
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest and not 1e-100 < largest < 1e100:
        raise InputError(
            f"X has entries up to {largest:g}, whose squares leave the range of float64; "
            f"pass X / abs(X).max() instead."
        )
    return points


def _unit_rows(points: np.memmap, lengths: Array, used: Array) -> Array:
    """Return the rows of points in a file that are not zero, at length 1, in a file too."""
    if used.size == len(points):
        return mapped(points, lambda rows, first: rows / lengths[first : first + len(rows), None])
    unit = scratch((used.size, points.shape[1]), points.dtype)
    for first in range(0, used.size, ROWS_AT_ONCE):
        rows = used[first : first + ROWS_AT_ONCE]
        unit[first : first + len(rows)] = points[rows] / lengths[rows, None]
    return unit


def _positive(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{name} must be an integer of at least 1, not {value!r}.")
    return int(value)


def _at_most(limit: int, value: int, name: str) -> int:
    if value > limit:
        warn(
            f"{name}={value} exceeds the {limit} other points there are, so all of them are used: "
            f"with so few points the graph says little about clusters."
        )
    return min(limit, value)


def _neighbor_count(n_neighbors: int | None, n: int) -> int:
    k = n.bit_length() if n_neighbors is None else _positive(n_neighbors, "n_neighbors")
    return _at_most(n - 1, k, "n_neighbors")


# From neighbours to a graph -------------------------------------------------------------------


def _union(indices: Array, distances: Array) -> tuple[Array, Array, Array]:
    """Each pair (low < high) in which one is a neighbour of the other, once, with its distance."""
    n, k = indices.shape
    one, other = np.repeat(np.arange(n), k), indices.ravel()
    keys = np.minimum(one, other) * n + np.maximum(one, other)
    keys, first = np.unique(keys, return_index=True)
    return keys // n, keys % n, distances.ravel()[first]


def _smallest_positive(n: int, low: Array, high: Array, length: Array) -> Array:
    """Each point's smallest positive distance along an edge, 1 where it has none."""
    smallest = np.full(n, np.inf)
    away = length > 0
    np.minimum.at(smallest, low[away], length[away])
    np.minimum.at(smallest, high[away], length[away])
    smallest[np.isinf(smallest)] = 1
    return smallest


def _assemble(
    n: int,
    low: Array,
    high: Array,
    weight: Array,
    normalize: bool,
    n_clusters: int,
    told: int = 0,
) -> Graph:
    """The graph of these edges; ``told`` isolated points have been warned of already."""
    rows, cols = np.concatenate([low, high]), np.concatenate([high, low])
    graph = csr(n, rows, cols, np.concatenate([weight, weight]))
    isolated = np.count_nonzero(np.diff(graph.indptr) == 0)
    if isolated > told:
        warn(
            f"{isolated - told} of {n} points are isolated (similarity 0 to every other): their "
            f"rows are zero, and a factorization assigns them to no cluster."
        )
    from scipy.sparse.csgraph import connected_components

    parts = connected_components(graph, directed=False, return_labels=False) - isolated
    if parts > n_clusters:
        others = f" besides {isolated} isolated points" if isolated else ""
        warn(
            f"the graph falls into {parts} components{others}: no cluster can join two of them on "
            f"the evidence of this graph, so take more neighbors if you look for fewer than "
            f"{parts} clusters."
        )
    return adjacency.normalized(graph) if normalize else graph
