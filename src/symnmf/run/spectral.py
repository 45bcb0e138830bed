"""Starts from the leading eigenvectors, turned until they are as good as nonnegative.

Where X = U U^T held exactly, U would be the eigenvectors scaled by the roots of their eigenvalues
and turned by some rotation. The rotation is looked for as spectral clustering looks for labels:
k rows that point in directions as different as possible become the axes (pivoted QR, Damle,
Minden and Ying 2019). From there the rotation goes on towards the one that leaves least below 0
(alternating projections, Huang, Sidiropoulos and Swami 2014), and what is still negative is set
to 0. Turning costs little, since X has no part in it, and most starts then end in one minimum, the
best that is known. Rows from a small random sample give as many starts as are wanted.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr
from scipy.linalg.lapack import dpotrf, dtrtri

from symnmf import calls
from symnmf.objectives import Objective
from symnmf.ops import Factor, Ops
from symnmf.storage import SymmetricArray, SymmetricMatrix
from symnmf.storage.spectrum import filtered
from symnmf.storage.symmetric import as_float32
from symnmf.storage.wrapping import in_memory

#: Rows up to which all eigenvectors at once are cheaper.
EXACT_UP_TO = 256
#: Columns beside those asked for, so that the last eigenvectors come quickly.
SPARE = 10
#: Rounds of the filter: at least so many, and at most so many unless X is large, where iterations
#: cost as much and do the rest. Between these, one follows for as long as the last one raised the
#: squares of the wanted eigenvalues after the first by more than the GAIN. With two rounds alone
#: it depends on the first block where runs on MNIST and COIL-20 end.
ROUNDS, MOST_ROUNDS, DEGREE, GAIN = 2, 4, 8, 0.01
#: Entries of the eigenvectors beyond which X is large.
LARGE = 2**22
#: How much larger the filter may make one direction than another before it is orthonormalised.
MOST_GROWTH = {np.dtype(np.float64): 1e6, np.dtype(np.float32): 1e3}
#: Squared length of a direction, over that of the longest, below which it is rounding.
LEAST_SQUARE = {np.dtype(np.float64): 1e-15, np.dtype(np.float32): 1e-10}
#: In units of that: smallest square on the diagonal of a Cholesky factor that is no rounding.
CERTAIN = 1e3
#: Size of the spare eigenvalues, over the last wanted one, up to which products alone turn the
#: block to the wanted directions: each brings it ten times nearer.
CLEAR = 0.1
#: Floating point operations a second, rather too few, and how many a start takes for each row and
#: squared rank: what a call with ``max_time`` has time for.
RATE, OF_A_START = 1e10, 55.0
#: Of the mean entry: what is 0 in U_0 should be able to grow.
FLOOR = 0.01
#: Turns of the axes, at most, and the part of what is negative that each has to remove.
TURNS, SETTLED = 20, 1e-4
#: How far a turn goes: 1 is to where nothing is below 0, 2 as far again beyond. With 1.8 half as
#: many turns lead as far as with 1; with 2 they may end early.
REACH = 1.8
#: Rows that decide on the axes: so many, or so many for each of them. A random start sees fewer.
SEEN, SEEN_OF_EACH, DRAWN_OF_EACH = 10_000, 10, 4
#: Rounds of k-means, at most.
LABEL_ROUNDS = 10


class Basis:
    """The leading eigenvectors of X, about, and their eigenvalues, the largest first."""

    def __init__(self, vectors: np.ndarray, values: np.ndarray) -> None:
        self.vectors, self.values = vectors, values

    def start(self, X: SymmetricMatrix, generator: np.random.Generator | None) -> np.ndarray:
        """Return U_0, turned from the rows that span most, or from random ones."""
        axes = self._farthest_axes if generator is None else self._axes(generator)
        U = self._scaled @ self._settled(axes)  # of a large X it is worth not copying it
        np.maximum(U, 0.0, out=U)
        empty = np.flatnonzero(~U.any(axis=0))
        if empty.size:  # X has fewer directions; columns that are all alike would stay so
            U[:, empty] = np.random.default_rng(0).random((len(U), empty.size)) * U.mean()
        np.maximum(U, FLOOR * U.mean(), out=U)
        U = np.ascontiguousarray(U, dtype=X.dtype)
        if not U.any():  # X has no positive eigenvalue
            U[:] = _uniform_entry(X, U.shape[1])
        return U

    def leading(self, count: int) -> Basis:
        """Return the first ``count`` of them."""
        return Basis(self.vectors[:, :count], self.values[:count])

    def labels(self) -> np.ndarray:
        """Return the labels of spectral clustering: k-means on the sphere from the farthest axes.

        Axes are single rows, and labels by these alone differ much from draw to draw: of two groups
        at 1.6 times the threshold of detection, n = 800, the modularity is 2.8 standard deviations
        above those of random graphs at worst, and 9 after these rounds.
        """
        rows = self.vectors * np.maximum(self.values, 0.0)
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-150)
        labels = (self._scaled @ self._farthest_axes).argmax(axis=1)
        n, k = rows.shape
        for _ in range(LABEL_ROUNDS):
            members = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(k, n))
            centres = members @ rows
            centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-150)
            before, labels = labels, np.argmax(rows @ centres.T, axis=1)
            if np.array_equal(before, labels) or calls.out_of_time():
                break
        return labels

    @functools.cached_property
    def _farthest_axes(self) -> np.ndarray:
        return self._axes(None)

    @functools.cached_property
    def _scaled(self) -> np.ndarray:
        roots = np.sqrt(np.maximum(self.values, 0.0))
        return np.asarray(self.vectors * roots.astype(self.vectors.dtype))

    def _axes(self, generator: np.random.Generator | None) -> np.ndarray:
        """Return the rotation that takes k rows near the axes, each column mostly positive."""
        k = self.vectors.shape[1]
        rows = self.vectors[_typical(self.vectors, k, generator)]
        places = qr(rows.T, mode="r", pivoting=True, check_finite=False)[1]
        axes = _nearest_rotation(rows[places[:k]].T).astype(rows.dtype)
        turned = self._scaled @ axes
        positive = np.maximum(turned, 0.0)
        whole, kept = (np.einsum("ij,ij->j", part, part) for part in (turned, positive))
        return axes * np.where(whole > 2 * kept, -1.0, 1.0).astype(axes.dtype)

    def _settled(self, axes: np.ndarray) -> np.ndarray:
        """Turn axes towards those with the least below 0: clip, and take the nearest rotation.

        What is below 0 counts as being above it by a part of its size: an over-relaxed projection.
        """
        seen = self._scaled[_typical(self._scaled, len(axes))]
        if len(seen) < len(self._scaled):  # drawn in proportion to squared length
            squares = np.einsum("ij,ij->i", seen, seen, dtype=np.float64)
            seen = seen / np.sqrt(np.maximum(squares, 1e-300))[:, None].astype(seen.dtype)
        total = negative = float(np.vdot(seen, seen))
        turn = 4.0 * seen.shape[0] * seen.shape[1] ** 2 / RATE
        for _ in range(TURNS):
            if calls.out_of_time(turn):
                break
            turned = seen @ axes
            above = np.maximum(turned, 0)
            before, negative = negative, total - float(np.vdot(above, above))
            if before - negative <= SETTLED * before:
                break
            np.maximum(turned, seen.dtype.type(1.0 - REACH) * turned, out=turned)
            axes = _nearest_rotation(seen.T @ turned).astype(seen.dtype)
        return axes


def _typical(
    rows: np.ndarray, k: int, generator: np.random.Generator | None = None
) -> np.ndarray | slice:
    """Return which rows stand for all: every one of a few, else in proportion to squared length.

    They are at even distances along the sum of these, or a few at random ones. On large graphs few
    rows have most of that sum.
    """
    most = max(SEEN, SEEN_OF_EACH * k) if generator is None else DRAWN_OF_EACH * k
    along = np.cumsum(np.einsum("ij,ij->i", rows, rows), dtype=np.float64)
    if len(rows) <= most or not along[-1] > 0.0:
        return slice(None)
    parts = (np.arange(most) + 0.5) / most if generator is None else generator.random(most)
    return np.minimum(np.searchsorted(along, parts * along[-1]), len(rows) - 1)


def _nearest_rotation(M: np.ndarray) -> np.ndarray:
    """Return the orthogonal factor M (M^T M)^-1/2 of a square matrix."""
    left, _, right = np.linalg.svd(M.astype(np.float64))
    return np.asarray(left @ right)


def affordable(n: int, rank: int) -> bool:
    """Whether there is time for a start from eigenvectors, and as much again for a run."""
    return turning_seconds(n, rank) <= 0.5 * calls.seconds_left()


def turning_seconds(n: int, rank: int) -> float:
    """Return about how many seconds the host takes for a start, products apart."""
    return OF_A_START * n * (rank + SPARE) ** 2 / RATE


def _uniform_entry(X: SymmetricMatrix, rank: int) -> float:
    """Return the entry of a constant U with ||U||_F^2 = ||X||_F."""
    return float((X.sqnorm**0.25) / (X.shape[0] * rank) ** 0.5)


def leading_subspace(X: SymmetricMatrix, count: int) -> Basis:
    """Return about the ``count`` leading eigenpairs, from twenty to forty products with X.

    A Chebyshev filter on a block of vectors: unlike Lanczos it finds repeated eigenvalues, and
    unlike an eigensolver run to convergence its cost hardly depends on the spectrum. What is
    inexact in the last vectors the factorization corrects, so where X is cheap to have in float32,
    that is precise enough.
    """
    n = X.shape[0]
    if n <= EXACT_UP_TO or count + SPARE > n // 2:
        return _all_eigenpairs(X, count)
    single = as_float32(X)
    X = X if single is None else single
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
        settled = products >= ROUNDS * DEGREE and kept <= (1.0 + GAIN) * before
        if settled or not top > 0.0 or calls.out_of_time(needed):
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


def spectral_start(f: Objective, rank: int, random_state: Any) -> np.ndarray:
    """The start from the rows that span most; it does not depend on the seed."""
    return SpectralStarts().start(0)(f.storage, rank, random_state)


class SpectralStarts:
    """One start after another from the same eigenvectors, which are computed when first needed."""

    def __init__(self, known: Basis | None = None) -> None:
        self.known, self._lock = known, threading.Lock()

    def start(self, number: int) -> Callable[..., np.ndarray]:
        """Return an ``init``: from the rows that span most for number 0, else from random ones."""

        def init(X: SymmetricMatrix, rank: int, random_state: Any) -> np.ndarray:
            if not self.can_prepare(X, rank):
                uniform = np.random.default_rng(0).random((X.shape[0], rank), X.dtype)
                return 2.0 * X.dtype.type(_uniform_entry(X, rank)) * uniform
            return self.prepare(X, rank).start(X, random_state if number else None)

        return init

    def can_prepare(self, X: SymmetricMatrix, rank: int) -> bool:
        """Whether the eigenvectors are there, or there is time for them."""
        return self.known is not None or affordable(X.shape[0], rank)

    def prepare(self, X: SymmetricMatrix, rank: int) -> Basis:
        """Return the eigenvectors, which the first call computes."""
        with self._lock:
            if self.known is None:
                self.known = leading_subspace(X, rank)
            return self.known

    def least_error(self, X: SymmetricMatrix) -> float:
        """Return the error that no U of this rank comes below, about; NaN if it is not known."""
        if self.known is None or X.sqnorm == 0.0:
            return float("nan")
        kept = float((np.maximum(self.known.values, 0.0) ** 2).sum())
        return max(1.0 - kept / X.sqnorm, 0.0)
