"""The paper's algorithms word by word, with the n x n residual, to hold the fast ones against."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls


def half_sweep(residual, moving, fixed, coupling, transpose):
    """Steps 3 to 7 of Algorithm 2 for one factor; ``residual`` is X - U V^T and is updated."""
    for i in range(moving.shape[1]):
        v = fixed[:, i]
        if transpose:
            residual += np.outer(v, moving[:, i])
            image = residual.T @ v
        else:
            residual += np.outer(moving[:, i], v)
            image = residual @ v
        moving[:, i] = np.maximum((image + coupling * v) / (v @ v + coupling), 0.0)
        residual -= np.outer(v, moving[:, i]) if transpose else np.outer(moving[:, i], v)


def accelerated_hals(X, U0, couplings, sweeps):
    """Algorithm 3 (Algorithm 2 with one sweep); ``couplings`` gives lambda for each iteration."""
    U, V = U0.copy(), U0.copy()
    residual = X - U @ V.T
    for coupling in couplings:
        for _ in range(sweeps):
            half_sweep(residual, U, V, coupling, transpose=False)
        for _ in range(sweeps):
            half_sweep(residual, V, U, coupling, transpose=True)
    return U, V


def adaptive_hals(X, U0, initial, iterations, sweeps):
    """Algorithm 3 with the adaptive lambda in the paper's own formula."""
    U, V = U0.copy(), U0.copy()
    residual = X - U @ V.T
    coupling = initial
    for _ in range(iterations):
        coupling *= (np.sum(U * U) + np.sum(V * V)) / (2 * abs(np.sum(U * V)))
        for _ in range(sweeps):
            half_sweep(residual, U, V, coupling, transpose=False)
        for _ in range(sweeps):
            half_sweep(residual, V, U, coupling, transpose=True)
    return U, V, coupling


def anls(X, U0, coupling, iterations):
    """Algorithm 1 through scipy's nonnegative least squares, row by row."""
    n, r = U0.shape
    U, V = U0.copy(), U0.copy()
    for _ in range(iterations):
        for moving, fixed in ((U, V), (V, U)):
            stacked = np.vstack([fixed, np.sqrt(coupling) * np.eye(r)])
            for i in range(n):
                target = np.concatenate([X[i], np.sqrt(coupling) * fixed[i]])
                moving[i] = nnls(stacked, target)[0]
    return U, V


def objective(X, U, V, coupling):
    return 0.5 * np.sum((X - U @ V.T) ** 2) + 0.5 * coupling * np.sum((U - V) ** 2)


def gradient(X, U):
    return 2.0 * (U @ (U.T @ U) - X @ U)
