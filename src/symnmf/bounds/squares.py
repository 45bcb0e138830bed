"""Upper bounds on the sum of the r largest squared positive eigenvalues of a symmetric matrix.

A lower bound on the error needs these sums from above. Ritz values lie below eigenvalues and a
Krylov space holds one copy of a repeated one, so what an eigensolver prints is no bound by itself.
Three ways lead to one:

``all_eigenvalues``
    Every eigenvalue by LAPACK, each allowed the backward error n eps ||A||_F.
``by_factoring``
    r Ritz pairs with their residuals, and a Cholesky factorization that proves that nothing else
    lies above the last of them.
``by_sampling``
    r Ritz pairs with their residuals from products alone, and ten random vectors that show, except
    with a stated probability, how much may lie above the last of them.

The last two rest on one estimate. Let V have orthonormal columns, T = V^T A V = diag(theta),
R = A V - V T, and let mu bound the largest eigenvalue of A on the complement of V. A differs from
the block diagonal of T and A's part on the complement by a matrix with the eigenvalues
+-sigma_j(R), so by Lidskii's theorem the differences of the sorted eigenvalues are majorised by
the sigma_j, and since a convex function is largest at extreme points,

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

#: Up to this n all eigenvalues cost less than a search for the leading ones.
ALL_UP_TO = 1500

#: Distances above the last Ritz value, over the first, at which the Cholesky proof is tried.
MARGINS = (1e-10, 1e-6, 1e-4)

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

#: Slack of the sum, over what is left of ||X||^2, that is small enough.
PRECISE = 1e-5

Multiply = Callable[[Factor], Factor]

HOST = HostOps(Threads(1))


@dataclass(frozen=True, eq=False)
class Squares:
    """An upper bound on sum_{i<=r} [lambda_i(A)]_+^2.

    Attributes
    ----------
    total : float
        The bound.
    slack : float
        How much of it is allowance: for residuals, for what was not found, for rounding.
    failure : float
        The probability that the sum is larger; 0 where the bound is proved.
    how : str
        "all eigenvalues", "factoring" or "sampling".
    vectors : ndarray of shape (n, r)
        The leading eigenvectors, about.
    values : ndarray of shape (r,)
        Their eigenvalues, about, descending.
    raised : ndarray of shape (r,)
        What the bound is the sum of the squares of: as good as upper bounds on the eigenvalues, for
        every sum over them that is symmetric, convex and rising.
    """

    total: float
    slack: float
    failure: float
    how: str
    vectors: np.ndarray
    values: np.ndarray
    raised: np.ndarray


def all_eigenvalues(A: np.ndarray, rank: int, n: int | None = None) -> Squares:
    """Bound the sum by LAPACK's eigenvalues of a dense A.

    ``n`` is the size of the matrix that A has the nonzero eigenvalues of, where that is larger.
    """
    from scipy.linalg import eigh

    size = A.shape[0] if n is None else n
    count = min(rank, A.shape[0])
    values, vectors = eigh(A, subset_by_index=(A.shape[0] - count, A.shape[0] - 1))
    allowed = np.full(count, size * EPS * float(np.linalg.norm(A)))
    return _summed(values[::-1], vectors[:, ::-1], 0.0, allowed, 0.0, "all eigenvalues")


def by_factoring(
    A: np.ndarray,
    rank: int,
    multiply: Multiply | None = None,
    start: np.ndarray | None = None,
) -> Squares:
    """Bound the sum for a dense A of a few thousand rows: Ritz pairs, and a Cholesky proof.

    ``multiply`` is a faster product with A, if there is one, and ``start`` has columns near the
    leading eigenvectors.
    """
    n = A.shape[0]
    if n <= ALL_UP_TO or rank > n // 4:
        return all_eigenvalues(A, rank)
    times = (lambda V: A @ V) if multiply is None else multiply
    size = float(np.linalg.norm(A))
    block = _begun(np.random.default_rng(0), n, rank, start)
    low, goal = _below_all(times, n, HOST), 1e-11 * size
    vectors, values, left = _block_pairs(
        times, HOST, block, rank, low, lambda values, left: bool(left[0] <= goal)
    )
    values, left = values[:rank], left + n * EPS * size
    for margin in MARGINS:
        above = _proved_below(A, vectors, values, max(values[-1], 0.0) + margin * size)
        if above is not None:
            return _summed(values, vectors, above, left, 0.0, "factoring")
    return all_eigenvalues(A, rank)


def _proved_below(
    A: np.ndarray, vectors: np.ndarray, values: np.ndarray, edge: float
) -> float | None:
    """Return a proved bound near ``edge`` on x^T A x for unit x orthogonal to the vectors, or None.

    Where edge I - A + V diag(theta + edge) V^T has a Cholesky factorization, it is positive
    definite up to the rounding of the factorization: at most (n + 2) eps times the trace (Rump
    2006).
    """
    from scipy.linalg import LinAlgError, cholesky

    n = A.shape[0]
    lifted = (vectors * (np.maximum(values, 0.0) + edge)) @ vectors.T
    lifted -= A
    lifted.flat[:: n + 1] += edge
    trace = float(lifted.trace())
    try:
        cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    # the second term is the rounding of forming the matrix
    return edge + 2.0 * (n + 2) * EPS * trace + n * EPS * float(np.linalg.norm(A))


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
    how precise it has to be. ``start`` has columns near the leading eigenvectors.
    ``ops`` are the operations on what ``multiply`` takes and gives.
    """
    generator = np.random.default_rng(0)
    constant = size**2 if constant is None else constant
    block = ops.put(_begun(generator, n, rank, start))
    low = _below_all(multiply, n, ops)

    def rest(values: np.ndarray) -> float:
        return max(constant - _positive(values), PRECISE * constant)

    def small(values: np.ndarray) -> float:
        # a search more precise than the products would find nothing
        by_rounding = float(np.sum((np.maximum(values, 0.0) + rounding) ** 2)) - _positive(values)
        return max(PRECISE * rest(values), by_rounding)

    def enough(values: np.ndarray, left: np.ndarray) -> bool:
        raised = float(np.sum((np.maximum(values, 0.0) + left) ** 2))
        return raised - _positive(values) <= 0.5 * small(values)

    vectors, values, left = _block_pairs(multiply, ops, block, rank, low, enough)
    (*_, following), values, left = values[: rank + 1], values[:rank], left + rounding
    drawn = ops.put(generator.standard_normal((n, SAMPLES)))
    above = (
        _sampled(multiply, vectors, values, left, (low, following), small(values), drawn, ops)
        + rounding
    )
    return _summed(values, ops.get(vectors), above, left, FAILURE, "sampling")


