"""What goes where: results to stdout or files, notes and progress to stderr."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symnmf.cli import DONE, INTERRUPTED, UNCONVERGED
from symnmf.errors import InputError
from symnmf.options import in_shell

PICTURES = (".png", ".svg", ".pdf")
TABLES = (".csv", ".csv.gz")
STDOUT = "-"
LOG_EVERY = 10.0  # seconds between two lines of progress in a log
REFRESH = 0.2  # seconds between two looks at a line of progress on a terminal

_notes: list[str] = []


def note(message: str, kind: str = "note") -> None:
    """Keep a sentence for the end of the command; the result comes first."""
    _notes.append(message if kind == "error" else f"{kind}: {message}")


def fail(message: str) -> None:
    """Say why there is no result, and nothing else."""
    _notes[:] = [message]


def warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Note a warning, unless the command says the same in its own words, as how a run ended."""
    if category.__name__ != "ConvergenceWarning" and not issubclass(category, DeprecationWarning):
        note(
            str(message).replace("sklearn.preprocessing.StandardScaler", "--scale standard"),
            "warning",
        )


def show_notes(title: str | None) -> None:
    """Print the notes, with options as the shell spells them and INPUT by its name."""
    name = os.path.basename(title or "INPUT")
    while _notes:
        sentence = in_shell(_notes.pop(0))
        sentence = re.sub(r"(^|of |: )(INPUT|X|G)(?=[ ,;])", lambda it: it[1] + name, sentence)
        print(f"symnmf: {printable(sentence)}", file=sys.stderr)


def printable(text: str) -> str:
    """Keep a file's strings from steering the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object; numbers JSON does not know become null."""
    print(json.dumps(_plain(content), allow_nan=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def write_columns(columns: Mapping[str, Any], path: str) -> None:
    """Write a table to a file, or as CSV to stdout."""
    from symnmf.io import table_bytes, write_table

    if path != STDOUT:
        write_table(path, columns)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(table_bytes(columns))


def save_picture(figure: Any, path: str) -> None:
    """Write a figure whole or not at all."""
    from symnmf.outputs import write_atomically

    kind = Path(path).suffix[1:].lower()
    write_atomically(path, lambda stream: figure.savefig(stream, format=kind, dpi=150))


def check_files(
    read: Mapping[str, str | None], written: Mapping[str, tuple[str | None, tuple[str, ...]]]
) -> None:
    """Refuse outputs that cannot be written, or would overwrite an input or each other."""
    from importlib.util import find_spec

    from symnmf.outputs import check_output

    seen = {os.path.realpath(path): option for option, path in read.items() if path is not None}
    for option, (path, endings) in written.items():
        if path is None or (path == STDOUT and endings == TABLES):
            continue
        if not path.lower().endswith(endings):
            raise InputError(f"{option} must end in {' or '.join(endings)}, got {path!r}.")
        check_output(path, option)
        other = seen.setdefault(os.path.realpath(path), option)
        if other != option:
            raise InputError(
                f"{other} and {option} both name the file {path!r}, which would be overwritten; "
                f"choose another name for {option}."
            )
        if option in ("--plot", "--report") and find_spec("matplotlib") is None:
            raise InputError(f"{option} needs matplotlib: pip install 'symnmf[plots]'.")


def how_it_ended(run: Any) -> str:
    """How far a run came and what would bring it further."""
    count = f"{run.n_iter} iteration{'s' * (run.n_iter != 1)}"
    ways = {
        "converged": f"converged after {count}",
        "max_iter": f"did not converge in {count} (raise --max-iter or --tol)",
        "max_time": f"did not converge in the time allowed, {count} (raise --max-time)",
        "stopped": f"was interrupted after {count}",
        "diverged": f"diverged after {count} (choose another --solver or --seed)",
    }
    return f"{ways[run.status]}, error {run.error:.4g}"


def exit_code(status: str, tol: float | None = None) -> int:
    """What the shell is told; a run without a tolerance was never meant to converge."""
    if status == "stopped":
        return INTERRUPTED
    return DONE if status == "converged" or (tol == 0 and status != "diverged") else UNCONVERGED


class Progress:
    """A line with the latest iteration, which a terminal overwrites and a log gets now and then."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.shown = time.monotonic()

    def __call__(self, now: Any) -> None:
        clock = time.monotonic()
        if clock - self.shown < (REFRESH if self.terminal else LOG_EVERY):
            return
        self.shown = clock
        line = f"iteration {now.iteration}, error {now.error:.4g}, {now.seconds:.0f} s"
        before, after = ("\r\033[K", "\r") if self.terminal else ("", "\n")
        print(f"{before}{line}", end=after, file=sys.stderr, flush=True)


def watching(quiet: bool) -> dict[str, Any]:
    """What to pass to a run so that its progress is seen."""
    return {} if quiet else {"callback": Progress()}
