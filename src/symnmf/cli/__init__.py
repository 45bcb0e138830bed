"""The command ``symnmf``: a file in, clusters out, without writing Python.

Commands import what they need when they run, so that ``symnmf --help`` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn

DONE, FAILED, MISUSED, UNCONVERGED, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; the entry point ``symnmf``."""
    _open_streams()
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _run(arguments)
    except KeyboardInterrupt:
        print("symnmf: interrupted before there was a result.", file=sys.stderr)
        code = INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
    sys.exit(code)


def _terminate(number: int, frame: FrameType | None) -> None:
    """End as after Ctrl-C, which a running solver notes so that its result is written."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background of a shell
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _run(arguments: list[str] | None) -> int:
    """Parse, run, and turn what the user can put right into one sentence and an exit code."""
    from symnmf.cli.output import fail, show_notes, warn
    from symnmf.cli.parsing import parse
    from symnmf.errors import InputError

    title = None
    try:
        command, options = parse(sys.argv[1:] if arguments is None else arguments)
        title = options.get("input")
        with warnings.catch_warnings():
            warnings.showwarning = warn
            code = command(**options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or a later flush fails
        return UNREAD
    except InputError as error:
        fail(str(error))
        code = MISUSED
    except (OSError, MemoryError) as error:
        fail(f"{error or 'there is not enough memory'}.")
        code = FAILED
    show_notes(title)
    return code


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