def _block_pairs(
    multiply: Multiply,
    ops: Ops,
    block: Factor,
    rank: int,
    low: float,
    enough: Callable[[np.ndarray, np.ndarray], bool],
) -> tuple[Factor, np.ndarray, np.ndarray]:
    """Return Ritz vectors, values and the singular values of the residual, by filtering a block.

    There are more values than vectors: those of the whole block. Unlike Lanczos this finds
    repeated eigenvalues. It ends where ``enough`` of the values and the residual, or after ROUNDS.
    ``low`` is below all eigenvalues, as far as is known.
    """
    block, values, image = _ritz(multiply, ops, block)
    for round_ in range(ROUNDS + 1):
        leading = np.eye(len(values), rank)
        pairs = (1.0, ops.times(image, leading)), (-1.0, ops.times(block, leading * values[:rank]))
        left = _singular(ops.gram(ops.combine(*pairs)))
        if round_ == ROUNDS or enough(values[:rank], left):
            break
        if not low < values[0]:  # a multiple of the identity
            break
        spare = (rank + len(values)) // 2
        edge = values[spare] if spare < len(values) else low
        # where all values of the block agree, there are more copies than columns
        spread = values[0] - low
        edge = min(max(edge, low + 0.1 * spread), values[0] - LEAST_RANGE * spread)
        ends = low, float(edge), float(values[0])
        block = filtered(multiply, block, image, ends, DEGREE, ops.combine)
        block, values, image = _ritz(multiply, ops, block)
    return ops.times(block, np.eye(len(values), rank)), values, left


def _sampled(
    multiply: Multiply,
    vectors: Factor,
    values: np.ndarray,
    left: np.ndarray,
    ends: tuple[float, float],
    small: float,
    drawn: Factor,
    ops: Ops,
) -> float:
    """Bound x^T A x for unit x orthogonal to the vectors, except with probability FAILURE.

    With C = P A P, P the projection off the vectors, and p = T_d the Chebyshev polynomial for
    [low, edge], edge an estimate of the largest eigenvalue of C, ||p(C)|| is at most
    ODDS sqrt(2 / pi) times the largest ||p(C) w|| of SAMPLES Gaussian w, which are ``drawn``, and
    p(lambda)^2 - 1 grows without limit above the edge: so ||p(C)|| limits the largest eigenvalue,
    whatever the rest of the spectrum is. The degree grows until the sum changes by ``small``.
    """
    low, following = ends
    edge = max(float(following), low + 1e-3 * abs(low))
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


def _ritz(multiply: Multiply, ops: Ops, block: Factor) -> tuple[Factor, np.ndarray, Factor]:
    """Return orthonormal Ritz vectors of the span of a block, their values, descending, and A V."""
    basis = namespace(block).linalg.qr(block)[0]
    image = multiply(basis)
    mixed = ops.cross(basis, image)
    values, turn = np.linalg.eigh(0.5 * (mixed + mixed.T))
    turn = turn[:, ::-1]
    return ops.times(basis, turn), values[::-1], ops.times(image, turn)


def _below_all(multiply: Multiply, n: int, ops: Ops) -> float:
    """Return a number that is as good as surely below the spectrum, whose estimates lie inside.

    Nothing rests on it but speed.
    """
    ends = lanczos_ends(n, lambda v: ops.get(multiply(ops.put(v[:, None])))[:, 0])
    return ends.smallest - 0.1 * (ends.largest - ends.smallest)


def _begun(
    generator: np.random.Generator, n: int, rank: int, start: np.ndarray | None
) -> np.ndarray:
    """Return a block to filter: known columns first, random ones for the rest."""
    block = generator.standard_normal((n, min(rank + max(SPARE, rank // 2), n)))
    if start is not None:
        known = start[:, : block.shape[1]]
        block[:, : known.shape[1]] = known
    return block


def _singular(gram: np.ndarray) -> np.ndarray:
    """Return the singular values of R from R^T R, descending, and none too small."""
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0))
    return values + 1e-7 * values[0]  # the Gram matrix has half of the digits


def _positive(values: np.ndarray) -> float:
    return float(np.sum(np.maximum(values, 0.0) ** 2))


def _summed(
    values: np.ndarray,
    vectors: np.ndarray,
    above: float,
    left: np.ndarray,
    failure: float,
    how: str,
) -> Squares:
    raised = np.maximum(np.maximum(values, above), 0.0) + left
    total = float(np.sum(raised**2))
    return Squares(total, total - _positive(values), failure, how, vectors, values, raised)
