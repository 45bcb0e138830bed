"""Truncated SVD with rotation and projection (Huang, Sidiropoulos and Swami, 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from symnmf.objectives import Objective
from symnmf.ops import Factor
from symnmf.solvers.solver import Solver
from symnmf.state import Kept, Layout, State
from symnmf.storage.spectrum import host_product, leading_eigenpairs

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

    def memory(self, f: Objective, rank: int) -> Layout:
        return {ROOT: Kept((f.shape[0], rank), f.dtype, tall=True)}

    def start(self, f: Objective, U0: Factor) -> State:
        n, rank = U0.shape
        values, vectors = leading_eigenpairs(n, lambda v: host_product(f.storage, v), rank)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        state = super().start(f, U0)
        state.memory[ROOT] = f.ops.put(root.astype(f.dtype))
        return state

    def step(self, f: Objective, state: State) -> None:
        root = state.memory[ROOT]
        left, _, right = np.linalg.svd(f.ops.cross(state.U.values, root))
        state.moved(f.ops.clip(f.ops.times(root, right.T @ left.T)))
