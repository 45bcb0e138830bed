"""The entry point for one factorization: check the arguments, run, warn."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symnmf import calls
from symnmf.arguments import checked
from symnmf.bars import bar, together
from symnmf.errors import InputError
from symnmf.run.checkpoint import Checkpointing
from symnmf.run.loop import Callback, solve, warn_unless_converged
from symnmf.run.problem import Problem
from symnmf.run.result import Result
from symnmf.run.settings import Settings
from symnmf.run.start import AUTO, RandomState
from symnmf.solvers import Solver

if TYPE_CHECKING:
    from symnmf.coupling import Coupling


@checked()
def factorize(
    X: Any,
    rank: int,
    *,
    solver: str | Solver = "auto",
    coupling: str | float | Coupling | None = None,
    init: str | Any = AUTO,
    n_init: int = 1,
    tol: float = 1e-5,
    max_iter: int = 1000,
    max_time: float | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
    progress: bool = False,
    record_every: int = 1,
    n_jobs: int | None = None,
    device: Any = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    mask: Any = None,
    weights: Any = None,
    missing: str | None = None,
    ignore_diagonal: bool = False,
    allow_negative: bool = False,
    l1: float = 0.0,
    ridge: float = 0.0,
    links: Any = None,
    loss: str = "frobenius",
) -> Result:
    """Find U >= 0 with ``rank`` columns that minimises 1/2 ||X - U U^T||_F^2.

    Parameters
    ----------
    X : array-like, scipy sparse, torch tensor, Problem, a matrix of symnmf.storage or on disk
        Symmetric, nonnegative, finite. float32 and float64 are kept. On disk: the path of a .npy,
        .h5 or .zarr array, a memory map, a Zarr or HDF5 array, or
        :class:`symnmf.storage.Blocks` of any of these; it is read in blocks. A Dask array is
        computed by the current scheduler or client.
    rank : int
        The number of columns of U, from 1 to n.
    solver : str or Solver
        A name from ``symnmf.solvers.available()`` or an object. "auto" works on the original
        problem; the methods of the paper are "symanls", "symhals" and "a-symhals".
    coupling : str, float, Coupling or None
        lambda for methods that split U into U and V: "rising" (small, raised on evidence),
        "adaptive" (the paper's, from 1e-5), "shrinking", "theory" (a bound on the whole run),
        "theory-paper", "geometric", "kuang-fixed", a number (fixed) or an object.
        None uses the default of the solver. Methods on the original problem have no lambda.
    init : str, array of shape (n, rank), Result or callable
        "spectral" (the leading eigenvectors, rotated), "sketch" (a run on a sketch of X, from a
        few passes over it), "levels" (runs on ever less contracted versions of a sparse X, see
        docs/large-problems.md), "scaled-random" (uniform, at X's scale), "random" (the paper's
        uniform(0, 1)), "nndsvd", "neighborhoods" (of nodes, of low conductance, for a sparse
        graph), U_0 itself, or a Result, whose U it is. V_0 always equals U_0. "auto" is "sketch"
        for a dense X of 1500 rows or more, in memory, on disk or on workers, else "spectral"; and
        "scaled-random" for the published methods, for an X with a mask, weights or negative
        entries, and for a dense X on a GPU. The first three do not depend on the seed.
    n_init : int
        The number of starts. With several starts the best is returned, as by
        :class:`symnmf.SymNMF`, and "auto" means "spectral" for ``init``. ``max_time`` limits all of
        them together. ``checkpoint`` then names a file for the whole call, with one more file per
        start next to it.
    tol : float
        The run has converged when the natural residual of the original problem, relative to a
        tenth of ||X||_F ||U||_F, and ||U - V||_F / ||V||_F are both at most ``tol``. With 0 the run
        continues to its limits.
    max_iter : int
        Maximum number of iterations.
    max_time : float or None
        Maximum number of seconds from the call to its return: checking X, the start, iterations
        and their evaluation. The call ends after the current iteration, with the best U so far, or
        with a start if there is no iteration yet. The first run on a machine also compiles for a
        few seconds.
    random_state : int, Generator, RandomState or None
        For the random starts. The same seed, settings, machine and number of threads give the
        same result, bit for bit.
    callback : callable or None
        Called with a :class:`Snapshot` for every recorded iteration; a true return value stops
        the run.
    progress : bool
        Show a progress bar in a terminal or a notebook (needs the extra ``progress``).
    record_every : int
        Evaluate, record and check for convergence only in every so many iterations.
    n_jobs : int or None
        Number of threads; None for all cores.
    device : str, torch.device or None
        Where the run takes place: "cuda" for a GPU (needs torch), "cpu" for the CPU, None for the
        device of X. If X is a tensor, the results are tensors on its device.
    checkpoint : path or None
        Save the state to this npz file, every ``checkpoint_every`` seconds and at the end. If the
        file exists, the run resumes from it. X and the settings must be the same (limits may
        change); any other file is refused. So after a crash, make the same call again.
    mask, weights, missing, ignore_diagonal, allow_negative
        Which entries of X count, and how much; see :class:`Problem`.
    l1, ridge, links
        Terms on U to add to the misfit; see :class:`Problem`.
    loss : {"frobenius", "poisson", "bernoulli"}
        The loss to minimise. "poisson" and "bernoulli" are the negative log-likelihood of counts
        and of edges with rate <u_i, u_j>, for a sparse X or an array in memory. Degrees are part of
        the model, so X needs no normalization. ``solver="auto"`` is then "row-newton"; "em" is the
        alternative. ``error`` is the remaining fraction of the deviance, 1 if only the degrees are
        explained (docs/howto/overlap.md).

    Returns
    -------
    Result
        Always of the same form, however the run ended. Ctrl-C returns the current result, with the
        status "stopped"; so does SIGTERM if there is a checkpoint.

    Examples
    --------
    >>> import numpy as np, symnmf
    >>> B = np.random.default_rng(0).random((30, 3))
    >>> result = symnmf.factorize(B @ B.T, 3, random_state=0)
    >>> result.status
    'converged'
    """
    settings = Settings.of(
        solver,
        coupling,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        record_every=record_every,
    )
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function of one snapshot, got {callback!r}.")
    plan: Any = None
    if n_init != 1:
        from symnmf.run.multistart import Plan

        plan = Plan(
            rank,
            settings,
            n_init=n_init,
            init=init,
            random_state=random_state,
            n_jobs=n_jobs,
            device=device,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
    checkpointing = Checkpointing(checkpoint, checkpoint_every)
    told = None if callback is None else lambda _, now: callback(now)
    with calls.opened(max_time) as call, bar(progress, n_init) as shown:
        watcher = together(shown, told)
        with calls.timed("check"):
            problem = Problem.of(
                X,
                mask=mask,
                weights=weights,
                missing=missing,
                ignore_diagonal=ignore_diagonal,
                allow_negative=allow_negative,
                l1=l1,
                ridge=ridge,
                links=links,
                loss=loss,
                n_jobs=n_jobs,
                device=device,
            ).for_rank(rank)
        if plan is None:
            result = solve(
                problem,
                rank,
                settings,
                init=init,
                random_state=random_state,
                callback=None if watcher is None else partial(watcher, 0),
                checkpointing=checkpointing,
            ).as_given(problem.given)
        else:
            result = replace(plan, progress=watcher).search(problem).best
        warn_unless_converged(result, settings.limits, n_init)
        return result.of_call(call)
