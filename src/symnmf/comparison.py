"""Run several solvers from the same starts and put their histories into one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symnmf.arguments import checked
from symnmf.errors import InputError
from symnmf.options import AUTO, documented
from symnmf.parallel import one_blas_thread
from symnmf.run.problem import Problem
from symnmf.run.result import COLUMNS, Result
from symnmf.run.settings import Settings
from symnmf.run.solving import solve, warn_unless_converged
from symnmf.run.start import RandomState, as_generator, as_start, starting_point
from symnmf.solvers import Solver, as_solver

#: Iterations that every solver does first, which are thrown away. On small problems they come to
#: everything that a run loads; if U has more entries, an iteration takes longer than loading does.
WARMUP, LARGE_WARMUP, SMALL = 60, 3, 2**17

SolverSpec = str | Solver | tuple[str, str | Solver]

#: The default, the paper's three, and rivals that need products with X only and little time.
DEFAULT_SOLVERS = ("auto", "symanls", "symhals", "a-symhals", "admm", "tsvd", "beta-snmf", "pgd")


class Comparison(dict[str, np.ndarray]):
    """The columns of a table with a row for each recorded iteration of every run of every solver.

    The columns are ``solver``, ``run``, those of :class:`~symnmf.run.result.History`, ``elapsed``.
    ``pandas.DataFrame(comparison)`` is the table as a frame.

    Attributes
    ----------
    results : dict
        The :class:`symnmf.Result` of each (solver, run).
    interrupted : bool
        Whether Ctrl-C ended the comparison early.
    """

    def __init__(self, results: dict[tuple[str, int], Result], interrupted: bool = False) -> None:
        self.results, self.interrupted = results, interrupted
        parts: dict[str, list[Any]] = {name: [] for name in ("solver", "run", *COLUMNS, "elapsed")}
        for (solver, run), result in results.items():
            rows = len(result.history)
            values = {"solver": np.full(rows, solver), "run": np.full(rows, run)}
            values["elapsed"] = result.elapsed
            for name, part in parts.items():
                part.append(values[name] if name in values else result.history[name])
        super().__init__({name: np.concatenate(part or [[]]) for name, part in parts.items()})

    def __repr__(self) -> str:
        solvers = dict.fromkeys(solver for solver, _ in self.results)
        early = ", interrupted" if self.interrupted else ""
        rows = len(self["run"])
        return f"Comparison({len(self.results)} runs of {', '.join(solvers)}; {rows} rows{early})"


@checked(solvers=("sequence",))
@documented
def compare(
    X: Any,
    rank: int,
    solvers: Sequence[SolverSpec] = DEFAULT_SOLVERS,
    *,
    coupling: Any = None,
    init: Any = "auto",
    n_init: int = 1,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_time: float | None = None,
    record_every: int = 1,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    device: Any = None,
) -> Comparison:
    """Run every solver from the same starts, one after the other.

    Start k of every solver is the same U_0; by default it is random, at the scale of X. ``seconds``
    count the solver only, not the evaluation. Each solver first does a few iterations that are
    thrown away, so that loading compiled code is not counted. Everything is checked before the
    first run, so a comparison always contains every method. ``max_time`` is for each run.

    Parameters
    ----------
    X : array-like, scipy sparse or SymmetricMatrix
        As for :func:`symnmf.factorize`.
    {rank}
    solvers : sequence
        Names, objects or pairs ``(label, name or object)``; labels must differ.
    {coupling, init, n_init, tol, max_iter, max_time, record_every, random_state, n_jobs, device}

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
    >>> {solver: result.n_iter for (solver, run), result in table.results.items()}
    {'a-symhals': 20, 'cd': 20}
    """
    limits = {"tol": tol, "max_iter": max_iter, "max_time": max_time, "record_every": record_every}
    methods = _labelled(solvers, coupling, limits)
    if n_init > 1 and not (isinstance(init, str) or callable(init)):
        raise InputError(
            f"init is one given start, which {n_init} runs would repeat; pass n_init=1 or the "
            f"name of a random start."
        )
    problem = Problem.of(X, n_jobs=n_jobs, device=device).for_rank(rank)
    for settings in methods.values():
        settings.checked(problem.objective)
    warmup = WARMUP if problem.objective.shape[0] * rank <= SMALL else LARGE_WARMUP
    init = "scaled-random" if isinstance(init, str) and init == AUTO else as_start(init)
    generator = as_generator(random_state)
    results: dict[tuple[str, int], Result] = {}
    try:
        for run in range(n_init):
            with one_blas_thread():
                start = starting_point(problem.objective, rank, init, generator)
            for label, settings in methods.items():
                if run == 0:
                    few = settings.within(tol=0.0, max_iter=min(warmup, max_iter))
                    _unless_stopped(solve(problem, rank, few, init=start))
                result = solve(problem, rank, settings, init=start)
                warn_unless_converged(result, settings.limits)
                results[label, run] = result.as_given(problem.given)
                _unless_stopped(result)
    except KeyboardInterrupt:
        return Comparison(results, interrupted=True)
    return Comparison(results)


def _unless_stopped(result: Result) -> None:
    """Pass Ctrl-C on, which a run takes as the wish to stop; nothing else stops one here."""
    if result.status == "stopped":
        raise KeyboardInterrupt


def _labelled(
    solvers: Sequence[SolverSpec], coupling: Any, limits: dict[str, Any]
) -> dict[str, Settings]:
    solvers = list(solvers)
    if not solvers:
        raise InputError("solvers must name at least one solver.")
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
