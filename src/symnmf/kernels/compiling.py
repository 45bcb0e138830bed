"""One way to compile a kernel, which survives an install folder nobody may write to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

#: What lets sums run in SIMD lanes, for ``fastmath``.
REORDER = {"reassoc", "contract", "nsz"}
#: Rows of a factor that stay in cache through all that a kernel does to them.
BLOCK = 256


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` without the GIL, cached on disk wherever numba finds a writable folder.

    Threads come from :mod:`symnmf.parallel`, never from numba: ``parallel=True`` would start a
    second pool beside the one that runs the products, and the two slow each other down.
    """
    settings = {"nogil": True, "error_model": "numpy", **options}

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **settings)(function)
        except RuntimeError:  # numba: "cannot cache function ...: no locator available"
            return numba.njit(**settings)(function)

    return decorate
