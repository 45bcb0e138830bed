"""Whether what a checkpoint says of its factor is true of it and X.

A checkpoint keeps X U and U^T U so that a run goes on bit for bit, and a solver's memory may hold
products too. A checksum tells accidents from what was written, but not a file that somebody edited
with care. So what is reported after going on from a file rests on products that were made here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from symnmf.objectives import Measurement, Objective
from symnmf.state import Point, State

#: How far a product that was carried along a run may be from a fresh one, relative to ||X|| ||U||.
CARRIED = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}
#: How far measures of the same state may be apart, as a part of them.
MEASURED = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 1e-2}


def _afresh(f: Objective, point: Point) -> Point:
    """The same factor, with nothing known of it."""
    values = f.ops.get(point.values).astype(f.dtype, copy=False)
    return Point(f.ops, f.ops.put(values))


def belongs(f: Objective, point: Point) -> bool:
    """Whether the product and the Gram matrix of a point are those of its factor."""
    if point.known_product is None and point.known_gram is None:
        return True
    fresh = _afresh(f, point)
    carried = CARRIED[np.dtype(f.ops.get(point.values).dtype)]
    size = float(np.trace(fresh.gram))
    if point.known_gram is not None:
        apart = float(np.linalg.norm(point.known_gram - fresh.gram))
        if not apart <= carried * size:
            return False
    if point.known_product is None:
        return True
    product = f.ops.get(fresh.product(f))
    apart = float(np.linalg.norm(f.ops.get(point.known_product) - product))
    return bool(apart <= carried * (f.norm * np.sqrt(size) + np.linalg.norm(product)))


def confirmed(f: Objective, state: State, latest: Measurement) -> Measurement:
    """Return ``latest`` if it is true of U and X; otherwise what is, and correct the state."""
    fresh = _afresh(f, state.U)
    single = state.V is state.U
    now = f.measure(replace(state, U=fresh, V=fresh if single else state.V))
    near = MEASURED[np.dtype(f.ops.get(state.U.values).dtype)]
    pairs = (
        (now.error, latest.error),
        (now.value / f.sqnorm, latest.value / f.sqnorm),
        (now.stationarity, latest.stationarity),
    )
    if all(abs(one - other) <= near * max(abs(one), near) for one, other in pairs):
        return latest  # to the bit as it would be without the checkpoint
    if single:
        state.V = fresh
    state.U = fresh
    return now
