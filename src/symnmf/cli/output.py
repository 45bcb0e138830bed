"""What goes where: data to stdout or a file, everything said about it to stderr."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

if TYPE_CHECKING:
    import numpy as np

    from symnmf.run.certificate import Certificate
    from symnmf.run.result import Result

DONE, FAILED, MISUSED, UNCONVERGED, INTERRUPTED, UNREAD, TERMINATED = 0, 1, 2, 3, 130, 141, 143

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def note(message: str, kind: Literal["note", "warning", "error"] = "note") -> None:
    """Say one thing on stderr."""
    typer.secho("symnmf: ", nl=False, err=True, fg=_COLOURS[kind], bold=True)
    prefix = "" if kind == "error" else f"{kind}: "
    typer.echo(prefix + _printable(message), err=True)


def say(message: str) -> None:
    """Tell a person how the run went, on stderr."""
    typer.echo(_printable(message), err=True)


def _printable(text: str) -> str:
    """Keep a file's strings from steering the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def say_going_on(checkpoint: Path | None) -> None:
    """Tell the user that a command goes on with what an earlier one began."""
    if checkpoint is not None and checkpoint.exists():
        note(f"going on from {checkpoint}; remove it to start afresh.")


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object; numbers JSON does not know become null."""
    typer.echo(json.dumps(_plain(content), allow_nan=False, indent=2))


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


def write_columns(columns: Mapping[str, Sequence[object] | np.ndarray], path: Path | None) -> None:
    """Write a table to a file, or as CSV to stdout if there is none."""
    from symnmf.readers import write_table

    if path is not None:
        changed = write_table(path, columns)
    else:
        with tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / "table.csv"
            changed = write_table(whole, columns)
            _to_stdout(whole.read_bytes())
    if changed:
        note(
            f"{changed} cells that a spreadsheet would run as a formula got an apostrophe in front."
        )


def _to_stdout(content: bytes) -> None:
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough; files are still to come
        drop_stdout()


def drop_stdout() -> None:
    """Send what is still to be printed nowhere, so that no later flush fails."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def counted(number: int, what: str) -> str:
    """Return a number with its noun, in the plural unless there is one."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def check_distinct(
    read: Mapping[str, Path | str | None], written: Mapping[str, Path | None]
) -> None:
    """Refuse to write a file that is also read, or is written twice; keys are the options."""
    from symnmf.errors import InputError

    seen = {option: Path(path) for option, path in read.items() if path is not None}
    for option, path in written.items():
        if path is None:
            continue
        for other, taken in seen.items():
            if other in read and taken.is_dir() and _inside(path, taken):
                raise InputError(
                    f"{option} would write {str(path)!r} into the folder that {other} names; "
                    f"choose another place for {option}."
                )
            if _same_file(path, taken):
                raise InputError(
                    f"{other} and {option} both name the file {str(path)!r}, which would be "
                    f"overwritten; choose another name for {option}."
                )
        seen[option] = path


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _inside(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(path)).parents


def check_writable(*paths: tuple[Path | None, tuple[str, ...]]) -> None:
    """Refuse outputs that could not be written before anything is computed."""
    from symnmf.errors import InputError
    from symnmf.outputs import check_output

    for path, endings in paths:
        if path is None:
            continue
        if endings and not path.name.lower().endswith(endings):
            raise InputError(f"the output {str(path)!r} must end in {' or '.join(endings)}.")
        check_output(path, "the output")


PICTURES = (".png", ".svg", ".pdf")


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure whole or not at all."""
    from symnmf.outputs import write_atomically

    kind = path.suffix[1:].lower()
    write_atomically(path, lambda stream: figure.savefig(stream, format=kind, dpi=150))


def need_matplotlib(*outputs: Path | None) -> None:
    """Ask for the extra before a run that would end in a picture."""
    from importlib.util import find_spec

    from symnmf.errors import InputError

    if any(output is not None for output in outputs) and find_spec("matplotlib") is None:
        raise InputError("--plot and --report need matplotlib: pip install 'symnmf[plots]'.")


def summary(result: Result, certificate: Certificate) -> dict[str, Any]:
    """Return a run as data for ``--json``."""
    from dataclasses import asdict

    return {
        "solver": result.solver,
        "status": result.status,
        "iterations": result.n_iter,
        "error": result.error,
        "seconds": float(result.history["seconds"][-1]),
        "coupling": result.coupling,
        "certified": certificate.certified,
        "verdict": certificate.verdict,
        "certificate": asdict(certificate),
    }


def how_it_ended(result: Result, tol: float) -> str:
    """Return the solver, how far it came and what would bring it further."""
    ways: dict[str, str] = {
        "converged": "converged after {}",
        "max_iter": "did not converge in {} (raise --max-iter or --tol)",
        "max_time": "did not converge in the time allowed, {} (raise --max-time)",
        "stopped": "was interrupted after {}",
        "diverged": "diverged after {} (choose another --solver or --seed)",
    }
    if tol == 0.0 and result.status in ("max_iter", "max_time"):
        ways[result.status] = "did {}"
    way = ways[result.status].format(counted(result.n_iter, "iteration"))
    return f"{result.solver} {way}, error {result.error:.4g}"


def exit_code(status: str, signal_number: int | None, tol: float = 1.0) -> int:
    """Return what the shell is told; a run without a tolerance was never meant to converge."""
    if signal_number is not None:
        return 128 + signal_number
    if status == "stopped":
        return INTERRUPTED
    if status == "converged" or (tol == 0.0 and status != "diverged"):
        return DONE
    return UNCONVERGED
