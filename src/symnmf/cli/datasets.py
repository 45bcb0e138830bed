"""``symnmf datasets``: what there is, and downloads from the public sources."""

from __future__ import annotations

from typing import Annotated

import typer

from symnmf.cli.output import note, say

app = typer.Typer(no_args_is_help=True, help="List the data sets, and download them.")


@app.command("list")
def listing() -> None:
    """Show every data set, whether it is here, and whether it can be downloaded."""
    from symnmf import datasets

    for entry in datasets.available():
        state = "here" if entry.present else f"symnmf datasets fetch {entry.name}"
        typer.echo(f"{entry.name:22} {entry.kind:7} {entry.n:>8,} rows  {state}")


@app.command("fetch")
def fetch(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Data sets, or all.", show_default=False)
    ],
    mirror: Annotated[
        str | None,
        typer.Option(
            help="A server with copies of the sources, each under the name of its host.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Download data sets, check that they are those of our results, and keep them in a cache.

    \b
    Examples:
      symnmf datasets fetch coil20 football
      symnmf datasets fetch all
    """
    from symnmf import datasets
    from symnmf.datasets.recipes import RECIPES
    from symnmf.errors import InputError

    every = names == ["all"]
    missed = 0
    for name in RECIPES if every else names:
        try:
            path = datasets.fetch(name, mirror=mirror)
            say(f"{name}: {path}")
        except InputError as error:
            if not every:
                raise
            missed += 1
            note(str(error), "error")
    if missed:
        raise typer.Exit(2)
