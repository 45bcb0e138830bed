"""Affinities between all pairs: kernels of scikit-learn, callables, and given distances.

They make :class:`symnmf.SymNMF` take every ``affinity`` that ``SpectralClustering`` takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.adjacency import affinities
from symnmf.graphs.neighbors import Array

#: The kernels of scikit-learn that have no sparse graph of their own here.
KERNELS = ("additive_chi2", "chi2", "laplacian", "linear", "poly", "polynomial", "sigmoid")
DISTANCES = "precomputed_nearest_neighbors"
USUAL_NEIGHBORS = 10  # scikit-learn's


def kernel(X: Any, name: str, *, Y: Any = None, **params: Any) -> Array:
    """The kernel of that name between all rows of X, or those of X and Y; refused where negative.

    Parameters that the kernel does not have are left out, as scikit-learn does.
    """
    from sklearn.metrics.pairwise import pairwise_kernels

    own = {key: value for key, value in params.items() if value is not None}
    with said_as_input_errors():
        K = np.asarray(pairwise_kernels(X, Y, metric=name, filter_params=True, **own))
    if not np.isfinite(K).all():
        raise InputError(f"affinity={name!r} has no finite value for some pairs; scale X first.")
    if K.min() < 0:
        raise InputError(
            f"affinity={name!r} gives negative similarities for this X, down to {K.min():.3g}; use "
            f"another affinity, or shift X so that none are negative."
        )
    if Y is not None:
        return K
    K = (K + K.T) / 2
    np.fill_diagonal(K, 0)
    return K


def called(affinity: Callable[..., Any], X: Any, params: dict[str, Any]) -> Any:
    """What a callable makes of X, or of every two rows of it where it takes two, as scikit-learn's.

    It is refused before the call where it takes neither.
    """
    n = X.shape[0]
    if _takes(affinity, 1, params):
        K = affinity(X, **params)
    elif _takes(affinity, 2, params):
        from sklearn.metrics.pairwise import pairwise_kernels

        with said_as_input_errors():
            K = np.asarray(pairwise_kernels(X, metric=affinity, **params), dtype=np.float64)
        K = (K + K.T) / 2
    else:
        call = ", ".join(["X", *(f"{name}={value!r}" for name, value in params.items())])
        raise InputError(
            f"affinity is called as affinity({call}) and must return the {n} x {n} matrix of "
            f"affinities, but it does not take these arguments; wrap it in a function that does."
        )
    A = affinities(K, "the result of affinity")
    if A.shape[0] != n:
        raise InputError(
            f"affinity must return the {n} x {n} matrix of affinities of the {n} rows of X, got "
            f"{A.shape[0]} x {A.shape[1]}."
        )
    return A


def _takes(affinity: Callable[..., Any], count: int, params: dict[str, Any]) -> bool:
    try:
        inspect.signature(affinity).bind(*range(count), **params)
    except TypeError:
        return False
    except ValueError:  # compiled functions may not tell their signature
        return count == 1
    return True


def neighbors_by_distance(X: Any, n_neighbors: int | None) -> tuple[sp.csr_array, Any]:
    """Mean of the graph of the nearest by given distances and of its transpose, as scikit-learn's.

    X is a sparse graph of distances with at least ``n_neighbors`` entries in each row, or a matrix
    of all distances. What finds the nearest fitted rows of new ones comes with it.
    """
    from sklearn.neighbors import NearestNeighbors

    k = min(USUAL_NEIGHBORS if n_neighbors is None else int(n_neighbors), X.shape[0])
    with said_as_input_errors("X"):
        finder = NearestNeighbors(n_neighbors=k, metric="precomputed").fit(_sorted(X))
    nearest = partial(_nearest_by_distance, finder=finder)
    connected = nearest(X)
    A = sp.csr_array((connected + connected.T) * 0.5)
    A.setdiag(0)
    A.eliminate_zeros()
    return A, nearest


def _nearest_by_distance(X: Any, finder: Any) -> sp.csr_array:
    with said_as_input_errors("X"):
        return sp.csr_array(finder.kneighbors_graph(_sorted(X)))


def _sorted(X: Any) -> Any:
    """Sort the rows of a sparse graph of distances, as scikit-learn needs it."""
    from sklearn.neighbors import sort_graph_by_row_values

    return sort_graph_by_row_values(X, warn_when_not_sorted=False) if sp.issparse(X) else X


def like_distances(A: Array) -> bool:
    """Whether a matrix looks like distances: zeros on the diagonal alone, and the triangle holds.

    Similarities that hardly differ obey the triangle inequality too.
    """
    n = len(A)
    apart = A[~np.eye(n, dtype=bool)] if n > 2 and not A.diagonal().any() else np.zeros(1)
    if apart.max() <= 2.0 * apart.min() or apart.min() <= 0.0:
        return False
    slack = 1e-9 * apart.max()
    return all((A[:, [row]] + A[row] + slack >= A).all() for row in range(0, n, max(n // 3, 1)))
