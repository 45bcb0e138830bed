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
ROWS = 10_000


def dominant_columns(X: Any) -> list[int]:
    """The columns that decide all distances between rows by their scale, the largest first.

    Sparse data have none: counts are weighted otherwise. At most ``ROWS`` rows are looked at.
    """
    if sp.issparse(X) or getattr(X, "ndim", 0) != 2 or not X.shape[1] >= 2 or len(X) < 2:
        return []
    some = np.asarray(X[:: max(1, len(X) // ROWS)], dtype=np.float64)
    variance = some.var(axis=0)
    varying = np.sort(variance[variance > 0])
    if len(varying) < 2 or not np.isfinite(varying).all():
        return []
    large = variance > TIMES**2 * varying[(len(varying) - 1) // 2]
    if variance[large].sum() < SHARE * variance.sum():
        return []
    return [int(place) for place in np.argsort(-variance, kind="stable")[: int(large.sum())]]


def describe_dominance(X: Any, columns: Sequence[int], names: Sequence[Any] | None) -> str:
    """One clause about the columns that dominate."""
    spread = np.asarray(X, dtype=np.float64).std(axis=0)
    others = np.delete(spread, columns)
    called = [repr(str(names[k])) if names is not None else str(k) for k in columns[:3]]
    more = f" and {len(columns) - 3} more" if len(columns) > 3 else ""
    several = len(columns) > 1
    times = spread[columns[0]] / np.median(others[others > 0])
    return (
        f"column{'s' * several} {', '.join(called)}{more} {'have' if several else 'has'} "
        f"{'up to ' * several}{times:.3g} times the standard deviation of the others and "
        f"{'decide' if several else 'decides'} alone which rows are near"
    )
