"""An N for matrices that are too large for any: one number for every two groups of rows.

N = H C H^T with H >= 0 of one column for each group and C >= 0 of the size of the groups, so that
X + N is multiplied as fast as X is. The groups are the clusters of U, each cut into a few parts by
how strongly rows belong to it: where eigenvectors overlap most is between the rims of clusters.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

import numpy as np

from symnmf.bounds.squares import leading_pairs
from symnmf.bounds.target import Target

PARTS = 4  # of a cluster
MOST_GROUPS = 256
EVALUATIONS = 60


@dataclass(frozen=True, eq=False)
class Between:
    """N = H C H^T."""

    H: np.ndarray
    C: np.ndarray

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return N V."""
        return self.H @ (self.C @ (self.H.T @ V))

    @property
    def size(self) -> float:
        """||N||_F."""
        gram = self.H.T @ self.H
        return float(np.sqrt(max(np.vdot(gram @ self.C, self.C @ gram), 0.0)))


def groups_of(U: np.ndarray) -> np.ndarray:
    """Return H: a column for each part of each cluster, with the entries of U in it."""
    n, rank = U.shape
    parts = max(1, min(PARTS, MOST_GROUPS // rank))
    labels, strength = U.argmax(axis=1), U.max(axis=1)
    columns = []
    for label in range(rank):
        members = np.flatnonzero((labels == label) & (strength > 0.0))
        ordered = members[np.argsort(strength[members], kind="stable")]
        for part in np.array_split(ordered, parts):
            if len(part):
                column = np.zeros(n)
                column[part] = strength[part] / np.linalg.norm(strength[part])
                columns.append(column)
    return np.stack(columns, axis=1) if columns else np.zeros((n, 0))


def between_groups(
    target: Target, rank: int, U: np.ndarray, start: np.ndarray, seconds: float
) -> tuple[Between, int] | None:
    """Return an N that raises the bound, with how often it was tried; None where none was found.

    ``start`` are the leading eigenvectors of A.
    """
    H = groups_of(np.asarray(U, dtype=np.float64))
    count = H.shape[1]
    if count < 2:
        return None
    upper = np.triu_indices(count, 1)
    until = time.perf_counter() + seconds
    block = start

    def matrix(entries: np.ndarray) -> np.ndarray:
        C = np.zeros((count, count))
        C[upper] = entries
        return C + C.T

    def squares(entries: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal block
        if time.perf_counter() > until:
            raise TimeoutError
        N = Between(H, matrix(entries))
        moved = target.plus(N.times, N.size)
        block, values = leading_pairs(moved.multiply, moved.n, rank, block)
        values = np.maximum(values, 0.0)
        seen = H.T @ block[:, :rank]
        slope = 4.0 * ((seen * values) @ seen.T)[upper]  # each entry of C stands twice in N
        total = float(np.sum(values**2))
        if not tried or total < min(tried):
            best[:] = [entries.copy()]
        tried.append(total)
        return total / target.size**2, slope / target.size**2

    best: list[np.ndarray] = []
    tried: list[float] = []
    from scipy.optimize import minimize

    with contextlib.suppress(TimeoutError):
        minimize(
            squares,
            np.zeros(len(upper[0])),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * len(upper[0]),
            options={"maxfun": EVALUATIONS},
        )
    if len(tried) < 2 or not min(tried) < tried[0]:
        return None
    return Between(H, matrix(np.maximum(best[0], 0.0))), len(tried)
