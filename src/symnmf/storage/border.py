"""What every X must be, and the sentences for one that is not."""

from __future__ import annotations

import numpy as np

from symnmf.errors import InputError

#: Largest |X - X^T|, relative to the largest entry, that X may have at any entry point: what
#: rounding in other programs leaves. Beyond ROUNDING an X in memory is replaced by its symmetric
#: part, so that products with it are those of a symmetric matrix.
ASYMMETRY_ALLOWED = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-5}
ROUNDING = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}

#: What the largest entry may be, so that squares of X and fourth powers of U are numbers.
RANGE = {np.dtype(np.float64): (1e-30, 1e30), np.dtype(np.float32): (1e-15, 1e15)}

#: What else can be done about NaN in an array, NaN in a sparse matrix and negative entries.
NAN_IN_ARRAY = (
    ", or pass missing='nan' to symnmf.factorize or symnmf.Problem if NaN stands for entries that "
    "were not observed"
)
NAN_IN_SPARSE = (
    ", or leave them out and pass missing='unstored' to symnmf.factorize or symnmf.Problem if what "
    "is not stored was not observed"
)
NEGATIVE = ", or pass allow_negative=True if they are meant"


def check_shape(shape: tuple[int, ...], name: str) -> None:
    """Refuse what is not square."""
    if len(shape) != 2:
        tensor = f"; pass symnmf.tensors.as_tensor({name})" if len(shape) > 2 else ""
        raise InputError(
            f"{name} must be a square two-dimensional matrix, got {len(shape)} dimension(s)"
            f"{tensor}."
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
    smallest: float,
    largest: float,
    name: str,
    where: str = "",
    *,
    signed: bool = False,
    nan: str = "",
    negative: str = "",
) -> None:
    """Refuse NaN, infinite and (unless ``signed``) negative entries; ``where`` names the part.

    ``nan`` and ``negative`` are what else can be done about such entries of this kind of X.
    """
    if not (np.isfinite(smallest) and np.isfinite(largest)):
        else_ = nan if np.isnan(smallest) or np.isnan(largest) else ""
        raise InputError(
            f"{name} has NaN or infinite entries{where}; remove or replace them first{else_}."
        )
    if smallest < 0 and not signed:
        raise InputError(
            f"{name} has negative entries{where} (the smallest is {smallest:.6g}); shift or clip "
            f"them, for instance with np.maximum({name}, 0){negative}."
        )


def in_range(largest: float, dtype: np.dtype) -> bool:
    """Whether runs in this type can work on entries of this size."""
    low, high = RANGE[np.dtype(dtype)]
    return largest == 0.0 or low <= largest <= high


def check_range(largest: float, dtype: np.dtype, name: str = "X") -> None:
    """Refuse an X whose largest entry is too small or too large."""
    if not in_range(largest, dtype):
        low, high = RANGE[np.dtype(dtype)]
        raise InputError(
            f"the largest entry of {name} is {largest:.6g} and must be from {low:g} to {high:g} in "
            f"{dtype}; divide {name} by a constant first."
        )


def check_asymmetry(
    asymmetry: float, largest: float, dtype: np.dtype, name: str, where: str = ""
) -> bool:
    """Refuse entries too far from their mirror image; True where their mean is to be taken."""
    if asymmetry > ASYMMETRY_ALLOWED[dtype] * largest:
        raise InputError(
            f"{name} is not symmetric{where}: entries differ from their mirror image by up to "
            f"{asymmetry:.6g} (the largest entry is {largest:.6g}); pass ({name} + {name}.T) / 2 "
            f"if that is what you mean."
        )
    return asymmetry > ROUNDING[dtype] * largest
