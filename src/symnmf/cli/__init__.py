"""The command ``symnmf``: a file in, clusters out, without writing Python.

Commands import what they need when they run, so that ``symnmf --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command line; the entry point ``symnmf``."""
    _open_streams()
    try:
        from symnmf.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("symnmf: the command line needs typer and rich: pip install 'symnmf[cli]'.")
    app(prog_name="symnmf")


def _open_streams() -> None:
    """Let every print succeed: into nothing where a stream is closed, escaped where it is ASCII.

    A number of a stream that was left free would also go to the next file that is opened, and
    what is printed to that stream would end in the file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
