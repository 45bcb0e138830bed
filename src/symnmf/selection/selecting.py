"""How many clusters: :func:`select_rank`."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from symnmf import calls
from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.graphs.adjacency import edge_list, from_graph
from symnmf.kinds import is_sparse
from symnmf.naming import lookup, shown
from symnmf.objectives.losses import FROBENIUS, LOSSES
from symnmf.parallel import Threads, one_blas_thread
from symnmf.run.interrupts import watching
from symnmf.run.multistart import DEFAULT_INIT, Plan
from symnmf.run.problem import Problem
from symnmf.run.settings import Settings
from symnmf.run.start import RandomState, as_generator, drawn_seed
from symnmf.selection.found import RankSelection
from symnmf.selection.paths import scaled_start
from symnmf.selection.search import RankProgress, RankSearch
from symnmf.storage import DenseMatrix, HostMatrix, SparseMatrix

#: The largest number that is tried by default, where X has as many rows.
MOST = 20

CRITERIA = ("heldout", "stability", "eigengap")


@checked()
def select_rank(
    X: Any,
    ranks: Iterable[int] | None = None,
    *,
    criteria: Sequence[str] = CRITERIA,
    n_runs: int = 5,
    n_folds: int = 5,
    n_init: int = 1,
    max_time: float | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    callback: RankProgress | None = None,
    tol: float = 1e-2,
    max_iter: int = 200,
    solver: Any = "auto",
    loss: str = FROBENIUS,
) -> RankSelection:
    """Recommend a number of clusters for a symmetric nonnegative X, or report that none is clear.

    Parameters
    ----------
    X : array-like, scipy sparse, Problem, or a networkx or igraph graph
        As for :func:`symnmf.factorize`; for a graph, its adjacency matrix is used. A Problem must
        have no mask, weights or terms, since the search hides pairs itself.
    ranks : iterable of int or None
        Numbers to try; 1 is always tried too, for comparison. None means 2 to 20, or to n if X has
        fewer rows.
    criteria : sequence of str
        "heldout": the pairs (i, j) are divided into folds, and each fold is predicted from the
        others; the smallest number within one standard error of the best is chosen. "stability":
        how much more runs on perturbed matrices agree than on a matrix with the same degrees and no
        clusters. "eigengap": the largest drop in the eigenvalues of the normalised matrix.
    n_runs : int
        Perturbed runs that are compared with each other.
    n_folds : int
        Folds of pairs; (i, j) and (j, i) are in one fold, and the diagonal in none.
    n_init : int
        Starts of the final fit on all of X.
    max_time : float or None
        Seconds after which runs that are not done are left out, as after Ctrl-C.
    random_state, n_jobs, solver
        As in :func:`symnmf.factorize`; the threads are divided among the runs.
    checkpoint : path or None
        Save finished runs to this npz file, and resume from it if it exists. A file of another X,
        seed or setting is refused; with ``random_state=None`` the seed of the file is used.
    callback : callable or None
        Called with the number of finished fits and of all fits; a true return value stops.
    tol, max_iter
        For the runs; the final fit uses the defaults of :class:`symnmf.SymNMF`.
    loss : {"frobenius", "poisson", "bernoulli"}
        The loss of the fits, as in :func:`symnmf.factorize`. A likelihood is also used to score
        hidden pairs, see docs/how-many-clusters.md, and ``solver="auto"`` is then "em".

    Returns
    -------
    RankSelection
        ``recommendation``, ``reason``, ``choices``, ``table``, ``best``, ``plot()``. Ctrl-C ends
        the search with the status "stopped" and the results so far.

    Examples
    --------
    >>> import symnmf
    >>> X, _ = symnmf.datasets.synthetic(120, 4, 0.05, random_state=0)
    >>> symnmf.select_rank(X, range(2, 8), criteria=("heldout",), random_state=0).recommendation
    4
    """
    lookup(loss, dict.fromkeys(LOSSES, loss), "loss")
    if isinstance(X, Problem):
        X = Problem.of(X, n_jobs=n_jobs, loss=loss)
        X.must_be_plain("select_rank", "likelihood")
        loss = getattr(X.objective, "loss", loss)
    if loss != FROBENIUS and solver == "auto":  # Newton's method has a cost of O(nnz r^2)
        solver = "em"
    settings = Settings.of(solver, tol=tol, max_iter=max_iter, max_time=max_time)
    with calls.opened(max_time):
        if edge_list(X, "X") is not None:
            X, _ = from_graph(X)
        _refuse_nan(X)
        problem = X if isinstance(X, Problem) else Problem(X, n_jobs=n_jobs, loss=loss)
        matrix = problem.objective.storage
        _check(criteria, n_runs, n_folds, matrix)
        n = matrix.shape[0]
        wanted = _checked_ranks(range(2, min(MOST, n) + 1) if ranks is None else ranks, n)
        assert isinstance(matrix, HostMatrix)
        seed = drawn_seed() if random_state is None else random_state
        search = RankSearch(
            matrix,
            wanted,
            tuple(criteria),
            n_runs if "stability" in criteria else 0,
            n_folds,
            int(as_generator(seed).integers(2**62)),
            int(seed) if isinstance(seed, int | np.integer) else None,
            isinstance(random_state, int | np.integer),
            settings,
            callback,
            loss,
        )
        path = None if checkpoint is None else Path(checkpoint)
        with watching(signal.SIGINT) as interrupt, one_blas_thread():
            search.run(path, Threads(n_jobs).count, interrupt)
            found = search.judge(interrupt)
        if found.recommendation is None or found.status == "stopped":
            return found
        if calls.out_of_time():
            return found.stopped("before the final fit")
        drawn = search.random_state
        plan = Plan(
            found.recommendation,
            Settings.of(solver, tol=1e-4),
            n_init=n_init,
            random_state=seed if drawn is None else drawn,
            n_jobs=n_jobs,
            init=DEFAULT_INIT if loss == FROBENIUS else scaled_start(problem, found.recommendation),
        )
        try:
            best = plan.best(problem)
        except KeyboardInterrupt:  # between iterations; the number is known all the same
            return found.stopped("before the final fit was done")
        found = dataclasses.replace(found, best=best)
        return found.stopped("in the final fit") if best.status == "stopped" else found


def _refuse_nan(X: Any) -> None:
    """Say that nothing may be missing, in words that fit this call."""
    values = getattr(X, "data", None) if sp.issparse(X) else X
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f" or not values.size:
        return
    if np.isnan(values.min()):
        raise InputError(
            "X has NaN entries, and select_rank hides entries itself to predict them; give it an X "
            "without missing entries."
        )


def _checked_ranks(ranks: Any, n: int) -> list[int]:
    try:
        if is_sparse(ranks):
            raise TypeError("a sparse matrix")
        given = sorted({int(rank) for rank in ranks if int(rank) == rank})
    except (TypeError, ValueError) as error:
        raise InputError(
            f"ranks must be whole numbers, such as range(2, 21), got {shown(ranks)}."
        ) from error
    if not given or given[0] < 1 or given[-1] > n:
        raise InputError(f"ranks must be whole numbers from 1 to the {n} rows of X, got {ranks!r}.")
    return given if given[0] == 1 else [1, *given]


def _check(criteria: Any, n_runs: Any, n_folds: Any, X: Any) -> None:
    unknown = [name for name in criteria if name not in CRITERIA]
    if isinstance(criteria, str) or unknown or not len(criteria):
        raise InputError(
            f"criteria must be some of {', '.join(map(repr, CRITERIA))} in a tuple, got "
            f"{criteria!r}."
        )
    for name, value in (("n_runs", n_runs), ("n_folds", n_folds)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 2:
            raise InputError(f"{name} must be a whole number of at least 2, got {value!r}.")
    if not isinstance(X, DenseMatrix | SparseMatrix):
        raise InputError(
            f"X must be an array or a sparse matrix to hold pairs out, got {type(X).__name__}."
        )
    if X.shape[0] < 10:
        raise InputError(f"X has {X.shape[0]} rows; at least 10 are needed to hold pairs out.")
