"""Whether another U >= 0 has the same U U^T, from the zeros of U alone.

U U^T = V V^T with factors of the same shape means V = U Q with Q orthogonal. A row of U with one
positive entry, in column k, says that row k of Q is nonnegative. Where every column has such a row
of its own, Q >= 0, and a nonnegative orthogonal matrix is a permutation (separability; Donoho and
Stodden 2004, Huang, Sidiropoulos and Swami 2014). And where the rows of one column are all rows of
another, turning the two against each other by a small angle keeps both nonnegative and U U^T the
same, so U is not unique.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class Uniqueness:
    """What the zeros of U say.

    Attributes
    ----------
    verdict : {"unique", "not unique", "open"}
        Whether U is determined by U U^T, up to the order of its columns.
    own_rows : tuple of int
        For each column, how many rows belong to it alone.
    within : tuple of int or None
        Two columns, the rows of the first among those of the second, if there are two. A zero
        column is the first of two.
    """

    verdict: Literal["unique", "not unique", "open"]
    own_rows: tuple[int, ...]
    within: tuple[int, int] | None = None

    def __str__(self) -> str:
        if self.verdict == "unique":
            return (
                f"no other U >= 0 has this U U^T, but for the order of columns: each has rows of "
                f"its own ({min(self.own_rows)} at least)"
            )
        if self.within is not None:
            inner, outer = self.within
            return (
                f"other U >= 0 have the same U U^T: column {inner} has no row that column {outer} "
                f"does not have"
            )
        alone = sum(count == 0 for count in self.own_rows)
        return (
            f"whether another U >= 0 has the same U U^T is open: {alone} of "
            f"{len(self.own_rows)} columns have no row of their own"
        )


def uniqueness(U: np.ndarray) -> Uniqueness:
    """Read from the zeros of U whether it is the only factor of U U^T."""
    positive = U > 0
    single = positive.sum(axis=1) == 1
    counts = tuple(int(count) for count in positive[single].sum(axis=0))
    if min(counts) > 0:
        return Uniqueness("unique", counts)
    # shared[i, j]: rows that both columns have; all of column i's where it equals shared[i, i]
    thin = positive.astype(np.float32)
    shared = np.rint(thin.T @ thin)
    inside = shared == shared.diagonal()[:, None]
    np.fill_diagonal(inside, False)
    inside[:, ~positive.any(axis=0)] = False
    if inside.any():
        inner, outer = np.argwhere(inside)[0]
        return Uniqueness("not unique", counts, (int(inner), int(outer)))
    return Uniqueness("open", counts)
