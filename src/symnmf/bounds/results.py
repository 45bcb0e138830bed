"""The bound of a finished run."""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.bounds.bound import GLOBAL_TOL, Bound
from symnmf.bounds.computing import best_bound
from symnmf.bounds.target import frobenius
from symnmf.errors import InputError
from symnmf.interchange import to_host
from symnmf.objectives import Frobenius
from symnmf.parallel import one_blas_thread
from symnmf.run.certificate import problem_of
from symnmf.run.result import Result


def bound_result(
    problem: Any, result: Result, *, max_time: float | None = 10.0, tol: float = GLOBAL_TOL
) -> Bound:
    """Bound what a result minimised from below; see :meth:`symnmf.Result.bound`."""
    for name, number in (("max_time", max_time), ("tol", tol)):
        if number is not None and not (isinstance(number, int | float) and number >= 0):
            raise InputError(f"{name} must be a number of at least 0, got {number!r}.")
    ready = problem_of(problem, result)
    units, f = ready.units, ready.scaled
    U = units.factor_in(to_host(result.U)).astype(np.float64)
    target = frobenius(f.storage) if isinstance(f, Frobenius) else None
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        return best_bound(target, U, 0.5 * result.error * f.sqnorm, max_time=max_time, tol=tol)
