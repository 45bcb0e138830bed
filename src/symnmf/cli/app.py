"""The commands, and what happens to errors, warnings and Ctrl-C."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from symnmf import __version__
from symnmf.cli import cluster, compare, datasets, factorize, info
from symnmf.cli.inputs import TITLE
from symnmf.cli.output import FAILED, INTERRUPTED, MISUSED, UNREAD, drop_stdout, note

EPILOG = (
    "Exit codes: 0 done; 1 the program or the machine failed; 2 wrong usage or input; 3 written "
    "but not converged; 130 stopped by Ctrl-C; 141 the reader of stdout closed it; 143 stopped by "
    "SIGTERM. What was computed is written after 3, 130 and 143 too."
)


class Commands(TyperGroup):
    """Turns what a user can put right into one sentence on stderr and an exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _closed_stdout():  # --help and --version print from here
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _closed_stdout(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                note("interrupted before anything was computed.", "error")
                raise typer.Exit(INTERRUPTED) from None
            except (ValueError, ImportError) as error:
                if not _explained(error):
                    raise
                note(_in_shell(error, ctx.meta.get(TITLE)), "error")
                raise typer.Exit(MISUSED) from None
            except BrokenPipeError:
                raise
            except (OSError, MemoryError) as error:
                note(f"the machine gave up: {error or 'out of memory'}.", "error")
                raise typer.Exit(FAILED) from None


@contextmanager
def _closed_stdout() -> Iterator[None]:
    """End quietly, as after SIGPIPE, where whoever read the output has seen enough."""
    try:
        yield
    except (BrokenPipeError, SystemExit) as end:
        # rich, which prints the help, turns a closed pipe into an exit with code 1
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        drop_stdout()
        raise typer.Exit(UNREAD) from None


def _in_shell(error: Exception, title: str | None) -> str:
    """Return the sentence for the command line, with INPUT by its name."""
    from symnmf.options import in_shell

    said: str = getattr(error, "in_shell", str(error))
    own = said != str(error)  # not where INPUT stands beside another argument
    said = said if own else in_shell(said)
    return said.replace("INPUT", title, 1) if own and title and said.startswith("INPUT ") else said


def _explained(error: Exception) -> bool:
    """Whether the message was written for the user: a wrong input, or an extra to install."""
    from symnmf.errors import InputError

    return isinstance(error, InputError) or "pip install 'symnmf[" in str(error)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    # how a run ended is said by every command itself, in the words of its options; that one
    # library is behind another is nothing a user of the command could fix
    if category.__name__ != "ConvergenceWarning" and not issubclass(category, DeprecationWarning):
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
app.command("info")(info.info)
app.add_typer(datasets.app, name="datasets")
