"""Passes over a factor whose rows hold a few entries each, for the Poisson loss.

A row is ``counts[i]`` entries of ``columns[i]``, in ascending order, and of ``values[i]``. The rate
of an edge is the background plus the inner product of two such rows, found by merging them.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.compiling import REORDER, compiled


@compiled(fastmath=REORDER)
def _rate(columns, values, counts, i, j, background):  # type: ignore[no-untyped-def]
    rate, x, y = background, 0, 0
    while x < counts[i] and y < counts[j]:
        a, b = columns[i, x], columns[j, y]
        if a == b:
            rate += values[i, x] * values[j, y]
            x += 1
            y += 1
        elif a < b:
            x += 1
        else:
            y += 1
    return rate


@compiled(fastmath=REORDER)
def pull_rows(  # type: ignore[no-untyped-def]
    indptr, indices, weights, columns, values, counts, background, pull, logs, begin, end
):
    """Write sum_j a_ij u_jk / rate_ij for each entry of rows, and sum_j a_ij log rate_ij."""
    for i in range(begin, end):
        for x in range(counts[i]):
            pull[i, x] = 0.0
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            rate = _rate(columns, values, counts, i, j, background)
            total += weights[e] * np.log(rate)
            if rate > background:
                share, x, y = weights[e] / rate, 0, 0
                while x < counts[i] and y < counts[j]:
                    a, b = columns[i, x], columns[j, y]
                    if a == b:
                        pull[i, x] += share * values[j, y]
                        x += 1
                        y += 1
                    elif a < b:
                        x += 1
                    else:
                        y += 1
        logs[i] = total


@compiled()
def column_sums(columns, amounts, counts, rank):  # type: ignore[no-untyped-def]
    """Sum the entries of each column, row after row, so that the result is the same bit for bit."""
    sums = np.zeros(rank)
    for i in range(len(counts)):
        for x in range(counts[i]):
            sums[columns[i, x]] += amounts[i, x]
    return sums


@compiled()
def attribute(columns, values, counts, pull, rank, power, least):  # type: ignore[no-untyped-def]
    """The step of expectation-maximisation, u_ik = N_ik / sqrt(N_k), N_ik = u_ik pull_ik.

    ``power`` above 1 goes further along the same way: u_ik times (step / u_ik)^power. Entries that
    fall below ``least`` leave the support.
    """
    new_columns, new_values = np.zeros_like(columns), np.zeros_like(values)
    new_counts = np.zeros_like(counts)
    totals = np.zeros(rank)
    for i in range(len(counts)):
        for x in range(counts[i]):
            totals[columns[i, x]] += values[i, x] * pull[i, x]
    for i in range(len(counts)):
        kept = 0
        for x in range(counts[i]):
            k = columns[i, x]
            if totals[k] > 0.0:
                ratio = pull[i, x] / np.sqrt(totals[k])
                value = values[i, x] * (ratio if power == 1.0 else ratio**power)
                if value > least:
                    new_columns[i, kept] = k
                    new_values[i, kept] = value
                    kept += 1
        new_counts[i] = kept
    return new_columns, new_values, new_counts


@compiled()
def residual_on(columns, values, counts, pull, totals, unit):  # type: ignore[no-untyped-def]
    """Sum of squares of U - [U - unit (1 - pull / total)]_+ over the support."""
    total = 0.0
    for i in range(len(counts)):
        for x in range(counts[i]):
            step = unit * (1.0 - pull[i, x] / totals[columns[i, x]])
            move = min(step, values[i, x])
            total += move * move
    return total


@compiled(fastmath=REORDER)
def _best_entry(  # type: ignore[no-untyped-def]
    indptr, indices, weights, columns, values, counts, background, i, k, total
):
    """Minimise f along u_ik from 0 by Newton's method, all other entries fixed."""
    value = 0.0
    for _ in range(5):
        slope, curvature = total + value, 1.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            for y in range(counts[j]):
                if columns[j, y] == k:
                    rate = _rate(columns, values, counts, i, j, background)
                    share = values[j, y] / (rate + value * values[j, y])
                    slope -= weights[e] * share
                    curvature += weights[e] * share * share
                    break
        value = max(0.0, value - slope / curvature)
    return value


