"""X of which entries are hidden, or count with weights: W o (X - U U^T), never formed."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from symnmf.errors import warn as warn_reader
from symnmf.kernels.products import balanced_chunks, csr_rows
from symnmf.kernels.weighted import quartic_rows, residual_product_rows, sums_rows
from symnmf.ops.host import HostOps
from symnmf.ops.operations import Line, RowSolver, quartic
from symnmf.parallel import SMALLEST_SHARE, Bounds, Threads
from symnmf.storage.host import HostMatrix
from symnmf.storage.symmetric import SymmetricMatrix

#: Ridge of rows with fewer observations than columns of U, in units of the entries of X.
RIDGE = 1e-2

Coefficients = tuple[float, float, float, float]


@dataclass
class Pairs:
    """Pairs (i, j) in the pattern of a symmetric CSR matrix, each with a value and a weight.

    Attributes
    ----------
    indptr, indices : ndarray
        The pattern, sorted, with both (i, j) and (j, i).
    x, w : ndarray of length 1 or the number of stored pairs
        Values and weights; a single one belongs to all of them. Weights may be negative.
    """

    indptr: np.ndarray
    indices: np.ndarray
    x: np.ndarray
    w: np.ndarray
    upper: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # where the pairs on and above the diagonal begin
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        below = np.concatenate([[0], np.cumsum(self.indices < rows)])
        self.upper = (self.indptr[:-1] + np.diff(below[self.indptr])).astype(self.indptr.dtype)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.indices, self.x, self.w

    def chunks(self, threads: Threads, width: int) -> list[Bounds]:
        affordable = int(4.0 * len(self.indices) * width // SMALLEST_SHARE)
        return balanced_chunks(self.indptr, max(1, min(threads.count, affordable)))

    def cast(self, dtype: np.dtype) -> Pairs:
        return self._with(self.x.astype(dtype), self.w.astype(dtype))

    def times(self, factor: float) -> Pairs:
        return self._with(self.x * self.x.dtype.type(factor), self.w)

    def _with(self, x: np.ndarray, w: np.ndarray) -> Pairs:
        other = copy.copy(self)
        other.x, other.w = x, w
        return other

    def sqnorm(self) -> float:
        """Return the sum of w x^2."""
        x = self.x.astype(np.float64, copy=False)
        w = self.w.astype(np.float64, copy=False)
        stored = len(self.indices)
        if len(x) == len(w) == 1:
            return float(stored * w[0] * x[0] ** 2)
        if len(w) == 1:
            return float(w[0] * np.vdot(x, x))
        return float(np.vdot(w, x * x))


class MaskedMatrix(SymmetricMatrix):
    r"""f(U) = 1/2 sum_ij w_ij (x_ij - <u_i, u_j>)^2 with weights 0 <= w <= 1, from sparse pairs.

    Where few pairs are observed, those are the pairs that are kept. Where few are hidden, those
    are: with X_0 = W o X in the ``base`` and h = 1 - w,

    .. math:: f(U) = \tfrac12\|X_0 - UU^\top\|^2 - \tfrac12\sum h_{ij}\langle u_i, u_j\rangle^2 + c.

    So both are the same passes over pairs, the second on top of what the base does. X~ = U U^T +
    W o (X - U U^T) majorises f at U, and its product with U is what :meth:`product_at` returns.

    Parameters
    ----------
    pairs : Pairs
        The observed pairs, or without weight (x = 0, w = -h) the hidden ones of ``base``.
    threads : Threads
        The pool of every pass.
    base : HostMatrix or None
        W o X with zeros for hidden entries.
    seen : ndarray of shape (n,)
        Row sums of W.
    counts : ndarray of shape (n,)
        Entries of each row that are observed.
    constant : float
        The sum of (w - w^2) x^2, where there is a base; 0 if all weights are 0 or 1.
    """

    weighted = True
    ops: HostOps

    def __init__(
        self,
        pairs: Pairs,
        threads: Threads,
        base: HostMatrix | None,
        seen: np.ndarray,
        counts: np.ndarray,
        constant: float = 0.0,
    ) -> None:
        dtype = base.dtype if base is not None else pairs.x.dtype
        super().__init__(len(pairs.indptr) - 1, dtype, HostOps(threads))
        self.pairs, self.base, self.seen, self.counts = pairs, base, seen, counts
        self.constant = constant
        self.ridge, self.few = 0.0, np.empty(0, np.int64)  # on rows of which too little is known
        self._single: MaskedMatrix | None = None

    @property
    def threads(self) -> Threads:
        return self.ops.threads

    # --- W o X as a matrix of its own, for spectra and starts

    def matmul(self, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return (W o X) @ V."""
        if self.base is not None:
            return self.base.matmul(V, out)
        result = np.empty(V.shape, self.dtype) if out is None else out
        indptr, indices, x, w = self.pairs.arrays
        data = x * w if len(x) > 1 or len(w) > 1 else np.full(len(indices), x[0] * w[0])
        self.threads.run(
            lambda begin, end: csr_rows(indptr, indices, data, V, result, begin, end),
            self.pairs.chunks(self.threads, V.shape[1]),
        )
        return result

    def compute_sqnorm(self) -> float:
        """Return the sum of w x^2."""
        if self.base is not None:
            return self.base.sqnorm + self.constant
        return self.pairs.sqnorm()

    def largest(self) -> float:
        if self.base is not None:
            return self.base.largest()
        return float(np.abs(self.pairs.x).max(initial=0.0))

    def scaled(self, factor: float) -> MaskedMatrix:
        other = self._copy()
        other.pairs = self.pairs.times(factor)
        if self.base is not None:
            base = self.base.scaled(factor)
            assert isinstance(base, HostMatrix)
            other.base = base
        other.constant = self.constant * factor * factor
        other.ridge = self.ridge * factor
        return other

    def _copy(self) -> MaskedMatrix:
        other = copy.copy(self)
        other._sqnorm = other._single = None
        return other

    def digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{self.shape} {self.dtype} masked".encode())
        if self.base is not None:
            digest.update(self.base.digest().encode())
        for array in self.pairs.arrays:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @property
    def single(self) -> MaskedMatrix | None:
        if self.base is not None and self.base.single is None:
            return None
        if self.dtype == np.float32:
            return self
        if self._single is None:
            other = self._copy()
            other.dtype, other.pairs = np.dtype(np.float32), self.pairs.cast(np.dtype(np.float32))
            if self.base is not None:
                base = self.base.single
                assert isinstance(base, HostMatrix)
                other.base = base
            self._single = other
        return self._single

    def on(self, threads: Threads) -> MaskedMatrix:
        other = self._copy()
        other.ops = HostOps(threads)
        other.base = None if self.base is None else self.base.on(threads)
        return other

    def threads_for(self, rank: int) -> int:
        busy = len(self.pairs.chunks(self.threads, rank))
        return busy if self.base is None else max(busy, self.base.threads_for(rank))

    # --- rows of which too little is known

    @property
    def unseen(self) -> np.ndarray | None:
        rows = self.counts == 0
        return rows if rows.any() else None

    def for_rank(self, rank: int, *, warn: bool = True) -> MaskedMatrix:
        few = self.counts < rank
        if not few.any() or self.sqnorm == 0.0:
            return self
        if warn:
            warn_reader(
                f"{int(few.sum())} of the {len(few)} rows of X have fewer observed entries than "
                f"the rank {rank}; a small ridge keeps their rows of U from being arbitrary.",
                UserWarning,
            )
        other = self._copy()
        other.ridge = RIDGE * float(np.sqrt(self.sqnorm / max(float(self.seen.sum()), 1.0)))
        other.few = np.flatnonzero(few)
        return other

    # --- at a point

    def product_at(
        self,
        factor: np.ndarray,
        other: np.ndarray,
        *,
        gram: np.ndarray | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        if self.base is not None:
            product = self.base.matmul(other, out)
        else:
            product = self.ops.times(factor, self.ops.gram(other) if gram is None else gram)
        self._correct(factor, other, product)
        return product

    def product_and_sums(
        self, U: np.ndarray, gram: np.ndarray | None
    ) -> tuple[np.ndarray, tuple[float, float, float] | None]:
        if self.base is not None:
            return self.product_at(U, U, gram=gram), None
        product = self.ops.times(U, self.ops.gram(U) if gram is None else gram)
        misfit, fit, size = self._correct(U, U, product)
        return product, (misfit + self._held(U, U), fit, size)

    def _correct(
        self, factor: np.ndarray, other: np.ndarray, product: np.ndarray
    ) -> tuple[float, float, float]:
        """Add what the pairs and the ridge have to say to a product; return the pairs' sums."""
        sums = self._add_pairs(factor, other, other, product)
        if len(self.few):
            product[self.few] -= product.dtype.type(0.5 * self.ridge) * factor[self.few]
        return sums

    def _add_pairs(
        self, F: np.ndarray, V: np.ndarray, T: np.ndarray, out: np.ndarray
    ) -> tuple[float, float, float]:
        arrays = self.pairs.arrays
        parts = self.threads.run(
            lambda begin, end: residual_product_rows(*arrays, F, V, T, out, begin, end),
            self.pairs.chunks(self.threads, F.shape[1]),
        )
        misfit, fit, size = (float(sum(column)) for column in zip(*parts, strict=True))
        return misfit, fit, size

    def _held(self, U: np.ndarray, V: np.ndarray) -> float:
        """Return what the ridge adds to the misfit."""
        return 0.5 * (self._ridged(U, U) + self._ridged(V, V))

    def _ridged(self, A: np.ndarray, B: np.ndarray) -> float:
        few = self.few
        return self.ridge * float(np.vdot(A[few].astype(np.float64), B[few].astype(np.float64)))

    def residual_times(self, U: np.ndarray, V: np.ndarray, T: np.ndarray) -> np.ndarray:
        thin = np.ascontiguousarray(T, dtype=self.dtype)
        total = np.zeros(thin.shape, self.dtype)
        for F, G in ((U, V), (V, U)):
            self._add_pairs(F, G, thin, total)
        total = 0.5 * total.astype(np.float64)
        return total if self.base is None else total + self.base.residual_times(U, V, T)

    def weighted_sums(
        self, U: np.ndarray, V: np.ndarray, product: np.ndarray | None = None
    ) -> tuple[float, float, float]:
        same = U is V
        first = self.pairs.upper if same else self.pairs.indptr[:-1]
        parts = self.threads.run(
            lambda b, e: sums_rows(first, *self.pairs.arrays, U, V, same, b, e),
            self.pairs.chunks(self.threads, U.shape[1]),
        )
        misfit, fit, size = (float(sum(column)) for column in zip(*parts, strict=True))
        held = self._held(U, V)
        if self.base is not None:
            if same and product is not None:  # which has the pairs and the ridge in it
                explained = self.ops.inner(product, U) - fit + size + 0.5 * held
            else:
                explained = self.ops.inner(self.base.matmul(V), U)
            gram = self.ops.gram(U)
            square = float(np.vdot(gram, gram if same else self.ops.gram(V)))
            misfit += self.base.sqnorm - 2.0 * explained + square + self.constant
            fit, size = fit + explained, size + square
        return max(misfit + held, 0.0), fit, size

    def along(
        self,
        U: np.ndarray,
        product: np.ndarray,
        gram: np.ndarray,
        target: np.ndarray,
        out: np.ndarray,
    ) -> tuple[Line, Coefficients]:
        ops = self.ops
        D = np.subtract(target, U, out=target)
        both = np.hstack([U, D])  # rows side by side: one place in memory for each end of a pair
        parts = self.threads.run(
            lambda b, e: quartic_rows(self.pairs.upper, *self.pairs.arrays, both, b, e),
            self.pairs.chunks(self.threads, U.shape[1]),
        )
        c1, c2, c3, c4 = (float(sum(column)) for column in zip(*parts, strict=True))
        slope, bend, image = 0.0, 0.0, out
        if self.base is not None:
            image = self.base.matmul(D, out)
            slope, bend = ops.inner(product, D), ops.inner(image, D)
        line = Line(slope, bend, ops.cross(U, D), ops.gram(D), D, image)
        if self.base is not None:
            first, *higher = quartic(gram, line)
            # the product at U has the pairs and the ridge in it, so their slope is there already
            c1, c2, c3, c4 = first, c2 + higher[0], c3 + higher[1], c4 + higher[2]
        if self.base is None:
            c1 += self._ridged(U, D)
        return line, (c1, c2 + 0.5 * self._ridged(D, D), c3, c4)

    def advance(
        self, U: np.ndarray, product: np.ndarray, line: Line, t: float
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        if self.base is None:
            moved = line.D
            moved *= moved.dtype.type(t)
            np.maximum(np.add(U, moved, out=U), 0, out=U)
            return U, None, moved
        # the base's own product moves in a straight line, and what the pairs add does not
        pairs = np.zeros_like(product)
        self._correct(U, U, pairs)
        product -= pairs
        U, product, moved = self.ops.advance(U, product, line, t)
        self._correct(U, U, product)
        return U, product, moved

    def aim(self, U: np.ndarray, product: np.ndarray, gram: np.ndarray) -> np.ndarray:
        shares = np.maximum(self.seen, 1.0) / self.shape[0]
        curved = self.ops.times(U, gram)
        return curved + (product - curved) * (1.0 / shares[:, None]).astype(self.dtype)

    def update(
        self,
        rows: RowSolver,
        factor: np.ndarray,
        other: np.ndarray,
        gram: Callable[[], np.ndarray],
        coupling: float,
        out: np.ndarray | None = None,
    ) -> tuple[np.ndarray, None]:
        """Minimise the majoriser of the weighted objective at ``factor``; see the class."""
        curvature = gram()
        product = self.product_at(factor, other, gram=curvature, out=out)
        return self.ops.solve_rows(rows, factor, product, other, curvature, coupling), None
