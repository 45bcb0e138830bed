"""Passes over a sparse X for likelihoods of counts and of edges, with a dense factor.

The model of an entry is <u_i, u_j>. ``bernoulli`` chooses between log m (Poisson, of counts) and
log(e^m - 1) (a count of at least one, of edges) for the entries that are stored.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled

#: A model below this counts as this, so that a stored entry without one costs much, not infinity.
LEAST = 1e-30


@compiled(inline="always")
def _logarithm(model, bernoulli):  # type: ignore[no-untyped-def]
    """l(m): log m, or log(e^m - 1) = m + log(1 - e^-m), which neither overflows nor cancels."""
    return model + np.log(-np.expm1(-model)) if bernoulli else np.log(model)


@compiled(inline="always")
def _slope(model, bernoulli):  # type: ignore[no-untyped-def]
    """l'(m)."""
    return -1.0 / np.expm1(-model) if bernoulli else 1.0 / model


@compiled(inline="always")
def _model(row, U, j):  # type: ignore[no-untyped-def]
    model = 0.0
    for k in range(len(row)):
        model += row[k] * U[j, k]
    return max(model, LEAST)


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
            model = _model(U[i], U, j)
            slope = data[e] * _slope(model, bernoulli)
            total += data[e] * _logarithm(model, bernoulli)
            for k in range(rank):
                row[k] += slope * U[j, k]
        for k in range(rank):
            pull[i, k] = row[k]
        logs[i] = total


@compiled(fastmath=REORDER)
def _row_value(indices, data, U, bernoulli, row, cost, own, begin, end):  # type: ignore[no-untyped-def]
    """f as a function of one row: cost . u + own/2 u . u - sum_j x_ij l(u . u_j)."""
    value = 0.0
    for k in range(len(row)):
        value += cost[k] * row[k] + 0.5 * own * row[k] * row[k]
    for e in range(begin, end):
        value -= data[e] * _logarithm(_model(row, U, indices[e]), bernoulli)
    return value


@compiled(fastmath=REORDER)
def _derivatives(indices, data, U, bernoulli, row, cost, own, begin, end, slope, curvature):  # type: ignore[no-untyped-def]
    """The gradient and the Hessian of :func:`_row_value`."""
    rank = len(row)
    for k in range(rank):
        slope[k] = cost[k] + own * row[k]
        for m in range(rank):
            curvature[k, m] = 0.0
        curvature[k, k] = own
    for e in range(begin, end):
        j = indices[e]
        first = _slope(_model(row, U, j), bernoulli)
        second = first * (first - 1.0) if bernoulli else first * first
        for k in range(rank):
            if U[j, k] != 0.0:
                slope[k] -= data[e] * first * U[j, k]
                weight = data[e] * second * U[j, k]
                for m in range(k + 1):
                    curvature[k, m] += weight * U[j, m]
    for k in range(rank):
        for m in range(k):
            curvature[m, k] = curvature[k, m]


@compiled(fastmath=REORDER)
def _newton_direction(row, slope, curvature, free, rank):  # type: ignore[no-untyped-def]
    """Write a direction over ``slope``: Newton's for free entries, to 0 for those that end there.

    An entry that is small and would shrink is not free (Bertsekas 1982): with it among the others
    Newton's direction, cut off at zero, may lead upwards.
    """
    count, largest = 0, 0.0
    for k in range(rank):
        largest = max(largest, row[k])
    for k in range(rank):
        if row[k] > 0.01 * largest or slope[k] < 0.0:
            free[count] = k
            count += 1
    reduced, right = np.empty((count, count)), np.empty(count)
    trace = 0.0
    for a in range(count):
        trace += curvature[free[a], free[a]]
    for a in range(count):
        right[a] = -slope[free[a]]
        for b in range(count):
            reduced[a, b] = curvature[free[a], free[b]]
        reduced[a, a] += 1e-10 * trace + 1e-300
    for k in range(rank):
        slope[k] = -row[k]
    if count:
        steps = np.linalg.solve(reduced, right)
        for a in range(count):
            slope[free[a]] = steps[a]


@compiled(fastmath=REORDER)
def newton_sweep(indptr, indices, data, U, bernoulli, hidden_indptr, hidden_indices, hidden_own):  # type: ignore[no-untyped-def]
    """One projected Newton step for each row in turn, in place, none of which raises f.

    Given the others a row is a convex problem. ``hidden_own`` says for each row whether its
    diagonal entry was not observed; X has no diagonal entry that is not zero.
    """
    n, rank = U.shape
    totals = np.zeros(rank)
    for i in range(n):
        for k in range(rank):
            totals[k] += U[i, k]
    row, ahead, cost = np.empty(rank), np.empty(rank), np.empty(rank)
    slope, curvature = np.empty(rank), np.empty((rank, rank))
    free = np.empty(rank, np.int64)
    for i in range(n):
        begin, end = indptr[i], indptr[i + 1]
        own = 0.0 if hidden_own[i] else 1.0
        for k in range(rank):
            row[k] = U[i, k]
            cost[k] = totals[k] - row[k]
        for h in range(hidden_indptr[i], hidden_indptr[i + 1]):
            j = hidden_indices[h]
            if j != i:
                for k in range(rank):
                    cost[k] -= U[j, k]
        _derivatives(indices, data, U, bernoulli, row, cost, own, begin, end, slope, curvature)
        before = _row_value(indices, data, U, bernoulli, row, cost, own, begin, end)
        _newton_direction(row, slope, curvature, free, rank)
        length = 1.0
        for _ in range(12):
            for k in range(rank):
                ahead[k] = max(row[k] + length * slope[k], 0.0)
            after = _row_value(indices, data, U, bernoulli, ahead, cost, own, begin, end)
            if after <= before:
                for k in range(rank):
                    totals[k] += ahead[k] - row[k]
                    U[i, k] = ahead[k]
                break
            length *= 0.4
