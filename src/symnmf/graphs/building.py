"""Similarity graphs of points, by the name of their kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from symnmf.arguments import check, checked
from symnmf.errors import InputError
from symnmf.graphs import adjacency
from symnmf.graphs.adjacency import Graph, from_graph
from symnmf.graphs.neighborhoods import (
    Cosine,
    Gaussian,
    Kernel,
    Neighborhoods,
    SelfTuning,
    scaled_by_degrees,
    usual_neighbors,
    variance,
)
from symnmf.graphs.neighbors import Array, Points
from symnmf.graphs.pairwise import (
    DISTANCES,
    KERNELS,
    called_on_pairs,
    is_pairwise,
    kernel,
    nearest_by_distance,
    neighbors_by_distance,
)
from symnmf.graphs.warning import warn
from symnmf.kinds import number, whole
from symnmf.naming import lookup


class NewRows(Protocol):
    """How similar new rows are to those of a graph."""

    def similarities(self, new: Any) -> sp.csr_array:
        """Return the similarities of new rows, on the scale of the normalised graph."""


Built: TypeAlias = tuple[Any, NewRows | None]


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """New rows that are compared with all rows of the graph at once."""

    compare: Callable[[Any], Any]
    degrees: Array

    def similarities(self, new: Any) -> sp.csr_array:
        return scaled_by_degrees(sp.csr_array(self.compare(new)), self.degrees)


@checked(n_clusters=("whole",))
def self_tuning(
    X: ArrayLike,
    *,
    n_neighbors: int | None = None,
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

    A point with at least seven copies of itself has :math:`\sigma_i = 0`; its smallest positive
    distance along a kept edge replaces it.  If there is none, all its neighbours are copies and
    have similarity 1 under any scale.  A point is not its own neighbour.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        One point per row.
    n_neighbors : int, optional
        k; by default ``floor(log2 n) + 1``. For a sparse X, such as texts, the root of n, up to
        four times that.
    normalize : bool, default True
        Return :math:`D^{-1/2} A D^{-1/2}` instead of A.
    approximate : bool, default False
        Find neighbours with pynndescent (fixed seed; extra ``approximate``); some may be missed.
        Kept distances are exact all the same, and below 1000 points the search is exact.
    n_jobs : int, optional
        Threads of the search.
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
    points = _points(X)
    search = {"approximate": approximate, "n_jobs": n_jobs, "device": device}
    return _of_neighbors(points, SelfTuning(), n_neighbors, normalize, n_clusters, search)[0]


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
    points = _points(X)
    search = {"approximate": approximate, "n_jobs": n_jobs, "device": device}
    return _of_neighbors(points, Kernel(), n_neighbors, normalize, n_clusters, search)[0]


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
        Keep the union of k nearest neighbours, by default as in :func:`self_tuning`.  ``"all"``
        keeps every pair and returns a dense array of 8 n^2 bytes (800 MB for 10 000 points).
    normalize, approximate, n_jobs, device, n_clusters
        As in :func:`self_tuning`.

    Returns
    -------
    csr_array of shape (n, n), or ndarray where ``n_neighbors="all"``
    """
    points = _points(X)
    if isinstance(n_neighbors, str):
        A = kernel(points, "rbf", gamma=_checked_gamma(points, gamma))
        return adjacency.normalized(A) if normalize else A
    search = {"approximate": approximate, "n_jobs": n_jobs, "device": device}
    kind = Gaussian(_checked_gamma(points, gamma))
    return _of_neighbors(points, kind, n_neighbors, normalize, n_clusters, search)[0]


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
    weights.  Zero rows resemble nothing: they stay isolated, with a warning.  Parameters as in
    :func:`self_tuning`.
    """
    points = _points(X)
    search = {"approximate": approximate, "n_jobs": n_jobs, "device": device}
    return _of_neighbors(points, Cosine(), n_neighbors, normalize, n_clusters, search)[0]


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
    search = {"n_jobs": n_jobs, "device": device}
    return built(X, affinity, n_neighbors, n_clusters, search, **params)[0]


def built(
    X: Any,
    affinity: str | Callable[..., Any],
    n_neighbors: int | None,
    n_clusters: int,
    search: dict[str, Any],
    **params: Any,
) -> Built:
    """Return what :func:`build` does, and what compares new rows with it where something can."""
    if callable(affinity):
        if n_neighbors is not None:
            params["n_neighbors"] = n_neighbors
        if is_pairwise(affinity, params):
            A = adjacency.affinities(called_on_pairs(affinity, X, params), "affinity's result")
            return A, None
        return _called(affinity, X, params, n_clusters), None
    name = str(lookup(str(affinity), _NAMES, "affinity"))
    if name == "precomputed":
        read = from_graph(X)[0] if adjacency.edge_list(X, "X") else adjacency.affinities(X, "X")
        return read, None
    normalize = bool(params.pop("normalize", True))
    if name == DISTANCES:
        X = X if sp.issparse(X) else adjacency.numbers(X, "X")  # stored zeros are distances
        A = neighbors_by_distance(X, n_neighbors)
        compare = partial(nearest_by_distance, n=X.shape[0], n_neighbors=n_neighbors)
        return _compared(A, compare, normalize)
    points = _points(X)
    if name in KERNELS:
        if n_neighbors is not None:
            raise InputError(
                f"n_neighbors is for sparse graphs, and affinity={name!r} compares all pairs; "
                f"leave it out."
            )
        A = kernel(points, name, **params)
        return _compared(A, partial(kernel, name=name, Y=points, **params), normalize)
    if name == "nearest_neighbors" and n_neighbors is None:
        n_neighbors = 10
    kinds: dict[str, Callable[[], Kernel]] = {
        "self-tuning": SelfTuning,
        "nearest_neighbors": Kernel,
        "rbf": lambda: Gaussian(_checked_gamma(points, params.pop("gamma", None))),
        "cosine": Cosine,
    }
    kind = kinds[name]()
    search |= {"approximate": params.pop("approximate", False)}
    if params:
        raise InputError(f"affinity={name!r} has no parameter {next(iter(params))!r}.")
    return _of_neighbors(points, kind, n_neighbors, normalize, n_clusters, search)


_POINT_KINDS = ("self-tuning", "nearest_neighbors", "rbf", "cosine")
_NAMES = {name: name for name in (*_POINT_KINDS, "precomputed", DISTANCES, *KERNELS)}


def _compared(A: Any, compare: Callable[[Any], Any], normalize: bool) -> Built:
    degrees = np.asarray(A.sum(axis=1)).ravel()
    return adjacency.normalized(A) if normalize else A, ComparedRows(compare, degrees)


def _of_neighbors(
    points: Points,
    kind: Kernel,
    n_neighbors: int | None,
    normalize: bool,
    n_clusters: int,
    search: dict[str, Any],
) -> tuple[Graph, Neighborhoods]:
    """Return the graph of the nearest neighbours, with a warning of what it cannot tell."""
    n = points.shape[0]
    k = _neighbor_count(n_neighbors, points)
    if isinstance(kind, SelfTuning):
        _at_most(n - 1, kind.reads, "the 7th neighbour, the scale of a point,")
    found = Neighborhoods(points, kind, k, **search)
    graph = found.graph()
    zero = n - found.used.size
    if zero:
        warn(
            f"{zero} of {n} rows of X are zero and have no cosine similarity to anything: they "
            f"are isolated in the graph and belong to no cluster."
        )
    _warn_of_pieces(graph, n_clusters, zero)
    return adjacency.normalized(graph) if normalize else graph, found


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


# Points and arguments -------------------------------------------------------------------------


def _points(X: Any) -> Points:
    points = adjacency.numbers(X, "X")
    values: Any = points.data if sp.issparse(points) else points
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest and not 1e-100 < largest < 1e100:
        raise InputError(
            f"X has entries up to {largest:g}, whose squares leave the range of float64; "
            f"pass X / abs(X).max() instead."
        )
    return points


def _checked_gamma(points: Points, gamma: Any) -> float:
    if gamma is None:
        spread = points.shape[1] * variance(points)
        return 1 / spread if spread > 0 else 1.0
    check("gamma", gamma, (number(0, above=True),))
    return float(gamma)


def _at_most(limit: int, value: int, name: str) -> int:
    if value > limit:
        warn(
            f"{name} exceeds the {limit} other points there are, so all of them are used: "
            f"with so few points the graph says little about clusters."
        )
    return min(limit, value)


def _neighbor_count(n_neighbors: int | None, points: Points) -> int:
    k = usual_neighbors(points) if n_neighbors is None else n_neighbors
    check("n_neighbors", k, (whole(1),))
    return _at_most(points.shape[0] - 1, int(k), f"n_neighbors={k}")


def _warn_of_pieces(graph: Graph, n_clusters: int, told: int) -> None:
    """Warn of isolated points, ``told`` of which are known of, and of more pieces than clusters."""
    n = graph.shape[0]
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
