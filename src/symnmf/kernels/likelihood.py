"""Passes over a sparse X for likelihoods of counts and of edges, with a dense factor.

The model of an entry is <u_i, u_j>. ``bernoulli`` chooses between log m (Poisson, of counts) and
log(e^m - 1) (a count of at least one, of edges) for the entries that are stored.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled

#: A model below this counts as this, so that a stored entry without one costs much, not infinity.
LEAST = 1e-30


@compiled(fastmath=REORDER)
def likelihood_rows(indptr, indices, data, U, bernoulli, pull, logs, begin, end):  # type: ignore[no-untyped-def]
    """Write sum_j x_ij l'(m_ij) u_j and sum_j x_ij l(m_ij) for rows."""
    rank = U.shape[1]
    row = np.empty(rank)
    for i in range(begin, end):
        for k in range(rank):
            row[k] = 0.0
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            model = 0.0
            for k in range(rank):
                model += U[i, k] * U[j, k]
            model = max(model, LEAST)
            if bernoulli:
                slope = -1.0 / np.expm1(-model)
                # log(e^m - 1) = m + log(1 - e^-m), where neither overflows nor cancels
                total += data[e] * (model + np.log(-np.expm1(-model)))
            else:
                slope = 1.0 / model
                total += data[e] * np.log(model)
            slope *= data[e]
            for k in range(rank):
                row[k] += slope * U[j, k]
        for k in range(rank):
            pull[i, k] = row[k]
        logs[i] = total
