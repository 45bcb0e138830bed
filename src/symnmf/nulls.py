"""Data without clusters to compare with: graphs with the same degrees, points alike in each column.

What any method finds there is what chance brings about, so a number of clusters, a split or a
partition counts for something where it does better than on several such draws.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Rounds in which loops and repeated edges are exchanged with other edges.
REPAIRS = 30

#: A column of points has two modes where its density between them is below this part of the lower.
VALLEY = 0.5

#: Part of the points that lies on either side of such a valley at least.
SIDE = 0.1

#: Places at which the density of a column is looked at, and points it is estimated from.
GRID, SAMPLE = 256, 2000

#: A column of at most so many values, or of which one value is more than this part, is one of
#: counts or categories.
FEW_VALUES, COMMON = 15, 0.25

#: Halvings that exhaust a double.
BISECTIONS = 80

#: Larger tables of points have no covariance drawn; their columns are shuffled.
MOST_DIRECTIONS = 2000


def upper_limit(draws: Any, level: float) -> float:
    """Return what one more draw exceeds with a chance of ``level``, by Student's t.

    The mean and the spread are themselves from these few draws, and the limit allows for that.
    """
    values = np.asarray(draws, dtype=np.float64)
    spread = float(values.std(ddof=1)) * np.sqrt(1.0 + 1.0 / len(values))
    return float(values.mean() + student_quantile(len(values) - 1, 1.0 - level) * spread)


def student_quantile(degrees: int, chance: float) -> float:
    """Return what Student's t exceeds with a chance of 1 - ``chance``, by bisection.

    Its distribution is elementary for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and
    26.7.4). scipy.special has it too and takes a tenth of a second to load, which every first
    fit would wait for.
    """
    if chance < 0.5:
        return -student_quantile(degrees, 1.0 - chance)
    low, high = 0.0, 1.0
    while _student(high, degrees) < chance:
        high *= 2.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if _student(middle, degrees) < chance:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _student(t: float, degrees: int) -> float:
    """Return the chance that Student's t is at most ``t`` >= 0."""
    angle = math.atan(t / math.sqrt(degrees))
    square, odd = math.cos(angle) ** 2, degrees % 2
    term = total = 0.0 if degrees == 1 else math.cos(angle) if odd else 1.0
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= square * (k - 1) / k
        total += term
    inside = 2.0 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return 0.5 * (1.0 + inside)


# Graphs ---------------------------------------------------------------------------------------


def same_degrees(A: Any, rng: np.random.Generator) -> Any:
    """Return a random graph whose nodes have the degrees they have in A.

    Edges are rewired, and each keeps its weight relative to what its ends have on average, so that
    sums of weights stay about the same as well; signs travel with the weights. Of an array,
    which has no edges to rewire, the ratios to d_i d_j / sum(d) are shuffled.
    """
    return _rewired(A, rng) if sp.issparse(A) else _shuffled(np.asarray(A), rng)


