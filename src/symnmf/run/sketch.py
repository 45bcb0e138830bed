r"""A sketch of X from a few readings of it, whose factorization is where a run on X begins.

The range finder of Halko, Martinsson and Tropp (2011): an orthonormal basis Q of more columns than
U has, from products with X, and :math:`X \approx Q (Q^\top X Q) Q^\top`. A run on that costs no
reading of X. It ends near a minimum of the problem on X, and few iterations on X are left to do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symnmf import calls
from symnmf.objectives import Frobenius, Objective
from symnmf.run.loop import Run
from symnmf.run.problem import Problem
from symnmf.run.settings import Limits, Settings
from symnmf.run.spectral import (
    Basis,
    affordable,
    basis_in,
    orthonormal,
    random_block,
    spectral_start,
)
from symnmf.state import Point
from symnmf.storage import SymmetricMatrix

#: Columns of the sketch for each column of U.
WIDTH = 4

#: Products with X that a random block goes through before its span is taken.
POWERS = 3

#: Least tolerance of a run on a sketch, and by how much it is raised where the sketch leaves
#: something of X out: MISSED times ||X - sketch||_F / ||X||_F, which is of the order of the
#: stationarity on X at the end.
LEAST_TOL, MISSED = 1e-4, 0.003

#: Iterations after which runs on a smaller problem are looked at, and the part of the time left
#: that each of them may take.
LOOKS, SPENT_BEFORE = 5, 0.2


def sketch_of(X: SymmetricMatrix, rank: int) -> tuple[SymmetricMatrix, Basis] | None:
    """Return B C B^T in place of X, where X is, and its leading eigenvectors; None if time is up.

    X is read a few times.
    """
    block = random_block(X, min(WIDTH * rank, X.shape[0]))
    for _ in range(POWERS):
        block = orthonormal(X.ops, X.matmul(block))
        if calls.out_of_time():
            return None
    image = X.matmul(block)
    core = X.ops.cross(block, image)
    from symnmf.storage.lowrank import ThinFactors

    sketch = ThinFactors(block, 0.5 * (core + core.T), X.ops)
    return sketch, basis_in(X, block, image, rank)


def sketch_start(f: Objective, rank: int, random_state: Any) -> np.ndarray:
    """Return the end of a run on a sketch of X, or a spectral start if X has no sketch."""
    found = sketch_of(f.storage, rank) if affordable(f.shape[0], rank) else None
    if found is None:
        return spectral_start(f, rank, random_state)
    sketch, basis = found
    missed = math.sqrt(max(1.0 - sketch.sqnorm / f.sqnorm, 0.0)) if f.sqnorm > 0.0 else 0.0
    tol = max(LEAST_TOL, MISSED * missed)
    with calls.opened(apart=True):  # readings of the sketch are not of X
        U = improved(sketch, basis.start(sketch, None), tol=tol).astype(f.dtype)
    return (f.best_multiple(Point(f.ops, f.ops.put(U))) * U).astype(f.dtype)


def improved(
    X: SymmetricMatrix, U: np.ndarray, *, tol: float, steps: int = Limits.max_iter
) -> np.ndarray:
    """Return U after at most so many iterations on X, which are not part of the call's own run.

    They take at most a part of the time that the call has left.
    """
    settings = Settings.of("auto", tol=tol, max_iter=steps, record_every=LOOKS)
    left = calls.seconds_left()
    limit = SPENT_BEFORE * max(left, 0.0) if np.isfinite(left) else None
    with calls.opened(limit, apart=True):  # its readings are not of the X of the call
        run = Run(Problem.around(Frobenius(X)), settings)
        run.begin(X.ops.put(np.ascontiguousarray(U, dtype=X.dtype)))
        run.iterate()
    return np.asarray(X.ops.get(run.state.U.values), dtype=X.dtype)
