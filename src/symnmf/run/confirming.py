"""Whether what a checkpoint says of its factor is true of it and X.

A checkpoint keeps X U, U^T U and what was measured there, so that a run goes on bit for bit. A
checksum tells accidents from what was written, but not a file that somebody edited with care. So
all of it is compared with what is computed here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from symnmf.objectives import Objective
from symnmf.state import Point, State

#: How far a product that was carried along a run may be from a fresh one, relative to ||X|| ||U||.
CARRIED = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}
#: How far measures of the same state may be apart, as a part of them.
MEASURED = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 1e-2}


def belongs(f: Objective, state: State) -> bool:
    """Whether what is known of the first factor of a state is true of it and X."""
    point = state.U
    fresh = Point(f.ops, f.ops.copy(point.values))
    carried, size = CARRIED[f.dtype], fresh.size
    if point.known_gram is not None:
        apart = float(np.linalg.norm(point.known_gram - fresh.gram))
        if not apart <= carried * size:
            return False
    if point.known_product is None:
        return True
    product = f.ops.get(fresh.product(f))
    apart = float(np.linalg.norm(f.ops.get(point.known_product) - product))
    if not apart <= carried * (f.norm * np.sqrt(size) + np.linalg.norm(product)):
        return False
    sums = np.array([point.sums(f), fresh.sums(f)])
    if not np.abs(sums[0] - sums[1]).max() <= carried * (f.sqnorm + size**2):
        return False
    same = f.measure(state)
    now = f.measure(replace(state, U=fresh, V=fresh if state.V is point else state.V))
    near = MEASURED[f.dtype]
    pairs = (
        (now.error, same.error),
        (now.value / f.sqnorm, same.value / f.sqnorm),
        (now.stationarity, same.stationarity),
    )
    return all(abs(one - other) <= near * max(abs(one), near) for one, other in pairs)
