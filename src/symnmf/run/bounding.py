"""The bound of a finished run."""

from __future__ import annotations

from typing import Any

import numpy as np

from symnmf.bounds.bound import Bound
from symnmf.bounds.computing import best_bound
from symnmf.bounds.target import FORMED_UP_TO, Target, frobenius, weighted
from symnmf.objectives import (
    L1,
    Attributed,
    Frobenius,
    Links,
    MatrixObjective,
    Objective,
    Ridge,
)
from symnmf.parallel import one_blas_thread
from symnmf.run.problem import Problem
from symnmf.run.result import Result

#: Rows up to which a certificate has a bound at all, and up to which it looks for an N, and the
#: steps of that search: a certificate is to take less than the run.
QUICK_UP_TO, SEARCHED_UP_TO, QUICK_STEPS = 50_000, 300, 40


def quick_bound(problem: Problem, result: Result) -> Bound | None:
    """Return the bound that a certificate shows, which takes less than a fit as a rule.

    No clock decides on it, so that it is always the same. None for an X that is too large.
    """
    n = len(result.factors[0])
    if n > QUICK_UP_TO:
        return None
    steps = QUICK_STEPS if n <= SEARCHED_UP_TO else 0
    return bound_result(problem, result, max_time=None, max_steps=steps)


def bound_result(problem: Problem, result: Result, **options: Any) -> Bound:
    """Bound what a result minimised from below; see :meth:`symnmf.Result.bound`."""
    ready = problem.for_rank(result.U.shape[1], warn=False)
    f, U = ready.objective, result.factors[0].astype(np.float64)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        return best_bound(
            target_of(f, U),
            U,
            result.value,
            plain=not f.terms,
            reached_error=result.error,
            **options,
        )


def target_of(f: Objective, U: np.ndarray) -> Target | None:
    """Return the target that bounds an objective; None where no bound is known."""
    if not isinstance(f, MatrixObjective) or not np.isfinite(U).all():
        return None
    if isinstance(f, Attributed) and f.base.terms:
        return None
    ridge: Any = 0.0
    links, l1 = [], 0.0
    for term in f.terms:
        if isinstance(term, Ridge):
            ridge = ridge + term.weight * (1.0 if term.rows is None else term.rows)
        elif isinstance(term, Links):
            links.append(term.matrix)
        elif isinstance(term, L1):
            l1 += term.weight
        elif term.size > 0.0:
            return None
    if isinstance(f, Frobenius):
        return frobenius(f.storage, ridge=ridge, links=tuple(links), l1=l1)
    if f.shape[0] > FORMED_UP_TO or f.dtype != np.float64 or f.sqnorm == 0.0:
        return None
    X, W = entries_and_weights(f)
    return weighted(X, W, U, ridge=ridge, links=tuple(links), l1=l1)


def entries_and_weights(f: MatrixObjective) -> tuple[np.ndarray, np.ndarray]:
    """Return X where it is observed, and W, as arrays, from W o (X - M) at two constant M."""
    n, ops = f.shape[0], f.ops
    level = np.sqrt(f.largest() or 1.0)
    at = [ops.put(np.full((n, 1), height, dtype=f.dtype)) for height in (0.0, level)]
    every = ops.put(np.eye(n, dtype=f.dtype))
    none, one = (ops.get(f.misfit_times(tall, tall, every)) for tall in at)
    W = (none - one) / level**2
    W[np.abs(W) <= 1e-6 * np.abs(W).max(initial=0.0)] = 0.0  # differences of rounded numbers
    X = np.divide(none, W, out=np.zeros((n, n)), where=W > 0.0)
    return X, np.maximum(W, 0.0)
