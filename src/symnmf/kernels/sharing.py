"""The way to passes that several threads share.

They and what hands work over take 9 ms to load, and a small problem needs neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def share(name: str, threads: int, bounds: np.ndarray, *given: Any) -> Any:
    """Do a pass of :mod:`symnmf.kernels.passes` on so many threads, and return what it does."""
    from symnmf.kernels import passes
    from symnmf.kernels.team import together

    return together(getattr(passes, name), threads, bounds, *given)
