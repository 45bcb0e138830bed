"""BigCLAM (Yang and Leskovec, WSDM 2013), transcribed from the program of its authors in SNAP.

What their code does and the paper leaves open is kept: pairs in no common community have an edge
with the probability 1/n; a row takes a gradient step, in the communities of its neighbours and its
own, with Armijo's rule (0.05, 0.3, at most ten trials) and entries clipped to [0, 1000]; a pass
over all rows in random order that raises the likelihood by less than 1e-4 of it is the last;
members are above the root of the density 2m/n^2, and communities have at least three. Rows hold at
most ``WIDTH`` entries, the largest ones, so that n x k need not fit into memory.
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp

WIDTH = 64
LEAST_DEGREE, LEAST_MEMBERS = 5, 3
ALPHA, BETA, TRIALS, LARGEST = 0.05, 0.3, 10, 1000.0
TOL, MOST_PASSES = 1e-4, 200


def bigclam(A: sp.csr_array, k: int, seed: int) -> list[np.ndarray]:
    """Return at most k communities of a graph without weights."""
    n, rng = A.shape[0], np.random.default_rng(seed)
    indptr, indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    columns, values, counts = _start(A, k, rng)
    total = np.zeros(k)
    for i in range(n):
        total[columns[i, : counts[i]]] += values[i, : counts[i]]
    apart = -np.log1p(-1.0 / n)
    graph, factor, before = (indptr, indices), (columns, values, counts), -np.inf
    for _ in range(MOST_PASSES):
        _pass(*graph, *factor, total, rng.permutation(n), apart)
        value = _log_likelihood(*graph, *factor, total, apart)
        if value - before <= TOL * abs(before):
            break
        before = value
    inside = (np.arange(WIDTH) < counts[:, None]) & (values > np.sqrt(A.nnz / n**2))
    rows, places = np.nonzero(inside)
    owner = columns[rows, places]
    order = np.argsort(owner, kind="stable")
    sets = np.split(rows[order], np.cumsum(np.bincount(owner, minlength=k))[:-1])
    return [members for members in sets if len(members) >= LEAST_MEMBERS]


def _start(
    A: sp.csr_array, k: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Neighbourhoods by conductance, none of them around a neighbour of an earlier one."""
    n, degrees, total = A.shape[0], np.diff(A.indptr).astype(float), float(A.nnz)
    triangles = np.asarray((A @ A).multiply(A).sum(axis=1)).ravel() / 2
    volume, inner = degrees + A @ degrees, degrees + triangles
    cut = volume - 2 * inner
    conductance = cut / np.maximum(np.minimum(volume, total - volume), 1.0)
    conductance[degrees < LEAST_DEGREE] = 1.0
    taken = np.zeros(n, dtype=bool)
    sets: list[tuple[np.ndarray, float]] = []
    for u in np.argsort(conductance, kind="stable").tolist():
        if len(sets) == k:
            break
        if not taken[u]:
            members = np.append(A.indices[A.indptr[u] : A.indptr[u + 1]], u)
            taken[members] = True
            sets.append((members, 1.0))
    while len(sets) < k:
        sets.append((rng.choice(n, min(10, n), replace=False), rng.random()))
    columns, values = np.zeros((n, WIDTH), np.int64), np.zeros((n, WIDTH))
    counts = np.zeros(n, np.int64)
    for number, (members, strength) in enumerate(sets):
        mine = members[counts[members] < WIDTH]
        columns[mine, counts[mine]], values[mine, counts[mine]] = number, strength
        counts[mine] += 1
    return columns, values, counts


@numba.njit(cache=True)
def _dot(columns, values, counts, v, row, apart):  # type: ignore[no-untyped-def]
    rate = apart
    for y in range(counts[v]):
        rate += values[v, y] * row[columns[v, y]]
    return rate


@numba.njit(cache=True)
def _pass(indptr, indices, columns, values, counts, total, order, apart):  # type: ignore[no-untyped-def]
    k = len(total)
    row, slope, near, ahead = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k)
    known, seen = np.zeros(k, np.bool_), np.empty(k, np.int64)
    for u in order:
        found = 0
        for x in range(counts[u]):
            c = columns[u, x]
            row[c] = values[u, x]
            known[c] = True
            seen[found] = c
            found += 1
        start = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            rate = _dot(columns, values, counts, v, row, apart)
            start += np.log(-np.expm1(-rate))
            pull = 1.0 / np.expm1(rate)
            for y in range(counts[v]):
                c = columns[v, y]
                if not known[c]:
                    known[c] = True
                    seen[found] = c
                    found += 1
                slope[c] += values[v, y] * pull
                near[c] += values[v, y]
        size = 0.0
        for s in range(found):
            c = seen[s]
            outside = total[c] - row[c] - near[c]
            slope[c] -= outside
            start -= row[c] * outside
            size += slope[c] * slope[c]
        step, moved = 1.0, False
        for _ in range(TRIALS):
            reached = 0.0
            for s in range(found):
                c = seen[s]
                ahead[c] = min(max(row[c] + step * slope[c], 0.0), LARGEST)
                reached -= ahead[c] * (total[c] - row[c] - near[c])
            for e in range(indptr[u], indptr[u + 1]):
                rate = _dot(columns, values, counts, indices[e], ahead, apart)
                reached += np.log(-np.expm1(-rate))
            if reached >= start + ALPHA * step * size:
                moved = True
                break
            step *= BETA
        if moved:
            _write(columns, values, counts, u, row, ahead, seen[:found], total)
        for s in range(found):
            c = seen[s]
            row[c] = slope[c] = near[c] = ahead[c] = 0.0
            known[c] = False


@numba.njit(cache=True)
def _write(columns, values, counts, u, row, ahead, seen, total):  # type: ignore[no-untyped-def]
    entries = np.empty(len(seen))
    for s in range(len(seen)):
        entries[s] = ahead[seen[s]]
    order = np.argsort(-entries)
    kept = 0
    for s in order:
        c = seen[s]
        new = entries[s] if kept < columns.shape[1] else 0.0
        total[c] += new - row[c]
        if new > 0.0:
            columns[u, kept] = c
            values[u, kept] = new
            kept += 1
    counts[u] = kept


@numba.njit(cache=True)
def _log_likelihood(indptr, indices, columns, values, counts, total, apart):  # type: ignore[no-untyped-def]
    row, value = np.zeros(len(total)), 0.0
    for u in range(len(counts)):
        for x in range(counts[u]):
            row[columns[u, x]] = values[u, x]
        for e in range(indptr[u], indptr[u + 1]):
            rate = _dot(columns, values, counts, indices[e], row, apart)
            value += 0.5 * (np.log(-np.expm1(-rate)) + rate - apart)
        for x in range(counts[u]):
            c = columns[u, x]
            value -= 0.5 * values[u, x] * (total[c] - values[u, x])
            row[c] = 0.0
    return value
