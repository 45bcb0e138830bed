"""The command ``symnmf``: a file in, clusters out, without writing Python.

Commands import what they need when they run, so that ``symnmf --help`` answers at once.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the entry point ``symnmf``."""
    try:
        from symnmf.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("symnmf: the command line needs typer and rich: pip install 'symnmf[cli]'.")
    app(prog_name="symnmf")
