"""``factorize_tensor``: ``factorize`` for what can be read as a tensor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from symnmf.arguments import checked
from symnmf.run.factorizing import factorize
from symnmf.run.loop import Callback
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.start import RandomState
from symnmf.solvers import Solver
from symnmf.storage.tensor_checking import as_tensor

if TYPE_CHECKING:
    from symnmf.coupling import Coupling


@checked()
def factorize_tensor(
    T: Any,
    rank: int,
    *,
    solver: str | Solver = "auto",
    coupling: str | float | Coupling | None = None,
    init: str | Any = "scaled-random",
    n_init: int = 1,
    tol: float = 1e-5,
    max_iter: int = 1000,
    max_time: float | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
    progress: bool = False,
    record_every: int = 1,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
) -> Result:
    r"""Find U >= 0 of ``rank`` columns that minimises 1/2 ||T - [[U, ..., U]]||_F^2.

    :math:`[[U, \dots, U]] = \sum_j u_j \otimes \cdots \otimes u_j`, d times, d = 3 or 4.

    Parameters
    ----------
    T : array-like of three or four equal sides, or SymmetricTensor
        Symmetric, nonnegative, finite: an array, or what ``symnmf.tensors`` makes of tuples,
        hyperedges or a graph's triangles.
    rank : int
        Columns of U, from 1 to n.
    solver : str or Solver
        "auto" or "hals-newton" work on the original problem; "symhals" and "a-symhals" on d factors
        held together by a coupling, the paper's splitting.
    coupling : str, float, Coupling or None
        lambda for these two: "adaptive" (the paper's, from 1e-5), "theory", "shrinking" (both with
        a guarantee; every entry must be observed) or a number. None for "shrinking" where every
        entry is observed, else "adaptive".
    init : str, array of shape (n, rank) or callable
        "scaled-random" (uniform, at T's scale), "random" (uniform(0, 1)), or U_0 itself.
    n_init, tol, max_iter, max_time, random_state, callback, progress, record_every, n_jobs
        As in :func:`symnmf.factorize`.
    checkpoint, checkpoint_every
        Likewise.

    Returns
    -------
    Result
        As from :func:`symnmf.factorize`; ``others`` holds the third and the fourth factor of a
        split method.

    Examples
    --------
    >>> import numpy as np, symnmf
    >>> B = np.random.default_rng(0).random((20, 3))
    >>> T = np.einsum("ir,jr,kr->ijk", B, B, B)
    >>> symnmf.factorize_tensor(T, 3, random_state=0).status
    'converged'
    """
    return factorize(
        T if isinstance(T, Problem) else Problem(as_tensor(T, n_jobs=n_jobs)),
        rank,
        solver=solver,
        coupling=coupling,
        init=init,
        n_init=n_init,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        random_state=random_state,
        callback=callback,
        progress=progress,
        record_every=record_every,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
