"""Many runs from different starts, matched column by column: which columns they agree on."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from symnmf.arguments import checked
from symnmf.bars import watched
from symnmf.cluster.fitted import in_order
from symnmf.errors import InputError
from symnmf.interchange import to_host
from symnmf.options import AUTO, ProblemOptions, RunOptions, defaults, documented, names_in
from symnmf.run.multistart import Plan
from symnmf.run.problem import Problem
from symnmf.run.result import Result, cluster_labels
from symnmf.run.start import RandomState
from symnmf.storage import SymmetricMatrix

#: Rounds of matching all runs to their consensus; it hardly ever changes after the second.
ROUNDS = 10

#: The stability from which on a column counts as the same in all runs.
STABLE = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """What many runs agree on, with the most stable columns first.

    Attributes
    ----------
    U : ndarray of shape (n, r)
        The median over runs of each entry, after columns were matched.
    spread : ndarray of shape (n, r)
        The root mean squared distance of each entry from its median.
    stability : ndarray of shape (r,)
        The mean cosine between the matched columns of any two runs: 1 if all runs have the same
        column.
    values : ndarray of shape (runs,)
        The final objective of each run.
    runs : tuple of ndarray of shape (n, r)
        The factor of each run, its columns in the order of ``U``.
    best : Result
        The run with the smallest value, as from :func:`symnmf.factorize`, with its columns in the
        order of ``U``.
    seed : int, Generator or RandomState
        The seed of the starts.
    """

    U: np.ndarray
    spread: np.ndarray
    stability: np.ndarray
    values: np.ndarray
    runs: tuple[np.ndarray, ...] = field(repr=False)
    best: Result
    seed: RandomState

    @property
    def labels(self) -> np.ndarray:
        """The column of the largest entry of each row of ``U``; -1 for a row of zeros."""
        return cluster_labels(self.U)

    @cached_property
    def agreement(self) -> np.ndarray:
        """The share of runs in which each row has the label of the consensus."""
        labels = self.labels
        return np.mean([cluster_labels(U) == labels for U in self.runs], axis=0)

    def __repr__(self) -> str:
        n, r = self.U.shape
        stable = int(np.count_nonzero(self.stability >= STABLE))
        return (
            f"Consensus({n} rows, {r} columns, {len(self.runs)} runs; {stable} of {r} columns "
            f"stable, stability {self.stability.max():.2f} to {self.stability.min():.2f})"
        )


class ConsensusOptions(RunOptions, ProblemOptions, total=False):
    """What :func:`consensus` takes by name."""

    progress: bool
    checkpoint: str | os.PathLike[str] | None


@checked(ConsensusOptions)
@documented
def consensus(
    X: Any,
    rank: int,
    *,
    n_runs: int = 50,
    **options: Unpack[ConsensusOptions],
) -> Consensus:
    """Factorize X from many random starts and show which columns of U all runs agree on.

    Columns of two runs are matched so that the sum of cosines is largest. All runs are matched to
    the best one first, then to their consensus, until nothing changes. ``init="auto"`` is
    "scaled-random" here.

    Parameters
    ----------
    X : array-like, scipy sparse, Problem, ...
        As for :func:`symnmf.factorize`.
    {rank, n_runs}
    **options
        Options of the runs (``solver``, ``init``, ``tol``, ``max_iter``, ``max_time``,
        ``random_state``, ``n_jobs``, ``device``, ``progress``, ``checkpoint``) as for
        :func:`symnmf.factorize`, and those of :class:`symnmf.Problem`.

    Returns
    -------
    Consensus
        After Ctrl-C or ``max_time``, the consensus of the runs so far.

    Examples
    --------
    >>> import numpy as np, symnmf
    >>> B = np.random.default_rng(0).random((40, 3)) ** 4
    >>> found = symnmf.consensus(B @ B.T, 3, n_runs=5, random_state=0)
    >>> found
    Consensus(40 rows, 3 columns, 5 runs; 3 of 3 columns stable, stability 1.00 to 1.00)
    """
    run = defaults(names_in(ConsensusOptions)) | dict(options)
    init = "scaled-random" if isinstance(run["init"], str) and run["init"] == AUTO else run["init"]
    plan = Plan.of(rank, run | {"n_init": n_runs, "init": init})
    if plan.starts < 2 or plan.from_eigenvectors:
        raise InputError(
            f"init={init!r} gives the same result in every run; use 'scaled-random', 'random' or a "
            f"function of the seed."
        )
    posed = {name: run[name] for name in names_in(ProblemOptions)}
    problem = Problem.of(X, n_jobs=run["n_jobs"], device=run["device"], **posed).for_rank(rank)
    if not isinstance(problem.X, SymmetricMatrix):
        raise InputError("X is a tensor; consensus is for matrices.")
    with watched(run["progress"], n_runs, None) as watcher:
        search = replace(plan, progress=watcher).search(problem)
    if len(search.finished) < 2:
        raise InputError(
            "max_time ended before two runs were made, and there is nothing to compare; raise it."
        )
    return agree(search.finished, search.best, search.seed)


def agree(results: tuple[Result, ...], best: Result, seed: RandomState) -> Consensus:
    """Match the columns of results and say what they agree on."""
    factors = [np.asarray(to_host(result.U), dtype=np.float64) for result in results]
    own = np.asarray(to_host(best.U), dtype=np.float64)
    median, orders = own, None
    for _ in range(ROUNDS):
        before, orders = orders, [matched(median, U) for U in factors]
        aligned = np.stack([U[:, order] for U, order in zip(factors, orders, strict=True)])
        median = np.median(aligned, axis=0)
        if before is not None and np.array_equal(before, orders):
            break
    count, units = len(factors), np.stack([unit_columns(U) for U in aligned])
    pairs = np.sum(units.sum(axis=0) ** 2, axis=0) - np.sum(units**2, axis=(0, 1))
    stability = pairs / (count * (count - 1))
    ranked = np.argsort(-stability, kind="stable")
    U, aligned = median[:, ranked], aligned[:, :, ranked]
    return Consensus(
        U=U,
        spread=np.sqrt(np.mean((aligned - U) ** 2, axis=0)),
        stability=stability[ranked],
        values=np.array([result.value for result in results]),
        runs=tuple(aligned),
        best=in_order(best, matched(U, own)),
        seed=seed,
    )


def unit_columns(U: np.ndarray) -> np.ndarray:
    """Return U with columns of length 1; a column of zeros stays."""
    sizes = np.linalg.norm(U, axis=0)
    return np.asarray(U / np.where(sizes > 0, sizes, 1.0))


def matched(reference: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return the order of the columns of U that puts each beside its column of the reference.

    It is the assignment with the largest sum of cosines.
    """
    from scipy.optimize import linear_sum_assignment

    cosines = unit_columns(reference).T @ unit_columns(U)
    return np.asarray(linear_sum_assignment(-cosines)[1])
