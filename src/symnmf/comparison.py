"""Run several solvers from the same starts and put their histories into one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.outputs import write_atomically
from symnmf.parallel import one_blas_thread
from symnmf.readers.writing import table_bytes
from symnmf.run.loop import solve, warn_unless_converged
from symnmf.run.problem import Problem
from symnmf.run.result import COLUMNS, Result
from symnmf.run.settings import Settings
from symnmf.run.start import RandomState, as_generator, as_start, starting_point
from symnmf.solvers import Solver, as_solver

if TYPE_CHECKING:
    import pandas as pd

    from symnmf.coupling import Coupling

#: Iterations that every solver does first, which are thrown away. On small problems they come to
#: everything that a run loads; if U has more entries, an iteration takes longer than loading does.
WARMUP, LARGE_WARMUP, SMALL = 60, 3, 2**17

SolverSpec = str | Solver | tuple[str, str | Solver]

#: The default, the paper's three, and rivals that need products with X only and little time.
DEFAULT_SOLVERS = ("auto", "symanls", "symhals", "a-symhals", "admm", "tsvd", "beta-snmf", "pgd")


@checked()
def compare(
    X: Any,
    rank: int,
    solvers: Sequence[SolverSpec] = DEFAULT_SOLVERS,
    *,
    n_runs: int = 1,
    coupling: str | float | Coupling | None = None,
    init: str | Any = "scaled-random",
    tol: float = 0.0,
    max_iter: int = 500,
    max_time: float | None = None,
    random_state: RandomState = None,
    record_every: int = 1,
    n_jobs: int | None = None,
    device: Any = None,
) -> Comparison:
    """Run every solver from the same starts, one after the other.

    Run k of every solver starts from the same U_0. ``seconds`` count the solver only, not the
    evaluation. Each solver first does a few iterations that are thrown away, so that loading
    compiled code is not counted. Everything is checked before the first run: a solver that does not
    support this X raises an error then, so a comparison always contains every method.

    Parameters
    ----------
    X : array-like, scipy sparse or SymmetricMatrix
        As for :func:`symnmf.factorize`.
    rank : int
        Columns of U.
    solvers : sequence
        Names, objects or pairs ``(label, name or object)``; labels must differ.
    n_runs : int
        Starts.
    coupling : str, float, Coupling or None
        lambda for the methods that have one; None uses the default of each solver.
    init : str, array or callable
        As for ``factorize``; "random" is the paper's uniform(0, 1), and "auto" is chosen by X
        alone, since all solvers share it. An array is a single start, so it needs ``n_runs=1``.
    tol, max_iter, max_time, record_every, n_jobs, device
        As for ``factorize``; with ``tol=0`` every run continues to its limits.
    random_state : int, Generator, RandomState or None
        For the starts. Run 0 has the start of ``factorize`` with the same seed and ``init``.

    Returns
    -------
    Comparison
        Ctrl-C ends the comparison early with the runs so far; ``interrupted`` is then true, and
        the current run has the status "stopped".

    Examples
    --------
    >>> import symnmf
    >>> X, _ = symnmf.datasets.synthetic(50, 3, random_state=0)
    >>> table = symnmf.compare(X, 3, ["a-symhals", "cd"], max_iter=20, random_state=0)
    >>> table.final()["solver"].tolist()
    ['a-symhals', 'cd']
    """
    limits = {"tol": tol, "max_iter": max_iter, "max_time": max_time, "record_every": record_every}
    methods = _labelled(solvers, coupling, limits)
    if isinstance(n_runs, bool) or not isinstance(n_runs, int | np.integer) or n_runs < 1:
        raise InputError(f"n_runs must be a whole number of at least 1, got {n_runs!r}.")
    if n_runs > 1 and not (isinstance(init, str) or callable(init)):
        raise InputError(
            f"init is one given start, which {n_runs} runs would repeat; pass n_runs=1 or the "
            f"name of a random start."
        )
    problem = Problem.of(X, n_jobs=n_jobs, device=device).for_rank(rank)
    for settings in methods.values():
        settings.checked(problem.objective)
    warmup = WARMUP if problem.objective.shape[0] * rank <= SMALL else LARGE_WARMUP
    comparison = Comparison()
    init = as_start(init)
    try:
        for run, start in enumerate(_starts(problem, rank, init, random_state, n_runs)):
            for label, settings in methods.items():
                if run == 0:
                    few = settings.within(tol=0.0, max_iter=min(warmup, max_iter))
                    for solver in settings.solver.warmups():
                        once = replace(few, solver=solver)
                        _unless_stopped(solve(problem, rank, once, init=start))
                result = solve(problem, rank, settings, init=start)
                warn_unless_converged(result, settings.limits)
                comparison.results[label, run] = result.as_given(problem.given)
                _unless_stopped(result)
    except KeyboardInterrupt:
        comparison.interrupted = True
    return comparison


def _unless_stopped(result: Result) -> None:
    """Pass Ctrl-C on, which a run takes as the wish to stop; nothing else stops one here."""
    if result.status == "stopped":
        raise KeyboardInterrupt


def _labelled(
    solvers: Sequence[SolverSpec], coupling: Any, limits: dict[str, Any]
) -> dict[str, Settings]:
    if isinstance(solvers, str | Solver) or not len(solvers):
        raise InputError(f"solvers must be a list with at least one solver, got {solvers!r}.")
    methods: dict[str, Settings] = {}
    for entry in solvers:
        label, chosen = entry if isinstance(entry, tuple) and len(entry) == 2 else (None, entry)
        splits = as_solver(chosen).has_coupling
        settings = Settings.of(chosen, coupling if splits else None, **limits)
        label = settings.solver.name if label is None else label
        if not isinstance(label, str):
            raise InputError(f"solvers must be labelled by strings, got {label!r}.")
        if label in methods:
            raise InputError(
                f"solvers has two entries called {label!r}; tell them apart with pairs "
                f"(label, solver)."
            )
        methods[label] = settings
    if coupling is not None and not any(m.solver.has_coupling for m in methods.values()):
        Settings.of(settings.solver, coupling)  # says what it is for
    return methods


def _starts(
    problem: Problem, rank: int, init: Any, random_state: RandomState, count: int
) -> Iterator[np.ndarray]:
    """Yield the starts."""
    generator = as_generator(random_state)
    for _ in range(count):
        with one_blas_thread():
            yield starting_point(problem.objective, rank, init, generator)


@dataclass(eq=False)
class Comparison(Mapping[str, np.ndarray]):
    """A tidy table: one row per recorded iteration of every run of every solver.

    ``comparison["error"]`` is a column as an array. The columns are ``solver``, ``run`` and those
    of :class:`symnmf.History`.

    Attributes
    ----------
    results : dict
        The :class:`symnmf.Result` of each (solver, run).
    interrupted : bool
        Whether Ctrl-C ended the comparison early.
    """

    results: dict[tuple[str, int], Result] = field(default_factory=dict)
    interrupted: bool = False

    columns = ("solver", "run", *COLUMNS, "elapsed")

    def __getitem__(self, column: str) -> np.ndarray:
        if column not in self.columns:
            raise KeyError(f"{column!r} is not a column; there are {', '.join(self.columns)}")
        parts = [
            self._column(column, label, run, result)
            for (label, run), result in self.results.items()
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    @staticmethod
    def _column(column: str, label: str, run: int, result: Result) -> np.ndarray:
        if column == "solver":
            return np.full(len(result.history), label)
        if column == "run":
            return np.full(len(result.history), run)
        return result.elapsed if column == "elapsed" else result.history[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        solvers = dict.fromkeys(label for label, _ in self.results)
        rows = sum(len(result.history) for result in self.results.values())
        early = ", interrupted" if self.interrupted else ""
        return f"Comparison({len(self.results)} runs of {', '.join(solvers)}; {rows} rows{early})"

    def final(self, labels_true: Any = None) -> dict[str, np.ndarray]:
        """Return one row per run: where and how it ended.

        Parameters
        ----------
        labels_true : array-like or None
            Known classes of the rows of X; adds a column ``accuracy``.
        """
        rows = [
            (label, run, r.status, r.n_iter, float(r.history["seconds"][-1]), r.error)
            for (label, run), r in self.results.items()
        ]
        names = ("solver", "run", "status", "iterations", "seconds", "error")
        table = {name: np.array([row[k] for row in rows]) for k, name in enumerate(names)}
        if labels_true is not None:
            from symnmf.metrics import clustering_accuracy

            table["accuracy"] = np.array(
                [clustering_accuracy(labels_true, r.labels) for r in self.results.values()]
            )
        return table

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame (needs the extra ``pandas``)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "Comparison.to_pandas needs pandas: pip install 'symnmf[pandas]'."
            ) from error
        return pd.DataFrame(dict(self))

    @checked()
    def to_csv(self, path: str | Path) -> None:
        """Write the table as comma-separated text, every number with all its digits."""
        content, _ = table_bytes({column: self[column] for column in self.columns})
        write_atomically(path, lambda stream: stream.write(content))
