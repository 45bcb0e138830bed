"""Many runs from different starts, matched column by column."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from symnmf.arguments import checked
from symnmf.bars import bar
from symnmf.cluster.fitted import in_order
from symnmf.columns.matching import matched, unit_columns
from symnmf.errors import InputError
from symnmf.interchange import to_host
from symnmf.options import (
    AUTO,
    ProblemOptions,
    RunOptions,
    defaults,
    documented,
    names_in,
)
from symnmf.run.multistart import Plan
from symnmf.run.problem import Problem
from symnmf.run.result import Result, cluster_labels
from symnmf.run.settings import Settings
from symnmf.run.start import RandomState
from symnmf.storage import SymmetricMatrix

#: Rounds of matching all runs to their consensus; it hardly ever changes after the second.
ROUNDS = 10

#: Rows whose entries are sorted at a time.
ROWS = 4096

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
    cosines : ndarray of shape (runs, r)
        Between each run's columns and those of ``U``.
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
    cosines: np.ndarray
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

    def plot(self, ax: Any = None) -> Any:
        """Draw how stable each column is, and how near each run comes to it."""
        from symnmf.columns.drawing import stability

        return stability(self, ax)


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
    limits = {name: run[name] for name in ("tol", "max_iter", "max_time")}
    plan = Plan(
        rank,
        Settings.of(run["solver"], run["coupling"], record_every=run["record_every"], **limits),
        n_init=n_runs,
        init=init,
        **{name: run[name] for name in ("random_state", "n_jobs", "device", "checkpoint")},
    )
    if plan.starts < 2 or plan.from_eigenvectors:
        raise InputError(
            f"init={init!r} gives the same result in every run; use 'scaled-random', 'random' or a "
            f"function of the seed."
        )
    posed = {name: run[name] for name in names_in(ProblemOptions)}
    ready = Problem.of(X, n_jobs=run["n_jobs"], device=run["device"], **posed).for_rank(rank)
    if not isinstance(ready.X, SymmetricMatrix):
        raise InputError("X is a tensor; consensus is for matrices.")
    with bar(run["progress"], n_runs) as shown:
        found = replace(plan, progress=shown).search(ready)
    if len(found.finished) < 2:
        raise InputError(
            "max_time ended before two runs were made, and there is nothing to compare; raise it."
        )
    return agree(found.finished, found.best, found.seed)


def agree(results: tuple[Result, ...], best: Result, seed: RandomState) -> Consensus:
    """Match the columns of results and say what they agree on."""
    factors = [np.asarray(to_host(result.U), dtype=np.float64) for result in results]
    reference = np.asarray(to_host(best.U), dtype=np.float64)
    orders: list[np.ndarray] = []
    for _ in range(ROUNDS):
        before = orders
        orders = [matched(reference, U) for U in factors]
        aligned = [U[:, order] for U, order in zip(factors, orders, strict=True)]
        reference = _median(aligned)
        if before and all(map(np.array_equal, before, orders)):
            break
    stability = _pairwise(aligned)
    ranked = np.argsort(-stability, kind="stable")
    aligned = [np.ascontiguousarray(U[:, ranked]) for U in aligned]
    U = reference[:, ranked]
    units = unit_columns(U)
    own = matched(U, np.asarray(to_host(best.U), dtype=np.float64))
    return Consensus(
        U=U,
        spread=np.sqrt(np.mean([(one - U) ** 2 for one in aligned], axis=0)),
        stability=stability[ranked],
        cosines=np.array([np.sum(unit_columns(one) * units, axis=0) for one in aligned]),
        values=np.array([result.value for result in results]),
        runs=tuple(aligned),
        best=in_order(best, own),
        seed=seed,
    )


def _median(factors: list[np.ndarray]) -> np.ndarray:
    """Return the median of each entry, some rows at a time."""
    n = len(factors[0])
    parts = [
        np.median([U[begin : begin + ROWS] for U in factors], axis=0) for begin in range(0, n, ROWS)
    ]
    return np.concatenate(parts)


def _pairwise(factors: list[np.ndarray]) -> np.ndarray:
    """Return the mean cosine of any two of the factors, column by column."""
    count = len(factors)
    units = [unit_columns(U) for U in factors]
    total = np.sum(units, axis=0)
    own = sum(np.sum(unit**2, axis=0) for unit in units)
    return np.asarray((np.sum(total**2, axis=0) - own) / (count * (count - 1)))
