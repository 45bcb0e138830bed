"""``symnmf factorize``: a symmetric matrix in, its factor and a certificate out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symnmf.cli import inputs, options, tables
from symnmf.cli.output import (
    PICTURES,
    check_distinct,
    check_writable,
    exit_code,
    how_it_ended,
    need_matplotlib,
    note,
    print_json,
    save_picture,
    say,
    say_going_on,
    summary,
    write_columns,
)
from symnmf.cli.progress import Forecast, step, watched
from symnmf.cli.signals import noticing

if TYPE_CHECKING:
    from symnmf.run.multistart import Plan
    from symnmf.run.problem import Problem
    from symnmf.run.result import Result


def factorize(
    context: typer.Context,
    given: inputs.Input,
    rank: Annotated[int, typer.Option("-r", "--rank", help="Number of columns of U.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="The file for U: .npz (the whole run, for symnmf.Result.load) or .csv.",
        ),
    ],
    memory: inputs.Memory = None,
    normalize: Annotated[
        bool,
        typer.Option("--normalize", help="Divide X by the square roots of its row sums."),
    ] = False,
    missing: inputs.Missing = None,
    loss: options.Loss = "frobenius",
    starts: Annotated[
        int, typer.Option(help="Number of starts; the best is kept.", rich_help_panel=options.RUN)
    ] = 1,
    header: tables.Header = None,
    decimal: tables.Decimal = ".",
    l1: options.L1 = 0.0,
    ridge: options.Ridge = 0.0,
    init: options.Init = "auto",
    seed: options.Seed = None,
    solver: options.Solver = "auto",
    coupling: options.Coupling = None,
    max_iter: options.MaxIter = 1000,
    max_time: options.MaxTime = None,
    tol: options.Tol = 1e-4,
    jobs: options.Jobs = None,
    device: options.Device = None,
    plot: options.Plot = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Save the run to this .npz file, and resume from it if it exists.",
            rich_help_panel=options.FILES,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Factorize a symmetric matrix or a graph, X ≈ UUᵀ, and print the certificate.

    \b
    Examples:
      symnmf factorize X.npz -r 20 -o U.npz
      symnmf factorize X.mtx.gz -r 20 -o U.csv --solver symanls --max-time 60
      symnmf factorize X.npz -r 20 -o U.npz --checkpoint run.npz
      symnmf factorize blocks/ -r 50 -o U.npz --memory 4GB
      symnmf factorize seen.npz -r 20 -o U.npz --missing unstored
      symnmf factorize seen.csv -r 20 -o U.npz --missing nan
    """
    from symnmf import calls
    from symnmf.run.multistart import Plan
    from symnmf.run.settings import Settings

    check_writable((output, (".npz", ".csv", ".csv.gz")), (plot, PICTURES), (checkpoint, (".npz",)))
    check_distinct(
        {"INPUT": given},
        {"-o": output, "--checkpoint": checkpoint, "--plot": plot},
    )
    need_matplotlib(plot)
    options.check_numbers(
        jobs=jobs,
        seed=seed,
        starts=starts,
        max_iter=max_iter,
        max_time=max_time,
        tol=tol,
    )
    streamed = memory is not None or inputs.is_stored(given)
    _check_missing(missing, given, streamed, normalize)
    table = tables.Table(header, decimal)
    table.check(given, streamed)
    say_going_on(checkpoint)
    plan = Plan(
        rank,
        Settings.of(
            solver, options.as_coupling(coupling), tol=tol, max_iter=max_iter, max_time=max_time
        ),
        n_init=starts,
        init=init,
        random_state=seed,
        n_jobs=jobs,
        device=device,
        checkpoint=checkpoint,
    )
    with step("reading", quiet=quiet):
        if streamed:
            loaded = inputs.stored(given, memory, rank, jobs, normalize)
        else:
            loaded = inputs.load(given, missing, table=table)
        context.with_resource(calls.opened(max_time))
        X = _square(loaded, normalize)
    with noticing() as signals:
        problem = plan.problem(X, missing=missing, l1=l1, ridge=ridge, loss=loss).for_rank(rank)
        forecast = Forecast(starts, tol, max_iter, max_time)
        result = watched(_run(problem, plan), forecast, signals, quiet)
        code = exit_code(result.status, signals.first, tol)
        save(result, loaded.names, output)
        if plot:
            save_convergence(result, plot)
        certificate = result.certificate(problem)
    if json:
        print_json({"input": loaded.title, **summary(result, certificate), "exit_code": code})
    else:
        n, r = result.U.shape
        say(f"{loaded.title}, {n} x {n}, rank {r}: {how_it_ended(result, tol)}.")
        typer.echo(str(certificate))
    raise typer.Exit(code)


def _run(problem: Problem, plan: Plan) -> Callable[[Callable[[int, Any], bool]], Result]:
    """Return what does one run, or a search over several starts."""
    from symnmf.run.checkpoint import Checkpointing
    from symnmf.run.loop import solve

    def run(progress: Callable[[int, Any], bool]) -> Result:
        if plan.n_init > 1:
            return replace(plan, progress=progress).search(problem).best
        return solve(
            problem,
            plan.rank,
            plan.settings,
            init=plan.init,
            random_state=plan.random_state,
            callback=partial(progress, 0),
            checkpointing=Checkpointing(plan.checkpoint),
        )

    return run


def _check_missing(missing: str | None, given: str, streamed: bool, normalize: bool) -> None:
    """Refuse what does not go together before anything is read."""
    from symnmf.errors import InputError
    from symnmf.storage.border import check_missing

    check_missing(missing, "--missing")
    if missing is not None and streamed:
        raise InputError(
            f"--missing needs X in memory, and {given} is read in blocks; give a file that symnmf "
            f"reads as a whole, such as .npy, without --memory."
        )
    if missing == "nan" and normalize:
        raise InputError(
            "--normalize needs every entry of X, and --missing nan says that some are not known; "
            "leave one of them out."
        )


def _square(loaded: inputs.Loaded, normalize: bool) -> Any:
    from symnmf import graphs
    from symnmf.errors import InputError

    rows, columns = loaded.data.shape
    if rows != columns:
        raise InputError(
            f"{loaded.title} is {rows} x {columns}, and a symmetric matrix or a graph is needed; "
            f"symnmf cluster takes tables of points."
        )
    return graphs.normalize(loaded.data) if normalize else loaded.data


def save(result: Result, names: list[Any] | None, path: Path) -> None:
    """Write a result as an archive that also holds the names, or U as a table."""
    if path.suffix == ".npz":
        result.save(path, names=names)
        return
    rows: dict[str, Any] = {"row": list(range(len(result.U)))} if names is None else {"name": names}
    write_columns(rows | {f"u{k}": result.U[:, k] for k in range(result.U.shape[1])}, path)


def save_convergence(result: Result, path: Path) -> None:
    """Draw how the error fell."""
    from symnmf import plots
    from symnmf.comparison import Comparison

    if not len(result.history):
        note("nothing was recorded, so there is no picture.")
        return
    save_picture(plots.convergence(Comparison({(result.solver, 0): result})), path)
