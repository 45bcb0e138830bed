"""The entry point for one factorization: check the arguments, run, warn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from symnmf import calls
from symnmf.arguments import checked
from symnmf.bars import watched
from symnmf.options import ProblemOptions, documented
from symnmf.run.checkpoint import Checkpoint
from symnmf.run.problem import Problem
from symnmf.run.result import Callback, Result
from symnmf.run.settings import Settings
from symnmf.run.solving import solve, warn_unless_converged
from symnmf.run.start import RandomState


@checked(ProblemOptions)
@documented
def factorize(
    X: Any,
    rank: int | str,
    *,
    solver: Any = "auto",
    coupling: Any = None,
    init: Any = "auto",
    n_init: int = 1,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_time: float | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
    progress: bool = False,
    record_every: int = 1,
    n_jobs: int | None = None,
    device: Any = None,
    checkpoint: str | Path | None = None,
    **problem: Unpack[ProblemOptions],
) -> Result:
    """Find U >= 0 with ``rank`` columns that minimises 1/2 ||X - U U^T||_F^2.

    Parameters
    ----------
    X : array-like, scipy sparse, torch tensor, Problem, a matrix of symnmf.storage or on disk
        Symmetric, nonnegative, finite. float32 and float64 are kept. On disk: the path of a .npy,
        .h5 or .zarr array, a memory map, a Zarr or HDF5 array, or :class:`symnmf.storage.Blocks`
        of any of these; it is read in blocks. A Dask array is computed by the current scheduler or
        client. If X is a tensor of torch, the results are tensors on its device.
    {rank, solver, coupling, init, n_init, tol, max_iter, max_time, random_state, callback,
    progress, record_every, n_jobs, device, checkpoint}
    **problem
        Which entries of X count, and what is minimised: ``mask``, ``weights``, ``missing``,
        ``ignore_diagonal``, ``allow_negative``, ``l1``, ``ridge``, ``links``, ``loss`` and the
        other options of :class:`Problem`.

    Returns
    -------
    Result
        Always of the same form, however the run ended. Ctrl-C returns the current result, with the
        status "stopped"; so does SIGTERM if there is a checkpoint.

    Notes
    -----
    The stationarity is the natural residual of the original problem, relative to a tenth of
    ||X||_F ||U||_F; methods with two factors must also have ||U - V||_F / ||V||_F at most ``tol``.
    The first run on a machine also compiles for a few seconds.

    ``init="auto"`` is "sketch" for a dense X of 1500 rows or more, else "spectral"; and
    "scaled-random" for the published methods, for an X with a mask, weights or negative entries,
    and for a dense X on a GPU. With several starts it is "spectral".

    Examples
    --------
    >>> import numpy as np, symnmf
    >>> B = np.random.default_rng(0).random((30, 3))
    >>> result = symnmf.factorize(B @ B.T, 3, random_state=0)
    >>> result.status
    'converged'
    """
    limits = {"tol": tol, "max_iter": max_iter, "max_time": max_time}
    settings = Settings.of(solver, coupling, record_every=record_every, **limits)
    plan: Any = None
    if n_init != 1:
        from symnmf.run.multistart import Plan

        plan = Plan(
            1 if isinstance(rank, str) else rank,
            settings,
            n_init=n_init,
            init=init,
            random_state=random_state,
            n_jobs=n_jobs,
            device=device,
            checkpoint=checkpoint,
        )
    kept = None if checkpoint is None else Checkpoint(checkpoint)
    with calls.opened(max_time) as call, watched(progress, n_init, callback) as watcher:
        with calls.timed("check"):
            posed = Problem.of(X, **problem, n_jobs=n_jobs, device=device)
            if isinstance(rank, str):
                from symnmf.run.choosing import choose_rank

                rank = int(choose_rank(posed).value)
            posed = posed.for_rank(rank)
        if plan is None:
            result = solve(
                posed,
                rank,
                settings,
                init=init,
                random_state=random_state,
                callback=None if watcher is None else partial(watcher, 0),
                checkpoint=kept,
            ).as_given(posed.given)
        else:
            result = replace(plan, rank=rank, progress=watcher).search(posed).best
        warn_unless_converged(result, settings.limits, n_init)
        return result.of_call(call)
