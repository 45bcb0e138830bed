"""||X - U V^T||_F^2 from tiles of X in its own precision; of the upper triangle where U is V.

A tile of U V^T is formed by BLAS in the type of X and compared while it is in the cache. The
squares are summed in float64. In float32 every difference is off by about 1e-7 of the entry, so
the sum keeps nine digits at E = 3e-6 and five at 3e-10.
"""

from __future__ import annotations

import numpy as np

from symnmf.kernels.misfit import gap_sqnorm
from symnmf.parallel import Threads

#: The share of ||X||_F^2 below which differences in float32 have fewer than six digits left. The
#: misfit is then formed in float64.
SINGLE_ABOVE = 1e-8

#: Rows and columns of a tile: 0.5 MB in float32.
HEIGHT, WIDTH = 256, 512


def has_digits(dtype: np.dtype, sqnorm: float, whole: float) -> bool:
    """Whether a misfit formed in ``dtype`` has its digits, for ||X||_F^2 = ``whole``."""
    return dtype == np.float64 or sqnorm > SINGLE_ABOVE * whole


def misfit_in_tiles(X: np.ndarray, U: np.ndarray, V: np.ndarray, threads: Threads) -> float:
    """Return ||X - U V^T||_F^2 for a symmetric array."""
    n, r = len(X), U.shape[1]
    same = V is U
    U = U.astype(X.dtype, copy=False)
    V = U if same else V.astype(X.dtype, copy=False)
    strips = -(-n // HEIGHT)

    def strip(number: int) -> float:
        top, bottom = number * HEIGHT, min((number + 1) * HEIGHT, n)
        total = 0.0
        if same:
            total += gap_sqnorm(X, top, top, U[top:bottom] @ U[top:bottom].T)
        for left in range(bottom if same else 0, n, WIDTH):
            right = min(left + WIDTH, n)
            fitted = U[top:bottom] @ V[left:right].T
            part = gap_sqnorm(X, top, left, fitted)
            total += 2.0 * part if same else part
        return total

    def task(begin: int, end: int) -> float:
        # a strip from the top and one from the bottom, so that every pair has as many entries
        pairs = ((number, strips - 1 - number) for number in range(begin, end))
        return sum(strip(number) for pair in pairs for number in set(pair))

    cost = 2.0 * n * r * HEIGHT * (1.0 if same else 2.0)
    return sum(threads.run(task, threads.split(-(-strips // 2), cost)))
