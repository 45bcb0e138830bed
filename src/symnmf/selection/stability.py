"""How much runs on perturbed matrices agree, and a matrix with the same degrees and no clusters."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp

from symnmf.agreement import adjusted_mutual_information
from symnmf.nulls import same_degrees
from symnmf.parallel import Threads
from symnmf.storage import DenseMatrix, HostMatrix, SparseMatrix

#: Pairs on which the consensus of runs is looked at.
SAMPLED_PAIRS = 20_000


def matched_cosine(U: np.ndarray, V: np.ndarray) -> float:
    """Return the mean cosine between columns of U and V that belong together (Hungarian)."""
    from scipy.optimize import linear_sum_assignment

    sizes = np.linalg.norm(U, axis=0), np.linalg.norm(V, axis=0)
    cosines = (U.T @ V) / np.maximum(np.outer(*sizes), np.finfo(np.float64).tiny)
    return float(cosines[linear_sum_assignment(-cosines)].mean())


def agreements(factors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the AMI of labels and the matched cosine for every two of the runs."""
    labels = [np.argmax(U, axis=1) for U in factors]
    rank = factors[0].shape[1]
    both = list(itertools.combinations(range(len(factors)), 2))
    return (
        np.array([adjusted_mutual_information(labels[a], labels[b], rank) for a, b in both]),
        np.array([matched_cosine(factors[a], factors[b]) for a, b in both]),
    )


def consensus(factors: list[np.ndarray], rng: np.random.Generator) -> tuple[float, float]:
    """Return PAC and dispersion of how often sampled pairs share a cluster.

    PAC is the share of pairs together in some runs and apart in others; dispersion is 1 where all
    runs agree on every pair.
    """
    n = len(factors[0])
    i, j = rng.integers(n, size=(2, SAMPLED_PAIRS))
    labels = np.array([np.argmax(U, axis=1) for U in factors])
    share = np.mean(labels[:, i] == labels[:, j], axis=0)[i != j]
    return (
        float(np.mean((share > 0.1) & (share < 0.9))),
        float(np.mean(4.0 * (share - 0.5) ** 2)),
    )


def without_clusters(X: HostMatrix, rng: np.random.Generator, threads: Threads) -> HostMatrix:
    """Return a random matrix with the degrees of X; see :func:`symnmf.nulls.same_degrees`."""
    if isinstance(X, SparseMatrix):
        null = same_degrees(sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape), rng)
        return SparseMatrix(null.indptr, null.indices, null.data, threads)
    assert isinstance(X, DenseMatrix)
    return DenseMatrix(same_degrees(X.array, rng), threads)
