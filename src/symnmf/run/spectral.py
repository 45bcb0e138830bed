"""Starts from the leading eigenvectors, turned until they are as good as nonnegative.

Where X = U U^T held exactly, U would be the eigenvectors scaled by the roots of their eigenvalues
and turned by some rotation. The rotation is looked for as spectral clustering looks for labels:
k rows that point in directions as different as possible become the axes (pivoted QR, Damle,
Minden and Ying 2019). From there the rotation goes on towards the one that leaves least below 0
(alternating projections, Huang, Sidiropoulos and Swami 2014), and what is still negative is set
to 0. Turning costs little, since X has no part in it, and most starts then end in one minimum, the
best that is known. Rows drawn at random, far ones more likely, give as many starts as are wanted.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import svd
from scipy.linalg.lapack import dpotrf, dtrtri, get_lapack_funcs

from symnmf import calls
from symnmf.kernels.dense_products import multiplier
from symnmf.kernels.turning import rotate
from symnmf.objectives import Frobenius, Objective
from symnmf.ops import Factor, Ops
from symnmf.state import Point
from symnmf.storage import SymmetricArray, SymmetricMatrix
from symnmf.storage.spectrum import filtered
from symnmf.storage.symmetric import as_float32
from symnmf.storage.wrapping import in_memory

#: Entries of the eigenvectors of a sparse X, which are computed in float32 beyond: with fewer that
#: would not be faster, and a first call would compile kernels for both types.
DOUBLE_UP_TO = 2**12
#: The same beyond which X is large: an iteration costs as much as what it would replace here.
LARGE = 2**22
EXACT_UP_TO = 256  # rows up to which all eigenvectors at once are cheaper
SPARE = 10  # more columns than asked for, so that the last eigenvectors come quickly
#: Rounds of the filter: at least so many, and at most so many unless X is large, where iterations
#: cost as much and do the rest. Between these, one follows for as long as the last one raised the
#: squares of the wanted eigenvalues after the first by more than the GAIN. With two rounds alone
#: it depends on the first block where runs on MNIST and COIL-20 end.
ROUNDS, MOST_ROUNDS, DEGREE, GAIN = 2, 4, 8, 0.01
#: How much larger the filter may make one direction than another before it is orthonormalised.
MOST_GROWTH = {np.dtype(np.float64): 1e6, np.dtype(np.float32): 1e3}
#: Squared length of a direction, over that of the longest, below which it is rounding.
LEAST_SQUARE = {np.dtype(np.float64): 1e-15, np.dtype(np.float32): 1e-10}
#: In units of that: smallest square on the diagonal of a Cholesky factor that is no rounding.
CERTAIN = 1e3
#: Floating point operations a second, rather too few: of products, and of pivoted QR, which is
#: bound by memory. They decide what a call with ``max_time`` has time for.
RATE, PIVOTING_RATE = 1e10, 1.5e9
#: Operations that a start takes for each row and squared rank, in units of the first rate.
OF_A_START = 55.0
#: Size of the spare eigenvalues, over the last wanted one, up to which products alone turn the
#: block to the wanted directions: each brings it ten times nearer.
CLEAR = 0.1
NOTHING_LEFT = 1e-6  # part of ||X||^2 outside a block that then spans the leading eigenvectors
#: Of the mean entry: what is 0 in U_0 should be able to grow.
FLOOR = 0.01
TURNS = 20  # of the axes, at most
#: How far a turn goes: 1 is to where nothing is below 0, 2 as far again beyond. With 1.8 half as
#: many turns lead as far as with 1; with 2 they may end early.
REACH = 1.8
SETTLED = 1e-4  # part of what is negative that a turn has to remove for another to follow
SEEN_UP_TO = 10_000  # rows that decide on a turn, or fifty for each axis


@dataclass(frozen=True, eq=False)
class Basis:
    """The leading eigenvectors of X, about, times the roots of their eigenvalues."""

    vectors: np.ndarray
    values: np.ndarray

    def start(self, X: SymmetricMatrix, generator: np.random.Generator | None) -> np.ndarray:
        """Return U_0: rows that span most as first axes, or rows drawn if there is a generator.

        The axes are then turned until little is negative.
        """
        axes = self._farthest_axes if generator is None else self._axes(generator)
        U = self._scaled @ self._settled(axes)  # of a large X it is worth not copying it
        np.maximum(U, 0.0, out=U)
        empty = np.flatnonzero(~U.any(axis=0))
        if empty.size:  # X has fewer directions; columns that are all alike would stay so
            U[:, empty] = np.random.default_rng(0).random((len(U), empty.size)) * U.mean()
        np.maximum(U, FLOOR * U.mean(), out=U)
        U = np.ascontiguousarray(U, dtype=X.dtype)
        if not U.any():  # X has no positive eigenvalue
            U[:] = 1.0
        return _at_scale(X, U)

    def leading(self, count: int) -> Basis:
        """Return the first ``count`` of them."""
        return Basis(self.vectors[:, :count], self.values[:count])

    def labels(self) -> np.ndarray:
        """Return the labels of spectral clustering: the nearest of the axes that span most."""
        return (self._scaled @ self._farthest_axes).argmax(axis=1)

    @functools.cached_property
    def _farthest_axes(self) -> np.ndarray:
        return self._axes(None)

    @functools.cached_property
    def _scaled(self) -> np.ndarray:
        roots = np.sqrt(np.maximum(self.values, 0.0))
        return np.asarray(self.vectors * roots.astype(self.vectors.dtype))

    def _axes(self, generator: np.random.Generator | None) -> np.ndarray:
        """Return the rotation that takes k rows near the axes, each column mostly positive."""
        rows = _farthest(self.vectors) if generator is None else _drawn(self.vectors, generator)
        axes = nearest_rotation(rows.T).astype(self.vectors.dtype)
        turned = self._scaled @ axes
        positive = np.maximum(turned, 0.0)
        whole, kept = (np.einsum("ij,ij->j", part, part) for part in (turned, positive))
        return axes * np.where(whole > 2 * kept, -1.0, 1.0)

    def _settled(self, axes: np.ndarray) -> np.ndarray:
        """Turn axes towards those with the least below 0: clip, and take the nearest rotation.

        What is below 0 counts as being above it by a part of its size: an over-relaxed projection.
        """
        seen = _sampled(self._scaled, max(SEEN_UP_TO, 50 * len(axes)))
        total = float(np.vdot(seen, seen))
        negative = total
        turn = 4.0 * seen.shape[0] * seen.shape[1] ** 2 / RATE
        axes = np.array(axes, seen.dtype, order="C")
        for _ in range(TURNS):
            if calls.out_of_time(turn):
                break
            turned = seen @ axes
            above = np.maximum(turned, 0)
            before, negative = negative, total - float(np.vdot(above, above))
            np.maximum(turned, axes.dtype.type(1.0 - REACH) * turned, out=turned)
            moment = seen.T @ turned
            if before - negative <= SETTLED * before:
                break
            axes = nearest_rotation(moment).astype(axes.dtype)
        return axes


def _sampled(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many rows with about the same sums of squares in every direction.

    Rows are taken in proportion to their squared length, at even distances along the sum of these,
    and brought to one length. On large graphs few rows have most of that sum.
    """
    if len(rows) <= most:
        return rows
    along = np.cumsum(np.einsum("ij,ij->i", rows, rows), dtype=np.float64)
    if not along[-1] > 0.0:
        return rows[:most]
    chosen = np.searchsorted(along, (np.arange(most) + 0.5) * (along[-1] / most))
    sample = rows[chosen]
    lengths = np.linalg.norm(sample, axis=1, keepdims=True)
    return np.asarray(sample * (np.sqrt(along[-1] / most) / lengths), rows.dtype)


