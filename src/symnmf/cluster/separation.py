"""Whether points are one cloud: a gap between them must be seen in points held out.

The direction across the gap is found from four fifths of the points, and the others are projected
on it. Points of one cloud with a log-concave density, whatever its shape, have projections with one
mode in every direction, so the dip test of these needs no draws. The direction tells two given
clusters apart, or the two halves of a graph without the points that are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.dip import dip_test
from symnmf.cluster.partition import halves, restricted

#: Parts of the points that are held out in turn, and orders of the points that are tried.
FOLDS, ORDERS = 5, 3

#: Points of a cluster that are needed.
FEWEST = 4

#: Points of the larger cluster for each of the smaller: the mode of a small one is lost in many.
LARGER = 3

#: Leading directions of a table that are looked at, and of two clusters.
DIRECTIONS, OF_TWO = 100, 30


def coordinates(table: Any) -> np.ndarray:
    """Return the points of a table in their leading principal directions."""
    n, columns = table.shape
    count = min(DIRECTIONS, n, columns)
    if sp.issparse(table):
        if count >= min(n, columns):
            return coordinates(table.toarray())
        from scipy.sparse.linalg import svds

        U, s, _ = svds(sp.csr_array(table, dtype=np.float64), k=count, random_state=0)
        return np.asarray(U * s)
    points = np.asarray(table, dtype=np.float64)
    return _leading(points, count) if columns > count else points


def p_apart(points: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """Return the chance of such a gap between two clusters if they are one cloud of points."""
    if min(len(one), len(other)) < FEWEST:
        return 1.0
    right = np.repeat([False, True], [len(one), len(other)])
    X = _in_few_directions(points[np.r_[one, other]])
    chances = [
        _dip_of_sides(_held_out(X, right, order, lambda seen: right[seen]), right, order)
        for order in range(ORDERS)
    ]
    return float(np.median(chances))


def p_one(points: np.ndarray, graph: sp.csr_array) -> float:
    """Return the chance of such a gap in points if they are one cloud; ``graph`` joins them.

    The two sides are found without the points that are held out. So this is a test wherever the
    gap was looked for, and weaker than :func:`p_apart` where clusters are known.
    """
    if len(points) < 2 * FEWEST:
        return 1.0
    whole = halves(graph, 0.0)

    def of_seen(seen: np.ndarray) -> np.ndarray:
        right = halves(restricted(graph, seen), 0.0)
        return right if np.mean(right == whole[seen]) >= 0.5 else ~right

    place = _held_out(_in_few_directions(points), whole, 0, of_seen)
    return _dip_of_sides(place, place > 0.0, 0)


def _held_out(
    X: np.ndarray, right: np.ndarray, order: int, side: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return where points lie on the discriminant of two sides that others have; NaN without it."""
    place = np.empty(len(X))
    for held in _parts(right, order):
        seen = np.flatnonzero(~held)
        place[held] = _discriminant(X[seen], side(seen), X[held])
    return place


def _parts(right: np.ndarray, order: int) -> Iterator[np.ndarray]:
    """Yield points to be held out, a fifth of either side each time."""
    rng = np.random.default_rng(order)
    fold = np.empty(len(right), dtype=int)
    for side in (right, ~right):
        fold[side] = rng.permutation(np.arange(side.sum()) % FOLDS)
    for part in range(min(FOLDS, len(right))):
        yield fold == part


def _dip_of_sides(place: np.ndarray, right: np.ndarray, order: int) -> float:
    """Return the p-value of the dip, with not too many points of the larger side."""
    if np.isnan(place).any() or min(right.sum(), (~right).sum()) < FEWEST:
        return 1.0
    rng = np.random.default_rng(order)
    most = LARGER * int(min(right.sum(), (~right).sum()))
    drawn = [rng.permutation(np.flatnonzero(side))[:most] for side in (right, ~right)]
    return dip_test(place[np.concatenate(drawn)])


def _discriminant(X: np.ndarray, right: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return where other points lie on the discriminant of two sides of X.

    NaN where a side has too few.
    """
    from sklearn.covariance import ledoit_wolf

    if min(np.count_nonzero(right), np.count_nonzero(~right)) < 2:
        return np.full(len(others), np.nan)
    means = X[~right].mean(axis=0), X[right].mean(axis=0)
    inner = X - np.where(right[:, None], means[1], means[0])
    spread = ledoit_wolf(inner, assume_centered=True)[0]
    spread[np.diag_indices_from(spread)] += 1e-9 * np.trace(spread) / len(spread) + 1e-300
    direction = np.linalg.solve(spread, means[1] - means[0])
    scale = np.sqrt(direction @ spread @ direction)
    return np.asarray((others - sum(means) / 2) @ (direction / max(scale, 1e-300)))


def _in_few_directions(X: np.ndarray) -> np.ndarray:
    return _leading(X, OF_TWO) if X.shape[1] > OF_TWO else X


def _leading(X: np.ndarray, count: int) -> np.ndarray:
    centred = X - X.mean(axis=0)
    n, d = centred.shape
    if d <= n:
        directions = np.linalg.eigh(centred.T @ centred)[1][:, : -count - 1 : -1]
        return np.asarray(centred @ directions)
    values, vectors = np.linalg.eigh(centred @ centred.T)
    return np.asarray(
        vectors[:, : -count - 1 : -1] * np.sqrt(np.maximum(values[: -count - 1 : -1], 0))
    )
