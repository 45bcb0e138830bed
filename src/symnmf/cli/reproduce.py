"""``symnmf reproduce``: the paper's figures and tables."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from symnmf.cli.output import INTERRUPTED, TERMINATED, note, say
from symnmf.cli.progress import LOG_EVERY, words
from symnmf.cli.signals import Terminated, raising


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="Figures and tables; [bold]all[/] for everything, none to list them.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small problems and few seeds, a few minutes in total.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for pages, tables and pictures.")] = Path(
        "reproduction"
    ),
    seeds: Annotated[
        int | None,
        typer.Option(help="Seeds per experiment.", show_default="that of the experiment"),
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes.", show_default="all cores")] = None,
) -> None:
    """Run the paper's experiments again and check what it claims.

    \b
    Examples:
      symnmf reproduce
      symnmf reproduce figure1 --quick
      symnmf reproduce all --out results --jobs 4
    """
    from symnmf import experiments
    from symnmf.errors import InputError

    for option, value in (("--seeds", seeds), ("--jobs", jobs)):
        if value is not None and value < 1:
            raise InputError(f"{option} must be at least 1, got {value}.")
    if not names:
        for name in experiments.available():
            typer.echo(f"{name:10} {experiments.load(name).title}")
        return
    chosen = experiments.available() if "all" in names else names
    scale: dict[str, Any] = {"quick": quick, "seeds": seeds, "jobs": jobs}
    seconds = experiments.expected_seconds(chosen, **scale)
    say(f"{', '.join(chosen)}: about {words(seconds)} from nothing; finished runs in {out} count.")
    try:
        with raising(), _progress() as progress:
            page = experiments.reproduce(chosen, out=out, progress=progress, **scale)
    except KeyboardInterrupt as interrupt:
        note(f"interrupted; the same command resumes with the runs saved in {out}.", "error")
        terminated = isinstance(interrupt, Terminated)
        raise typer.Exit(TERMINATED if terminated else INTERRUPTED) from None
    for line in _verdicts(page.with_name("claims.csv")):
        say(line)
    typer.echo(page)


def _verdicts(path: Path) -> Iterator[str]:
    """Give a line per experiment on how the paper's sentences came out."""
    if not path.exists():
        return
    words: dict[str, dict[str, str]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["noise"] != "mirrored":
                words.setdefault(row["experiment"], {})[row["sentence"]] = row["verdict"]
    for name, verdicts in words.items():
        counts = Counter(verdicts.values())
        noun = "sentence" if len(verdicts) == 1 else "sentences"
        told = ", ".join(f"{count} {word}" for word, count in counts.items())
        yield f"{name}: {len(verdicts)} {noun} of the paper: {told}."


@contextmanager
def _progress() -> Iterator[Any]:
    """Give what the experiments call with tasks done, tasks in all and a word on the latest."""
    if not sys.stderr.isatty():
        yield _logger()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield show


def _logger() -> Any:
    import time

    latest = [-LOG_EVERY]

    def log(done: int, total: int, what: str) -> None:
        if done == total or time.monotonic() - latest[0] >= LOG_EVERY:
            latest[0] = time.monotonic()
            say(f"{done} of {total} tasks: {what}")

    return log
