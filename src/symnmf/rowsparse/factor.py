"""A factor whose rows hold a few entries each, so that it may have tens of thousands of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from symnmf.kernels import row_sparse


@dataclass(frozen=True, eq=False)
class RowSparse:
    """U >= 0 with at most ``width`` entries a row.

    A row has ``counts[i]`` entries, of ``values[i]``, in ``columns[i]`` in ascending order.
    """

    columns: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    rank: int

    @classmethod
    def of_sets(
        cls, sets: Sequence[np.ndarray], strengths: np.ndarray, n: int, width: int
    ) -> RowSparse:
        """Return U with u_ik = ``strengths[k]`` for the members of set k.

        A row that is in more than ``width`` sets keeps the first ones.
        """
        sizes = np.fromiter((len(members) for members in sets), dtype=np.int64)
        rows = np.concatenate([np.zeros(0, np.int64), *sets]).astype(np.int64)
        owner = np.repeat(np.arange(len(sets)), sizes)
        by_row = np.argsort(rows, kind="stable")  # sets of a row stay in their order
        rows, owner = rows[by_row], owner[by_row]
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)
        kept = place < width
        rows, owner, place = rows[kept], owner[kept], place[kept]
        columns, values = np.zeros((n, width), np.int32), np.zeros((n, width))
        columns[rows, place] = owner
        values[rows, place] = strengths[owner]
        counts = np.bincount(rows, minlength=n).astype(np.int32)
        return cls(columns, values, counts, len(sets))

    @property
    def filled(self) -> np.ndarray:
        """Which places of ``values`` hold an entry."""
        return np.arange(self.values.shape[1]) < self.counts[:, None]

    @property
    def totals(self) -> np.ndarray:
        """U^T 1, the sums of the columns."""
        return row_sparse.column_sums(self.columns, self.values, self.counts, self.rank)

    def to_csr(self) -> sp.csr_array:
        """Return U as a scipy matrix."""
        indptr = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        filled = self.filled
        parts = (self.values[filled], self.columns[filled], indptr)
        return sp.csr_array(parts, shape=(len(self.counts), self.rank))
