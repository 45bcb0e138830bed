"""Entries of a graph or a table that are held out of a fit, to see how well it predicts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

#: The part of the entries that is held out, and the most of them.
HELD_OUT, MOST_HELD = 0.1, 100_000


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A matrix with some entries taken out, and entries to rank.

    Attributes
    ----------
    kept : ndarray or csr_array
        The matrix without them.
    present, absent : tuple of two ndarray
        Rows and columns of entries held out that are large, and of some that are small.
    """

    kept: Any
    present: tuple[np.ndarray, np.ndarray]
    absent: tuple[np.ndarray, np.ndarray]

    def ranked(self, left: np.ndarray, right: np.ndarray) -> float:
        """Return the chance that <left_i, right_j> ranks a present entry above an absent one."""
        model = [np.einsum("ij,ij->i", left[i], right[j]) for i, j in (self.present, self.absent)]
        return ranked_above(*model)


def ranked_above(larger: np.ndarray, smaller: np.ndarray) -> float:
    """Return the part of all pairs in which the first is larger (AUC); ties count a half."""
    if not len(larger) or not len(smaller):
        return 0.5
    from scipy.stats import rankdata  # takes 0.4 s to load, which most calls have no use for

    ranks = rankdata(np.concatenate([larger, smaller]))[: len(larger)]
    return float((ranks.mean() - 0.5 * (len(larger) + 1)) / len(smaller))


def hold_out(M: Any, rng: np.random.Generator, *, symmetric: bool) -> HeldOut:
    """Take entries out of a graph or a table.

    Of a sparse one, stored entries are taken out and ranked against as many others that are 0. Of a
    full one, entries are replaced by what the sums of their row and column say, and those above
    that are ranked against those below.
    """
    sparse = sp.csr_array(M)
    full = sparse.nnz > 0.5 * M.shape[0] * M.shape[1]
    return _from_full(M, rng, symmetric) if full else _from_sparse(sparse, rng, symmetric)


def _from_sparse(M: sp.csr_array, rng: np.random.Generator, symmetric: bool) -> HeldOut:
    entries = (sp.triu(M, 1) if symmetric else M).tocoo()
    above = np.flatnonzero(entries.data > 0)
    count = min(max(int(HELD_OUT * len(above)), 1), MOST_HELD, len(above))
    taken = rng.choice(above, count, replace=False)
    i, j = entries.row[taken], entries.col[taken]
    marked = sp.csr_array((np.ones(count), (i, j)), shape=M.shape)
    if symmetric:
        marked = marked + marked.T
    kept = sp.csr_array(M - M.multiply(marked))
    # the same rows and columns in other pairs: a hub or a frequent word is as likely among these
    if symmetric:
        turned = rng.random(count) < 0.5
        i, j = np.where(turned, j, i), np.where(turned, i, j)
    other, columns = rng.permutation(i), j
    found = M[other, columns] if count else np.empty(0)  # SciPy takes no empty list of places
    absent = np.asarray(found).ravel() == 0
    absent &= (other != columns) | (not symmetric)
    return HeldOut(kept, (i, j), (other[absent], columns[absent]))


def _from_full(M: Any, rng: np.random.Generator, symmetric: bool) -> HeldOut:
    array = np.array(M.toarray() if sp.issparse(M) else M, dtype=np.float64)
    n, m = array.shape
    count = min(max(int(HELD_OUT * array.size), 1), MOST_HELD)
    i, j = rng.integers(0, n, count), rng.integers(0, m, count)
    if symmetric:
        i, j = i[i != j], j[i != j]
    total = array.sum()
    usual = array.sum(axis=1)[i] * array.sum(axis=0)[j] / (total if total != 0 else 1.0)
    above = array[i, j] > usual
    array[i, j] = usual
    if symmetric:
        array[j, i] = usual
    return HeldOut(array, (i[above], j[above]), (i[~above], j[~above]))
