"""The indices of a SciPy sparse matrix, checked before compiled code follows them.

SciPy checks the three arrays of a matrix when it builds one and trusts them from then on, though
anybody may put others in their place. Compiled code, SciPy's conversions included, checks nothing
and would read and write outside the arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf.errors import InputError


def checked_csr(X: Any, dtype: np.dtype, name: str) -> Any:
    """Return X as a canonical csr array of ``dtype`` without unused capacity.

    Rows have increasing indices, none twice. X itself is not changed, and where it is in that
    form already its arrays are not copied.
    """
    # what some formats keep in lists and dictionaries is checked once it is an array
    matrix = _rebuilt(sp.csr_array(_rebuilt(X, name), dtype=dtype), name)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def check_indices(X: Any, name: str) -> None:
    """Refuse a sparse matrix whose indices leave it; nothing is said of its values."""
    _rebuilt(X, name)


def _rebuilt(X: Any, name: str) -> Any:
    """Return X around the same arrays, as SciPy checks them where it believes nothing."""
    try:
        if X.format == "coo":
            return sp.coo_array((X.data, (X.row, X.col)), shape=X.shape)
        if X.format in ("csr", "csc", "bsr"):
            # SciPy would cut off what follows the point
            if X.indices.dtype.kind != "i" or X.indptr.dtype.kind != "i":
                raise TypeError("indices must be integers")
            matrix = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            matrix.check_format(full_check=True)
            return matrix
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{name} has indices that do not fit it ({error}); build it again from its rows and "
            f"columns."
        ) from error
    return X
