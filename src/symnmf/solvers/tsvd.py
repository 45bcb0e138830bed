"""Truncated SVD with rotation and projection (Huang, Sidiropoulos and Swami, 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.ops import Tall
from symnmf.run.memory import Kept, Layout
from symnmf.run.state import State
from symnmf.solvers.solver import Solver
from symnmf.storage import SymmetricMatrix
from symnmf.storage.spectrum import leading_eigenpairs

ROOT = "tsvd_root"


@dataclass(frozen=True)
class TSVD(Solver):
    """Find the rotation of a square root of X that is nearest to a nonnegative matrix.

    With X ~ Q D Q^T (the r largest eigenvalues, negative ones as 0) and B = Q D^(1/2), every U
    with U U^T = B B^T is B times a rotation. Repeat P S W^T = svd(U^T B), U = max(B W P^T, 0):
    the best rotation for U, then the best nonnegative U for the rotation. So ||U - B W P^T||
    never rises, while f may; and what is minimised is f only where X has rank r.
    """

    name: ClassVar[str] = "tsvd"
    summary: ClassVar[str] = "rotate the r leading eigenvectors and clip (Huang et al. 2014)"
    needs: ClassVar[str] = "products with X, and those only to start"
    cost: ClassVar[str] = "no product, 4nr^2"

    def memory(self, n: int, rank: int, dtype: np.dtype) -> Layout:
        return {ROOT: Kept((n, rank), dtype, tall=True)}

    def start(self, X: SymmetricMatrix, U0: Tall) -> State:
        values, vectors = leading_eigenpairs(X, U0.shape[1])
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return State.at(X, U0, memory={ROOT: X.ops.put(root.astype(X.dtype))})

    def step(self, X: SymmetricMatrix, state: State) -> None:
        root = state.memory[ROOT]
        left, _, right = np.linalg.svd(X.ops.cross(state.U.values, root))
        state.moved(X.ops.clip(X.ops.times(root, right.T @ left.T)))