def nearest_rotation(M: np.ndarray) -> np.ndarray:
    """Return the orthogonal factor M (M^T M)^-1/2 of a square matrix.

    By products, or by an SVD where little of some direction is left.
    """
    M = np.array(M, np.float64, order="C")
    rotation = M.copy()
    if rotate(multiplier(rotation.dtype), rotation):
        return rotation
    left, _, right = svd(M)
    return np.asarray(left @ right)


def affordable(n: int, rank: int) -> bool:
    """Whether there is time for a start from eigenvectors, and as much again for a run."""
    return turning_seconds(n, rank) <= 0.5 * calls.seconds_left()


def turning_seconds(n: int, rank: int) -> float:
    """Return about how many seconds the host takes for a start, products apart."""
    return OF_A_START * n * (rank + SPARE) ** 2 / RATE


def uniform_start(X: SymmetricMatrix, rank: int) -> np.ndarray:
    """Return uniform numbers at the scale of X, where there is no time for eigenvectors."""
    return _at_scale(X, np.random.default_rng(0).random((X.shape[0], rank), X.dtype))


def _at_scale(X: SymmetricMatrix, U: np.ndarray) -> np.ndarray:
    U *= X.dtype.type(Frobenius(X).best_multiple(Point(X.ops, X.ops.put(U))))
    return U


