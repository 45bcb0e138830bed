"""What eigenvalues say about the number of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import graphs
from symnmf.storage import HostMatrix, SparseMatrix, as_symmetric
from symnmf.storage.spectrum import leading_eigenpairs


def normalised_eigenvalues(X: HostMatrix, count: int) -> np.ndarray:
    """Return the ``count`` largest eigenvalues of D^-1/2 X D^-1/2, D the row sums."""
    array: Any
    if isinstance(X, SparseMatrix):
        array = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    else:
        array = X.array  # type: ignore[attr-defined]
    normalised = as_symmetric(graphs.normalize(array), n_jobs=X.threads.count)
    return leading_eigenpairs(normalised, min(count, X.shape[0]))[0]


def bethe_hessian_count(X: HostMatrix, most: int) -> int | None:
    """Return how many eigenvalues of the Bethe-Hessian of a graph are negative, up to ``most``.

    H = (q^2 - 1) I - q A + D with q^2 = <d^2> / <d> - 1 (Saade, Krzakala and Zdeborova, 2014).
    None where X is not a sparse matrix of zeros and ones.
    """
    if not isinstance(X, SparseMatrix) or not np.all((X.data == 0) | (X.data == 1)):
        return None
    A = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    if not degrees.any():
        return None
    q = np.sqrt(max(float(np.sum(degrees**2) / np.sum(degrees)) - 1.0, 1.0))
    n = X.shape[0]
    H = sp.diags_array(degrees + q * q - 1.0) - q * A
    wanted = min(most + 1, n - 1)
    if wanted >= n - 1 or n <= 200:
        values = np.linalg.eigvalsh(H.toarray())
    else:
        from scipy.sparse.linalg import ArpackNoConvergence, eigsh

        start = np.random.default_rng(0).standard_normal(n)
        try:
            values = eigsh(H, k=wanted, which="SA", v0=start, return_eigenvectors=False)
        except ArpackNoConvergence as error:
            values = error.eigenvalues
    return int(np.sum(values < 0.0))
