"""What a solver or a coupling remembers between steps, declared so that a file can be held to it.

Compiled code trusts the shapes and counters it is given. A checkpoint may come from anywhere, so
what it holds is compared with these declarations before a run goes on from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True)
class Kept:
    """One array of a memory.

    Attributes
    ----------
    shape : tuple of int
        Its shape; () for a number.
    dtype : dtype
        Its type; an array without entries may have another precision.
    least, most : float or tuple
        Between what its entries lie, all of them or one by one; NaN is never allowed.
    infinite : bool
        Whether infinity stands for "not known yet".
    tall : bool
        Whether it is as tall as U, and so lives where U does.
    optional : bool
        Whether it is there from some step on only.
    """

    shape: tuple[int, ...] = ()
    dtype: np.dtype = FLOAT64
    least: float | tuple[float, ...] = -np.inf
    most: float | tuple[float, ...] = np.inf
    infinite: bool = False
    tall: bool = False
    optional: bool = False

    def check(self, array: np.ndarray, name: str) -> None:
        """Raise a ValueError that says what is wrong with an array."""
        if array.shape != self.shape:
            raise ValueError(f"{name} has the shape {array.shape} and not {self.shape}")
        same = array.dtype == self.dtype
        if not same and (array.size or array.dtype.kind != self.dtype.kind):
            raise ValueError(f"{name} has the type {array.dtype} and not {self.dtype}")
        if np.isnan(array).any() or not (self.infinite or np.isfinite(array).all()):
            raise ValueError(f"{name} has NaN or infinite entries")
        if (array < np.asarray(self.least)).any() or (array > np.asarray(self.most)).any():
            raise ValueError(f"{name} is out of range")


#: The declaration of a whole memory.
Layout = Mapping[str, Kept]


def check_memory(arrays: Mapping[str, np.ndarray], layout: Layout, what: str) -> None:
    """Raise a ValueError unless ``arrays`` are what ``layout`` declares, no more and no less."""
    for name in arrays.keys() - layout.keys():
        raise ValueError(f"{what} {name!r} is not known")
    for name, kept in layout.items():
        if name in arrays:
            kept.check(arrays[name], f"{what} {name!r}")
        elif not kept.optional:
            raise ValueError(f"{what} {name!r} is missing")
