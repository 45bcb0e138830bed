"""Where new rows belong: their similarities to the fitted ones, and a row of U for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from symnmf.arguments import checked
from symnmf.errors import InputError, said_as_input_errors
from symnmf.graphs.adjacency import numbers
from symnmf.graphs.neighbors import row_hashes

if TYPE_CHECKING:
    from symnmf.graphs.building import Compare


def place(similarities: Any, U: np.ndarray) -> np.ndarray:
    """Return the row u >= 0 of each new point that fits its similarities best.

    It minimises ||s - U u||^2, s the point's similarities to the fitted rows: the same least
    squares that every row of U solves in the fit, up to the point's similarity to itself.
    """
    from scipy.optimize import nnls

    cross = np.asarray(similarities @ U, dtype=np.float64)
    gram = U.astype(np.float64).T @ U.astype(np.float64)
    scale = np.trace(gram) / len(gram)
    if not scale > 0:
        return np.zeros_like(cross)
    root = np.linalg.cholesky(gram + 1e-12 * scale * np.eye(len(gram)))
    right = np.linalg.solve(root, cross.T).T
    return np.array([nnls(root.T, row)[0] for row in right]).reshape(cross.shape)


class Places:
    """Where new rows belong, by what the fit knows of those that it had."""

    def __init__(self, points: Any, affinity: Any, compare: Compare | None) -> None:
        self.points, self.affinity, self.compare = points, affinity, compare

    @cached_property
    def _known(self) -> dict[int, int]:
        """The number of each fitted row by what it holds; the first of equal ones."""
        if not (isinstance(self.points, np.ndarray) or sp.issparse(self.points)):
            return {}
        hashes = row_hashes(self.points)
        return dict(zip(reversed(hashes), reversed(range(len(hashes))), strict=True))

    def of(self, new: Any, U: np.ndarray, place: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Return a row of U for each new row; one equal to a fitted row has that one's.

        ``U`` are the rows of the fitted ones, or their labels, and ``place`` finds those of others
        from their similarities.
        """
        if callable(self.affinity):
            raise InputError(
                "affinity is a callable, which gives no similarities of new samples to fitted "
                "ones; use a named kind, or affinity='precomputed' with such similarities."
            )
        before = np.array([self._known.get(row, -1) for row in row_hashes(new)], np.intp)
        rows, fresh = U[before].copy(), before < 0
        if fresh.any():
            others = new[fresh]
            rows[fresh] = place(others if self.compare is None else self.compare(others))
        return rows


@checked()
def top_features(
    X: Any, membership: np.ndarray, names: Any = None, k: int = 10
) -> list[list[tuple[Any, float]]]:
    """Return the columns of X that distinguish each cluster from the rest, the best first.

    The score of a column is m log(m / m'), where m is its mean over the cluster (rows weighted by
    their share) and m' its mean over all other rows. It is large for a column that is common inside
    and rare outside. The score of a column with negative values is m - m', in standard deviations.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        The data, such as counts of words or of genes.
    membership : array of shape (n, clusters)
        Shares, as in ``SymNMF.membership_``, or any nonnegative weights.
    names : sequence of length d, optional
        The names of the columns; by default those of the frame, else their numbers.
    k : int, default 10
        How many per cluster; columns that are not more common inside than outside are left out.

    Returns
    -------
    list of list of (name, score), one list per cluster
    """
    if names is None:
        names = getattr(X, "columns", None)
    data = numbers(X, "X")
    with said_as_input_errors():
        shares = np.asarray(membership, dtype=np.float64)
    n, d = data.shape
    if shares.ndim != 2 or len(shares) != n:
        raise InputError(f"membership must have a row for each of the {n} of X, not {len(shares)}.")
    if names is not None and (isinstance(names, str) or not hasattr(names, "__len__")):
        raise InputError(f"names must be a sequence with a name for each column, got {names!r}.")
    called = list(range(d)) if names is None else list(names)
    if len(called) != d:
        raise InputError(
            f"names must have one entry for each of the {d} columns of X, got {len(called)}."
        )
    weight = shares.sum(axis=0)
    sums, total = np.asarray(data.T @ shares).T, np.asarray(data.sum(axis=0)).ravel()
    inside = sums / np.where(weight > 0, weight, 1)[:, None]
    rest = np.maximum(n - weight, 1e-12)[:, None]
    outside = (total - sums) / rest
    if data.min() >= 0:
        floor = total / n + 1e-300
        score = inside * np.log(
            (inside + 1e-3 * floor) / (np.maximum(outside, 0) + 1e-3 * floor + 1e-300)
        )
    else:
        spread = np.asarray(data.std(axis=0) if not sp.issparse(data) else np.ones(d))
        score = (inside - outside) / np.where(spread > 0, spread, 1)
    lists = []
    for cluster in range(shares.shape[1]):
        order = np.argsort(-score[cluster], kind="stable")[:k]
        lists.append(
            [(called[j], float(score[cluster, j])) for j in order if score[cluster, j] > 0]
        )
    return lists
