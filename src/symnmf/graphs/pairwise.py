"""Affinities between all pairs: kernels of scikit-learn, callables, and given distances.

They make :class:`symnmf.SymNMF` take every ``affinity`` that ``SpectralClustering`` takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError, said_as_input_errors
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
        return affinity(X, **params)
    if _takes(affinity, 2, params):
        from sklearn.metrics.pairwise import pairwise_kernels

        with said_as_input_errors():
            K = np.asarray(pairwise_kernels(X, metric=affinity, **params), dtype=np.float64)
        return (K + K.T) / 2
    call = ", ".join(["X", *(f"{name}={value!r}" for name, value in params.items())])
    raise InputError(
        f"affinity is called as affinity({call}) and must return the {n} x {n} matrix of "
        f"affinities, but it does not take these arguments; wrap it in a function that does."
    )


def _takes(affinity: Callable[..., Any], count: int, params: dict[str, Any]) -> bool:
    try:
        inspect.signature(affinity).bind(*range(count), **params)
    except TypeError:
        return False
    except ValueError:  # compiled functions may not tell their signature
        return count == 1
    return True


def neighbors_by_distance(X: Any, n_neighbors: int | None) -> sp.csr_array:
    """Mean of the graph of the nearest by given distances and of its transpose, as scikit-learn's.

    X is a sparse graph of distances with at least ``n_neighbors`` entries in each row, or a matrix
    of all distances.
    """
    connected = nearest_by_distance(X, X.shape[0], n_neighbors)
    A = sp.csr_array((connected + connected.T) * 0.5)
    A.setdiag(0)
    A.eliminate_zeros()
    return A


def nearest_by_distance(X: Any, n: int, n_neighbors: int | None) -> sp.csr_array:
    """The graph of the nearest fitted rows of each row of X, which holds distances to them."""
    if X.shape[1] != n:
        raise InputError(
            f"affinity={DISTANCES!r} needs the distances to all {n} fitted samples, got "
            f"{X.shape[1]} columns."
        )
    k = min(USUAL_NEIGHBORS if n_neighbors is None else int(n_neighbors), n)
    stored = sp.csr_array(X) if sp.issparse(X) else sp.csr_array(np.ones(X.shape))
    if not sp.issparse(X):
        stored.data = np.asarray(X, dtype=np.float64).ravel()  # zeros are distances too
    if stored.data.min(initial=0.0) < 0:
        raise InputError(f"affinity={DISTANCES!r} needs distances, which must not be negative.")
    counts = np.diff(stored.indptr)
    if counts.min() < k:
        raise InputError(
            f"affinity={DISTANCES!r} needs {k} distances in each row, and some have only "
            f"{counts.min()}; lower n_neighbors, or store more distances."
        )
    rows = np.repeat(np.arange(stored.shape[0]), counts)
    order = np.lexsort((stored.data, rows))  # of equal ones the first, as scikit-learn takes
    nearest = stored.indices[order[stored.indptr[:-1, None] + np.arange(k)]]
    rows = np.repeat(np.arange(len(nearest)), k)
    return sp.csr_array((np.ones(rows.size), (rows, nearest.ravel())), shape=(X.shape[0], n))


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
