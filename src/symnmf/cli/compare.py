"""``symnmf compare``: several solvers from the same starts, on your own data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symnmf.cli import inputs, options, tables
from symnmf.cli.output import (
    DONE,
    PICTURES,
    check_distinct,
    check_writable,
    need_matplotlib,
    note,
    print_json,
    save_picture,
    write_columns,
)
from symnmf.cli.progress import step
from symnmf.cli.signals import noticing

if TYPE_CHECKING:
    from symnmf.comparison import Comparison

TABLES = (".csv", ".csv.gz")


class Axis(StrEnum):
    """What the curves are drawn over."""

    iteration = "iteration"
    time = "time"


class Quantity(StrEnum):
    """What the curves show."""

    error = "error"
    stationarity = "stationarity"
    consensus = "consensus"
    coupling = "coupling"


def compare(
    given: inputs.Input,
    rank: Annotated[int, typer.Option("-r", "--rank", help="Number of columns of U.")],
    solver: Annotated[
        list[str] | None,
        typer.Option(
            "-s",
            "--solver",
            help="A solver; repeat for several. See [bold]symnmf info[/].",
            show_default="auto, the paper's three and four quick rivals",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The final table, .csv or .csv.gz."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="Every iteration of every run, .csv.", rich_help_panel=options.FILES),
    ] = None,
    plot: options.Plot = None,
    against: Annotated[
        Axis, typer.Option(help="Horizontal axis of the plot.", rich_help_panel=options.FILES)
    ] = Axis.time,
    quantity: Annotated[
        Quantity, typer.Option(help="Vertical axis of the plot.", rich_help_panel=options.FILES)
    ] = Quantity.error,
    runs: Annotated[int, typer.Option(help="Starts per solver.", rich_help_panel=options.RUN)] = 1,
    header: tables.Header = None,
    decimal: tables.Decimal = ".",
    columns: tables.Columns = None,
    scale: tables.Scale = None,
    affinity: inputs.Affinity = None,
    neighbors: inputs.Neighbors = None,
    normalize: inputs.Normalize = None,
    truth: inputs.Truth = None,
    init: options.Init = "auto",
    seed: options.Seed = None,
    max_iter: options.MaxIter = 1000,
    max_time: options.MaxTimeEach = None,
    tol: options.Tol = 1e-4,
    jobs: options.Jobs = None,
    device: options.Device = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run several solvers from the same starts and compare error and time.

    \b
    Examples:
      symnmf compare digits -r 10
      symnmf compare X.npz -r 20 -s a-symhals -s pgd --plot out.png -o table.csv
      symnmf compare karate -r 2 --runs 5 --max-time 10 --json
    """
    from symnmf.comparison import DEFAULT_SOLVERS

    check_writable((output, TABLES), (history, (".csv",)), (plot, PICTURES))
    check_distinct(
        {"INPUT": given, "--truth": truth}, {"-o": output, "--history": history, "--plot": plot}
    )
    need_matplotlib(plot)
    options.check_numbers(
        jobs=jobs,
        seed=seed,
        runs=runs,
        neighbors=neighbors,
        max_iter=max_iter,
        max_time=max_time,
        tol=tol,
    )
    chosen = list(dict.fromkeys(solver or DEFAULT_SOLVERS))
    with step("reading and building the graph", quiet=quiet):
        loaded = inputs.load(given, table=tables.Table(header, decimal, columns))
        classes = inputs.with_truth(loaded, truth)
        A = inputs.similarities(loaded, affinity, neighbors, normalize, jobs, scale)
    settings = {"init": init, "random_state": seed, "n_init": runs}
    place = {"n_jobs": jobs, "device": device}
    limits = {"max_iter": max_iter, "max_time": max_time, "tol": tol}
    with noticing() as signals:
        comparison = _run(A, rank, chosen, quiet, signals, **settings, **limits, **place)
        number = signals.first
        if not comparison.results:
            raise KeyboardInterrupt
        table = _ends(comparison, classes)
        if output:
            write_columns(table, output)
        if history:
            write_columns(dict(comparison), history)
        if plot:
            _save_plot(comparison, against, quantity, plot)
    code = DONE if number is None else 128 + number
    if json:
        rows = [dict(zip(table, row, strict=True)) for row in _rows(table)]
        print_json({"input": loaded.title, "rank": rank, "runs": rows, "exit_code": code})
    else:
        _show(table)
    if number is not None:
        note("interrupted; the runs that had begun are in the table.", "warning")
    raise typer.Exit(code)


def _run(
    A: Any, rank: int, solvers: list[str], quiet: bool, signals: Any, **settings: Any
) -> Comparison:
    """Compare solver by solver, so that progress can be shown between them."""
    from symnmf.comparison import Comparison, compare
    from symnmf.run.problem import Problem
    from symnmf.run.settings import Settings
    from symnmf.run.start import drawn_seed

    problem = Problem.of(A, n_jobs=settings.pop("n_jobs"), device=settings.pop("device"))
    for name in solvers:  # all of them before the first run
        Settings.of(name).checked(problem.objective)
    if settings["random_state"] is None:
        settings["random_state"] = drawn_seed()  # one seed, so that starts are shared
    results: dict[tuple[str, int], Any] = {}
    interrupted = False
    for place, name in enumerate(solvers):
        with step(f"solver {place + 1} of {len(solvers)}: {name}", quiet=quiet):
            part = compare(problem, rank, [name], **settings)
        results |= part.results
        if part.interrupted or signals:
            interrupted = True
            break
    return Comparison(results, interrupted)


def _ends(comparison: Comparison, classes: Any) -> dict[str, Any]:
    """Return a table of where and how each run ended."""
    import numpy as np

    from symnmf.metrics import clustering_accuracy

    rows = comparison.results.items()
    table = {
        "solver": np.array([label for (label, _), _ in rows]),
        "run": np.array([run for (_, run), _ in rows]),
        "status": np.array([result.status for _, result in rows]),
        "iterations": np.array([result.n_iter for _, result in rows]),
        "seconds": np.array([result.history["seconds"][-1] for _, result in rows]),
        "error": np.array([result.error for _, result in rows]),
    }
    if classes is not None:
        scores = [clustering_accuracy(classes, result.labels) for _, result in rows]
        table["accuracy"] = np.array(scores)
    return table


def _save_plot(comparison: Comparison, against: Axis, quantity: Quantity, path: Path) -> None:
    from symnmf import plots

    save_picture(plots.convergence(comparison, x=against.value, y=quantity.value), path)


def _rows(table: dict[str, Any]) -> list[list[Any]]:
    return [list(row) for row in zip(*(column.tolist() for column in table.values()), strict=True)]


def _show(table: dict[str, Any]) -> None:
    """Print the final table, the smallest error first."""
    shapes = {"seconds": "{:.3f}", "error": "{:.6g}", "accuracy": "{:.3f}"}
    rows = sorted(_rows(table), key=lambda row: row[list(table).index("error")])
    cells = [
        [shapes.get(name, "{}").format(value) for name, value in zip(table, row, strict=True)]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(list(table), *cells, strict=True)]
    for line in (list(table), *cells):
        padded = (
            cell.ljust(width) if k in (0, 2) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        typer.echo("  ".join(padded).rstrip())