@compiled(fastmath=REORDER)
def grow_rows(  # type: ignore[no-untyped-def]
    indptr, indices, weights, columns, values, counts, background, totals, most,
    new_columns, new_values, fresh, new_counts, outside, begin, end,
):  # fmt: skip
    """Give rows the columns of neighbours that they lack and that would lower f.

    ``outside[i]`` is the sum of (ratio - 1)^2 over the columns not in row i whose pull exceeds
    their total, ratio = pull / total: what is not stationary off the support. At most ``most``
    columns enter a row, those of the largest ratio. They enter ``new_values`` with 0 and ``fresh``
    with what is best for each alone. ``most = 0`` only measures.
    """
    rank, width = len(totals), columns.shape[1]
    score, state = np.zeros(rank), np.zeros(rank, np.int8)
    seen = np.empty(rank, np.int64)
    for i in range(begin, end):
        found = 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if counts[j] == 0:
                continue
            rate = _rate(columns, values, counts, i, j, background)
            for y in range(counts[j]):
                k = columns[j, y]
                if state[k] == 0:
                    state[k] = 1
                    score[k] = 0.0
                    seen[found] = k
                    found += 1
                score[k] += weights[e] * values[j, y] / rate
        for x in range(counts[i]):
            state[columns[i, x]] = 2
            if most > 0:
                new_columns[i, x] = columns[i, x]
                new_values[i, x] = values[i, x]
        missing = 0.0
        for s in range(found):
            k = seen[s]
            if state[k] == 1:
                score[k] /= totals[k]
                if score[k] > 1.0:
                    missing += (score[k] - 1.0) ** 2
        outside[i] = missing
        if most > 0:
            count = counts[i]
            for _ in range(min(most, width - counts[i])):
                best, ratio = -1, 1.0
                for s in range(found):
                    if state[seen[s]] == 1 and score[seen[s]] > ratio:
                        best, ratio = seen[s], score[seen[s]]
                if best < 0:
                    break
                state[best] = 2
                value = _best_entry(
                    indptr,
                    indices,
                    weights,
                    columns,
                    values,
                    counts,
                    background,
                    i,
                    best,
                    totals[best],
                )
                if value > 0.0:
                    y = count - 1
                    while y >= 0 and new_columns[i, y] > best:
                        new_columns[i, y + 1] = new_columns[i, y]
                        new_values[i, y + 1] = new_values[i, y]
                        fresh[i, y + 1] = fresh[i, y]
                        y -= 1
                    new_columns[i, y + 1] = best
                    new_values[i, y + 1] = 0.0
                    fresh[i, y + 1] = value
                    count += 1
            new_counts[i] = count
        for s in range(found):
            state[seen[s]] = 0
        for x in range(counts[i]):
            state[columns[i, x]] = 0


@compiled(fastmath=REORDER)
def column_gains(  # type: ignore[no-untyped-def]
    indptr, indices, weights, columns, values, counts, background, rank
):
    """sum over edges of a_ij log(rate / rate without column k): what each column explains."""
    gains = np.zeros(rank)
    for i in range(len(counts)):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j <= i:
                continue
            rate = _rate(columns, values, counts, i, j, background)
            x, y = 0, 0
            while x < counts[i] and y < counts[j]:
                a, b = columns[i, x], columns[j, y]
                if a == b:
                    without = max(rate - values[i, x] * values[j, y], background)
                    gains[a] += weights[e] * np.log(rate / without)
                    x += 1
                    y += 1
                elif a < b:
                    x += 1
                else:
                    y += 1
    return gains
