"""What every X must be, and the sentences for one that is not."""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.errors import InputError

#: Largest |X - X^T| relative to the largest entry that passes for rounding.
ASYMMETRY_ALLOWED = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}

#: What ``missing`` may be.
MISSING = ("nan", "unstored")


def check_missing(missing: Any, option: str = "missing") -> None:
    """Refuse what ``missing`` cannot be; ``option`` is what the caller calls it."""
    if missing is not None and missing not in MISSING:
        choices = "nan or unstored" if option.startswith("-") else "None, 'nan' or 'unstored'"
        raise InputError(f"{option} must be {choices}, got {missing!r}.")


def check_shape(shape: tuple[int, ...], name: str) -> None:
    """Refuse what is not square."""
    if len(shape) != 2:
        raise InputError(
            f"{name} must be a square two-dimensional matrix, got {len(shape)} dimension(s)."
        )
    if shape[0] != shape[1]:
        edges = " and symnmf.graphs.from_edges one from a list of edges" * (shape[1] in (2, 3))
        raise InputError(
            f"{name} must be square, got shape {shape[0]} x {shape[1]}; symnmf.SymNMF builds a "
            f"similarity matrix from samples x features{edges}."
        )
    if shape[0] == 0:
        raise InputError(f"{name} is empty (0 x 0); pass a matrix with at least one row.")


def check_values(
    smallest: float, largest: float, name: str, where: str = "", *, signed: bool = False
) -> None:
    """Refuse NaN, infinite and (unless ``signed``) negative entries; ``where`` names the part."""
    if np.isnan(smallest) or np.isnan(largest):
        raise InputError(
            f"{name} has NaN or infinite entries{where}; remove or replace them first, or pass "
            f"missing='nan' if NaN stands for entries that were not observed."
        )
    if not (np.isfinite(smallest) and np.isfinite(largest)):
        raise InputError(
            f"{name} has NaN or infinite entries{where}; remove or replace them first."
        )
    if smallest < 0 and not signed:
        raise InputError(
            f"{name} has negative entries{where} (the smallest is {smallest:.6g}); shift or clip "
            f"them, for instance with np.maximum({name}, 0), or pass allow_negative=True where "
            f"they are meant."
        )


def check_asymmetry(
    asymmetry: float, largest: float, dtype: np.dtype, name: str, where: str = ""
) -> None:
    """Refuse entries that differ from their mirror image by more than rounding."""
    if asymmetry > ASYMMETRY_ALLOWED[dtype] * largest:
        raise InputError(
            f"{name} is not symmetric{where}: entries differ from their mirror image by up to "
            f"{asymmetry:.6g} (the largest entry is {largest:.6g}); pass ({name} + {name}.T) / 2 "
            f"if that is what you mean."
        )
