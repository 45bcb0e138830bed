"""X = U* U*^T + sigma |N| as the paper writes it: every entry of N drawn apart, so X != X^T."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import svds

from symnmf.objectives import Frobenius, Objective
from symnmf.ops import RowSolver
from symnmf.parallel import Threads
from symnmf.solvers.tsvd import ROOT, TSVD
from symnmf.state import State
from symnmf.storage import DenseMatrix
from symnmf.storage.symmetric import residual_by_columns


class AsymmetricMatrix(DenseMatrix):
    """An X that the half-steps of a split method see as X and as X^T, in turn.

    Minimising g over U takes X V and over V takes X^T U; a split method updates U first, so the
    first ``update``, the third and so on multiply by X and the others by X^T. Every other product
    is with (X + X^T) / 2, which is all of X that f(U) depends on: methods on the original problem
    and ADMM run on it. ||X||, the fitting error and the split objective are those of X itself:
    <X^T U, U> = <X U, U>, and <X^T U, V> is the trace that the objective needs.
    """

    def __init__(self, X: np.ndarray, threads: Threads) -> None:
        super().__init__((X + X.T) / 2, threads)
        self.literal = np.ascontiguousarray(X)
        self.sides = (DenseMatrix(self.literal, threads), DenseMatrix(X.T.copy(), threads))
        self.updates = 0

    def compute_sqnorm(self) -> float:
        return self.sides[0].compute_sqnorm()

    def columns(self, begin: int, end: int) -> np.ndarray:
        return self.sides[1].columns(begin, end)

    def residual_sqnorm(self, U: np.ndarray, V: np.ndarray) -> float:
        return residual_by_columns(self, U, V)

    def own_objective(self) -> TwoSided:
        return TwoSided(self)


class TwoSided(Frobenius):
    """The objective whose updates multiply by X and by its transpose in turn."""

    def update(
        self,
        rows: RowSolver,
        factor: np.ndarray,
        other: np.ndarray,
        gram: np.ndarray,
        coupling: float,
        out: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        X = self.storage
        assert isinstance(X, AsymmetricMatrix)
        product = X.sides[X.updates % 2].matmul(other, out)
        X.updates += 1
        return self.ops.solve_rows(rows, factor, product, other, gram, coupling), product


class LeftTSVD(TSVD):
    """tSVD from the left singular vectors of X, which the eigenvectors are where X = X^T."""

    def start(self, f: Objective, U0: np.ndarray) -> State:
        X = f.storage
        assert isinstance(X, AsymmetricMatrix)
        start = np.ones(X.shape[0])  # a fixed one, so that runs repeat
        left, values, _ = svds(X.literal, U0.shape[1], v0=start)
        root = np.ascontiguousarray(left * np.sqrt(values))
        return State.at(f, U0, memory={ROOT: root})
