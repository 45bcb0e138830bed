"""||X - U V^T||_F^2 from tiles of X in its own precision; of the upper triangle where U is V.

A tile of U V^T is formed in the type of X and compared while it is in the cache. The squares are
summed in float64. In float32 every difference is off by about 1e-7 of the entry, so the sum keeps
nine digits at E = 3e-6 and five at 3e-10; below, tiles are formed in float64.
"""

from __future__ import annotations

import numpy as np

from symnmf.parallel import Threads

#: Rows and columns of a tile: 512 KB in float64.
STRIP_ROWS = 256

#: The share of ||X||_F^2 below which differences in float32 have fewer than six digits left.
SINGLE_ABOVE = 1e-8


def has_digits(dtype: np.dtype, sqnorm: float, whole: float) -> bool:
    """Whether a misfit formed in ``dtype`` has its digits, for ||X||_F^2 = ``whole``."""
    return dtype == np.float64 or sqnorm > SINGLE_ABOVE * whole


def misfit_in_tiles(X: np.ndarray, U: np.ndarray, V: np.ndarray, threads: Threads) -> float:
    """Return ||X - U V^T||_F^2 for a symmetric array, from products in the type of U.

    X has its rows one after the other.
    """
    n, r = U.shape
    same = V is U
    strips = -(-n // STRIP_ROWS)

    def strip(number: int) -> float:
        top, total = number * STRIP_ROWS, 0.0
        bottom = min(top + STRIP_ROWS, n)
        for left in range(top if same else 0, n, STRIP_ROWS):
            right = min(left + STRIP_ROWS, n)
            gap = U[top:bottom] @ V[left:right].T
            np.subtract(X[top:bottom, left:right], gap, out=gap)
            gap = gap.astype(np.float64, copy=False)
            total += (2.0 if same and left > top else 1.0) * float(np.vdot(gap, gap))
        return total

    def task(begin: int, end: int) -> float:
        # a strip from the top and one from the bottom, so that every pair has as many entries
        pairs = ({number, strips - 1 - number} for number in range(begin, end))
        return sum(strip(number) for pair in pairs for number in pair)

    cost = 2.0 * n * r * STRIP_ROWS * (1.0 if same else 2.0)
    return sum(threads.run(task, threads.split(-(-strips // 2), cost)))
