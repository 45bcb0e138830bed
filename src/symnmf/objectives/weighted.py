"""Entries that are hidden, or count with weights: W o (X - U U^T), never formed as a whole."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from symnmf.errors import warn as warn_reader
from symnmf.objectives.frobenius import MatrixObjective
from symnmf.objectives.objective import Coefficients, Objective
from symnmf.objectives.terms import Ridge
from symnmf.ops import Factor, Line, quartic
from symnmf.state import Point, State, Sums
from symnmf.storage import SymmetricMatrix

#: Ridge of rows with fewer observations than columns of U, in units of the entries of X.
RIDGE = 1e-2


class Weighted(MatrixObjective):
    r"""f(U) = 1/2 sum_ij w_ij (x_ij - <u_i, u_j>)^2 with weights 0 <= w <= 1.

    Entries are reached in one of three ways, whichever is the cheapest:

    - the observed pairs, one by one;
    - all of X by its own products, and the pairs that are hidden or count less, h = 1 - w, one by
      one: :math:`f(U) = \tfrac12\|X - UU^\top\|^2 - \tfrac12\sum h_{ij}(x_{ij} - \langle u_i,
      u_j\rangle)^2`;
    - the parts of X in place, each with its weights, on every storage backend.

    X~ = U U^T + W o (X - U U^T) majorises f at U, and its product with U is what
    :meth:`product_at` returns.

    Parameters
    ----------
    storage : SymmetricMatrix
        W o X, or X where ``corrects``: for products, spectra and starts.
    passes : Pairs, Parts or the like
        What counts; where ``corrects``, what counts less, with a negative weight.
    corrects : bool
        Whether the passes correct what the storage says, rather than say it all.
    seen : ndarray of shape (n,)
        Row sums of W.
    counts : ndarray of shape (n,)
        Entries of each row that are observed.
    """

    homogeneous = False
    unit_weights = False

    def __init__(
        self,
        storage: SymmetricMatrix,
        passes: Any,
        corrects: bool,
        seen: np.ndarray,
        counts: np.ndarray,
    ) -> None:
        super().__init__(storage)
        self.passes, self.corrects, self.seen, self.counts = passes, corrects, seen, counts
        self.unseen = counts == 0 if not counts.all() else None

    @property
    def sqnorm(self) -> float:
        own = self.storage.sqnorm if self.corrects else 0.0
        return float(max(own + self.passes.sqnorm, 0.0))

    def describe_misfit(self) -> str:
        hidden = len(self.counts) ** 2 - int(self.counts.sum())
        return f"1/2 sum_ij w_ij (x_ij - <u_i, u_j>)^2 ({hidden} entries not observed)"

    def digest_misfit(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{self.shape} {self.dtype} weighted {self.corrects}".encode())
        digest.update(self.storage.digest().encode())
        for array in self.passes.arrays:
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    # --- f at a point

    def product_and_sums(self, U: Point) -> tuple[Factor, Sums | None]:
        T = U.values
        if self.corrects:
            product = self.storage.matmul(T)
            explained = self.ops.inner(product, T)
            sums = self._with_all(self.passes.add(T, T, T, product), explained, U)
        else:
            product = self.ops.times(T, U.gram)
            sums = self.passes.add(T, T, T, product)
        return self.lowered(product, T), sums

    def sums(self, U: Point, product: Factor) -> Sums:
        sums = misfit, fit, size = self._pass(U, U)
        if not self.corrects:
            return max(misfit, 0.0), fit, size
        # the product has S U of the pairs in it, and half of the gradient of the terms
        own = self.ops.inner(product, U.values) + self.pulled(U.values, U.values)
        return self._with_all(sums, own - fit + size, U)

    def _pass(self, U: Point, V: Point) -> Sums:
        """Return the sums of a pass at U V^T."""
        nothing = self.ops.zeros((self.shape[0], 0), self.dtype)  # that it would multiply
        return self.passes.add(U.values, V.values, nothing, nothing)

    def _with_all(self, sums: Sums, explained: float, U: Point) -> Sums:
        """Return the sums over all entries from those over pairs, where these correct a product."""
        misfit, fit, size = sums
        square = float(np.vdot(U.gram, U.gram))
        whole = self.storage.sqnorm - 2.0 * explained + square
        return max(misfit + whole, 0.0), fit + explained, size + square

    def misfit(self, U: Point) -> float:
        return U.sums(self)[0]

    def split_misfit(self, state: State) -> float:
        U, V = state.U, state.V
        misfit = self._pass(U, V)[0]
        if self.corrects:
            explained = self.ops.inner(self.storage.matmul(V.values), U.values)
            misfit += self.storage.sqnorm - 2.0 * explained + float(np.vdot(U.gram, V.gram))
        return max(misfit, 0.0)

    # --- moving

    def product_at(
        self,
        factor: Factor,
        other: Factor,
        *,
        gram: np.ndarray | None = None,
        out: Factor | None = None,
    ) -> Factor:
        if self.corrects:
            product = self.storage.matmul(other, out)
        else:
            product = self.ops.times(factor, self.ops.gram(other) if gram is None else gram)
        self.passes.add(factor, other, other, product)
        return self.lowered(product, other)

    def along(
        self, U: Factor, product: Factor, gram: np.ndarray, target: Factor, out: Factor
    ) -> tuple[Line, Coefficients]:
        ops = self.ops
        D = ops.combine((1.0, target), (-1.0, U))
        c1, c2, c3, c4 = self.passes.quartic(U, D)
        if not self.corrects:
            line = Line(0.0, 0.0, ops.cross(U, D), ops.gram(D), D, out)
            c1 += 2.0 * self.pulled(U, D)
            c2 += self.pulled(D, D) - self.pulled_evenly(D)
            return line, (c1, c2, c3, c4)
        image = self.lowered(self.storage.matmul(D, out), D, slope=False)
        slope, bend = ops.inner(product, D), ops.inner(image, D)
        line = Line(slope, bend, ops.cross(U, D), ops.gram(D), D, image)
        first, *higher = quartic(gram, line)
        # the product at U has the pairs in it, so their slope is there already
        return line, (first, c2 + higher[0], c3 + higher[1], c4 + higher[2])

    def advance(
        self, U: Factor, product: Factor, line: Line, t: float
    ) -> tuple[Factor, Factor | None, Factor]:
        ops = self.ops
        if not self.corrects:
            moved = ops.combine((t, line.D))
            return ops.clip(ops.combine((1.0, U), (1.0, moved))), None, moved
        # the storage's own product moves in a straight line, and what the pairs add does not
        pairs = ops.zeros(U.shape, ops.dtype(U))
        self.passes.add(U, U, U, pairs)
        product = ops.combine((1.0, product), (-1.0, pairs))
        U, product, moved = ops.advance(U, product, line, t)
        self.passes.add(U, U, U, product)
        return U, product, moved

    def aim(self, U: Point) -> Factor:
        ops = self.ops
        curved, product = ops.times(U.values, U.gram), U.product(self)
        gap = ops.combine((1.0, product), (-1.0, curved))
        return ops.combine((1.0, curved), (1.0, ops.weigh_rows(gap, self.lengthened(U))))

    def lengthened(self, U: Point) -> np.ndarray:
        """Return how much longer a step each row can take than the curvature of U^T U says."""
        return self.shape[0] / np.maximum(self.seen, 1.0)

    def misfit_times(self, U: Factor, V: Factor, T: Factor) -> Factor:
        ops = self.ops
        total = ops.zeros(T.shape, self.dtype)
        for F, G in ((U, V), (V, U)):
            self.passes.add(F, G, T, total)
        image = 0.5 * self._wide(total)
        return image + self.plain_misfit_times(U, V, T) if self.corrects else image

    # --- the same f elsewhere

    def with_storage(self, storage: Any) -> Weighted:
        other = super().with_storage(storage)
        other.passes = self.passes.over(storage)
        return other

    def for_rank(self, rank: int, *, warn: bool = True) -> Objective:
        few = self.counts < rank
        if not few.any() or self.sqnorm == 0.0:
            return self
        if warn:
            warn_reader(
                f"{int(few.sum())} of the {len(few)} rows of X have fewer observed entries than "
                f"the rank {rank}; a small ridge on their rows of U, part of the objective, keeps "
                f"these from being arbitrary.",
                UserWarning,
            )
        weight = RIDGE * float(np.sqrt(self.sqnorm / max(float(self.seen.sum()), 1.0)))
        return self.with_terms(Ridge(weight, few.astype(np.float64)))
