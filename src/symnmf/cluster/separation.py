"""Whether two clusters of points are separate: the gap must be seen in points held out.

The direction that tells two clusters apart is found from four fifths of their points, and the
others are projected on it. Points of one cloud with a log-concave density, whatever its shape, have
projections with one mode in every direction, so the dip test of these needs no draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.cluster.dip import dip_test

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


def p_value(points: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """Return the chance of such a gap between two clusters if they are one cloud of points."""
    sizes = len(one), len(other)
    if min(sizes) < FEWEST:
        return 1.0
    X, right = points[np.r_[one, other]], np.repeat([False, True], sizes)
    if X.shape[1] > OF_TWO:
        X = _leading(X, OF_TWO)
    rng, chances = np.random.default_rng(0), []
    for _ in range(ORDERS):
        fold = np.empty(len(X), dtype=int)
        for side in (right, ~right):
            fold[side] = rng.permutation(np.arange(side.sum()) % FOLDS)
        place = np.empty(len(X))
        for part in range(FOLDS):
            seen = fold != part
            if min(np.count_nonzero(seen & right), np.count_nonzero(seen & ~right)) < 2:
                return 1.0
            place[~seen] = _discriminant(X, seen, right)
        most = LARGER * min(sizes)
        drawn = [rng.permutation(np.flatnonzero(side))[:most] for side in (right, ~right)]
        chances.append(dip_test(place[np.concatenate(drawn)]))
    return float(np.median(chances))


def _discriminant(X: np.ndarray, seen: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return where points that were not seen lie on the discriminant of those that were."""
    from sklearn.covariance import ledoit_wolf

    means = X[seen & ~right].mean(axis=0), X[seen & right].mean(axis=0)
    inner = X[seen] - np.where(right[seen][:, None], means[1], means[0])
    spread = ledoit_wolf(inner, assume_centered=True)[0]
    spread[np.diag_indices_from(spread)] += 1e-9 * np.trace(spread) / len(spread) + 1e-300
    direction = np.linalg.solve(spread, means[1] - means[0])
    scale = np.sqrt(direction @ spread @ direction)
    return np.asarray((X[~seen] - sum(means) / 2) @ (direction / max(scale, 1e-300)))


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