def leading_subspace(X: SymmetricMatrix, count: int) -> Basis:
    """Return about the ``count`` leading eigenpairs, from twenty to forty products with X.

    A Chebyshev filter on a block of vectors: unlike Lanczos it finds repeated eigenvalues, and
    unlike an eigensolver run to convergence its cost hardly depends on the spectrum. What is
    inexact in the last vectors the factorization corrects. Of a sparse X all but small blocks are
    kept in float32.
    """
    n = X.shape[0]
    single = as_float32(X) if n * count > DOUBLE_UP_TO else None
    if single is not None:
        X = single
    if n <= EXACT_UP_TO or count + SPARE > n // 2:
        return _all_eigenpairs(X, count)
    ops = X.ops
    block = orthonormal(ops, X.matmul(random_block(X, count + SPARE)))
    products, kept = 0, 0.0
    most = (ROUNDS if n * count > LARGE else MOST_ROUNDS) * DEGREE
    while products < most:
        left = calls.seconds_left()
        image = X.matmul(block)
        # what has to follow: an image, the scale of U_0, the product of the first iteration
        needed = 3.0 * (left - calls.seconds_left()) if np.isfinite(left) else 0.0
        ritz = np.linalg.eigvalsh(_symmetric(ops.cross(block, image)))
        top, before = ritz[-1], kept
        wanted = ritz[-count : -1 if count > 1 else None]  # the first may be far above the others
        kept = float(wanted @ wanted)
        if products >= ROUNDS * DEGREE and kept <= (1.0 + GAIN) * before:
            return basis_in(X, block, image, count)
        # a filter would find nothing more where the block holds all there is of X
        whole = X.sqnorm - float(ritz @ ritz) <= NOTHING_LEFT * X.sqnorm
        if whole or not top > 0.0 or calls.out_of_time(needed):
            return basis_in(X, block, image, count)
        if np.abs(ritz[:SPARE]).max() <= CLEAR * ritz[-count]:
            block = orthonormal(ops, image)
            break
        # X >= 0, so no eigenvalue lies below -top; what is above the edge is blown up. The floor
        # is a part of the second: the first may be far above all that matters
        edge = max(ritz[SPARE // 2], 0.05 * ritz[-2])
        degree = _affordable_degree(edge, top, X.dtype)
        block = orthonormal(
            ops, filtered(X.matmul, block, image, (-top, edge, top), degree, ops.combine, needed)
        )
        products += degree
    return basis_in(X, block, X.matmul(block), count)


def _affordable_degree(edge: float, top: float, dtype: np.dtype) -> int:
    """Return the degree at which the filter of [-top, edge] still leaves digits of all directions.

    At ``top`` it is larger by T_d(x) than at the edge, T_d Chebyshev's polynomial. Where one
    eigenvalue is far above the others, all columns would soon be that eigenvector and rounding.
    """
    x = (3.0 * top - edge) / (edge + top)  # ``top`` where the interval is [-1, 1]
    growth = np.arccosh(MOST_GROWTH[dtype]) / np.arccosh(max(x, 1.0 + 1e-12))
    return int(min(max(growth, 1), DEGREE))


def basis_in(X: SymmetricMatrix, block: Factor, image: Factor, count: int) -> Basis:
    """Return the leading eigenpairs within the span of an orthonormal block and its image X B."""
    values, turn = np.linalg.eigh(_symmetric(X.ops.cross(block, image)))
    vectors = X.ops.get(X.ops.times(block, np.ascontiguousarray(turn[:, : -count - 1 : -1])))
    return Basis(vectors, values[: -count - 1 : -1])


def _all_eigenpairs(X: SymmetricMatrix, count: int) -> Basis:
    whole: Any = in_memory(X)
    if sp.issparse(whole):
        whole = whole.toarray()
    elif isinstance(whole, SymmetricArray):
        whole = X.ops.get(X.matmul(X.ops.put(np.eye(X.shape[0], dtype=X.dtype))))
    values, vectors = np.linalg.eigh(np.asarray(whole, np.float64))
    return Basis(np.ascontiguousarray(vectors[:, : -count - 1 : -1]), values[: -count - 1 : -1])


def _symmetric(small: np.ndarray) -> np.ndarray:
    return 0.5 * (small + small.T)


def random_block(X: SymmetricMatrix, width: int) -> Factor:
    """Return a block to begin with, the same every time.

    Uniform numbers do as well as normal ones here, and take a fifth of the time.
    """
    block = np.random.default_rng(0).random((X.shape[0], width), X.dtype)
    block -= X.dtype.type(0.5)
    return X.ops.put(block)


def orthonormal(ops: Ops, block: Factor) -> Factor:
    """Return an orthonormal basis of the columns, with zeros if there are too few directions.

    By the Gram matrix, once more against the rounding of the first time: a fifth of the time of
    Householder's QR on a tall block, and works on every device. The Cholesky factor of it takes a
    tenth of the time of its eigenvectors, which are only needed where directions are missing.
    """
    least = LEAST_SQUARE[ops.dtype(block)]
    for _ in range(2):
        gram = ops.gram(block)
        upper, failed = dpotrf(gram)
        sizes = np.abs(upper.diagonal())
        if not failed and sizes.min() ** 2 > CERTAIN * least * sizes.max() ** 2:
            block = ops.times(block, dtrtri(upper)[0])
            continue
        squares, turn = np.linalg.eigh(gram)
        usable = squares > least * squares[-1]
        lengths = np.sqrt(np.where(usable, squares, 1.0))
        block = ops.times(block, turn * np.where(usable, 1.0 / lengths, 0.0))
    return block


def _farthest(vectors: np.ndarray) -> np.ndarray:
    """Return the k rows that pivoted QR takes first."""
    count, k = vectors.shape
    # fewer rows to choose from where all of them would take longer than there is time for
    affordable = 0.5 * calls.seconds_left() * PIVOTING_RATE / (4.0 * k * k)
    if affordable < 2 * k:
        return np.eye(k)
    if affordable < count:
        sample = np.random.default_rng(0).choice(count, int(affordable), replace=False)
        vectors = vectors[sample]
    most = max(SEEN_UP_TO, 50 * k)
    if len(vectors) > 2 * most:
        # a row is taken for what is outside the span of the earlier ones, which is no longer than
        # the row: short rows are left out, unless one of them is as long as the least that is taken
        squares = np.einsum("ij,ij->i", vectors, vectors)
        order = np.argpartition(squares, -most)
        rows, least = _pivoted(vectors[np.sort(order[-most:])])
        if least * least > squares[order[:-most]].max():
            return rows
    return _pivoted(vectors)[0]


def _pivoted(vectors: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the k rows that pivoted QR takes first, and how far out the last of them is."""
    k = vectors.shape[1]
    (pivoted_qr,) = get_lapack_funcs(("geqp3",), (vectors,))
    factored, places = pivoted_qr(vectors.T)[:2]
    rows = vectors[places[:k] - 1]  # LAPACK counts from 1
    return np.asarray(rows), abs(float(factored[k - 1, k - 1]))


def _drawn(vectors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return k rows, each drawn in proportion to its squared part outside the span of the earlier.

    Rows are scaled to one length in every second draw: small degrees then count as much as
    large ones. Neither is better on all graphs.
    """
    rest = vectors
    if generator.integers(2):
        rest = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-150)
    rows = rest
    axes = []
    for _ in range(vectors.shape[1]):
        weight = np.cumsum(np.einsum("ij,ij->i", rest, rest))
        if not weight[-1] > 0.0:
            axes.append(np.zeros(vectors.shape[1]))
            continue
        place = min(int(np.searchsorted(weight, generator.random() * weight[-1])), len(rest) - 1)
        axes.append(rows[place])
        direction = rest[place] / max(np.linalg.norm(rest[place]), 1e-150)
        rest = rest - np.outer(rest @ direction, direction)
    return np.array(axes)


@dataclass
class SpectralStarts:
    """One start after another from the same eigenvectors, which are computed when first needed.

    ``starts(number)`` is an ``init`` for :func:`symnmf.factorize`: the farthest rows as axes for
    number 0, drawn ones for the others.
    """

    known: Basis | None = field(default=None, repr=False)
    bound: float = float("nan")  # the error that no U of this rank comes below, about
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def __call__(self, number: int) -> SpectralStart:
        return SpectralStart(self, number)

    def can_prepare(self, X: SymmetricMatrix, rank: int) -> bool:
        """Whether the eigenvectors are there, or there is time for them."""
        return self.known is not None or affordable(X.shape[0], rank)

    def prepare(self, X: SymmetricMatrix, rank: int) -> Basis:
        """Return the eigenvectors, which the first call computes."""
        with self._lock:
            if self.known is None:
                self.known = leading_subspace(X, rank)
            if np.isnan(self.bound):
                kept = float((np.maximum(self.known.values, 0.0) ** 2).sum())
                self.bound = max(1.0 - kept / X.sqnorm, 0.0) if X.sqnorm > 0.0 else 0.0
            return self.known

    def explained(self, error: float) -> float:
        """Return how much of what the eigenvectors explain an error leaves; NaN without them."""
        best = 1.0 - self.bound
        return (1.0 - error) / best if best != 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class SpectralStart:
    """One of :class:`SpectralStarts`; what it returns is at X's scale and needs no check."""

    starts: SpectralStarts
    number: int

    def __call__(self, X: SymmetricMatrix, rank: int, random_state: Any) -> np.ndarray:
        if not self.starts.can_prepare(X, rank):
            return uniform_start(X, rank)
        return self.starts.prepare(X, rank).start(X, random_state if self.number else None)


def spectral_start(f: Objective, rank: int, random_state: Any) -> np.ndarray:
    """The start from the rows that span most; it does not depend on the seed."""
    X = f.storage
    if not affordable(X.shape[0], rank):
        return uniform_start(X, rank)
    return leading_subspace(X, rank).start(X, None)
