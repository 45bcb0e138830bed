"""Which precision an array is worked in."""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.errors import InputError, said_as_input_errors


def float_dtype(dtype: np.dtype, name: str) -> np.dtype:
    """Return float32 for short floats, float64 for other numbers; refuse what is no number."""
    if dtype.kind == "c":
        raise InputError(
            f"{name} must be real, got dtype {dtype}; pass {name}.real if the imaginary part is "
            f"zero."
        )
    if dtype.kind not in "fiub":
        raise InputError(
            f"{name} must hold numbers, got dtype {dtype}; convert it, for instance with "
            f"{name}.astype(float)."
        )
    if dtype.kind == "f" and dtype.itemsize <= 4:
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def as_array(X: Any, name: str) -> np.ndarray:
    """Return what holds real numbers as an array."""
    with said_as_input_errors(name):
        array = np.asarray(X)
    float_dtype(array.dtype, name)
    return array