def _rewired(A: Any, rng: np.random.Generator) -> sp.csr_array:
    graph = sp.csr_array(A)
    n = graph.shape[0]
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    above = graph.indices > rows
    left, right = rows[above], graph.indices[above].astype(np.int64)
    weights = graph.data[above].astype(np.float64)
    places, kept = _matched(n, left, right, rng)
    if weights.size and np.ptp(weights) == 0.0:  # all edges alike
        values = weights[: kept.size]
    else:
        size = np.abs(weights)
        total = np.bincount(left, size, n) + np.bincount(right, size, n)
        count = np.bincount(left, minlength=n) + np.bincount(right, minlength=n)
        typical = np.sqrt(np.maximum(total / np.maximum(count, 1), np.finfo(np.float64).tiny))
        ratio = rng.permutation(weights / (typical[left] * typical[right]))[kept]
        values = ratio * typical[places // n] * typical[places % n]
    half = sp.coo_array((values, (places // n, places % n)), shape=(n, n))
    whole = sp.csr_array(half + half.T, dtype=graph.dtype)
    whole.sort_indices()
    return whole


def _matched(
    n: int, left: np.ndarray, right: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Join the loose ends of all edges at random; return i n + j of the new ones, i < j, and which.

    Loops and repeats are exchanged with other edges drawn at random. The few that are left after
    that, in a graph that is nearly complete, are dropped.
    """
    ends = rng.permutation(np.concatenate([left, right]))
    one, other = ends[: len(left)].astype(np.int64), ends[len(left) :].astype(np.int64)
    for attempt in range(REPAIRS + 1):
        places = np.minimum(one, other) * n + np.maximum(one, other)
        first = np.zeros(len(places), dtype=bool)
        first[np.unique(places, return_index=True)[1]] = True
        fine = first & (one != other)
        wrong = np.flatnonzero(~fine)
        if not wrong.size or attempt == REPAIRS:
            break
        usable = np.flatnonzero(fine)
        wrong = wrong[: usable.size]
        partners = rng.choice(usable, wrong.size, replace=False)
        other[wrong], other[partners] = other[partners], other[wrong]
    kept = np.flatnonzero(fine)
    return places[kept], kept


def _shuffled(A: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    degrees = np.abs(A).sum(axis=1, dtype=np.float64)
    total = degrees.sum()
    expected = np.outer(degrees, degrees) / (total if total else 1.0)
    i, j = np.triu_indices(A.shape[0], 1)
    ratio = A[i, j] / np.maximum(expected[i, j], np.finfo(np.float64).tiny)
    null = np.zeros_like(expected)
    null[i, j] = expected[i, j] * rng.permutation(ratio)
    null += null.T
    np.fill_diagonal(null, np.diag(A))
    return np.ascontiguousarray(null, dtype=A.dtype)


# Points ---------------------------------------------------------------------------------------


def same_marginals(X: Any, rng: np.random.Generator) -> Any:
    """Return points whose columns are those of X, each in an order of its own.

    What columns have in common is gone. A column of continuous values with two clear modes shows
    clusters by itself, so it is drawn from its density, smoothed until one mode is left.
    """
    if sp.issparse(X):
        columns = sp.csc_array(X, copy=True)
        for start, stop in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
            if stop > start:
                columns.indices[start:stop] = rng.choice(X.shape[0], stop - start, replace=False)
        columns.has_sorted_indices = False
        return sp.csr_array(columns)
    points = np.asarray(X)
    drawn = rng.permuted(points, axis=0)
    for number in _with_two_modes(points):
        drawn[:, number] = _with_one_mode(points[:, number], rng)
    return drawn


def same_covariance(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return normal points with the covariances of the rows of X, turned to their own axes.

    Distances are those of points with the covariances themselves.
    """
    centred = X - X.mean(axis=0)
    n, d = X.shape
    squares = np.linalg.eigvalsh(centred.T @ centred if d <= n else centred @ centred.T)
    return np.asarray(rng.standard_normal((n, len(squares))) * np.sqrt(np.maximum(squares / n, 0)))


def has_covariance(X: Any) -> bool:
    """Whether :func:`same_covariance` is for X: a table that is dense and not too wide."""
    return not sp.issparse(X) and min(X.shape) <= MOST_DIRECTIONS


def _with_two_modes(points: np.ndarray) -> list[int]:
    """Return the columns that show two modes; of wide tables none, where one column says little."""
    columns = points.shape[1]
    return [i for i in range(columns) if _has_two_modes(points[:, i])] if columns <= 50 else []


def _has_two_modes(column: np.ndarray) -> bool:
    """Whether a density by Silverman's rule has a deep valley with points on either side."""
    values = column[:: max(1, len(column) // SAMPLE)]
    n = len(values)
    counts = np.unique(values, return_counts=True)[1]
    if counts.size <= FEW_VALUES or counts.max() > COMMON * n:
        return False
    quartiles = np.percentile(values, [25, 75])
    width = 0.9 * min(float(values.std()), float(np.ptp(quartiles)) / 1.34) * n**-0.2
    if not width > 0.0:
        return False
    grid = np.linspace(values.min(), values.max(), GRID)
    density = _density(values, grid, width)
    left, right = np.maximum.accumulate(density), np.maximum.accumulate(density[::-1])[::-1]
    deep = density < VALLEY * np.minimum(left, right)
    below = np.searchsorted(np.sort(values), grid[deep]) / n
    return bool(np.any((below > SIDE) & (below < 1.0 - SIDE)))


def _with_one_mode(column: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw from the density of a column at the least width at which it has one mode."""
    values = column[:: max(1, len(column) // SAMPLE)]
    spread = float(values.std())
    grid = np.linspace(values.min() - spread, values.max() + spread, GRID)
    low, high = 1e-2 * spread, 2.0 * spread
    for _ in range(10):
        width = float(np.sqrt(low * high))
        low, high = (low, width) if _modes(_density(values, grid, width)) <= 1 else (width, high)
    drawn = rng.choice(column, len(column)) + high * rng.standard_normal(len(column))
    mean = float(values.mean())
    # smoothing widens, and the spread is to stay
    return np.asarray(mean + (drawn - mean) / np.sqrt(1.0 + (high / spread) ** 2))


def _density(values: np.ndarray, grid: np.ndarray, width: float) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * ((grid[:, None] - values) / width) ** 2).sum(axis=1))


def _modes(density: np.ndarray) -> int:
    rises = np.sign(np.diff(density))
    rises = rises[rises != 0]
    return int(np.sum((rises[:-1] > 0) & (rises[1:] < 0)))
