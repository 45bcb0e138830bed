r"""Exact row-wise nonnegative least squares by block principal pivoting.

Every row :math:`f` of the factor solves its own small convex problem, and all rows share one
matrix,

.. math:: \min_{f \ge 0} \tfrac12 f (G + \lambda I) f^\top - (p_i + \lambda a_i) f^\top .

Block principal pivoting [1]_ guesses which entries are positive (the passive set), solves the
linear system on those, and exchanges *all* entries that contradict the guess at once.

Three choices make it safe and quick here:

* The shared matrix is scaled to a unit diagonal and, where it is numerically singular, gets the
  smallest relative ridge (a few :math:`r \epsilon`) for which its Cholesky factorisation exists.
  Pivots of a principal submatrix are no smaller than those of the whole, so no passive block of
  any row breaks down. The gradient is off by at most ridge times solution, the rounding of G.
* Row ``k`` of a Cholesky factor depends only on the first ``k`` passive columns, so each
  factorisation starts where the passive set first differs from the last one factorised.
* Without progress only the largest index flips, which cannot cycle, and a row that rounding still
  keeps from settling goes to the active set method of Lawson and Hanson, feasible at every step.

References
----------
.. [1] J. Kim and H. Park, "Fast nonnegative matrix factorization: an active-set-like method and
   comparisons", SIAM Journal on Scientific Computing 33(6), 2011.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symnmf.kernels.compiling import REORDER, compiled

EPSILON = float(np.finfo(np.float64).eps)
SMALLEST = float(np.finfo(np.float64).tiny)
LARGEST = float(np.finfo(np.float64).max)

# Sums may be reordered so that they vectorise; NaN and infinity keep their meaning.

# Full exchanges allowed without a new lowest number of infeasible entries (Kim and Park's choice).
PATIENCE = 3


class Workspace(NamedTuple):
    """What one call needs besides its arguments, allocated once for all its rows."""

    matrix: Any  # the shared matrix, at unit diagonal
    root: Any  # lower Cholesky factor of matrix on the columns listed in ``held``
    inverse: Any  # reciprocals of the factor's diagonal
    held: Any
    target: Any  # right hand side of the row at hand, largest entry one
    inside: Any  # whether an entry is passive
    passive: Any  # the passive columns, ascending; one place longer than there are columns
    values: Any  # the solution on them
    slack: Any
    current: Any
    refused: Any


@compiled()
def _workspace(rank: int) -> Any:
    return Workspace(
        matrix=np.empty((rank, rank)),
        root=np.empty((rank, rank)),
        inverse=np.empty(rank),
        held=np.empty(rank, np.int64),
        target=np.empty(rank),
        inside=np.empty(rank, np.bool_),
        passive=np.empty(rank + 1, np.int64),
        values=np.empty(rank),
        slack=np.empty(rank),
        current=np.empty(rank),
        refused=np.empty(rank, np.bool_),
    )


@compiled(inner=True, fastmath=REORDER)
def _factorise(work: Any, size: int, kept: int, floor: float) -> bool:
    """Cholesky factor of the matrix on the first ``size`` passive columns, row by row.

    ``root`` covers ``kept`` columns already, and its rows stay up to the first column that
    differs. Returns whether every pivot was above ``floor``.
    """
    matrix, passive, held = work.matrix, work.passive, work.held
    root, inverse = work.root, work.inverse
    first = 0
    while first < min(size, kept) and passive[first] == held[first]:
        first += 1
    for i in range(first, size):
        column = passive[i]
        held[i] = column
        pivot = matrix[column, column]
        for j in range(i):
            value = matrix[column, passive[j]]
            for k in range(j):
                value -= root[i, k] * root[j, k]
            value *= inverse[j]
            root[i, j] = value
            pivot -= value * value
        if not pivot > floor:
            return False
        inverse[i] = 1.0 / np.sqrt(pivot)
    return True


@compiled(inner=True)
def _list_passive(work: Any) -> int:
    inside, passive = work.inside, work.passive
    size = 0
    for j in range(inside.shape[0]):
        passive[size] = j  # without a branch: overwritten by the next one unless it counts
        size += inside[j]
    return size


@compiled(inner=True, fastmath=REORDER, forceinline=True)
def _solve(work: Any, kept: int) -> tuple[int, float]:
    """Solve on the passive set; returns its size and the sum of magnitudes of the solution.

    ``root`` covers ``kept`` columns before and as many as the size afterwards.
    """
    target, passive, values = work.target, work.passive, work.values
    root, inverse = work.root, work.inverse
    size = _list_passive(work)
    _factorise(work, size, kept, 0.0)
    for i in range(size):
        value = target[passive[i]]
        for k in range(i):
            value -= root[i, k] * values[k]
        values[i] = value * inverse[i]
    total = 0.0
    for i in range(size - 1, -1, -1):
        value = values[i] * inverse[i]
        values[i] = value
        total += abs(value)
        for k in range(i):
            values[k] -= value * root[i, k]
    return size, total


@compiled(inner=True, fastmath=REORDER, forceinline=True)
def _gradient(work: Any, size: int, total: float) -> None:
    """Write ``matrix x - target`` into ``slack``, raised by its rounding error.

    ``x`` has ``values`` on the passive columns and ``total`` is the sum of their magnitudes.
    """
    matrix, target, passive = work.matrix, work.target, work.passive
    values, slack = work.values, work.slack
    rounding = EPSILON * (size + 4) * (1.0 + total)
    for j in range(target.shape[0]):
        slack[j] = rounding - target[j]
    for k in range(size):
        row = matrix[passive[k]]
        value = values[k]
        for j in range(target.shape[0]):
            slack[j] += value * row[j]


@compiled(inner=True, forceinline=True)
def _pivot(work: Any, kept: int) -> tuple[int, bool]:
    """Block principal pivoting on one row from the passive set ``inside``.

    Returns the size of the passive set and whether the row settled. ``slack`` is the solution on
    the passive set and the gradient elsewhere, so an entry contradicts the guess where it is
    negative.
    """
    inside, passive, values, slack = work.inside, work.passive, work.values, work.slack
    rank = inside.shape[0]
    lowest = rank + 1
    patience = PATIENCE
    for _ in range(2 * rank + 20):
        kept, total = _solve(work, kept)
        _gradient(work, kept, total)
        for k in range(kept):
            slack[passive[k]] = values[k]
        infeasible = 0
        for j in range(rank):
            infeasible += slack[j] < 0.0
        if infeasible == 0:
            return kept, True
        if infeasible < lowest:
            lowest = infeasible
            patience = PATIENCE
        else:
            patience -= 1
        for j in range(rank - 1, -1, -1):
            if slack[j] < 0.0:
                inside[j] = not inside[j]
                if patience < 0:
                    break
    return kept, False


@compiled(inner=True)
def _step_to(work: Any, size: int) -> float:
    """Move ``current`` towards ``values`` as far as it stays feasible; returns the fraction.

    Entries that the move brings to zero leave the passive set.
    """
    current, passive, values, slack = work.current, work.passive, work.values, work.slack
    step = 1.0
    for k in range(size):
        start = current[passive[k]]
        slack[k] = 2.0
        if values[k] <= 0.0:
            slack[k] = start / (start - values[k]) if start > 0.0 else 0.0
        step = min(step, slack[k])
    for k in range(size):
        j = passive[k]
        work.inside[j] = slack[k] > step
        current[j] = max(current[j] + step * (values[k] - current[j]), 0.0)
        current[j] *= work.inside[j]
    return step


@compiled()
def _active_set(work: Any) -> int:
    """Lawson and Hanson's method on one row from zero; returns the size of the passive set.

    One entry enters at a time and the iterate never leaves the feasible set, so the bound on the
    number of steps can only cost accuracy.
    """
    inside, passive, values, slack = work.inside, work.passive, work.values, work.slack
    current, refused = work.current, work.refused
    rank = inside.shape[0]
    current[:] = 0.0
    inside[:] = False
    refused[:] = False
    size = kept = 0
    total = 0.0
    for _ in range(10 * rank):
        _gradient(work, size, total)
        entering = -1
        steepest = 0.0
        for j in range(rank):
            if not inside[j] and not refused[j] and slack[j] < steepest:
                entering = j
                steepest = slack[j]
        if entering < 0:
            break
        inside[entering] = True
        kept, total = _solve(work, kept)
        step = _step_to(work, kept)
        if step > 0.0:
            refused[:] = False
        else:  # its gradient was rounding: leave it out until another entry moves
            refused[entering] = True
        while step < 1.0:
            kept, total = _solve(work, kept)
            step = _step_to(work, kept)
        size = _list_passive(work)
        total = 0.0
        for k in range(size):
            values[k] = current[passive[k]]
            total += values[k]
    return size


@compiled()
def _equilibrate(gram: Any, coupling: float, scale: Any, work: Any) -> None:
    """Fill ``matrix`` with the shifted Gram matrix at unit diagonal plus the least ridge it needs.

    Columns of zeros become decoupled and get scale zero, which is how their entries come out as
    zero. Afterwards ``root`` covers all columns.
    """
    matrix = work.matrix
    rank = gram.shape[0]
    for j in range(rank):
        diagonal = gram[j, j] + coupling
        scale[j] = 1.0 / np.sqrt(diagonal) if diagonal >= SMALLEST else 0.0
    for i in range(rank):
        for j in range(rank):
            # Correlations are at most one, which a subnormal Gram matrix may violate.
            matrix[i, j] = min(max(gram[i, j] * scale[i] * scale[j], -1.0), 1.0)
    work.inside[:] = True
    _list_passive(work)
    floor = 8 * rank * EPSILON
    ridge = 0.0
    while ridge <= 2 * rank:
        for j in range(rank):
            matrix[j, j] = 1.0 + ridge
        if _factorise(work, rank, 0, floor):
            break
        ridge = max(4.0 * ridge, 2.0 * floor)


@compiled()
def pivot_rows(
    factor: Any, product: Any, anchor: Any, gram: Any, coupling: float, begin: int, end: int
) -> int:
    r"""Replace rows ``begin`` to ``end`` of ``factor`` by exact nonnegative least squares rows.

    Row :math:`f` becomes the minimiser over :math:`f \ge 0` of
    :math:`\tfrac12 f (G + \lambda I) f^\top - (p_i + \lambda a_i) f^\top`. The search starts from
    the row's current support, so a support that no longer changes costs one small solve. Return
    how many rows pivoting left unsettled and the active set method finished.
    """
    rank = gram.shape[0]
    limit = np.finfo(factor.dtype).max
    scale = np.empty(rank)
    work = _workspace(rank)
    target, inside, passive, values = work.target, work.inside, work.passive, work.values
    _equilibrate(gram, coupling, scale, work)
    kept = rank
    unsettled = 0
    for i in range(begin, end):
        height = 0.0
        for j in range(rank):
            cross = np.float64(product[i, j]) + coupling * np.float64(anchor[i, j])
            target[j] = min(max(cross * scale[j], -LARGEST), LARGEST)
            height = max(height, target[j])
        if height == 0.0:  # the gradient at zero is nonnegative
            factor[i] = 0.0
            continue
        for j in range(rank):
            target[j] /= height
            inside[j] = factor[i, j] > 0.0 and scale[j] > 0.0
        size, settled = _pivot(work, kept)
        kept = size
        if not settled:
            unsettled += 1
            size = _active_set(work)
            kept = 0
        factor[i] = 0.0
        for k in range(size):
            factor[i, passive[k]] = min(values[k] * height * scale[passive[k]], limit)
    return unsettled


def equilibrated(gram: NDArray[Any], coupling: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the shifted Gram matrix as :func:`pivot_rows` solves with it, and how it was scaled.

    Its diagonal is one but for the least ridge it needs; see ``_equilibrate``.
    """
    scale, work = np.empty(len(gram)), _workspace(len(gram))
    _equilibrate(gram, coupling, scale, work)
    return work.matrix, scale
