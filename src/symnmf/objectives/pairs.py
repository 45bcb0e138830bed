"""Passes over single pairs (i, j) that carry a value and a weight, on the host."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from symnmf.kernels.products import balanced_chunks
from symnmf.kernels.weighted import quartic_rows, residual_product_rows
from symnmf.objectives.objective import Coefficients
from symnmf.parallel import SMALLEST_SHARE, Bounds, Threads
from symnmf.state import Sums


@dataclass
class Pairs:
    """Pairs (i, j) in the pattern of a symmetric CSR matrix, each with a value and a weight.

    Attributes
    ----------
    indptr, indices : ndarray
        The pattern, sorted, with both (i, j) and (j, i).
    x, w : ndarray of length 1 or the number of stored pairs
        Values and weights; a single one belongs to all of them. Weights may be negative.
    threads : Threads
        The pool of every pass.
    """

    indptr: np.ndarray
    indices: np.ndarray
    x: np.ndarray
    w: np.ndarray
    threads: Threads
    upper: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # where the pairs on and above the diagonal begin
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        below = np.concatenate([[0], np.cumsum(self.indices < rows)])
        self.upper = (self.indptr[:-1] + np.diff(below[self.indptr])).astype(self.indptr.dtype)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.indices, self.x, self.w

    def chunks(self, width: int) -> list[Bounds]:
        affordable = int(4.0 * len(self.indices) * width // SMALLEST_SHARE)
        return balanced_chunks(self.indptr, max(1, min(self.threads.count, affordable)))

    # --- the passes

    def add(self, F: np.ndarray, V: np.ndarray, T: np.ndarray, out: np.ndarray) -> Sums:
        """Add S T to ``out``, S = W o (X - F V^T) on the pairs; return their sums."""
        parts = self.threads.run(
            lambda begin, end: residual_product_rows(*self.arrays, F, V, T, out, begin, end),
            self.chunks(F.shape[1]),
        )
        misfit, fit, size = (float(sum(column)) for column in zip(*parts, strict=True))
        return misfit, fit, size

    def quartic(self, U: np.ndarray, D: np.ndarray) -> Coefficients:
        """Return c_1 to c_4 of the pairs' part of f along U + t D."""
        both = np.hstack([U, D])  # rows side by side: one place in memory for each end of a pair
        parts = self.threads.run(
            lambda begin, end: quartic_rows(self.upper, *self.arrays, both, begin, end),
            self.chunks(U.shape[1]),
        )
        return tuple(float(sum(column)) for column in zip(*parts, strict=True))

    # --- the same pairs elsewhere

    @cached_property
    def sqnorm(self) -> float:
        """The sum of w x^2."""
        x = self.x.astype(np.float64, copy=False)
        w = self.w.astype(np.float64, copy=False)
        if len(x) == 1:
            return float(x[0] ** 2 * (w.sum() if len(w) > 1 else len(self.indices) * w[0]))
        return float(w[0] * np.vdot(x, x)) if len(w) == 1 else float(np.vdot(w, x * x))

    def over(self, storage: Any) -> Pairs:
        """Return the same pairs of another storage of X, on its threads."""
        other = copy.copy(self)
        other.threads = storage.ops.threads
        return other
