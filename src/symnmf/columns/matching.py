"""Which columns of two factors belong together."""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.errors import InputError
from symnmf.run.problem import OPTIONS, Problem


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


def checked_options(options: dict[str, Any], function: str) -> dict[str, Any]:
    """Refuse what no Problem has."""
    for name in options:
        if name not in OPTIONS:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    return options


def checked_rows(problems: list[Problem]) -> int:
    """Return the number of rows that all matrices have."""
    rows = [problem.objective.shape[0] for problem in problems]
    wrong = next((place for place, n in enumerate(rows) if n != rows[0]), None)
    if wrong is not None:
        raise InputError(
            f"matrices must have the same rows, but number {wrong} has {rows[wrong]} and number 0 "
            f"has {rows[0]}; give rows that are absent at a time a row and a column of zeros."
        )
    return rows[0]
