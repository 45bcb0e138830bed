"""``symnmf rank``: how many clusters there are, with reasons."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from symnmf.cli import inputs, options, tables
from symnmf.cli.output import (
    DONE,
    PICTURES,
    UNCONVERGED,
    check_distinct,
    check_writable,
    need_matplotlib,
    print_json,
    save_picture,
    say,
    write_columns,
)
from symnmf.cli.progress import LOG_EVERY, progress_bar, step, words
from symnmf.cli.signals import noticing


def rank(
    context: typer.Context,
    given: inputs.Input,
    least: Annotated[int, typer.Option("--min", help="Fewest clusters to try.")] = 2,
    most: Annotated[
        int | None,
        typer.Option(
            "--max", help="Most clusters to try.", show_default="20, or all rows if they are fewer"
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts that the pairs are divided into.")] = 5,
    header: tables.Header = None,
    decimal: tables.Decimal = ".",
    columns: tables.Columns = None,
    scale: tables.Scale = None,
    affinity: inputs.Affinity = None,
    neighbors: inputs.Neighbors = None,
    normalize: inputs.Normalize = None,
    loss: options.Loss = "frobenius",
    max_time: options.MaxTime = None,
    seed: options.Seed = None,
    jobs: options.Jobs = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Table of scores: .csv, .csv.gz."),
    ] = None,
    plot: options.Plot = None,
    report: Annotated[
        Path | None,
        typer.Option(help="A page about the search: .html.", rich_help_panel=options.FILES),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="Save finished runs to this .npz file, and resume from it if it exists.",
            rich_help_panel=options.FILES,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Recommend a number of clusters, or say that none is clear.

    \b
    Examples:
      symnmf rank digits --max 20 --report rank.html
      symnmf rank friends.edges --min 2 --max 40 --checkpoint ranks.npz
    """
    from symnmf import calls
    from symnmf.errors import InputError
    from symnmf.selection.search import ADVICE
    from symnmf.selection.selecting import MOST, select_rank

    check_writable(
        (output, (".csv", ".csv.gz")),
        (plot, PICTURES),
        (report, (".html",)),
        (checkpoint, (".npz",)),
    )
    check_distinct(
        {"INPUT": given},
        {"-o": output, "--plot": plot, "--report": report, "--checkpoint": checkpoint},
    )
    need_matplotlib(plot, report)
    options.check_numbers(jobs=jobs, seed=seed, neighbors=neighbors, max_time=max_time)
    highest, why = (MOST, ", its default") if most is None else (most, "")
    if not 1 <= least <= highest:
        raise InputError(
            f"--min must be from 1 to --max, got --min {least} and --max {highest}{why}."
        )
    if folds < 2:
        raise InputError(f"--folds must be at least 2, got {folds}.")
    with step("reading and building the graph", quiet=quiet):
        loaded = inputs.load(given, table=tables.Table(header, decimal, columns))
        context.with_resource(calls.opened(max_time))
        if loss != "frobenius" and normalize is None and loaded.is_graph:
            normalize = False  # degrees are in the model
        A = inputs.similarities(loaded, affinity, neighbors, normalize, jobs, scale)
    n = loaded.data.shape[0]
    for option, value in (("--max", most), ("--min", least)):
        if value is not None and value > n:
            raise InputError(
                f"{option} must be at most the {n} rows of {loaded.title}, got {value}."
            )
    with noticing() as signals, _counting(quiet) as show:

        def callback(done: int, total: int) -> bool:
            show(done, total)
            return bool(signals)

        found = select_rank(
            A,
            range(least, min(highest, n) + 1),
            n_folds=folds,
            loss=loss,
            max_time=max_time,
            random_state=seed,
            n_jobs=jobs,
            checkpoint=checkpoint,
            callback=callback,
        )
        code = DONE
        if signals.first is not None:
            code = 128 + signals.first
        elif found.status == "stopped" and found.recommendation is None:
            code = UNCONVERGED
            advice = "Raise --max-time or lower --max."
            found = replace(found, reason=found.reason.replace(ADVICE, advice))
    if output:
        write_columns(found.table, output)
    if plot:
        save_picture(found.plot(), plot)
    if report:
        from symnmf.report.ranks import write_rank_report

        write_rank_report(report, found, title=loaded.title)
    if json:
        choices = {name: choice.rank for name, choice in found.choices.items()}
        print_json(
            {
                "input": loaded.title,
                "status": found.status,
                "clusters": found.recommendation,
                "reason": found.reason,
                "choices": choices,
                "bethe_hessian": found.bethe_hessian,
                **found.settings,
                "table": found.table,
                "exit_code": code,
            }
        )
    else:
        say(f"{loaded.title}, {n} x {n}:")
        typer.echo(str(found))
    raise typer.Exit(code)


@contextmanager
def _counting(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show how many fits are done."""
    begun = shown = time.monotonic()

    def left(done: int, total: int) -> str:
        about = words((time.monotonic() - begun) * (total - done) / done)
        return f"{done} of {total} fits, about {about} left"

    def line(done: int, total: int) -> None:
        nonlocal shown
        if not quiet and time.monotonic() - shown > LOG_EVERY:
            shown = time.monotonic()
            typer.echo(left(done, total), err=True)

    if quiet or not sys.stderr.isatty():
        yield line
        return
    with progress_bar() as bar:
        task: Any = bar.add_task("", total=1.0, state="")
        yield lambda done, total: bar.update(task, completed=done / total, state=left(done, total))
