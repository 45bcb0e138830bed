"""Upper bounds on the sum of the r largest squared positive eigenvalues of a symmetric matrix.

A lower bound on the error needs these sums from above. Ritz values lie below eigenvalues and a
Krylov space holds one copy of a repeated one, so what an eigensolver prints is no bound by itself.
Of a small matrix LAPACK finds every eigenvalue, each within the backward error n eps ||A||_F. Of
any other there are r Ritz pairs with their residuals, and ten random vectors that show, except
with a stated probability, how much may lie above the last of them.

Let V have orthonormal columns, T = V^T A V = diag(theta), R = A V - V T, and let mu bound the
largest eigenvalue of A on the complement of V. A differs from the block diagonal of T and A's part
on the complement by a matrix with the eigenvalues +-sigma_j(R), so by Lidskii's theorem the
differences of the sorted eigenvalues are majorised by the sigma_j, and since a convex function is
largest at extreme points,

    sum_{i<=r} [lambda_i(A)]_+^2  <=  sum_{i<=r} (max(theta_i, mu, 0) + sigma_i(R))^2,

both in descending order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from symnmf.interchange import namespace
from symnmf.ops import Factor, HostOps, Ops
from symnmf.parallel import Threads
from symnmf.storage.spectrum import filtered, lanczos_ends

EPS = float(np.finfo(np.float64).eps)

#: Degree of the polynomial that sampled vectors are filtered with, and how often it is looked at:
#: n = 10^6 leaves an uncertainty of 0.05% of the spread of the spectrum in the largest eigenvalue
#: that was not found.
SAMPLE_DEGREE, LOOK_EVERY = 300, 10

#: Each look fails with probability at most ``ODDS ** -SAMPLES`` (Halko, Martinsson and Tropp 2011,
#: Lemma 4.1).
ODDS, SAMPLES = 10.0, 10
FAILURE = SAMPLE_DEGREE // LOOK_EVERY * ODDS**-SAMPLES

SPARE = 10  # more columns than asked for at least, so that the last Ritz pairs converge soon
LEAST_RANGE = 0.005  # of the spectrum that the filter blows up
ROUNDS, DEGREE = 15, 12  # of the filter at most, and the degree of each

#: Where the polynomial for the rest begins to grow, between the last eigenvalue and the next.
TOWARDS_NEXT = 0.1

#: Slack of the sum, over what is left of ||X||^2, that is small enough.
PRECISE = 1e-5

Multiply = Callable[[Factor], Factor]

HOST = HostOps(Threads(1))


@dataclass(frozen=True, eq=False)
class Squares:
    """An upper bound on the sum: of squares of ``raised``, as good as bounds on the eigenvalues.

    That is so for every sum over them that is symmetric, convex and rising. ``slack`` is how much
    of ``total`` is allowance, and ``failure`` the probability that the sum is larger.
    """

    total: float
    slack: float
    failure: float
    raised: np.ndarray


def all_eigenvalues(A: np.ndarray, rank: int) -> Squares:
    """Bound the sum by LAPACK's eigenvalues of a dense A."""
    n, count = len(A), min(rank, len(A))
    values = np.linalg.eigvalsh(A)[::-1][:count]
    return _summed(values, 0.0, np.full(count, n * EPS * float(np.linalg.norm(A))), 0.0)


