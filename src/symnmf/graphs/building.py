"""Similarity graphs of points, by the name of their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import check, checked
from symnmf.errors import InputError
from symnmf.graphs import adjacency
from symnmf.graphs.adjacency import Graph
from symnmf.graphs.neighborhoods import (
    BINARY,
    KINDS,
    RBF,
    SCALE_NEIGHBOR,
    SELF_TUNING,
    Neighborhoods,
    usual_neighbors,
)
from symnmf.graphs.neighbors import Array, Points
from symnmf.graphs.pairwise import (
    DISTANCES,
    KERNELS,
    USUAL_NEIGHBORS,
    called,
    kernel,
    neighbors_by_distance,
)
from symnmf.graphs.warning import warn
from symnmf.kinds import number, whole
from symnmf.naming import lookup

#: Gives the similarities of new rows to those of a graph, on the scale of the normalised graph.
Compare: TypeAlias = Callable[[Any], sp.csr_array]

_NAMES = {name: name for name in (*KINDS, "precomputed", DISTANCES, *KERNELS)}


@checked()
def build(
    X: Any,
    affinity: str | Callable[..., Any] = SELF_TUNING,
    *,
    n_neighbors: int | Literal["all"] | None = None,
    normalize: bool = True,
    approximate: bool = False,
    n_jobs: int | None = None,
    device: Any = None,
    gamma: float | None = None,
    **params: Any,
) -> Graph | Array:
    r"""Return the similarity graph of points.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        One point in each row; a sparse X, such as tf-idf rows, is never made dense.
    affinity : str or callable
        The kind of similarity. The first four keep the pairs in which one is among the k nearest
        of the other:

        "self-tuning" (Kuang, Yun & Park 2015, section 7.1) is :math:`A_{ij} = \exp\left(-\|x_i -
        x_j\|^2 / (\sigma_i \sigma_j)\right)` with :math:`\sigma_i` the distance from :math:`x_i` to
        its 7th nearest neighbour. A point with at least seven copies of itself has
        :math:`\sigma_i = 0`; its smallest positive distance along a kept edge replaces it.

        "nearest_neighbors" is 1.

        "rbf" is :math:`\exp(-\gamma \|x_i - x_j\|^2)`.

        "cosine", the usual graph for text, is :math:`x_i \cdot x_j / (\|x_i\| \|x_j\|)`.
        Similarities below 1e-10, negative ones included, are no edge. Zero rows resemble nothing:
        they stay isolated, with a warning.

        The name of another kernel of :mod:`sklearn.metrics.pairwise` gives a dense graph, and
        "precomputed_nearest_neighbors" takes X for distances. A callable gets X (and
        ``n_neighbors`` if given) and returns n x n affinities, or it gets two rows and returns
        their affinity.
    n_neighbors : int or "all", optional
        k; by default ``floor(log2 n) + 1``. For a sparse X, such as texts, the root of n, up to
        four times that; for "nearest_neighbors" 10. "all", for "rbf", keeps every pair and returns
        a dense array of 8 n^2 bytes (800 MB for 10 000 points). A point is not its own neighbour.
    normalize : bool, default True
        Return :math:`D^{-1/2} A D^{-1/2}` instead of A. What a callable returns stays as it is.
    approximate : bool, default False
        Find neighbours with pynndescent (fixed seed; extra ``approximate``); some may be missed.
        Kept distances are exact all the same, and below 1000 points the search is exact.
    n_jobs : int, optional
        Threads of the search.
    device : str, torch.device or None
        "cuda" to search a dense X exactly on a GPU, through torch.
    gamma : float, optional
        Of a kernel; for "rbf" by default ``1 / (d * X.var())``, which does not depend on the units
        of X.
    **params
        Further parameters of a kernel of scikit-learn's or of a callable.

    Returns
    -------
    csr_array of shape (n, n), or ndarray
        With a zero diagonal. It is dense for "rbf" between all pairs, kernels of scikit-learn and
        what a callable returns as an array.

    Warns
    -----
    GraphWarning
        Fewer points than neighbours, vanishing scales, isolated points.
    """
    if params and isinstance(affinity, str) and affinity in KINDS:
        raise InputError(f"affinity={affinity!r} has no parameter {next(iter(params))!r}.")
    return built(
        X,
        affinity,
        n_neighbors=n_neighbors,
        normalize=normalize,
        approximate=approximate,
        n_jobs=n_jobs,
        device=device,
        gamma=gamma,
        kernel_params=params,
    )[0]


def built(
    X: Any,
    affinity: str | Callable[..., Any],
    *,
    n_neighbors: Any = None,
    normalize: bool = True,
    gamma: float | None = None,
    kernel_params: Mapping[str, Any] | None = None,
    degree: float | None = None,
    coef0: float | None = None,
    **search: Any,
) -> tuple[Any, Compare | None]:
    """Return what :func:`build` does, and what compares new rows with it where something can."""
    params = dict(kernel_params or {})
    if callable(affinity):
        params |= {} if n_neighbors is None else {"n_neighbors": n_neighbors}
        X = X if hasattr(X, "shape") else adjacency.numbers(X, "X")
        return called(affinity, X, params), None
    name = str(lookup(str(affinity), _NAMES, "affinity"))
    if name == "precomputed":
        return adjacency.affinities(X, "X"), None
    if name == DISTANCES:
        X = X if sp.issparse(X) else adjacency.numbers(X, "X")  # stored zeros are distances
        return _compared(*neighbors_by_distance(X, n_neighbors), normalize)
    points = adjacency.numbers(X, "X")
    every = isinstance(n_neighbors, str)
    if name in KERNELS or (name == RBF and every):
        if name != RBF and n_neighbors is not None:
            raise InputError(
                f"n_neighbors is for sparse graphs, and affinity={name!r} compares all pairs; "
                f"leave it out."
            )
        if name == RBF:
            params = {"gamma": _width(points, gamma)}
        else:
            params |= {"gamma": gamma, "degree": degree, "coef0": coef0}
        A: Any = kernel(points, name, **params)
        return _compared(A, partial(kernel, name=name, Y=points, **params), normalize)
    k = _neighbor_count(n_neighbors, points, name)
    n = points.shape[0]
    if name == SELF_TUNING and n <= SCALE_NEIGHBOR:
        _warn_of_few("the 7th neighbour, the scale of a point,", n)
    gamma = _width(points, gamma) if name == RBF else 1.0
    found = Neighborhoods(points, name, k, gamma=gamma, **search)
    _warn_of_isolated(found.graph, n - found.used.size)
    A = adjacency.normalized(found.graph) if normalize else found.graph
    return A, found.similarities


def _compared(A: Any, compare: Compare, normalize: bool) -> tuple[Any, Compare]:
    roots = np.sqrt(adjacency.degrees(A))
    scaled = partial(_scaled, compare=compare, roots=roots)
    return adjacency.normalized(A) if normalize else A, scaled


def _scaled(new: Any, compare: Compare, roots: Array) -> sp.csr_array:
    return adjacency.divided(compare(new), roots)


# Points and arguments -------------------------------------------------------------------------


def _width(points: Points, gamma: Any) -> float:
    if gamma is not None:
        check("gamma", gamma, (number(0, above=True),))
        return float(gamma)
    if sp.issparse(points):
        variance = float(points.multiply(points).mean() - points.mean() ** 2)
    else:
        variance = float(points.var())
    spread = points.shape[1] * variance
    return 1 / spread if spread > 0 else 1.0


def _neighbor_count(n_neighbors: Any, points: Points, name: str) -> int:
    usual = USUAL_NEIGHBORS if name == BINARY else usual_neighbors(points)
    k = usual if n_neighbors is None else n_neighbors
    check("n_neighbors", k, (whole(1),))
    if k >= points.shape[0]:
        _warn_of_few(f"n_neighbors={k}", points.shape[0])
    return min(points.shape[0] - 1, int(k))


def _warn_of_few(what: str, n: int) -> None:
    warn(
        f"{what} exceeds the {n - 1} other points there are, so all of them are used: with so few "
        f"points the graph says little about clusters."
    )


def _warn_of_isolated(graph: Graph, zero: int) -> None:
    """Warn of rows of zeros, and of other points without similarities."""
    n = graph.shape[0]
    if zero:
        warn(
            f"{zero} of {n} rows of X are zero and have no cosine similarity to anything: they "
            f"are isolated in the graph and belong to no cluster."
        )
    isolated = np.count_nonzero(np.diff(graph.indptr) == 0)
    if isolated > zero:
        warn(
            f"{isolated - zero} of {n} points are isolated (similarity 0 to every other): their "
            f"rows are zero, and a factorization assigns them to no cluster."
        )
