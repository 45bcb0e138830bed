"""Which columns of two factors belong together."""

from __future__ import annotations

import numpy as np


def unit_columns(U: np.ndarray) -> np.ndarray:
    """Return U with columns of length 1; a column of zeros stays."""
    sizes = np.linalg.norm(U, axis=0)
    return np.asarray(U / np.where(sizes > 0, sizes, 1.0))


def cosines(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return the cosines between the columns of U and those of V."""
    return np.asarray(unit_columns(U).T @ unit_columns(V))


def matched(reference: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return the order of the columns of U that puts each beside its column of the reference.

    It is the assignment with the largest sum of cosines.
    """
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(-cosines(reference, U))[1])