def by_sampling(
    multiply: Multiply,
    n: int,
    rank: int,
    size: float,
    rounding: float,
    *,
    constant: float | None = None,
    start: np.ndarray | None = None,
    ops: Ops = HOST,
) -> Squares:
    """Bound the sum from products alone, except with probability :data:`FAILURE`.

    ``size`` is ||A||_F or more, and ``rounding`` how far a computed product with a unit vector may
    be from the exact one. The sum is to be subtracted from ``constant``, and what is left decides
    how precise it has to be. ``start`` has columns near the leading eigenvectors. ``ops`` are the
    operations on what ``multiply`` takes and gives.
    """
    generator = np.random.default_rng(0)
    constant = size**2 if constant is None else constant
    block = generator.standard_normal((n, min(rank + max(SPARE, rank // 2), n)))
    if start is not None:
        block[:, : start.shape[1]] = start
    # as good as surely below the spectrum, in which estimates of its ends lie; only speed needs it
    ends = lanczos_ends(n, lambda v: ops.get(multiply(ops.put(v[:, None])))[:, 0])
    low = ends.smallest - 0.1 * (ends.largest - ends.smallest)

    def small(values: np.ndarray) -> float:
        left = max(constant - _positive(values), PRECISE * constant)
        # a search more precise than the products would find nothing
        by_rounding = float(np.sum((np.maximum(values, 0.0) + rounding) ** 2)) - _positive(values)
        return max(PRECISE * left, by_rounding)

    def enough(values: np.ndarray, residual: np.ndarray) -> bool:
        raised = float(np.sum((np.maximum(values, 0.0) + residual) ** 2))
        return raised - _positive(values) <= 0.5 * small(values)

    most = float(np.sqrt(size / rounding)) if size > 0.0 else 1.0
    found = _block_pairs(multiply, ops, ops.put(block), rank, low, most, enough)
    vectors, values, residual = found
    following, values, left = values[: rank + 1][-1], values[:rank], residual + rounding
    # on the way to the next eigenvalue, which may be as large as the last and is never found whole
    edge = values[-1] - TOWARDS_NEXT * (values[-1] - following)
    drawn = ops.put(generator.standard_normal((n, SAMPLES)))
    limits = low, float(edge), small(values)
    above = _sampled(multiply, ops, vectors, values, left, limits, drawn) + rounding
    return _summed(values, above, left, FAILURE)


def _block_pairs(
    multiply: Multiply,
    ops: Ops,
    block: Factor,
    rank: int,
    low: float,
    most: float,
    enough: Callable[[np.ndarray, np.ndarray], bool],
) -> tuple[Factor, np.ndarray, np.ndarray]:
    """Return Ritz vectors, values and the singular values of the residual, by filtering a block.

    There are more values than vectors where the block was filtered: those of all of it. Unlike
    Lanczos this finds repeated eigenvalues. It ends where ``enough`` of the values and the
    residual, or after ROUNDS. ``low`` is below all eigenvalues, as far as is known. A filter lets
    no eigenvector grow by more than ``most``, or little but rounding would be left of the others.
    """
    for round_ in range(ROUNDS + 1):
        block = namespace(block).linalg.qr(block)[0]
        image = multiply(block)
        mixed = ops.cross(block, image)
        values, turn = np.linalg.eigh(0.5 * (mixed + mixed.T))
        values, turn = values[::-1], turn[:, ::-1]
        block, image = ops.times(block, turn), ops.times(image, turn)
        leading = np.eye(len(values), rank)
        vectors = ops.times(block, leading)
        apart = ops.combine(
            (1.0, ops.times(image, leading)), (-1.0, ops.times(vectors, np.diag(values[:rank])))
        )
        residual = np.sqrt(np.maximum(np.linalg.eigvalsh(ops.gram(apart))[::-1], 0.0))
        residual += 1e-7 * residual[0]  # the Gram matrix has half of the digits
        # in a multiple of the identity nothing is left to find
        if round_ == ROUNDS or enough(values[:rank], residual) or not low < values[0]:
            break
        spare = (rank + len(values)) // 2
        edge = values[spare] if spare < len(values) else low
        # where all values of the block agree, there are more copies than columns; and the first
        # may be far above all that matters
        second = values[min(1, len(values) - 1)]
        spread = second - low
        edge = float(min(max(edge, low + 0.1 * spread), second - LEAST_RANGE * spread))
        reach = np.arccosh(max((2.0 * values[0] - edge - low) / (edge - low), 1.0 + EPS))
        degree = int(np.clip(np.arccosh(most) / reach, 1, DEGREE))
        ends = low, edge, float(values[0])
        block = filtered(multiply, block, image, ends, degree, ops.combine)
    return vectors, values if round_ else values[:rank], residual


def _sampled(
    multiply: Multiply,
    ops: Ops,
    vectors: Factor,
    values: np.ndarray,
    left: np.ndarray,
    limits: tuple[float, float, float],
    drawn: Factor,
) -> float:
    """Bound x^T A x for unit x orthogonal to the vectors, except with probability FAILURE.

    With C = P A P, P the projection off the vectors, and p = T_d the Chebyshev polynomial for
    [low, edge], edge near or above the largest eigenvalue of C, ||p(C)|| is at most
    ODDS sqrt(2 / pi) times the largest ||p(C) w|| of SAMPLES Gaussian w, which are ``drawn``, and
    p(lambda)^2 - 1 grows without limit above the edge: so ||p(C)|| limits the largest eigenvalue,
    whatever the rest of the spectrum is. The degree grows until the sum changes by little enough.
    """
    low, edge, small = limits
    edge = max(edge, low + 1e-3 * abs(low))
    half, centre = (edge - low) / 2, (edge + low) / 2
    if not half > 0.0:  # A = 0
        return edge

    def projected(block: Factor) -> Factor:
        inside = ops.times(vectors, ops.cross(vectors, block))
        return ops.combine((1.0, block), (-1.0, inside))

    def stretched(block: Factor) -> Factor:
        return ops.combine((1.0 / half, projected(multiply(block))), (-centre / half, block))

    before = projected(drawn)
    now = stretched(before)
    above = np.inf
    for degree in range(2, SAMPLE_DEGREE + 1):
        before, now = now, ops.combine((2.0, stretched(now)), (-1.0, before))
        if degree % LOOK_EVERY:
            continue
        now = projected(now)  # against the rounding of so many steps
        norm = ODDS * np.sqrt(2 / np.pi) * float(np.sqrt(ops.gram(now).diagonal().max()))
        above = min(above, centre + half * float(np.cosh(np.arccosh(np.hypot(1.0, norm)) / degree)))
        lost = float(np.sum((np.maximum(values, above) + left) ** 2 - (values + left) ** 2))
        if lost <= small or not np.isfinite(norm):
            break
    return above


def _positive(values: np.ndarray) -> float:
    return float(np.sum(np.maximum(values, 0.0) ** 2))


def _summed(values: np.ndarray, above: float, left: np.ndarray, failure: float) -> Squares:
    raised = np.maximum(np.maximum(values, above), 0.0) + left
    total = float(np.sum(raised**2))
    return Squares(total, total - _positive(values), failure, raised)
