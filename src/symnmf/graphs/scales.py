"""Columns whose scale is far above that of the others, so that they alone decide who is near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

#: A column dominates where its standard deviation is so many times that of the middle column ...
TIMES = 10.0
#: ... and such columns together have this share of the variance, and so of squared distances.
SHARE = 0.99

#: Rows that are looked at, about.
ROWS = 10_000


def dominance(X: Any, names: Sequence[Any] | None) -> str | None:
    """Say which columns decide all distances between rows by their scale; None without any.

    Sparse data have none: counts are weighted otherwise.
    """
    if sp.issparse(X) or getattr(X, "ndim", 0) != 2:
        return None
    some = X[:: max(1, len(X) // ROWS)]
    spread = np.asarray(some, dtype=np.float64).std(axis=0)
    varying = np.sort(spread[spread > 0])
    if len(varying) < 2 or not np.isfinite(varying).all():
        return None
    middle = varying[(len(varying) - 1) // 2]
    large = spread > TIMES * middle
    if (spread[large] ** 2).sum() < SHARE * (spread**2).sum():
        return None
    first = int(np.argmax(spread))
    called = first if names is None else repr(str(names[first]))
    others = int(large.sum()) - 1
    several = f"and {others} other{'s' * (others > 1)} " if others else ""
    return (
        f"column {called} has {spread[first] / middle:.3g} times the standard deviation of the "
        f"middle column, so that distances depend on it {several}alone"
    )
