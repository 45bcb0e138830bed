"""The command ``symnmf``: a file in, clusters out, without writing Python.

Commands import what they need when they run, so that ``symnmf --help`` answers at once.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import warnings
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn

DONE, FAILED, MISUSED, UNCONVERGED, INTERRUPTED, UNREAD, TERMINATED = 0, 1, 2, 3, 130, 141, 143


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; the entry point ``symnmf``."""
    _open_streams()
    # a solver that runs handles signals itself, so their numbers are read from a socket
    arrived, notified = socket.socketpair()
    for end in (arrived, notified):
        end.setblocking(False)
    before = signal.set_wakeup_fd(notified.fileno(), warn_on_full_buffer=False)
    terminated = signal.getsignal(signal.SIGTERM)
    if terminated is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _run(arguments)
    except KeyboardInterrupt:
        print("symnmf: interrupted before there was a result.", file=sys.stderr)
        code = INTERRUPTED
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGTERM, terminated or signal.SIG_DFL)
        notified.close()
        numbers = arrived.recv(64)
        arrived.close()
    sys.exit(TERMINATED if code == INTERRUPTED and signal.SIGTERM in numbers else code)


def _terminate(number: int, frame: FrameType | None) -> None:
    """End as after Ctrl-C, which a running solver notes so that its result is written."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a job in the background of a shell
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def _run(arguments: list[str] | None) -> int:
    """Parse, run, and turn what the user can put right into one sentence and an exit code."""
    from symnmf.cli.output import drop_stdout, note, warn
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
        drop_stdout()
        return UNREAD
    except InputError as error:
        note(_in_shell(error, title), "error")
        return MISUSED
    except (OSError, MemoryError) as error:
        note(f"the machine gave up: {error or 'out of memory'}.", "error")
        return FAILED
    return code


def _in_shell(error: Exception, title: str | None) -> str:
    """The sentence with options as the shell spells them, and INPUT by its name."""
    from symnmf.options import in_shell

    python, shell = str(error), getattr(error, "in_shell", str(error))
    sentence: str = in_shell(python) if shell == python else shell
    if title is None:
        return sentence
    return re.sub(r"(^|of )(INPUT|X|G)(?=[ ,;])", rf"\g<1>{os.path.basename(title)}", sentence)


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
