"""The commands, and what happens to errors, warnings and Ctrl-C."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from symnmf import __version__
from symnmf.cli import cluster, compare, factorize, info, reproduce
from symnmf.cli.output import FAILED, INTERRUPTED, MISUSED, note

EPILOG = (
    "Exit codes: 0 done; 1 the program or the machine failed; 2 wrong usage or input; 3 written "
    "but not converged; 130 stopped by Ctrl-C; 143 stopped by SIGTERM. What was computed is "
    "written in the last three cases too."
)


class Commands(TyperGroup):
    """Turns what a user can put right into one sentence on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                note("interrupted before anything was computed.", "error")
                raise typer.Exit(INTERRUPTED) from None
            except (ValueError, ImportError) as error:
                if not _explained(error):
                    raise
                note(str(error), "error")
                raise typer.Exit(MISUSED) from None
            except BrokenPipeError:
                raise  # whoever read the output has seen enough; typer ends quietly
            except (OSError, MemoryError) as error:
                note(f"the machine gave up: {error or 'out of memory'}.", "error")
                raise typer.Exit(FAILED) from None


def _explained(error: Exception) -> bool:
    """Whether the message was written for the user: a wrong input, or an extra to install."""
    from symnmf.errors import InputError

    return isinstance(error, InputError) or "pip install 'symnmf[" in str(error)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    note(str(message), "warning")


app = typer.Typer(
    cls=Commands,
    help="Cluster data and graphs by symmetric nonnegative matrix factorization, X ≈ UUᵀ.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"symnmf {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of the program itself; the text shown is the application's."""


app.command("cluster")(cluster.cluster)
app.command("factorize")(factorize.factorize)
app.command("compare")(compare.compare)
app.command("reproduce")(reproduce.reproduce)
app.command("info")(info.info)
